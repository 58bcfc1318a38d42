"""The server of the viewer: on this machine alone, until it is interrupted."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import html
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator

import uvicorn

from roadaware.errors import UsageError
from roadaware.io.interrupts import Stop, stop_gracefully
from roadaware.viewer.app import create_app
from roadaware.viewer.guard import FRAME, Guard
from roadaware.viewer.opening import Opened

HOST = "127.0.0.1"
_LOOK_S = 0.1


class Viewer:
    """A page over what was opened, whose address is known before it is served.

    Args:
        opened: what is looked at.
        port: to listen at; a free one where 0.
        annotator: who judges.
        framed: whether pages of this machine, such as a notebook, may show it in a frame.

    Raises:
        UsageError: if the port is taken, or may not be listened at.
    """

    def __init__(
        self, opened: Opened, port: int = 0, annotator: str = "somebody", *, framed: bool = False
    ) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, port))
        except OSError as error:
            self._socket.close()
            raise UsageError(
                f"port {port} cannot be used: {error.strerror}; leave --port out for a free one"
            ) from error
        self.port = int(self._socket.getsockname()[1])
        # 256 bits: nobody on this machine guesses them.
        self.token = secrets.token_urlsafe(32)
        self._app = create_app(opened, annotator)
        guard = Guard(self._app, self.port, self.token, framed=framed)
        config = uvicorn.Config(
            guard,
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            lifespan="off",
            http="h11",
            ws="none",
            loop="asyncio",
            h11_max_incomplete_event_size=1 << 15,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)

    @property
    def address(self) -> str:
        """What a browser opens."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    @property
    def frame_address(self) -> str:
        """What a page of this machine shows in a frame, where the viewer was made for that."""
        return f"http://{HOST}:{self.port}{FRAME}{self.token}/"

    def serve(self, started: Callable[[], None] = lambda: None) -> None:
        """Answer until Ctrl-C or SIGTERM, or until `stop` is called.

        Args:
            started: called once connections are taken.

        Raises:
            KeyboardInterrupt: after Ctrl-C.
            Terminated: after SIGTERM.
        """
        with contextlib.ExitStack() as stack:
            stop = stack.enter_context(stop_gracefully())
            stack.enter_context(contextlib.closing(self._socket))
            stack.callback(self._app.state.close)
            asyncio.run(self._server.run_until(stop, self._socket, started))
        stop.end()

    def stop(self) -> None:
        """End `serve`, which runs in another thread."""
        self._server.should_exit = True


class Shown:
    """A page that is served while Python runs, as `ra.show` gives it: in a notebook the cell shows it.

    Args:
        opened: what is looked at.
        place: what of it is shown first, as the page's address says it: `v=VIDEO&f=FRAME`.
        height_px: of the frame in a notebook.
    """

    def __init__(self, opened: Opened, place: str = "", height_px: int = 720) -> None:
        self._viewer, self._place, self._height_px = Viewer(opened, framed=True), place, height_px
        ready = threading.Event()
        self._thread = threading.Thread(
            target=self._viewer.serve, args=(ready.set,), name="viewer", daemon=True
        )
        self._thread.start()
        if not ready.wait(_PATIENCE_S):
            raise UsageError("the viewer did not begin to answer: the machine may be overloaded; try again")
        _SHOWN.append(self)
        while len(_SHOWN) > _MOST_SHOWN:  # cells that are run again and again
            _SHOWN[0].close()

    @property
    def address(self) -> str:
        """What a browser on this machine opens."""
        return f"{self._viewer.address}#{self._place}"

    @property
    def closed(self) -> bool:
        """Whether it is served no longer."""
        return not self._thread.is_alive()

    def close(self) -> None:
        """Stop serving the page."""
        self._viewer.stop()
        self._thread.join(_PATIENCE_S)
        if self in _SHOWN:
            _SHOWN.remove(self)

    def wait(self) -> None:
        """Serve until Ctrl-C, in a script that has nothing else to do."""
        while self._thread.is_alive():
            self._thread.join(_LOOK_S)

    def __repr__(self) -> str:
        return f"Shown(closed, port {self._viewer.port})" if self.closed else f"Shown({self.address})"

    def _repr_html_(self) -> str:
        if self.closed:
            return "<p>This page is served no longer: run the cell again.</p>"
        frame, address = (html.escape(each, quote=True) for each in (self._frame, self.address))
        return (
            f'<iframe src="{frame}" width="100%" height="{self._height_px}" allow="fullscreen" '
            f'style="border:0" title="roadaware"></iframe>'
            f'<p><a href="{address}" target="_blank" rel="noreferrer noopener">open in a tab</a></p>'
        )

    @property
    def _frame(self) -> str:
        return f"{self._viewer.frame_address}#{self._place}"


_SHOWN: list[Shown] = []
_MOST_SHOWN, _PATIENCE_S = 8, 30.0


def close_shown() -> None:
    """Stop serving all pages of this process."""
    while _SHOWN:
        _SHOWN[-1].close()


# What was made for their clips goes with them.
atexit.register(close_shown)


class _Server(uvicorn.Server):
    """Uvicorn without signal handlers of its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to `stop_gracefully`."""
        yield

    async def run_until(self, stop: Stop, listening: socket.socket, started: Callable[[], None]) -> None:
        serving = asyncio.ensure_future(self.serve([listening]))
        while not serving.done() and not self.started:
            await asyncio.sleep(0.01)
        started()
        while not serving.done():
            self.should_exit = self.should_exit or bool(stop)
            # A second connection that streams a film must not hold up the end.
            self.force_exit = self.should_exit
            await asyncio.sleep(_LOOK_S)
        await serving


def is_notebook() -> bool:
    """Whether this Python runs the cells of a notebook, which shows what they give."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def open_browser(address: str) -> None:
    """Open the address in the browser of this desktop, if there is one, without waiting for it."""

    def attempt() -> None:
        with contextlib.suppress(webbrowser.Error, OSError):
            webbrowser.open(address)

    threading.Thread(target=attempt, name="browser", daemon=True).start()
