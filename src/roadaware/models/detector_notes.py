"""What a detector's file says of itself besides its network: advice, and what it learnt from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roadaware.errors import DamagedError, InputError
from roadaware.scenes.advice import Advice, merge_advice, parse_advice

FACTS = "roadaware"
"""The key of a safetensors file's metadata under which ours stand."""
_SIMULATOR = "simulator"
_UNKNOWN_START = "synthetic scenes; not validated on real roads"
_LONGEST = 120


def read_notes(path: Path | str) -> dict[str, Any]:
    """The notes that `save_detector` was given; empty for a file or folder that is none of ours.

    Args:
        path: of a detector.
    """
    from roadaware.models.tensor_files import facts_in, read_about

    if not Path(path).is_file():
        return {}
    try:
        notes = facts_in(read_about(Path(path)), FACTS, str(path)).get("notes")
    except InputError:  # whoever opens the network says what is wrong
        return {}
    return notes if isinstance(notes, dict) else {}


def read_advice(paths: Sequence[Path]) -> Advice:
    """How the detector that some files make together wants its predictions used.

    Args:
        paths: of the networks of a mean, or of one detector; those of others advise nothing.

    Raises:
        DamagedError: if a file's advice is none.
    """
    return merge_advice([parse_advice(read_notes(path), str(path)) for path in paths])


def read_training_data(paths: Sequence[Path]) -> str:
    """What a detector was trained on, in words, where that is nothing real; empty otherwise.

    Args:
        paths: as of `read_advice`; one that learnt from real films makes it empty.

    Raises:
        DamagedError: if a file says it in no words.
    """
    said = [_training_words(read_notes(path), path) for path in paths]
    return "; ".join(dict.fromkeys(said)) if all(said) else ""


def _training_words(notes: dict[str, Any], path: Path) -> str:
    words = notes.get("trained_on")
    if words is None:
        return _UNKNOWN_START if notes.get("data") == _SIMULATOR else ""
    if not isinstance(words, str) or not words.isprintable() or len(words) > _LONGEST:
        expected = f"expected what the detector was trained on in up to {_LONGEST} letters"
        raise DamagedError(f"{expected}, found {str(words)[:40]!r}", where=str(path))
    return words
