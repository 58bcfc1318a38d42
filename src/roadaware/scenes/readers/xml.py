"""Annotation files as XML trees: no entities, no DOCTYPE, no network, and errors that say where."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection
from typing import Any

from lxml import etree

from roadaware.errors import InputError
from roadaware.scenes.readers.source import shown

_DECLARED = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_FORBIDDEN = re.compile("<!(?:DOCTYPE|ENTITY)")
_NOISE = re.compile(r",? (?:try|use) XML_PARSE_HUGE(?: option)?|, line \d+, column \d+$|\n")
_DAMAGED = "the file is damaged or cut off: fetch it again"
_CHUNK = 1 << 16
_SAFE: dict[str, Any] = {
    "encoding": "utf-8",
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
    "strip_cdata": True,
}
_KNOWN_ENCODINGS = {"utf-8": "utf-8", "ascii": "ascii", "iso8859-1": "latin-1"}


def decode(data: bytes, where: str) -> str:
    """The text of an XML file in UTF-8, ASCII, Latin-1 or (with its mark) UTF-16.

    Raises:
        InputError: if it is empty, in another encoding, broken (with the byte), or declares a DOCTYPE or
            an entity.
    """
    if not data.strip():
        raise InputError("the file is empty; expected XML", where=where, hint=_DAMAGED)
    encoding = _encoding(data, where)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not {encoding.removesuffix('-sig').upper()}: {error.reason}"
        raise InputError(message, where=where, hint=_DAMAGED) from error
    if _FORBIDDEN.search(text):
        message = "the file declares a DOCTYPE or an entity, which no annotation file needs"
        raise InputError(message, where=where, hint="remove the declaration if you trust the file")
    return text


def parse(data: bytes | str, where: str, *, root: str | None = None) -> etree._Element:
    """The root of a well-formed document without comments, processing instructions and CDATA marks.

    Args:
        data: the file's bytes, or the text `decode` gave.
        where: names the file in errors.
        root: the name its root must have.

    Raises:
        InputError: as `decode`; if it is not well formed (with line and column); if the root has another
            name (which is named).
    """
    text = data if isinstance(data, str) else decode(data, where)
    try:
        tree = etree.fromstring(text.encode(), etree.XMLParser(**_SAFE))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise _malformed(error, where) from error
    return _named(tree, where, root)


def pull(
    text: str,
    where: str,
    names: Collection[str],
    visit: Callable[[str, etree._Element], None],
    *,
    root: str | None = None,
) -> etree._Element:
    """As `parse`, showing elements while they are read, so that a visitor can thin the tree out.

    Args:
        text: what `decode` gave.
        where: names the file in errors.
        names: of the elements to show, in any namespace.
        visit: called with "start" (its children are not there yet) or "end", and the element.
        root: the name the root must have.

    Raises:
        InputError: as `parse`.
    """
    parser = etree.XMLPullParser(events=("start", "end"), tag=[f"{{*}}{name}" for name in names], **_SAFE)
    try:
        for start in range(0, len(text), _CHUNK):
            parser.feed(text[start : start + _CHUNK].encode())
            for event, element in parser.read_events():
                if isinstance(element, etree._Element):
                    visit(event, element)
        tree = parser.close()
    except (etree.XMLSyntaxError, ValueError) as error:
        raise _malformed(error, where) from error
    return _named(tree, where, root)


def local(element: etree._Element) -> str:
    """The element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def text_at(element: etree._Element, path: str) -> str | None:
    """The stripped text of the first element on a path of names such as `meta/task/size`; None if empty."""
    step: etree._Element | None = element
    for name in path.split("/"):
        step = next((child for child in step if local(child) == name), None) if step is not None else None
    return ((step.text or "").strip() or None) if step is not None else None


def _named(tree: etree._Element, where: str, root: str | None) -> etree._Element:
    if root is not None and local(tree) != root:
        message = f"expected the root <{root}> and found <{shown(local(tree), 60)}>"
        raise InputError(message, where=where, hint="this is another kind of file: check the folder")
    return tree


def _malformed(error: etree.XMLSyntaxError | ValueError, where: str) -> InputError:
    if not isinstance(error, etree.XMLSyntaxError):
        return InputError(f"not well-formed XML: {shown(str(error))}", where=where, hint=_DAMAGED)
    line, column = error.position
    place = f"{where}, line {line}, column {column}"
    return InputError(f"not well-formed XML: {_plain(error.msg)}", where=place, hint=_DAMAGED)


def _plain(message: str | None) -> str:
    """The parser's words without the place (told elsewhere) and its advice to lift the limits."""
    return shown(_NOISE.sub("", message or "unknown fault").strip())


def _encoding(data: bytes, where: str) -> str:
    if data.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    declared = _DECLARED.match(data)
    if declared is None:
        return "utf-8"
    name = declared[1].decode()
    try:
        known = _KNOWN_ENCODINGS[codecs.lookup(name).name]
    except (LookupError, KeyError):
        hint = "save it as UTF-8"
        raise InputError(f"the encoding {name}; expected UTF-8", where=where, hint=hint) from None
    return known
