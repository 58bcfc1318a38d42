"""An RTSP camera, relayed to FFmpeg over this machine so that no answer leads anywhere else.

FFmpeg goes wherever an RTSP server redirects it, and has no option against it. So it talks to a port of this
process alone, and what passes is read: redirects end the connection, user and password are added here, and
the camera is reached by one connection, encrypted for rtsps."""

from __future__ import annotations

import re
import secrets
import selectors
import socket
import threading
from contextlib import suppress

from roadaware.addresses import Address
from roadaware.online.connections import (
    FAULTS,
    Challenge,
    Patience,
    StreamError,
    TimedReader,
    connect,
    make_status_error,
    read_challenge,
)

_HEAD_BYTES, _BODY_BYTES = 1 << 16, 1 << 20
_STATUS = re.compile(rb"RTSP/1\.\d +([0-9]{3})(?: |\r|\n|$)")
_LENGTH = re.compile(rb"^content-length *: *([0-9]{1,9}) *\r?$", re.IGNORECASE | re.MULTILINE)
_ASKED = re.compile(rb"^www-authenticate *: *(.*?)\r?$", re.IGNORECASE | re.MULTILINE)
_NUMBER = re.compile(rb"^cseq *: *([0-9]{1,9})", re.IGNORECASE | re.MULTILINE)
# A refusal of others, such as the GET_PARAMETER that keeps a session alive, ends nothing.
_NEEDED = (b"OPTIONS ", b"DESCRIBE ", b"SETUP ", b"PLAY ")
_FOREVER_S = 1e9


class RtspRelay:
    """One connection to a camera, open to one connection of this process.

    Args:
        address: of the camera.
        wait_s: for both connections to be there.

    Raises:
        StreamError, OSError, ValueError: as the connection fails.
    """

    def __init__(self, address: Address, wait_s: float) -> None:
        self.failure: BaseException | None = None
        self._address, self._wait_s = address, wait_s
        self._real = f"rtsp://{address.origin.partition('://')[2]}{address.target}".encode()
        self._challenge: Challenge | None = None
        self._asked: dict[bytes, tuple[bytes, bool]] = {}
        self._camera = connect(address, Patience(wait_s))
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1)
        self._listener.settimeout(wait_s)
        # Another process of this machine may find the port, but not the name that requests must have.
        self.url = f"rtsp://127.0.0.1:{self._listener.getsockname()[1]}/{secrets.token_hex(16)}"
        self._local = self.url.encode()
        self._client: socket.socket | None = None
        self._over = False
        # One thread for both ways: a connection of TLS breaks, or the process, where two threads use it.
        self._thread = threading.Thread(target=self._run, name="rtsp relay", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End both connections."""
        self._over = True
        for wire in (self._listener, self._client, self._camera):
            if wire is not None:
                # It wakes the thread, which closes them: a number that it waits for must not be given anew.
                # Of TLS this is the connection below: its own way out would go on without encryption.
                with suppress(OSError):
                    socket.socket.shutdown(wire, socket.SHUT_RDWR)
        self._thread.join(1.0)

    def _run(self) -> None:
        try:
            with self._listener:
                self._client, _ = self._listener.accept()
            self._relay(self._client)
        except (*FAULTS, StreamError) as error:
            self._fail(error)
        finally:
            # Behind what failed, which is looked for as soon as FFmpeg sees the end.
            for wire in (self._client, self._camera):
                if wire is not None:
                    wire.close()

    def _relay(self, client: socket.socket) -> None:
        """Pass on what comes from either side until one of them ends."""
        patience = Patience(self._wait_s)
        camera, local = TimedReader(self._camera, patience), TimedReader(client, Patience(_FOREVER_S))
        with selectors.DefaultSelector() as either:
            either.register(self._camera, selectors.EVENT_READ)
            either.register(client, selectors.EVENT_READ)
            while True:
                here = [side for side in (camera, local) if side.arrived()]
                if not here:
                    either.select(patience.left_s())
                for side in here:
                    if side.ended:
                        return
                    if side is camera:
                        patience.renew()
                        self._pass_answer(camera, client)
                        patience.renew()
                    else:
                        self._pass_request(local)

    def _fail(self, error: BaseException) -> None:
        """Keep what went wrong first; what follows from ending both connections is no fault."""
        if not self._over:
            self.failure = self.failure or error

    # From FFmpeg to the camera -----------------------------------------------------------------------------

    def _pass_request(self, reader: TimedReader) -> None:
        first = reader.exactly(1)
        # RTSP mixes packets with messages on one connection; a packet begins with a dollar.
        if first == b"$":
            self._send(first + _read_interleaved(reader))
            return
        head, body = _message(first, reader)
        method, _, rest = head.partition(b" ")
        target, _, more = rest.partition(b" ")
        if not target.startswith((self._local, b"rtsp://", b"*")):
            raise ValueError("a request of another program")
        if target.startswith(self._local):
            target = self._real + target[len(self._local) :]
        request = b" ".join([method, target, more]) + body
        number = _NUMBER.search(request)
        # The last request alone: no camera can make the list grow.
        self._asked = {number[1]: (request, self._challenge is not None)} if number else {}
        self._send(self._signed(request))

    def _signed(self, request: bytes) -> bytes:
        """A request with user and password, once the camera has asked for them."""
        address = self._address
        if self._challenge is None or address.user is None:
            return request
        line, mark, rest = request.partition(b"\r\n")
        method, target = (part.decode("latin-1") for part in line.split(b" ")[:2])
        answer = self._challenge.answer(address.user, address.password or "", method, target)
        return line + mark + b"Authorization: " + answer.encode("utf-8", "surrogateescape") + b"\r\n" + rest

    def _send(self, data: bytes) -> None:
        self._camera.settimeout(self._wait_s)
        self._camera.sendall(data)

    # From the camera to FFmpeg -----------------------------------------------------------------------------

    def _pass_answer(self, reader: TimedReader, client: socket.socket) -> None:
        client.settimeout(None)  # FFmpeg takes what it needs when it needs it
        first = reader.exactly(1)
        if first == b"$":
            client.sendall(first + _read_interleaved(reader))
            return
        head, body = _message(first, reader)
        status = _STATUS.match(head)
        if status is None and not head.split(b"\r\n")[0].rstrip().endswith(b"RTSP/1.0"):
            raise ValueError("it does not speak RTSP")
        if status is None or not self._answered(int(status[1]), head):
            client.sendall(head + body)

    def _answered(self, status: int, head: bytes) -> bool:
        """Whether an answer was dealt with here, so that FFmpeg does not see it.

        Raises:
            StreamError: if it points to another address.
        """
        if 300 <= status < 400:
            raise make_status_error(status)
        if status == 401 and self._asked_again(head):
            return True
        number = _NUMBER.search(head)
        request = self._asked.get(number[1], (b"", False))[0] if number else b""
        if status >= 400 and request.startswith(_NEEDED):
            self._fail(make_status_error(status, known=self._address.user is not None))
        return False

    def _asked_again(self, head: bytes) -> bool:
        """Ask once more with user and password; False where there are none, or they were refused."""
        number = _NUMBER.search(head)
        request, signed = self._asked.get(number[1], (b"", False)) if number else (b"", False)
        if number:
            self._asked[number[1]] = (request, True)
        offers = [found.decode("latin-1") for found in _ASKED.findall(head)]
        challenge = read_challenge(offers)
        # A stale nonce is no refusal of the password.
        stale = challenge is not None and challenge.fields.get("stale", "").lower() == "true"
        if not request or challenge is None or self._address.user is None or (signed and not stale):
            return False
        self._challenge = challenge
        self._send(self._signed(request))
        return True


def _read_interleaved(reader: TimedReader) -> bytes:
    """Channel, length and content of a packet between messages."""
    head = reader.exactly(3)
    return head + reader.exactly(int.from_bytes(head[1:], "big"))


def _message(first: bytes, reader: TimedReader) -> tuple[bytes, bytes]:
    """Head, with the empty line, and body of a message."""
    head = first + reader.until(b"\r\n\r\n", _HEAD_BYTES)
    length = _LENGTH.search(head)
    count = int(length[1]) if length else 0
    if count > _BODY_BYTES:
        raise ValueError(f"its answer is longer than {_BODY_BYTES:,} bytes")
    return head, reader.exactly(count) if count else b""
