"""Addresses of cameras, read strictly; what is secret in them, and how it is kept out of every output."""

from __future__ import annotations

import ipaddress
import json
import re
import threading
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import parse_qsl, quote, unquote, urljoin, urlsplit

from roadaware.errors import UsageError

SCHEMES = ("rtsp", "rtsps", "http", "https", "rtmp", "udp", "tcp", "srt")
"""What addresses may begin with."""
STORES = ("s3", "gs", "memory", "zip", "file")
"""What addresses of stores begin with; http and https may be such, too."""
PORTS = {"http": 80, "https": 443, "rtsp": 554, "rtsps": 322, "rtmp": 1935}
"""The port of a scheme where an address names none."""
HIDDEN = "***"
"""Stands in the place of what is secret."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,15})://")
_BARE = re.compile(rf"(?:{'|'.join(SCHEMES)}):", re.IGNORECASE)
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_.])?")
_PLAIN_PART = re.compile(r"[A-Za-z0-9_.-]{0,24}")
_SECRET_NAME = re.compile(
    "pass|pwd|token|secret|key|auth|sig|session|user|login|cred|code|ticket", re.IGNORECASE
)
_PIECES = re.compile(r"[\s/?#@:;&=\\,\[\]]+")
_WRITE = "write %2F, %3F, %23, %40 and %20 for / ? # @ and a space in a user or password"


@dataclass(frozen=True, repr=False)
class Address:
    """An address that was read; printing it shows no secret.

    Args:
        scheme: in lower case.
        user: decoded; None where there is none.
        password: decoded; None where there is none.
        host: as it is looked up, without brackets.
        port: named or usual; None where neither.
        path: as written, percent-encoded; empty or from its `/` on.
        query: as written, without its `?`.
        text: the whole address as it was given, without its fragment.
    """

    scheme: str
    user: str | None
    password: str | None
    host: str
    port: int | None
    path: str
    query: str
    text: str

    @property
    def shown(self) -> str:
        """The address fit for people and files: no user, password, query or fragment.

        Of the path the parts that look like words are left; a long one, one of many digits, or one behind the
        name of a secret may be a key itself.
        """
        return f"{self.origin}{_plain_path(self.path, self.scheme)}"

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        named = self.port is not None and self.port != PORTS.get(self.scheme)
        return f"{self.scheme}://{host}:{self.port}" if named else f"{self.scheme}://{host}"

    @property
    def target(self) -> str:
        """Path and query as a request names them."""
        path = quote(self.path or "/", safe="%/:;,=&@!$'()*+~-._[]|")
        return path + (f"?{quote(self.query, safe=_QUERY_SAFE)}" if self.query else "")

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"

    __str__ = __repr__


_QUERY_SAFE = "%/:;,=&@!$'()*+~-._[]|?"


def is_address_like(text: str) -> bool:
    """Whether a text may be meant as an address, however badly written; it is then never printed.

    >>> [is_address_like(text) for text in ("rtsp://cam", "rtsp:/me:pw@cam", "me:pw@cam/1", "film.mp4")]
    [True, True, True, False]
    """
    return (
        "://" in text
        or _BARE.match(text.strip()) is not None
        or ("@" in text and ":" in text.partition("@")[0])
    )


def read_address(text: str) -> Address:
    """An address as its parts; what is secret in it no output of the program shows from now on.

    Args:
        text: scheme://[user[:password]@]host[:port][/path][?query].

    Raises:
        UsageError: if it is none; the message names the scheme alone.
    """
    keep_secret(text)
    return read_named_address(text)


def read_named_address(text: str) -> Address:
    """An address that a server names, as its parts.

    What it holds is not kept as a secret: a server could have any word hidden, and names without an end.

    Args:
        text: as of `read_address`.

    Raises:
        UsageError: if it is none; the message names the scheme alone.
    """
    found = _SCHEME.match(text)
    if found is None or found[1].lower() not in SCHEMES:
        said = f"not '{found[1]}'" if found else "and this one does not"
        raise UsageError(f"addresses begin with {', '.join(f'{name}://' for name in SCHEMES)}, {said}")
    scheme = found[1].lower()
    # A line break would add header lines to a request; some parsers take a backslash for a slash.
    if any(letter == "\\" or unicodedata.category(letter)[0] in "CZ" for letter in text):
        raise _build_error(scheme, "a space, a backslash or a letter that cannot be printed stands in it")
    rest = text[found.end() :]
    if not rest.strip("/"):
        raise UsageError(f"{scheme}:// alone is no address: it names no host")
    end = min((rest.find(mark) for mark in "/?#" if mark in rest), default=len(rest))
    authority, behind = rest[:end], rest[end:]
    if "@" in behind:
        # The part before the first slash may be a host, or the beginning of a password: nobody can tell.
        raise _build_error(scheme, "a @ stands behind its first / ? or #")
    # At the last @: a host has none, a password may.
    info, at, place = authority.rpartition("@")
    user, colon, password = (_decode_part(part, scheme) for part in info.partition(":"))
    host, port = _place(place, scheme)
    behind = behind.partition("#")[0]
    path, _, query = behind.partition("?")
    return Address(
        scheme,
        user if at else None,
        password if colon else None,
        host,
        PORTS.get(scheme) if port is None else port,
        path,
        query,
        text.partition("#")[0],
    )


def _build_error(scheme: str, why: str) -> UsageError:
    return UsageError(f"the address {scheme}://… cannot be read: {why}\n  {_WRITE}")


def _decode_part(text: str, scheme: str) -> str:
    plain = unquote(text, errors="surrogateescape")
    if any(unicodedata.category(letter) == "Cc" for letter in plain):
        raise _build_error(scheme, "user or password hold a letter that cannot be printed")
    return plain


def _place(text: str, scheme: str) -> tuple[str, int | None]:
    """Host and port."""
    if text.startswith("["):
        host, bracket, port = text[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise _build_error(scheme, "a bracket of its host has no partner")
        try:
            ipaddress.IPv6Address(host)
        except ValueError:
            raise _build_error(scheme, "what stands in brackets is no IPv6 address") from None
        named, port = bool(port), port[1:]
    else:
        host, colon, port = text.partition(":")
        named, host = bool(colon), _host_name(host, scheme)
    if not named:
        if scheme in ("udp", "tcp", "srt"):
            raise _build_error(scheme, "it names no port")
        return host, None
    if not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        raise _build_error(scheme, "what follows the : of its host is no port from 1 to 65535")
    return host, int(port)


def _host_name(host: str, scheme: str) -> str:
    if not host:
        if scheme == "udp":  # listens on every address of this machine
            return host
        raise _build_error(scheme, "it names no host")
    try:
        name = host.lower() if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        name = ""
    if not _HOST.fullmatch(name) or ".." in name:
        raise _build_error(scheme, "its host is no name of a machine")
    return name


def _plain_path(path: str, scheme: str) -> str:
    shown, parts = [], path.split("/")
    for number, part in enumerate(parts):
        digits = sum(letter.isdigit() for letter in part)
        plain = _PLAIN_PART.fullmatch(part) and digits <= 6
        after_name = number and _SECRET_NAME.search(parts[number - 1])
        # The last part of an rtmp address is the key of the stream.
        stream_key = scheme == "rtmp" and number > 1 and number == len(parts) - 1
        shown.append(part if plain and not (part and (after_name or stream_key)) else HIDDEN)
    return "/".join(shown)


# What is secret, and how it is kept out ---------------------------------------------------------------------

_lock = threading.Lock()
_secrets: set[str] = set()
_places: dict[str, str] = {}


def keep_secret(text: str) -> None:
    """Let `mask_secrets` hide what is secret in an address, be it well written or not."""
    found = _secrets_in(text)
    with _lock:
        if not found <= _secrets:
            _secrets.update(found)
            _pattern.cache_clear()


def reset_secrets() -> None:
    """Let `mask_secrets` hide nothing but what is kept from now on: another command, with addresses of its own."""
    with _lock:
        _secrets.clear()
        _places.clear()
        _pattern.cache_clear()


def show_place(path: str, shown: str) -> None:
    """Let `mask_secrets` write the address of a store for the folder that stands for it.

    Args:
        path: of the folder, as texts hold it.
        shown: what people know it by.
    """
    with _lock:
        _places[path] = shown


def is_same_host(address: str, target: str) -> bool:
    """Whether what an answer of http points to lies on the machine that was asked, as safely as it was asked.

    >>> [is_same_host("https://a/x", target) for target in ("/y", "https://a/y", "http://a/y", "https://b/x", "//b/x")]
    [True, True, False, False, False]
    >>> [is_same_host("http://a/x", target) for target in ("https://a/x", "http://a:81/x", "http://a:80/x")]
    [True, False, True]
    """
    asked, found = urlsplit(address), urlsplit(urljoin(address, target))
    usual = {"http": 80, "https": 443}
    try:
        ports = [each.port or usual.get(each.scheme) for each in (asked, found)]
    except ValueError:
        return False
    safe = found.scheme in ("https", asked.scheme)
    return found.hostname == asked.hostname and safe and (ports[0] == ports[1] or ports == [80, 443])


def holds_secret(text: str) -> bool:
    """Whether `mask_secrets` would hide something of a text."""
    pattern = _pattern()
    return pattern is not None and pattern.search(text) is not None


def mask_secrets(text: str) -> str:
    """A text without the secrets of any address that was given so far, and with stores by their addresses.

    >>> keep_secret("rtsp://me:pa%2Fss-word@camera/1")
    >>> mask_secrets("no route to me:pa%2Fss-word@camera, pa/ss-word"), mask_secrets("nothing")
    ('no route to ***camera, ***', 'nothing')
    """
    for path, shown in _places.items():
        text = text.replace(path, shown)
    pattern = _pattern()
    return text if pattern is None else pattern.sub(HIDDEN, text)


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str] | None:
    with _lock:
        forms = {form for secret in _secrets for form in _forms(secret)}
    if not forms:
        return None
    # Longest first: a part of a secret must not take the place of the whole.
    return re.compile("|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)))


def _forms(secret: str) -> set[str]:
    """A secret as it is, decoded, encoded, and as JSON, `repr` and messages escape it."""
    plain = unquote(secret, errors="surrogateescape")
    once = {
        secret,
        plain,
        quote(plain, safe="", errors="surrogateescape"),
        quote(plain, errors="surrogateescape"),
    }
    # As pathlib writes an address.
    once |= {form.replace("//", "/") for form in once}
    escaped = {json.dumps(form)[1:-1] for form in once} | {repr(form)[1:-1] for form in once}
    escaped |= {form.encode("unicode_escape").decode() for form in once}
    # Hiding one or two letters would blacken every text.
    return {form for form in once | escaped if len(form) > 2}


def _secrets_in(text: str) -> set[str]:
    if not text.partition("://" if "://" in text else ":")[2].strip("/?#@: "):
        return set()  # a scheme alone has no secret, and is to be seen as what it is
    if text.partition("://")[0].rpartition("=")[2].lower() in (*STORES, "ray"):
        chain, sign, holder = text.partition("::")
        # Of these only what stands before a @ is one: a password, or a name that is refused.
        info, at, _ = chain.partition("://")[2].rpartition("@")
        kept = {f"{info}{at}", *re.split("[:/]", info)} if at else set()
        return {each for each in kept if len(each) > 2} | (_secrets_in(holder) if sign else set())
    found = {text, text.partition("#")[0]}
    try:
        address = read_named_address(text)
    except UsageError:
        # Nobody can tell host from password: every piece may be one.
        return {
            piece for piece in {*found, *_PIECES.split(text)} if len(piece) >= 4 and piece not in _HARMLESS
        }
    rest = text.partition("://")[2]
    info = re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")[0]
    kept = {f"{info}@"} if info else set()
    word = info.partition(":")[2] if ":" in info else info
    kept |= {each for each in (word, address.password or "") if _telling(each, 4)}
    behind = rest[len(re.split("[/?#]", rest, maxsplit=1)[0]) :]
    kept |= {part for part in re.split("[?#]", behind)[1:] if len(part) >= 4}
    for name, value in parse_qsl(re.sub("^[^?#]*[?#]?", "", behind).replace("#", "&").replace(";", "&")):
        kept |= {value} if _telling(value, 4 if _SECRET_NAME.search(name) else 8) else set()
    plain = _plain_path(address.path, address.scheme).split("/")
    hidden = [part for part, shown in zip(address.path.split("/"), plain, strict=True) if part != shown]
    kept |= {piece for part in hidden for piece in (part, *_PIECES.split(part)) if _telling(piece, 6)}
    return {each for each in found | kept if each not in address.shown}


def _telling(text: str, least: int) -> bool:
    """Whether a text is worth hiding wherever it stands; of few digits every number would be hidden."""
    return len(text) >= least and not (text.isdecimal() and len(text) < 8) and text not in _HARMLESS


_HARMLESS = {*SCHEMES, "true", "false", "none"}
