"""The body of an http or https response as a file for a decoder; no other address is requested.

FFmpeg follows redirects and playlists to any machine and tells of a status by a number, so the requests are
made here."""

from __future__ import annotations

import http.client
import io
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urljoin

from roadaware import __version__
from roadaware.addresses import Address, read_named_address
from roadaware.errors import UsageError
from roadaware.online.connections import (
    Challenge,
    Patience,
    StreamError,
    connect,
    format_status,
    make_status_error,
    read_challenge,
)

# Ends a circle of redirects.
_HOPS = 5
# Reading on over so little spares a new request.
_SKIP_BYTES, _LOOK_BYTES = 1 << 18, 32
_REDIRECTS = (301, 302, 303, 307, 308)
# What begins so is a list of other addresses, or a page for people.
_HEADS = {
    b"#EXTM3U": "a playlist (HLS)",
    b"<?xml": "an XML document, which may be a playlist (DASH, ASX)",
    b"<MPD": "a playlist (DASH)",
    b"<asx": "a playlist (ASX)",
    b"<smil": "a playlist (SMIL)",
    b"[playlist]": "a playlist (PLS)",
    b"[reference]": "a playlist",
    b"ffconcat": "a playlist (concat)",
    b"v=0": "a description of another stream (SDP)",
    b"rtsp://": "another address",
    b"http": "another address",
    b"<!doctype html": "a page for people",
    b"<html": "a page for people",
}


class HttpBody:
    """The body of an answer.

    Args:
        address: that is asked.
        patience: bounds every read.
        first: the address that the user gave, where `address` was named by what that answered.
        follow: go where a redirect points; other machines than the first one must be of the open net.
        span: first byte that is wanted, and the one behind the last; None for all.

    Raises:
        StreamError: if the answer is none that can be watched; its message is about the answer alone.
        OSError, ValueError: as the connection fails.
    """

    def __init__(
        self,
        address: Address,
        patience: Patience,
        *,
        first: Address | None = None,
        follow: bool = False,
        span: tuple[int, int | None] | None = None,
    ) -> None:
        self._patience, self._follow, self._first = patience, follow, first or address
        self._at = (span or (0, None))[0]
        self._challenge: Challenge | None = None
        self._end = (span or (0, None))[1]
        self._wire: socket.socket | None = None
        self._ahead = b""
        self.failure: BaseException | None = None
        self._address = self._checked(address)
        self._ask_and_follow(ranged=span is not None)
        self.name = self._address.text if follow else "stream"

    @property
    def whole(self) -> bool:
        """Whether the answer said how long it is: a video, not a camera."""
        return self._size is not None

    @property
    def form(self) -> str | None:
        """The format of FFmpeg that the answer states; None where it is to be found out."""
        kind = (self._response.headers.get_content_type() or "").lower()
        return "mpjpeg" if kind == "multipart/x-mixed-replace" else None

    @property
    def names_others(self) -> bool:
        """Whether this is a playlist that may be followed (HLS)."""
        return self._ahead.startswith(b"#EXTM3U")

    def seekable(self) -> bool:
        """Whether the server supports range requests."""
        return self._ranges and self._size is not None

    def read(self, count: int) -> bytes:
        """Some bytes, at most so many; none at the end.

        Raises:
            OSError, ValueError: as the connection fails; kept in `failure`, too.
        """
        try:
            return self._read(count)
        except (OSError, ValueError, StreamError) as error:
            self.failure = error
            raise

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a byte; it is requested by the next read."""
        # FFmpeg sets flags above the lower 16 bits (AVSEEK_FORCE).
        base = {0: 0, 1: self._at, 2: self._size or 0}[whence & 0xFFFF]
        if base + offset < 0:
            raise ValueError("before the first byte")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        """The next byte."""
        return self._at

    def close(self) -> None:
        """Disconnect."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def _read(self, count: int) -> bytes:
        if self._end is not None:
            count = min(count, self._end - self._at)
        if count <= 0 or (self._size is not None and self._at >= self._size):
            return b""
        self._go_to(self._at)
        if self._ahead:
            found, self._ahead = self._ahead[:count], self._ahead[count:]
        else:
            found = self._more(count)
        self._at += len(found)
        self._place += len(found)
        return found

    def _go_to(self, place: int) -> None:
        """Let the connection stand at a byte: read on up to it where it is near, else ask anew."""
        if place == self._place:
            return
        if not self._place < place <= self._place + _SKIP_BYTES:
            self._ask_and_follow(ranged=True)
            return
        while self._place < place:
            missing = place - self._place
            found, self._ahead = self._ahead[:missing], self._ahead[missing:]
            found = found or self._more(missing)
            if not found:
                raise ConnectionError("the answer ended early")
            self._place += len(found)

    def _more(self, count: int) -> bytes:
        left = None if self._until is None else self._until - self._place - len(self._ahead)
        if left == 0:
            return b""
        if self._wire is not None:
            self._wire.settimeout(self._patience.left_s())
        try:
            # read1 gives what is there; read would wait until all of it has come.
            found: bytes = self._response.read1(count if left is None else min(count, left))
        except http.client.HTTPException:
            raise ConnectionError("the connection ended in the middle of the answer") from None
        if not found and left is not None:
            raise ConnectionError(f"the answer ended {left:,} bytes early")
        return found

    # Asking ------------------------------------------------------------------------------------------------

    def _checked(self, address: Address) -> Address:
        """An address with the user and password of the first one, if it is on the same host and port."""
        if address.scheme not in ("http", "https"):
            raise StreamError("it points to an address that is neither http nor https")
        same = address.origin == self._first.origin
        # Encryption that the user asked for is not given up by a redirect.
        if self._first.scheme == "https" and address.scheme == "http":
            raise StreamError("it points from https to http, where everybody could read along")
        user, password = (self._first.user, self._first.password) if same else (None, None)
        return replace(address, user=user, password=password)

    def _ask_and_follow(self, *, ranged: bool) -> None:
        for _ in range(_HOPS + 1):
            self._ask(ranged=ranged)
            if self._response.status not in _REDIRECTS:
                break
            if not self._follow:
                raise make_status_error(self._response.status)
            self._address = self._checked(self._pointed_to())
        else:
            raise StreamError(f"it pointed to another address more than {_HOPS} times")
        self._require_stream(ranged=ranged)

    def _pointed_to(self) -> Address:
        plain = f"{self._address.origin}{self._address.target}"
        try:
            return read_named_address(urljoin(plain, self._response.headers.get("Location", "")))
        except (UsageError, ValueError):
            words = format_status(self._response.status)
            raise StreamError(f"the camera answered {words}, and where to cannot be read") from None

    def _ask(self, *, ranged: bool) -> None:
        """Make the request, a second time with user and password where they are asked for."""
        self._request(ranged=ranged)
        if self._response.status != 401 or self._address.user is None:
            return
        self._challenge = read_challenge(self._response.headers.get_all("WWW-Authenticate") or [])
        if self._challenge is not None:
            self._request(ranged=ranged)
            if self._response.status == 401:
                raise make_status_error(401, known=True)

    def _request(self, *, ranged: bool) -> None:
        self.close()
        address, self._ahead = self._address, b""
        # A server on the net may not make this machine ask its neighbours.
        public = address.origin != self._first.origin
        self._wire = connect(address, self._patience, public=public)
        link = http.client.HTTPConnection(address.host, address.port)
        link.sock = _TimedWire(self._wire, self._patience)
        link.putrequest("GET", address.target, skip_host=True, skip_accept_encoding=True)
        for name, value in self._headers(address, ranged=ranged):
            link.putheader(name, value.encode("latin-1"))
        link.endheaders()
        try:
            self._response = link.getresponse()
        except http.client.HTTPException as error:
            # Its words may be those of the camera.
            raise ConnectionError(f"its answer is no HTTP ({type(error).__name__})") from None

    def _headers(self, address: Address, *, ranged: bool) -> Iterator[tuple[str, str]]:
        yield "Host", address.origin.partition("://")[2]
        yield "User-Agent", f"roadaware/{__version__}"
        yield "Accept", "*/*"
        yield "Accept-Encoding", "identity"
        yield "Connection", "close"
        if ranged:
            yield "Range", f"bytes={self._at}-{'' if self._end is None else self._end - 1}"
        challenge = self._challenge
        if challenge is not None and address.user is not None:
            answer = challenge.answer(address.user, address.password or "", "GET", address.target)
            yield "Authorization", answer.encode("utf-8", "surrogateescape").decode("latin-1")

    def _require_stream(self, *, ranged: bool) -> None:
        response, headers = self._response, self._response.headers
        # A server without ranges sends everything: from the first byte on that is what was asked for.
        if ranged and response.status == 200 and self._at == 0:
            ranged = False
        if response.status != (206 if ranged else 200):
            raise make_status_error(response.status)
        if (headers.get("Content-Encoding") or "identity").lower() not in ("identity", ""):
            raise StreamError("the camera answered with compressed data, which was not asked for")
        length = None if response.chunked else response.length
        self._place = self._at if ranged else 0
        self._until = None if length is None else self._place + length
        if ranged:
            # How long the whole is of which a part came
            text = headers.get("Content-Range") or ""
            place, _, size = text.strip().removeprefix("bytes").strip().partition("/")
            if place.partition("-")[0].strip() != str(self._at):
                raise StreamError("the camera answered with another part than was asked for")
            # Up to 18 digits fit the 64 bits in which FFmpeg counts bytes.
            self._size = int(size) if size.isdecimal() and len(size) < 19 else None
        else:
            self._size = self._until
        self._ranges = ranged or (headers.get("Accept-Ranges") or "").strip().lower() == "bytes"
        while not ranged and len(self._ahead) < _LOOK_BYTES and (found := self._more(_LOOK_BYTES)):
            self._ahead += found
        self._require_no_list()

    def _require_no_list(self) -> None:
        head = self._ahead.lstrip(b"\xef\xbb\xbf \t\r\n")[:32].lower()
        found = next((words for mark, words in _HEADS.items() if head.startswith(mark.lower())), None)
        if found is None or (self._follow and self.names_others):
            return
        hint = "name the address of the video itself"
        if head.startswith(b"#extm3u"):
            hint += "; --follow lets the addresses in an HLS playlist be asked"
        raise StreamError(f"expected a video stream, the camera answered with {found}", hint=hint)


class _TimedWire:
    """As much of a socket as http.client needs; every read and write is bounded by the patience left."""

    def __init__(self, wire: socket.socket, patience: Patience) -> None:
        self._wire, self._patience = wire, patience

    def sendall(self, data: bytes) -> None:
        self._wire.settimeout(self._patience.left_s())
        self._wire.sendall(data)

    def makefile(self, mode: str) -> Any:
        return io.BufferedReader(_TimedRaw(self._wire, self._patience), 1 << 16)

    def close(self) -> None:
        """The body is still to be read; `HttpBody` closes the connection."""


class _TimedRaw(io.RawIOBase):
    def __init__(self, wire: socket.socket, patience: Patience) -> None:
        self._wire, self._patience = wire, patience

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._wire.settimeout(self._patience.left_s())
        return self._wire.recv_into(buffer)
