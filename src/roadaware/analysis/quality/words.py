"""Words that no description may hold, found as whole words in any case, singular or plural."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from roadaware.errors import InputError

_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts that put no spaces between words, or join endings to them: there a word is found anywhere."""
_MOST = 20_000


class ForbiddenWords:
    """A list of words and phrases to look for.

    Args:
        words: as a person writes them; `lady` also finds `Ladies`, `scar` finds `SCARS` but not `scarf`.

    Raises:
        InputError: if there are none, or too many to be a list made by hand.
    """

    def __init__(self, words: Sequence[str]) -> None:
        plain = {plain_text(word): word.strip() for word in words}
        plain.pop("", None)
        if not plain or len(plain) > _MOST:
            raise InputError(
                f"expected 1 to {_MOST:,} forbidden words, found {len(plain):,}",
                hint="Write one word or phrase a line; a line that starts with # is a comment.",
            )
        self.words = tuple(plain.values())
        self._named = {form: shown for word, shown in plain.items() for form in _forms(word)}
        self._named |= plain
        longest_first = sorted(self._named, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(_bounded(form) for form in longest_first))

    def found_in(self, text: str) -> list[str]:
        """The listed words that stand in a text, in the order of the text, each once.

        >>> ForbiddenWords(["lady", "scar"]).found_in("Two LADIES, one with a scarf")
        ['lady']
        """
        hits = (self._named[match.group()] for match in self._pattern.finditer(plain_text(text)))
        return list(dict.fromkeys(hits))


def plain_text(text: str) -> str:
    """The text as words are compared: compatibility forms, case and invisible characters are gone."""
    composed = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    seen = "".join(character for character in composed if unicodedata.category(character) != "Cf")
    return " ".join(seen.split())


def _forms(word: str) -> tuple[str, ...]:
    """The plurals of a word by the simple rules: s, es, and ies for y."""
    if not word[-1].isalpha():
        return ()
    return (f"{word}s", f"{word}es", *([f"{word[:-1]}ies"] if word.endswith("y") else []))


def _bounded(form: str) -> str:
    """The pattern of a whole word; a limit is asked for only beside characters that belong to words."""
    pattern = re.escape(form)
    if _UNSPACED.search(form):
        return pattern
    before = r"(?<!\w)" if re.match(r"\w", form) else ""
    after = r"(?!\w)" if re.search(r"\w$", form) else ""
    return f"{before}{pattern}{after}"
