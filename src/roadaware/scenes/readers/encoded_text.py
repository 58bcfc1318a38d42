"""The text of a file of annotations: UTF-8, or UTF-16 with its mark, and never empty."""

from __future__ import annotations

import codecs

from roadaware.errors import InputError


def decoded(data: bytes, where: str, *, expected: str, hint: str) -> str:
    """The text of a file in UTF-8, or in UTF-16 with its mark.

    Args:
        data: what the file holds.
        where: names the file in errors.
        expected: what it should hold, in words.
        hint: what to do where it does not.

    Raises:
        InputError: if it is empty or not of that encoding (with the byte).
    """
    marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    wide = marked and not data.startswith(codecs.BOM_UTF32_LE)
    encoding = "utf-16" if wide else "utf-8"
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not {encoding.upper()}: {error.reason}"
        raise InputError(message, where=where, hint=hint) from error
    if not text or text.isspace():
        raise InputError(f"the file is empty; expected {expected}", where=where, hint=hint)
    return text
