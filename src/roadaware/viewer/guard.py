"""Who may ask the viewer, and for how much: checked before anything else looks at a request."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

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
