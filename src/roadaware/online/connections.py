"""Connections to cameras: whom they may reach, for how long, their faults in words; and RTSP relayed."""

from __future__ import annotations

import base64
import errno
import hashlib
import http
import ipaddress
import re
import secrets
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from roadaware.addresses import Address
from roadaware.errors import InputError
from roadaware.io.decoders import BROKEN

_CERTIFICATE = "a certificate of your own is trusted once the variable SSL_CERT_FILE names its file"
_AT_ONCE = 1 << 16
_HINTS = {
    401: "give user and password: scheme://user:password@host",
    403: "the camera knows who asks and refuses; check the rights of the user",
    404: "check the path of the address",
    407: "roadaware uses no proxy; name the camera itself",
    429: "fewer may watch it at once; close another viewer",
    453: "fewer may watch it at once; close another viewer",
    500: "the camera has a fault of its own; start it anew",
    503: "the camera is busy or starting; wait, and close other viewers",
}


class StreamError(InputError):
    """A camera that cannot be reached, refuses, or sends a stream that cannot be decoded."""


class Patience:
    """How long the far end may take before the next packet is there.

    Args:
        wait_s: in all, from one `renew` to the next.
    """

    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s
        self.renew()

    def renew(self) -> None:
        """Begin anew."""
        self._end_s = time.monotonic() + self.wait_s

    def left_s(self) -> float:
        """Seconds that are left.

        Raises:
            TimeoutError: if none are.
        """
        left_s = self._end_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(f"nothing that can be used came for {self.wait_s:g} s")
        return left_s


def connect(address: Address, patience: Patience, *, public: bool = False) -> socket.socket:
    """A connection to the host of an address, encrypted for https and rtsps.

    Args:
        address: whose host is looked up once; the connection goes to what was found then.
        patience: of everything together, the look-up excepted, which the system bounds.
        public: refuse where any of what was found is no machine of the open net.

    Raises:
        StreamError: if `public` holds and the host is none of the open net.
        OSError, ValueError: as the system says.
    """
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    # All of them: a name that also stands for a machine of this network could be tried for that one.
    if public and not all(is_public(str(place[4][0])) for place in found):
        said = "it leads to a machine of this network, which only the first address may name"
        raise StreamError(said, hint="name that address itself, if it is meant")
    fault: OSError = OSError("the host has no address")
    for family, kind, protocol, _, place in found:
        wire = socket.socket(family, kind, protocol)
        try:
            wire.settimeout(patience.left_s())
            wire.connect(place)
            return (
                ssl.create_default_context().wrap_socket(wire, server_hostname=address.host)
                if address.scheme in ("https", "rtsps")
                else wire
            )
        except OSError as error:
            wire.close()
            fault = error
        except BaseException:
            wire.close()
            raise
    raise fault


def is_public(place: str) -> bool:
    """Whether an IP address is one of the open net, also where an IPv6 address wraps one of IPv4.

    >>> [is_public(place) for place in ("8.8.8.8", "127.0.0.1", "169.254.1.1", "::ffff:10.0.0.1")]
    [True, False, False, False]
    """
    found = ipaddress.ip_address(place.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        # Tunnels carry an IPv4 address inside, which is where packets end up.
        inside = [found.ipv4_mapped, found.sixtofour, *(found.teredo or ())]
        if found in _NAT64 or found in _COMPATIBLE:
            inside.append(ipaddress.IPv4Address(int(found) & 0xFFFFFFFF))
        if not all(each is None or is_public(str(each)) for each in inside):
            return False
        if found.ipv4_mapped is not None:
            return True
    if any(found in net for net in _SPECIAL if net.version == found.version):
        return False
    return found.is_global and not (found.is_multicast or found.is_reserved or found.is_unspecified)


# Versions of Python differ about these.
_SPECIAL = [
    ipaddress.ip_network(net) for net in ("192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "2001::/23")
]
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")


class TimedReader:
    """Bytes of a connection; no read waits longer than the patience lasts.

    Args:
        wire: the connection.
        patience: of all reads since it was renewed.

    Attributes:
        ended: whether `arrived` found the end of the connection, behind all that was read.
    """

    def __init__(self, wire: socket.socket, patience: Patience) -> None:
        self._wire, self._patience = wire, patience
        self._held, self.ended = bytearray(), False

    def arrived(self) -> bool:
        """Whether there is something to read, or the connection has ended; does not wait."""
        if self._held or self.ended:
            return True
        self._wire.settimeout(0)
        try:
            found = self._wire.recv(_AT_ONCE)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        self._held += found
        self.ended = not found
        return True

    def exactly(self, count: int) -> bytes:
        """So many bytes.

        Raises:
            ConnectionError: if the connection ends before.
        """
        while len(self._held) < count:
            self._more()
        return self._taken(count)

    def until(self, mark: bytes, most: int) -> bytes:
        """Bytes up to and with a mark.

        Args:
            mark: that ends them.
            most: bytes to look through.

        Raises:
            ConnectionError: if the connection ends before.
            ValueError: if the mark does not come.
        """
        while (place := self._held.find(mark)) < 0:
            if len(self._held) > most:
                raise ValueError(f"its answer has no end within {most:,} bytes")
            self._more()
        return self._taken(place + len(mark))

    def _taken(self, count: int) -> bytes:
        found = bytes(self._held[:count])
        del self._held[:count]
        return found

    def _more(self) -> None:
        self._wire.settimeout(self._patience.left_s())
        found = self._wire.recv(_AT_ONCE)
        if not found:
            raise ConnectionError("the connection ended in the middle of an answer")
        self._held += found


def make_status_error(status: int, *, known: bool = False) -> StreamError:
    """The error for a status other than "OK", in our words, since the camera's own text is not trusted.

    Args:
        status: of HTTP or RTSP.
        known: whether it was given user and password.
    """
    if status == 401 and known:
        hint = "check user and password, and percent-encode what is special in them"
        return StreamError("the camera answered 401 Unauthorized to this user and password", hint=hint)
    if 300 <= status < 400:
        hint = "name the address that it points to, or let it be followed with --follow (http and https only)"
        return StreamError(
            f"the camera answered {format_status(status)}: it points to another address", hint=hint
        )
    hint = _HINTS.get(status, "check the address, and the camera")
    return StreamError(f"the camera answered {format_status(status)}", hint=hint)


def format_status(status: int) -> str:
    """A status with its name.

    >>> format_status(401), format_status(999)
    ('401 Unauthorized', '999')
    """
    try:
        return f"{status} {http.HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} {_RTSP_NAMES[status]}" if status in _RTSP_NAMES else str(status)


_RTSP_NAMES = {
    453: "Not Enough Bandwidth",
    454: "Session Not Found",
    455: "Method Not Valid in This State",
    461: "Unsupported Transport",
    551: "Option not supported",
}


def convert_error(error: BaseException, where: str, what: str = "it cannot be reached") -> StreamError:
    """An error on the way to a camera as one of ours.

    Args:
        error: of the system, of FFmpeg, or ours already.
        where: the address as it may be shown.
        what: failed.
    """
    if isinstance(error, InputError):
        return StreamError(error.message, where=where, hint=error.hint)
    message, hint = _words(error)
    return StreamError(f"{what}: {message}", where=where, hint=hint)


_ANEW = "it is read again from its beginning; a camera that goes on so is not read"


def _words(error: BaseException) -> tuple[str, str]:
    usual = "check that it is on and that the address is right"
    if isinstance(error, socket.gaierror):
        return "its host name cannot be looked up", "check the name, and that the network is there"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})", _CERTIFICATE
    if isinstance(error, ssl.SSLError):
        plain = error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")
        said = "it does not speak TLS at this port" if plain else "the TLS handshake failed"
        return said, "check the port, and whether the scheme should be http or rtsp"
    if isinstance(error, TimeoutError) or type(error).__name__ == "ExitError":
        return str(error) if "came for" in str(error) else "it did not answer in time", usual
    if isinstance(error, IndexError):
        return "it sends a stream that was not there at its start", _ANEW
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return "it sends more streams, or larger images, than are taken from a camera", usual
    if type(error).__name__ == "ProtocolNotFoundError":
        return "this build of FFmpeg does not speak the protocol", "choose another scheme"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror, usual
    return _plain(error), usual


def _plain(error: BaseException) -> str:
    """What a decoder or a parser says of the bytes of others; by its kind, since it may repeat them."""
    strerror: Any = getattr(error, "strerror", None)
    if strerror:
        return str(strerror)
    return str(error) if type(error) in (ConnectionError, ValueError) else type(error).__name__


FAULTS = BROKEN
"""What a connection raises about a camera, FFmpeg's errors and ours excepted."""

# User and password for a camera that asks for them: Basic and Digest, as HTTP and RTSP know them.

_SCHEMES = re.compile(r"\b(digest|basic)\b(?=\s+\w+\s*=|\s*$)", re.IGNORECASE)
# Bounded repetition: a header of quotes must not make the search quadratic.
_FIELD = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.){0,2000})"|([^\s,"]{0,2000}))')
_HASHES = {"md5": "md5", "sha-256": "sha256", "sha-512-256": "sha512_256"}


@dataclass
class Challenge:
    """How a camera wants to be given user and password.

    Args:
        kind: `basic` or `digest`.
        fields: of a digest, by their names in lower case.
    """

    kind: str
    fields: dict[str, str] = field(default_factory=dict)
    _count: int = 0

    def answer(self, user: str, password: str, method: str, target: str) -> str:
        """The value of the header `Authorization`.

        Args:
            user: decoded.
            password: decoded.
            method: of the request.
            target: of the request, as its first line has it.
        """
        if self.kind == "basic":
            pair = f"{user}:{password}".encode("utf-8", "surrogateescape")
            return f"Basic {base64.b64encode(pair).decode()}"
        return self._digest(user, password, method, target)

    def _digest(self, user: str, password: str, method: str, target: str) -> str:
        fields = self.fields
        algorithm, nonce = fields.get("algorithm", "MD5"), fields.get("nonce", "")
        kind, session = _HASHES[algorithm.lower().removesuffix("-sess")], algorithm.lower().endswith("-sess")
        # A count that does not grow is taken for a replay.
        self._count += 1
        count, own = f"{self._count:08x}", secrets.token_hex(8)

        def hashed(*parts: str) -> str:
            data = ":".join(parts).encode("utf-8", "surrogateescape")
            # Builds of OpenSSL for FIPS refuse MD5 otherwise; cameras ask for it.
            return hashlib.new(kind, data, usedforsecurity=False).hexdigest()

        who = hashed(user, fields.get("realm", ""), password)
        if session:
            who = hashed(who, nonce, own)
        asked = hashed(method, target)
        words = {"username": user, "realm": fields.get("realm", ""), "nonce": nonce, "uri": target}
        quality = "auth" in [word.strip().lower() for word in fields.get("qop", "").split(",")]
        words["response"] = (
            hashed(who, nonce, count, own, "auth", asked) if quality else hashed(who, nonce, asked)
        )
        if "opaque" in fields:
            words["opaque"] = fields["opaque"]
        if quality or session:
            words["cnonce"] = own
        plain = {"algorithm": algorithm} if "algorithm" in fields else {}
        plain |= {"qop": "auth", "nc": count} if quality else {}
        parts = [f'{name}="{_format_quoted(value)}"' for name, value in words.items()]
        return "Digest " + ", ".join([*parts, *(f"{name}={value}" for name, value in plain.items())])


def read_challenge(headers: Sequence[str]) -> Challenge | None:
    """The strongest challenge that a camera offers: Digest before Basic; None where it offers neither.

    Args:
        headers: the values of all `WWW-Authenticate`.
    """
    found: dict[str, Challenge] = {}
    for header in headers:
        marks = list(_SCHEMES.finditer(header))
        for mark, after in zip(marks, [*marks[1:], None], strict=True):
            part = header[mark.end() : after.start() if after else len(header)]
            fields = {
                name.lower(): re.sub(r"\\(.)", r"\1", a) if a else b for name, a, b in _FIELD.findall(part)
            }
            kind = mark[1].lower()
            if kind == "basic" or (_is_supported(fields) and "nonce" in fields):
                found.setdefault(kind, Challenge(kind, fields))
    return found.get("digest") or found.get("basic")


def _is_supported(fields: dict[str, str]) -> bool:
    words = fields.get("qop", "auth")
    offered = {word.strip().lower() for word in words.split(",")}
    whole = all(letter.isprintable() for value in fields.values() for letter in value)
    return (
        whole
        and "auth" in offered
        and fields.get("algorithm", "md5").lower().removesuffix("-sess") in _HASHES
    )


def _format_quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


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
