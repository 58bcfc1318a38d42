"""Films: whether those that samples are cut from are there, told at once and before anything is learnt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.sensors import MEDIA
from roadaware.scenes.tables import Scenes
from roadaware.tasks.crossing_inputs.media import Media

_SHOWN = 3


def refuse_missing(scenes: Scenes, names: Sequence[str], media: Media) -> None:
    """Refuse samples whose films, or the simulator's masks beside them, are not in their folder.

    Names are looked at, and nothing is opened. Masks that lie as single pictures are not looked for.

    Args:
        scenes: with samples.
        names: of the inputs; only those that are cut from pictures matter.
        media: where films lie.

    Raises:
        InputError: saying how many of how many are missing, which first, and from which folder.
    """
    if media.root is None:
        return
    kinds = {name.partition(":")[0].partition("@")[0] for name in names}
    wanted = _films(scenes, media) if "crop" in kinds else []
    masks = _masks(scenes) if "maps" in kinds and not media.maps else []
    for what, paths in (("films", wanted), ("masks", masks)):
        lost = [path for path in paths if not (media.root / path).is_file()]
        if lost:
            shown = ", ".join(lost[:_SHOWN]) + (", ..." if len(lost) > _SHOWN else "")
            there = "" if media.root.is_dir() else "; there is no such folder"
            raise InputError(
                f"{len(lost)} of {len(paths)} {what} of the samples are missing: {shown}{there}",
                where=str(media.root),
                hint="samples.media of the recipe names the folder that holds them, samples.films where "
                "films lie in it, such as 'JAAD_clips/{video}.mp4'",
            )


def _films(scenes: Scenes, media: Media) -> list[str]:
    """Where the film of each sampled video lies in the folder."""
    if not media.films:
        return _paths(scenes)
    return [media.films.format(video=video) for video in _sampled(scenes)["video"].to_list()]


def _masks(scenes: Scenes) -> list[str]:
    """Where the simulator's masks of each sampled video lie in the folder."""
    return [str(Path(path).with_name(MEDIA["semantics"])) for path in _paths(scenes)]


def _paths(scenes: Scenes) -> list[str]:
    """What the videos table says of each sampled video; nothing where it has no such column."""
    if "path" not in scenes.videos.columns:
        return []
    return _sampled(scenes)["path"].drop_nulls().to_list()


def _sampled(scenes: Scenes) -> pl.DataFrame:
    """The videos that samples are of, by name."""
    here = scenes.samples["video"].cast(pl.String).unique().to_list()
    return scenes.videos.filter(pl.col("video").cast(pl.String).is_in(here)).sort(
        pl.col("video").cast(pl.String)
    )
