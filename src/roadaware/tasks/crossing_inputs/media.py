"""Where pictures, masks and poses lie that the tables do not hold, and how they are cut."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from roadaware.errors import UsageError


@dataclass(frozen=True)
class CropConfig:
    """How a pedestrian is cut out of a picture.

    Args:
        enlarge: context and surround grow the box on every side by half of this times its shorter side.
        paint: value that covers the pedestrian in the surround.
        resample: `bilinear` with antialiasing, or the `nearest` pixel.

    Source: Kotseruba et al., WACV 2021; its code resizes bilinearly without antialiasing.
    """

    enlarge: float = 1.5
    paint: int = 128
    resample: Literal["bilinear", "nearest"] = "bilinear"

    def __post_init__(self) -> None:
        if self.enlarge < 0 or not 0 <= self.paint <= 255 or self.resample not in ("bilinear", "nearest"):
            raise UsageError(
                f"crops need enlarge >= 0, paint in 0..255, bilinear or nearest; got {self.enlarge!r}, "
                f"{self.paint!r}, {self.resample!r}"
            )


@dataclass(frozen=True)
class Media:
    """What lies beside the tables.

    Args:
        root: folder that the paths of the videos table start from; the dataset's folder.
        films: where films lie in `root`, with `{video}`, such as `JAAD_clips/{video}.mp4`; where empty, as
            the videos table says.
        maps: where class masks lie in `root`, grey PNGs of 8 bits with `{video}` and `{frame}`, such as
            `maps/{video}/{frame:05d}.png`; where empty, the simulator's masks beside the film.
        classes: what the numbers in masks are: the `simulator`'s, or the 19 training classes of
            `cityscapes`.
        poses: a file of poses or a folder of pickles; the tables' joints where not given.
        cache: folder that keeps cut pictures, a file for each film and configuration; none where not given.
        memory_bytes: how many bytes of cut pictures are kept in memory without a cache folder.
        crops: how pedestrians are cut out.
    """

    root: Path | None = None
    films: str = ""
    maps: str = ""
    classes: Literal["simulator", "cityscapes"] = "simulator"
    poses: Path | None = None
    cache: Path | None = None
    memory_bytes: int = 1 << 30
    crops: CropConfig = CropConfig()

    def __post_init__(self) -> None:
        if self.classes not in ("simulator", "cityscapes"):
            raise UsageError(f"classes are those of simulator or cityscapes, not {self.classes!r}")
        for pattern, parts in ((self.films, ("video",)), (self.maps, ("video", "frame"))):
            if pattern:
                _check(pattern, parts)
        if self.memory_bytes < 1:
            raise UsageError(f"memory_bytes is positive, not {self.memory_bytes}")


def _check(pattern: str, parts: tuple[str, ...]) -> None:
    """Refuse a pattern of paths that lacks a part or has another."""
    try:
        pattern.format(**dict.fromkeys(parts, 0))
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise UsageError(f"'{pattern}' is no pattern of paths with {' and '.join(parts)}: {error}") from error
    lost = [part for part in parts if f"{{{part}" not in pattern]
    if lost:
        raise UsageError(f"'{pattern}' does not say where {{{lost[0]}}} stands")
