"""Lists of texts that models are asked for: each once, none empty."""

from __future__ import annotations

from collections.abc import Sequence

from roadaware.errors import UsageError

MOST_TEXTS = 2000


def checked_texts(texts: Sequence[str]) -> tuple[str, ...]:
    """Texts without spaces around them, in their order.

    Args:
        texts: what is asked for.

    Raises:
        UsageError: if there is none, one is empty, or two are the same but for case and spaces.

    >>> checked_texts(["tyre ", "traffic  cone"])
    ('tyre', 'traffic cone')
    """
    found = tuple(" ".join(str(text).split()) for text in texts)
    if not found or not all(found):
        raise UsageError("texts name what is looked for, such as tyre,dog: give at least one, and none empty")
    if len(found) > MOST_TEXTS:
        raise UsageError(f"{len(found)} texts; up to {MOST_TEXTS} are asked for at once")
    plain = [text.casefold() for text in found]
    twice = sorted({text for text in found if plain.count(text.casefold()) > 1})
    if twice:
        raise UsageError(f"texts stand twice: {', '.join(twice[:5])}; name each once")
    return found
