"""The limits of a check of annotations, and the dictionaries that labels are looked up in."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from roadaware.datasets.chaotic_vocabulary import ACTION_SYNONYMS, Vocabulary, list_label_names
from roadaware.errors import InputError, UsageError
from roadaware.io.files import read_regular

_OWN: dict[str, Vocabulary] = {
    "action": "action",
    "predicate": "interaction",
    "sound": "sound",
    "event": "event",
}
_ALIASES = {"interaction": "predicate"}
MOST_BYTES = 1 << 24
"""Of a dictionary or a list of words."""


@dataclass(frozen=True)
class QualityConfig:
    """How far two annotators may differ; a difference of exactly the limit passes.

    Args:
        edge_px: largest difference of each edge of a box, in pixels at `resolution`.
        resolution: width and height at which `edge_px` counts; boxes of files of another resolution are
            brought to it, so 8 px at 1280x720 are 2 px at 320x180.
        frames: largest difference of a start and of an end.
        frame_rate: frames per second of those frames; None for frames of the file. The paper labels at 5
            frames per second and does not say whether its 2 frames are those (0.4 s) or the clip's.
        reviewers_differ: whoever checks must be another than who annotated, where the files say who.

    Raises:
        UsageError: if a limit is negative or not finite, or a rate or size is not positive.

    Source: Chaotic World, ICCV 2023, supplementary material, section 1.
    """

    edge_px: float = 8.0
    resolution: tuple[int, int] = (1280, 720)
    frames: float = 2.0
    frame_rate: float | None = 5.0
    reviewers_differ: bool = True

    def __post_init__(self) -> None:
        limits = {"edge_px": self.edge_px, "frames": self.frames}
        for name, value in limits.items():
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(f"{name} should be 0 or more, not {value}")
        sizes = {"width": self.resolution[0], "height": self.resolution[1], "frame_rate": self.frame_rate}
        for name, size in sizes.items():
            if size is not None and not (math.isfinite(size) and size > 0):
                raise UsageError(f"{name} should be more than 0, not {size}")


class Dictionary:
    """The labels that are allowed, by kind: action, predicate, sound, event and whatever else is given.

    Args:
        names: kind to its allowed labels; a kind that is not there is not checked. `interaction` is
            another name of `predicate`.
        synonyms: kind to other words for a label, which are read as that label.
        title: what it is called where it is printed.
    """

    def __init__(
        self,
        names: Mapping[str, Iterable[str]],
        synonyms: Mapping[str, Mapping[str, str]] | None = None,
        title: str = "given",
    ) -> None:
        self.title = title
        self._words: dict[str, dict[str, str]] = {}
        for kind, labels in names.items():
            held = self._words.setdefault(_ALIASES.get(kind, kind), {})
            held.update({normalize_label(label): label for label in labels})
        for kind, words in (synonyms or {}).items():
            self._words.setdefault(_ALIASES.get(kind, kind), {}).update(
                {normalize_label(word): label for word, label in words.items()}
            )

    @classmethod
    def load(cls, path: Path) -> Dictionary:
        """The dictionary of a file.

        Args:
            path: JSON in UTF-8 with lists of labels by kind.

        Raises:
            InputError: if it cannot be read, or holds something else.
        """
        wanted = 'Write {"action": ["running", ...], "predicate": [...], "sound": [...], "event": [...]}.'
        try:
            found = json.loads(read_regular(path, limit=MOST_BYTES).decode("utf-8-sig"))
        except OSError as error:
            raise InputError(f"the dictionary cannot be read: {error.strerror}", where=str(path)) from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"expected JSON in UTF-8: {error}", where=str(path), hint=wanted) from error
        lists = isinstance(found, dict) and all(isinstance(names, list) for names in found.values())
        if not lists or not all(isinstance(name, str) for names in found.values() for name in names):
            raise InputError("expected lists of labels by kind", where=str(path), hint=wanted)
        return cls(found, title=path.name)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of labels that are looked up."""
        return tuple(self._words)

    def standard(self, kind: str, label: str) -> str | None:
        """The label as the dictionary spells it, whatever its case; None where it is not there.

        >>> chaotic_world().standard("action", "Cheering/Chanting")
        'chanting/cheering'
        """
        return self._words.get(kind, {}).get(normalize_label(label))


def chaotic_world() -> Dictionary:
    """The official actions and those of the paper, its interactions, sounds and events; synonyms are read."""
    names = {kind: list_label_names(of) for kind, of in _OWN.items()}
    return Dictionary(names, {"action": ACTION_SYNONYMS}, "Chaotic World")


def normalize_label(label: str) -> str:
    """A label without what spelling varies: case, underscores, repeated spaces."""
    return " ".join(label.replace("_", " ").casefold().split())
