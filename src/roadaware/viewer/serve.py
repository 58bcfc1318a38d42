"""The server of the viewer, on this machine alone, and who may ask it and for how much."""

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
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

import uvicorn

from roadaware.errors import UsageError
from roadaware.io.interrupts import Stop, stop_gracefully
from roadaware.viewer.app import create_app
from roadaware.viewer.opening import Opened

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_ADDRESS = 8 << 10
MOST_BODY = 1 << 20
MOST_AT_ONCE = 64
FRAME = "/frame/"
"""Where the page stands for other pages of this machine that show it in a frame, behind the token."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
)
_HEADERS = {
    "content-security-policy": _POLICY + "'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
# Notebooks are pages of this machine, at a port of their own.
_LOOPBACK = " ".join(f"{way}://{name}:*" for way in ("http", "https") for name in ("127.0.0.1", "localhost"))
_FRAMED_HEADERS = {
    name: _POLICY + _LOOPBACK if name == "content-security-policy" else value
    for name, value in _HEADERS.items()
    if name != "x-frame-options"
}


class Guard:
    """Lets through what comes from a page of this server alone, by people who know its token.

    A request needs a Host of this machine with our port, which no name of a stranger's that was pointed at this
    machine is; no Origin but ours; and the token, in the address of the first page or in the cookie that this
    page is given. Whatever is answered has the headers that keep browsers from guessing, framing and asking elsewhere.

    Args:
        app: that answers.
        port: of the server.
        token: that is asked for.
        framed: whether pages of this machine may show the page in a frame. Browsers keep cookies from frames in
            pages of another site, and localhost is another site than 127.0.0.1: the token stands in every address
            then, before the path.
    """

    def __init__(self, app: Application, port: int, token: str, *, framed: bool = False) -> None:
        self._app, self._token, self._framed = app, token, framed
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        # Cookies of one machine are shared by all its ports: the name tells two viewers apart.
        self._cookie = f"roadaware-{port}"
        self._at_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return  # neither websockets nor the server's own start and end are of interest
        inner = self._unframe(scope)
        scope, headers = (scope, _HEADERS) if inner is None else (inner, _FRAMED_HEADERS)
        status, words = self._refuse(scope, framed=inner is not None)
        entrance = not status and inner is None and _token_in_address(scope) is not None
        if not status and self._at_work >= MOST_AT_ONCE:
            status, words = 503, "busy: ask again"

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [
                    pair for pair in message["headers"] if pair[0].lower().decode("latin-1") not in _HEADERS
                ]
                more = dict(headers)
                if entrance:
                    more["set-cookie"] = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
                message["headers"] = [*kept, *((key.encode(), value.encode()) for key, value in more.items())]
            await send(message)

        if status:
            await _answer(send_guarded, status, words)
            return
        self._at_work += 1
        try:
            await self._app(scope, receive, send_guarded)
        finally:
            self._at_work -= 1

    def _unframe(self, scope: Scope) -> Scope | None:
        """The request without the token in its path; None where it has none, or frames are not asked for."""
        given, slash, rest = scope["path"].removeprefix(FRAME).partition("/")
        if not self._framed or not scope["path"].startswith(FRAME) or not slash:
            return None
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return None
        return {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}

    def _refuse(self, scope: Scope, *, framed: bool) -> tuple[int, str]:
        """Why a request is not answered, as a status and words; (0, "") where it is."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts = headers.get("host", [])
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return 400, "this address is not the viewer's"
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MOST_ADDRESS:
            return 414, "the address is too long"
        origins = headers.get("origin", [])
        if any(origin != f"http://{hosts[0]}" for origin in origins):
            return 403, "another page asked"
        if any(site not in ("same-origin", "none") for site in headers.get("sec-fetch-site", [])) and not (
            framed and _begins_frame(scope, headers)
        ):
            return 403, "another page asked"
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "GET, HEAD and POST are answered"
        if not framed and not self._knows_token(scope, headers):
            return 403, "open the address that `roadaware view` printed, with its token"
        if scope["method"] == "POST":
            # Why a body is not taken: forms of other pages can send neither this Origin nor JSON.
            if not list(origins):
                return 403, "a change says where it comes from (Origin)"
            if headers.get("content-type", [""])[0].partition(";")[0].strip() != "application/json":
                return 415, "a change is JSON"
            length = headers.get("content-length", [""])[0]
            if not length.isascii() or not length.isdigit():
                return 411, "a change says how long it is"
            return (413, "a change has up to a megabyte") if int(length[:20]) > MOST_BODY else (0, "")
        return 0, ""

    def _knows_token(self, scope: Scope, headers: dict[str, list[str]]) -> bool:
        given = [_token_in_address(scope)]
        for line in headers.get("cookie", []):
            try:
                morsel = SimpleCookie(line).get(self._cookie)
            except CookieError:
                continue
            given.append(None if morsel is None else morsel.value)
        mine = self._token.encode()
        return any(secrets.compare_digest(each.encode(), mine) for each in given if each is not None)


def _begins_frame(scope: Scope, headers: dict[str, list[str]]) -> bool:
    """Whether a page of elsewhere shows ours in a frame; it can ask for nothing else, and not read the answer."""
    asked = (headers.get("sec-fetch-dest"), headers.get("sec-fetch-mode"), scope["method"], scope["path"])
    return asked == (["iframe"], ["navigate"], "GET", "/")


def _token_in_address(scope: Scope) -> str | None:
    """The token in the address of the first page; no other address carries it."""
    if scope["path"] != "/":
        return None
    try:
        asked = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=8)
    except ValueError:
        return None
    return next(iter(asked.get("token", [])), None)


async def _answer(send: Send, status: int, words: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    if status == 503:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": words.encode()})


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
