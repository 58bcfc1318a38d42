"""The server of the viewer: on this machine alone, until it is interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator

import uvicorn

from roadaware.errors import UsageError
from roadaware.io.interrupts import Stop, stop_gracefully
from roadaware.viewer.app import create_app
from roadaware.viewer.guard import Guard
from roadaware.viewer.opening import Opened

HOST = "127.0.0.1"
_LOOK_S = 0.1


class Viewer:
    """A page over what was opened, whose address is known before it is served.

    Args:
        opened: what is looked at.
        port: to listen at; a free one where 0.
        annotator: who judges.

    Raises:
        UsageError: if the port is taken, or may not be listened at.
    """

    def __init__(self, opened: Opened, port: int = 0, annotator: str = "somebody") -> None:
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
        guard = Guard(create_app(opened, annotator), self.port, self.token)
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

    def serve(self, started: Callable[[], None] = lambda: None) -> None:
        """Answer until Ctrl-C or SIGTERM, or until `stop` is called.

        Args:
            started: called once connections are taken.

        Raises:
            KeyboardInterrupt: after Ctrl-C.
            Terminated: after SIGTERM.
        """
        with stop_gracefully() as stop, contextlib.closing(self._socket):
            asyncio.run(self._server.run_until(stop, self._socket, started))
        stop.end()

    def stop(self) -> None:
        """End `serve`, which runs in another thread."""
        self._server.should_exit = True


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


def open_browser(address: str) -> None:
    """Open the address in the browser of this desktop, if there is one, without waiting for it."""

    def attempt() -> None:
        with contextlib.suppress(webbrowser.Error, OSError):
            webbrowser.open(address)

    threading.Thread(target=attempt, name="browser", daemon=True).start()
