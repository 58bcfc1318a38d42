"""Rules for the annotations of one file by themselves: structure, dictionaries, words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from roadaware.analysis.quality.config import MOST_BYTES, Dictionary, QualityConfig
from roadaware.analysis.quality.differences import EDGES, FINDING, format_digits, format_unit, select_findings
from roadaware.errors import InputError
from roadaware.io.files import read_regular

# Words that no description may hold, found as whole words in any case, singular or plural.

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
        plain = {normalize_text(word): word.strip() for word in words}
        plain.pop("", None)
        if not plain or len(plain) > _MOST:
            raise InputError(
                f"expected 1 to {_MOST:,} forbidden words, found {len(plain):,}",
                hint="Write one word or phrase a line; a line that starts with # is a comment.",
            )
        self.words = tuple(plain.values())
        self._named = {form: shown for word, shown in plain.items() for form in _forms(word)}
        self._named |= plain
        # An alternation takes the first that fits: "old" before "old man" would hide the phrase.
        longest_first = sorted(self._named, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(_build_pattern(form) for form in longest_first))

    @classmethod
    def load(cls, path: Path) -> ForbiddenWords:
        """The list in a text file, one word or phrase a line; a line that starts with # is a comment.

        Raises:
            InputError: if it cannot be read, or holds no word.
        """
        try:
            lines = read_regular(path, limit=MOST_BYTES).decode("utf-8-sig").splitlines()
        except OSError as error:
            raise InputError(
                f"the list of words cannot be read: {error.strerror}", where=str(path)
            ) from error
        except UnicodeDecodeError as error:
            hint = "Save the list as UTF-8."
            raise InputError("expected text in UTF-8", where=str(path), hint=hint) from error
        try:
            return cls([line for line in lines if not line.lstrip().startswith("#")])
        except InputError as error:
            raise InputError(error.message, where=str(path), hint=error.hint) from error

    def found_in(self, text: str) -> list[str]:
        """The listed words that stand in a text, in the order of the text, each once.

        >>> ForbiddenWords(["lady", "scar"]).found_in("Two LADIES, one with a scarf")
        ['lady']
        """
        hits = (self._named[match.group()] for match in self._pattern.finditer(normalize_text(text)))
        return list(dict.fromkeys(hits))


def normalize_text(text: str) -> str:
    """The text as words are compared: compatibility forms, case and invisible characters are gone."""
    # Twice, since casefolding may undo the composition of characters.
    composed = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    seen = "".join(character for character in composed if unicodedata.category(character) != "Cf")
    return " ".join(seen.split())


def _forms(word: str) -> tuple[str, ...]:
    """The plurals of a word by the simple rules: s, es, and ies for y."""
    if not word[-1].isalpha():
        return ()
    return (f"{word}s", f"{word}es", *([f"{word[:-1]}ies"] if word.endswith("y") else []))


def _build_pattern(form: str) -> str:
    """The pattern of a whole word; a limit is asked for only beside characters that belong to words."""
    # Words of a list are words, not patterns; a list from outside must not be able to stall the search.
    pattern = re.escape(form)
    if _UNSPACED.search(form):
        return pattern
    before = r"(?<!\w)" if re.match(r"\w", form) else ""
    after = r"(?!\w)" if re.search(r"\w$", form) else ""
    return f"{before}{pattern}{after}"


RULES: dict[str, str] = {
    "missing": "an item of the round before is gone",
    "added": "an item was not there in the round before",
    "box moved": "an edge of a box differs by more than the limit",
    "time moved": "a start or an end differs by more than the limit",
    "label changed": "labels differ between rounds",
    "label unknown": "a label is not in the dictionary",
    "forbidden word": "a description holds a word of the list",
    "empty box": "a box has no width or no height",
    "outside the frame": "a box leaves the image",
    "no duration": "the end is not after the start",
    "unknown person": "a box, relation or sentence belongs to nobody who has boxes",
    "own object": "somebody is the object of his own relation",
    "outside its tracks": "a relation lasts longer than the tracks of both",
    "sound elsewhere": "the box of a sound is not in the frame in which the sound starts",
    "drawn twice": "one person has several boxes in a frame",
    "same reviewer": "a round was checked by somebody of an earlier round",
    "refused": "the reader did not take a row, and says why",
}
"""Every rule and what breaks it."""
_SLACK = 1e-3


def apply_rules(
    wide: pl.DataFrame,
    k: int,
    stage: str,
    config: QualityConfig,
    dictionary: Dictionary,
    words: ForbiddenWords | None,
) -> pl.DataFrame:
    """Findings of all rules in one file.

    Args:
        wide: what `aligned` gave.
        k: the place of the file.
        stage: what the file is called.
        config: the limits.
        dictionary: the allowed labels.
        words: words that no description may hold; None for no list.
    """
    x1, y1, x2, y2 = (pl.col(f"{edge}_{k}") for edge in EDGES)
    width, height = pl.col(f"width_{k}"), pl.col(f"height_{k}")
    unit = format_unit(k)
    sides = pl.format(
        "it is {}{} wide and {}{} high", format_digits(x2 - x1), unit, format_digits(y2 - y1), unit
    )
    over = [-x1, -y1, x2 - width, y2 - height]
    slack = [pl.col(f"slack_px_{k}") / pl.col(f"scale_{axis}_{k}") for axis in ("x", "y")] * 2
    out = pl.any_horizontal(far > near for far, near in zip(over, slack, strict=True))
    says = pl.format(
        "it leaves the {} x {} image by {}{}",
        width.cast(pl.Int64),
        height.cast(pl.Int64),
        format_digits(pl.max_horizontal(over)),
        unit,
    )
    named = (pl.col("what") == "box") & (pl.col("name") != "") & pl.col(f"present_{k}")
    twice = named & (pl.col(f"present_{k}").sum().over("what", "video", "name", "frame") > 1)
    parts = [
        select_findings(wide, (x1 >= x2) | (y1 >= y2), stage, "empty box", sides),
        select_findings(wide, out, stage, "outside the frame", says),
        select_findings(
            wide, twice, stage, "drawn twice", pl.lit("the person has several boxes in this frame")
        ),
        *_time_rules(wide, k, stage, config),
        *_person_rules(wide, k, stage),
        _unknown_labels(wide, k, stage, dictionary),
        _forbidden(wide, k, stage, words),
    ]
    return pl.concat(parts)


def find_same_reviewers(wide: pl.DataFrame, k: int, stage: str, config: QualityConfig) -> pl.DataFrame:
    """Items of file k whose annotator also made an earlier round of them.

    Args:
        wide: what `aligned` gave.
        k: the place of the file.
        stage: what the comparison is called.
        config: whether reviewers must differ at all.
    """
    own = pl.col(f"annotator_{k}")
    again = pl.any_horizontal((own == pl.col(f"annotator_{j}")).fill_null(value=False) for j in range(k))
    says = pl.format("{} had annotated or checked it before", own)
    return select_findings(
        wide, again if config.reviewers_differ else pl.lit(value=False), stage, "same reviewer", says
    )


def _time_rules(wide: pl.DataFrame, k: int, stage: str, config: QualityConfig) -> list[pl.DataFrame]:
    start, end = pl.col(f"start_{k}"), pl.col(f"end_{k}")
    low, high = pl.col(f"low_{k}"), pl.col(f"high_{k}")
    related, heard = pl.col("what") == "relation", pl.col("what") == "sound box"
    shown = [
        value.cast(pl.Int64).cast(pl.String).fill_null("an unknown frame")
        for value in (start, end, low, high)
    ]
    astray = (pl.col("frame") - low).abs() * pl.col(f"scale_t_{k}") > config.frames + _SLACK
    return [
        select_findings(
            wide, end <= start, stage, "no duration", pl.format("it lasts from {} to {}", *shown[:2])
        ),
        select_findings(
            wide,
            related & ((start < low) | (end > high)),
            stage,
            "outside its tracks",
            pl.format("it lasts from {} to {}, both tracks from {} to {}", *shown),
        ),
        select_findings(
            wide,
            heard & pl.col(f"present_{k}") & astray,
            stage,
            "sound elsewhere",
            pl.format("the box is in frame {}, the sound starts at {}", "frame", low.round(1)),
        ),
    ]


def _person_rules(wide: pl.DataFrame, k: int, stage: str) -> list[pl.DataFrame]:
    unknown = ~pl.col(f"known_{k}")
    nobody = pl.lit("it belongs to nobody who has boxes")
    itself = pl.format("{} is subject and object", "name")
    return [
        select_findings(wide, unknown, stage, "unknown person", nobody),
        select_findings(wide, pl.col(f"itself_{k}"), stage, "own object", itself),
    ]


def _unknown_labels(wide: pl.DataFrame, k: int, stage: str, dictionary: Dictionary) -> pl.DataFrame:
    """One finding per item with the labels that no dictionary holds."""
    held = wide.select("item", shown=pl.col(f"labels_{k}")).explode("shown").drop_nulls()
    wrong = [shown for shown in held["shown"].unique().sort() if not _is_allowed(shown, dictionary)]
    rows = held.filter(pl.col("shown").is_in(wrong)).group_by("item", maintain_order=True)
    says = pl.format("not in the dictionary: {}", pl.col("shown").str.join(", "))
    found = rows.agg(says=says).with_columns(stage=pl.lit(stage), rule=pl.lit("label unknown"))
    return found.select(list(FINDING)).cast(pl.Schema(FINDING))


def _is_allowed(shown: str, dictionary: Dictionary) -> bool:
    kind, label = shown.split(": ", 1)
    return kind not in dictionary.kinds or dictionary.standard(kind, label) is not None


def _forbidden(wide: pl.DataFrame, k: int, stage: str, words: ForbiddenWords | None) -> pl.DataFrame:
    """One finding per description that holds a word of the list."""
    if words is None:
        return pl.DataFrame(schema=FINDING)
    held = wide.select("item", text=f"text_{k}").drop_nulls()
    found = {text: words.found_in(text) for text in held["text"].unique(maintain_order=True)}
    rows = [
        (
            item,
            stage,
            "forbidden word",
            f"the description says {', '.join(repr(word) for word in found[text])}",
        )
        for item, text in held.iter_rows()
        if found[text]
    ]
    return pl.DataFrame(rows, schema=FINDING, orient="row")
