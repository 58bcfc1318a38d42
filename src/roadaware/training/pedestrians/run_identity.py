"""What a run was made of: a folder is of one recipe, and of the samples, by digest, that this was first run on."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from roadaware import config as configs
from roadaware.errors import DiskError, InputError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.storage import locate_content
from roadaware.scenes.sensors import MEDIA
from roadaware.scenes.tables import Scenes
from roadaware.tasks.crossing_inputs.footage import Media
from roadaware.training.pedestrians.recipe import PedestrianRecipe, SamplesRecipe

if TYPE_CHECKING:
    from roadaware.training.pedestrians.samples import Material


_CHUNK = 1 << 20
_WORDS = (pl.String, pl.Categorical, pl.Enum)


def digest_samples(material: Material, poses: str = "") -> str:
    """Sixteen hexadecimal digits that change when a sample does, its tracks, or what is known of its videos.

    Pedestrians and videos without a sample do not count. Videos and masks are not read. How a column is held,
    as text or as a dictionary, in 32 bits or in 64, makes no difference.

    Args:
        material: samples with their scenes.
        poses: a file of poses, or a folder of them; empty for none.

    Raises:
        InputError: if the poses cannot be read.
    """
    found = hashlib.blake2b(digest_size=8)
    samples, cut = pl.concat([material.cut.samples, material.train.samples]), material.cut
    tubes = samples["tube"].drop_nulls().unique()
    videos = cut.tubes.filter(pl.col("tube").is_in(tubes.to_list()))["video"].cast(pl.String).unique()
    here = pl.col("video").cast(pl.String).is_in(videos.to_list())
    walked = pl.col("tube").is_in(tubes.to_list())
    for table in (
        material.cut.samples,
        material.train.samples,
        cut.tubes.filter(walked),
        cut.boxes.filter(walked),
        cut.frames.filter(here),
        cut.videos.filter(here),
    ):
        for name in sorted(table.columns):
            found.update(f"\n{name} {len(table)}:".encode())
            _add(found, table[name])
    for path in _files(poses):
        found.update(f"\n{path.name}:".encode())
        try:
            with locate_content(path).open("rb") as file:
                while chunk := file.read(_CHUNK):
                    found.update(chunk)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    return found.hexdigest()


def _add(found: Any, column: pl.Series) -> None:
    """The values of a column, however they are held."""
    kind = column.dtype
    found.update(np.packbits(column.is_null().to_numpy()).tobytes())
    if isinstance(kind, pl.Struct):
        for part in column.struct.unnest().get_columns():
            _add(found, part)
    elif isinstance(kind, pl.List | pl.Array):
        lists = column.drop_nulls().cast(pl.List(kind.inner))
        _add(found, lists.list.len())
        _add(found, lists.explode())
    elif kind in _WORDS:
        words = column.cast(pl.String)
        names = words.drop_nulls().unique().sort()
        found.update("\0".join(names.to_list()).encode())
        _add(found, words.cast(pl.Enum(names)).to_physical())
    elif kind.is_float():
        values = column.cast(pl.Float64).fill_null(0.0).to_numpy()
        # One NaN for all: it has many patterns of bits.
        found.update(np.where(np.isnan(values), np.nan, values).tobytes())
    elif kind.is_integer() or kind.is_temporal() or kind == pl.Boolean:
        found.update(column.to_physical().cast(pl.Int64).fill_null(0).to_numpy().tobytes())
    else:
        found.update(repr(column.to_list()).encode())


def _files(poses: str) -> list[Path]:
    path = Path(poses)
    if not poses:
        return []
    return sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]


# Videos: whether those that samples are cut from are there, reported at once and before anything is learnt.

_SHOWN = 3


def refuse_missing(scenes: Scenes, names: Sequence[str], media: Media) -> None:
    """Refuse samples whose videos, or the simulator's masks beside them, are not in their folder.

    Names are considered, and nothing is opened. Masks that lie as single images are not looked for.

    Args:
        scenes: with samples.
        names: of the inputs; only those that are cut from images matter.
        media: where videos lie.

    Raises:
        InputError: saying how many of how many are missing, which first, and from which folder.
    """
    if media.root is None:
        return
    kinds = {name.partition(":")[0].partition("@")[0] for name in names}
    wanted = _films(scenes, media) if "crop" in kinds else []
    masks = _masks(scenes) if "maps" in kinds and not media.maps else []
    for what, paths in (("videos", wanted), ("masks", masks)):
        lost = [path for path in paths if not (media.root / path).is_file()]
        if lost:
            shown = ", ".join(lost[:_SHOWN]) + (", ..." if len(lost) > _SHOWN else "")
            there = "" if media.root.is_dir() else "; there is no such folder"
            raise InputError(
                f"{len(lost)} of {len(paths)} {what} of the samples are missing: {shown}{there}",
                where=str(media.root),
                hint="samples.media of the recipe names the folder that holds them, samples.films where "
                "videos lie in it, such as 'JAAD_clips/{video}.mp4'",
            )


def _films(scenes: Scenes, media: Media) -> list[str]:
    """Where the video of each sampled video lies in the folder."""
    if not media.films:
        return _paths(scenes)
    return [media.films.format(video=video) for video in _select_videos(scenes)["video"].to_list()]


def _masks(scenes: Scenes) -> list[str]:
    """Where the simulator's masks of each sampled video lie in the folder."""
    return [str(Path(path).with_name(MEDIA["semantics"])) for path in _paths(scenes)]


def _paths(scenes: Scenes) -> list[str]:
    """What the videos table says of each sampled video; nothing where it has no such column."""
    if "path" not in scenes.videos.columns:
        return []
    return _select_videos(scenes)["path"].drop_nulls().to_list()


def _select_videos(scenes: Scenes) -> pl.DataFrame:
    """The videos that samples are of, by name."""
    here = scenes.samples["video"].cast(pl.String).unique().to_list()
    return scenes.videos.filter(pl.col("video").cast(pl.String).is_in(here)).sort(
        pl.col("video").cast(pl.String)
    )


RECIPE, DATA = "recipe.json", "data.json"
_log = logging.getLogger("roadaware")


def refuse_other(recipe: PedestrianRecipe, out: Path) -> None:
    """Make a folder, unless it holds what was fitted by another recipe; nothing is written into it.

    Args:
        recipe: that is to be run.
        out: folder of the run.

    Raises:
        UsageError: if the folder holds a run of another recipe.
        DiskError: if it cannot be made.
    """
    path = out / RECIPE
    make_run_folder(out)
    if path.exists() and _fits(out) and not is_same_recipe(path.read_text(encoding="utf-8"), recipe):
        raise UsageError(f"{out} holds a run of another recipe; name another folder with --out")


def register_run(recipe: PedestrianRecipe, out: Path, data: str) -> None:
    """Write recipe and digest of the samples into a folder without fits, or find the same ones there.

    Args:
        recipe: that is run.
        out: folder of the run.
        data: digest of its samples, see `digest_samples`.

    Raises:
        UsageError: if the folder holds a run of another recipe, or on other samples.
        DiskError: if it cannot be written to.
    """
    refuse_other(recipe, out)
    text = json.dumps(configs.to_dict(recipe), indent=2) + "\n"
    if _fits(out):
        refuse_other_data(recipe, out, data)
    else:
        write_atomically(out / DATA, (json.dumps({"samples": data}) + "\n").encode())
    if not _fits(out) or not (out / RECIPE).exists():
        write_atomically(out / RECIPE, text.encode())


def refuse_other_data(recipe: PedestrianRecipe, out: Path, data: str) -> None:
    """Refuse a folder whose fits learnt from other samples; one that does not say so is taken as it is.

    Args:
        recipe: that is run.
        out: folder of the run.
        data: digest of the samples that the recipe names now.

    Raises:
        UsageError: if they are others.
    """
    try:
        held = json.loads((out / DATA).read_text(encoding="utf-8"))["samples"]
    except (OSError, ValueError, KeyError, TypeError):
        _log.warning("%s does not say which samples it was run on; it is taken as it is", out)
        return
    if held != data:
        raise UsageError(
            f"{out} holds a run on other samples than {recipe.samples.root} gives now: annotations, poses or "
            "the way they are read have changed since. Name another folder with --out to run on what is "
            f"there now, or remove {out}"
        )


def is_same_recipe(text: str, recipe: PedestrianRecipe) -> bool:
    """Whether a file says this recipe; a field that is younger than the file has its default.

    Args:
        text: of the file.
        recipe: which.
    """
    usual = configs.to_dict(PedestrianRecipe(samples=SamplesRecipe(root="any")))
    try:
        said = json.loads(text)
    except ValueError:
        return False
    return isinstance(said, dict) and _whole(usual, said) == configs.to_dict(recipe)


def make_run_folder(folder: Path) -> None:
    """Make a folder.

    Raises:
        DiskError: if it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DiskError(f"{folder} could not be made: {error.strerror or error}") from error


def _fits(out: Path) -> bool:
    """Whether something was fitted, or begun to be."""
    return any(out.glob("seed-*/*"))


def _whole(usual: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """What is said, and the usual value of what is not."""
    parts = {
        name: {**usual[name], **value}
        for name, value in said.items()
        if isinstance(value, dict) and isinstance(usual.get(name), dict)
    }
    return {**usual, **said, **parts}
