"""User and password for a camera that asks for them: Basic and Digest, as HTTP and RTSP know them."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

_SCHEMES = re.compile(r"\b(digest|basic)\b(?=\s+\w+\s*=|\s*$)", re.IGNORECASE)
_FIELD = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.){0,2000})"|([^\s,"]{0,2000}))')
_HASHES = {"md5": "md5", "sha-256": "sha256", "sha-512-256": "sha512_256"}


@dataclass
class Challenge:
    """How a camera wants to be told who asks.

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
        told = self.fields
        algorithm, nonce = told.get("algorithm", "MD5"), told.get("nonce", "")
        kind, session = _HASHES[algorithm.lower().removesuffix("-sess")], algorithm.lower().endswith("-sess")
        self._count += 1
        count, own = f"{self._count:08x}", secrets.token_hex(8)

        def hashed(*parts: str) -> str:
            data = ":".join(parts).encode("utf-8", "surrogateescape")
            return hashlib.new(kind, data, usedforsecurity=False).hexdigest()

        who = hashed(user, told.get("realm", ""), password)
        if session:
            who = hashed(who, nonce, own)
        asked = hashed(method, target)
        words = {"username": user, "realm": told.get("realm", ""), "nonce": nonce, "uri": target}
        quality = "auth" in [word.strip().lower() for word in told.get("qop", "").split(",")]
        words["response"] = (
            hashed(who, nonce, count, own, "auth", asked) if quality else hashed(who, nonce, asked)
        )
        if "opaque" in told:
            words["opaque"] = told["opaque"]
        if quality or session:
            words["cnonce"] = own
        plain = {"algorithm": algorithm} if "algorithm" in told else {}
        plain |= {"qop": "auth", "nc": count} if quality else {}
        parts = [f'{name}="{_quoted(value)}"' for name, value in words.items()]
        return "Digest " + ", ".join([*parts, *(f"{name}={value}" for name, value in plain.items())])


def read_challenge(headers: Sequence[str]) -> Challenge | None:
    """The best of what a camera offers: Digest before Basic; None where it offers neither.

    Args:
        headers: the values of all `WWW-Authenticate`.
    """
    found: dict[str, Challenge] = {}
    for header in headers:
        marks = list(_SCHEMES.finditer(header))
        for mark, after in zip(marks, [*marks[1:], None], strict=True):
            part = header[mark.end() : after.start() if after else len(header)]
            fields = {name.lower(): _unquoted(a) if a else b for name, a, b in _FIELD.findall(part)}
            kind = mark[1].lower()
            if kind == "basic" or (_known(fields) and "nonce" in fields):
                found.setdefault(kind, Challenge(kind, fields))
    return found.get("digest") or found.get("basic")


def _known(fields: dict[str, str]) -> bool:
    words = fields.get("qop", "auth")
    offered = {word.strip().lower() for word in words.split(",")}
    whole = all(letter.isprintable() for value in fields.values() for letter in value)
    return (
        whole
        and "auth" in offered
        and fields.get("algorithm", "md5").lower().removesuffix("-sess") in _HASHES
    )


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
