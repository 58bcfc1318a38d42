"""Tables of sounds in single images with the boxes of their sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.datasets.issues import Findings
from roadaware.errors import InputError
from roadaware.io.sources import to_printable
from roadaware.scenes.schema import CORNERS


@dataclass(frozen=True)
class Heard:
    """One sound and its image, which is a video of one frame.

    Args:
        name: of the sound, which its video has too, in a form fit to be shown.
        corners: (n, 4) its boxes.
        annotators: (n) who drew each, where that is known.
        label: what is heard.
    """

    name: str
    corners: Floats
    annotators: tuple[str, ...] = ()
    label: str | None = None


def build_sound_tables(
    sounds: Sequence[Heard], size: tuple[int, int], findings: Findings
) -> tuple[dict[str, pl.DataFrame], dict[str, tuple[str, ...]]]:
    """The tables in the given order, and the vocabulary of labels, sorted.

    Args:
        sounds: what was read.
        size: width and height of every image, in the unit of the boxes.
        findings: counts the rows.
    """
    names = pl.Series("video", [to_printable(each.name, 255) for each in sounds], dtype=pl.String)
    words = sorted({each.label for each in sounds if each.label is not None})
    place = {word: n for n, word in enumerate(words)}
    counts = [len(each.corners) for each in sounds]
    sound = np.repeat(np.arange(len(sounds)), np.array(counts, dtype=np.int64))
    corners = np.concatenate([np.zeros((0, 4)), *(each.corners for each in sounds)])
    found = {
        "videos": pl.DataFrame({"video": names}).with_columns(
            width_px=pl.lit(size[0], pl.Int64),
            height_px=pl.lit(size[1], pl.Int64),
            n_frames=pl.lit(1, pl.Int64),
        ),
        "frames": pl.DataFrame({"video": names}).with_columns(
            frame=pl.lit(0, pl.Int64), annotated=pl.lit(value=True)
        ),
        "sounds": pl.DataFrame(
            {
                "sound": pl.Series(range(len(sounds)), dtype=pl.Int64),
                "video": names,
                "name": pl.Series([each.name for each in sounds], dtype=pl.String),
                "frame": pl.Series([0] * len(sounds), dtype=pl.Int64),
            }
        ),
        "boxes": pl.DataFrame(
            {
                "box": np.arange(len(sound)),
                "video": names.gather(sound),
                "frame": np.zeros(len(sound), dtype=np.int64),
                **{name: np.ascontiguousarray(corners[:, at]) for at, name in enumerate(CORNERS)},
                "sound": sound,
            }
        ),
    }
    if any(each.annotators for each in sounds):
        drawn = [name for each in sounds for name in each.annotators]
        found["boxes"] = found["boxes"].with_columns(annotator=pl.Series(drawn, dtype=pl.String))
    if words:
        labels = [None if each.label is None else place[each.label] for each in sounds]
        found["sounds"] = found["sounds"].with_columns(label=pl.Series(labels, dtype=pl.Int64))
    for name, table in found.items():
        findings.read[name] += len(table)
    return found, {"sound": tuple(words)} if words else {}


def build_no_sounds_error(errors: Sequence[InputError]) -> InputError:
    """Why not one file could be read."""
    if len(errors) == 1:
        return errors[0]
    message = f"none of {len(errors)} files can be read; the first: {errors[0].message}"
    return InputError(message, where=errors[0].where, hint=errors[0].hint)
