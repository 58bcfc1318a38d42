"""Results of recipes as one long table, what a run was made of, and failures of fits."""

from __future__ import annotations

import hashlib
import io
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware import config as configs
from roadaware.arrays import Floats
from roadaware.config import digest
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.folders import make_folder
from roadaware.io.parquet import read_parquet
from roadaware.io.storage import locate_content
from roadaware.metrics.multi_seed import AVERAGE, FITS, evaluate_fits
from roadaware.metrics.scores import SampleScores
from roadaware.models.crossing import features
from roadaware.scenes.sensors import MEDIA
from roadaware.scenes.tables import Scenes
from roadaware.statistics import classification
from roadaware.tasks.crossing_inputs.footage import Media
from roadaware.training.pedestrians.recipe import Criterion, PedestrianRecipe, SamplesRecipe

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

    Raises:
        UsageError: if the folder holds a run of another recipe.
        DiskError: if it cannot be made.
    """
    path = out / RECIPE
    make_folder(out)
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
    """Whether a file says this recipe; a field that is younger than the file has its default."""
    usual = configs.to_dict(PedestrianRecipe(samples=SamplesRecipe(root="any")))
    try:
        said = json.loads(text)
    except ValueError:
        return False
    return isinstance(said, dict) and _whole(usual, said) == configs.to_dict(recipe)


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


ENSEMBLE = "ensemble"
"""The run whose probabilities are the mean of those of all seeds; `mean` is the mean of their metrics."""
TABLE, TIMES = "results.parquet", "timing.parquet"
"""What came of recipes, which is the same in every run, and beside it the seconds that it took."""
RESULTS: dict[str, Any] = {
    "recipe": pl.String,
    "digest": pl.String,
    "model": pl.String,
    "inputs": pl.String,
    "task": pl.String,
    "protocol": pl.String,
    "config": pl.String,
    **FITS,
    "samples": pl.Int64,
    "pedestrians": pl.Int64,
    "parameters": pl.Int64,
    "epoch": pl.Int64,
    "criterion": pl.String,
    "validation": pl.Float64,
}
"""Columns: what was run on which inputs, which fit it is (`seed 0`, ..., `mean`, `ensemble`), the metric with
the ends of its intervals, and of each fit its size, and what validation chose, and by what."""
_KEY = ("recipe", "digest", "run")
_COST = {"cpu_s": pl.Float64}
SECONDS: dict[str, Any] = {**dict.fromkeys(_KEY, pl.String), **_COST}
"""Columns of the table of times: CPU seconds of each fit, or of all seeds together."""


@dataclass(frozen=True)
class Fit:
    """Cost of one fit, and its validation score.

    Args:
        parameters: numbers that were learnt.
        cpu_s: CPU seconds of fitting; None where nobody counted.
        epoch: that was best on validation, from 1; None for models without epochs.
        validation: its score there, by `criterion`.
        criterion: in words.
    """

    parameters: int
    cpu_s: float | None
    epoch: int | None
    validation: float | None
    criterion: str


def build_result_table(
    recipe: PedestrianRecipe,
    inputs: tuple[str, ...],
    said: Mapping[str, SampleScores],
    fits: Mapping[str, Fit],
    *,
    resamples: int,
    seed: int = 0,
) -> pl.DataFrame:
    """The rows of one recipe: columns `RESULTS`, and `cpu_s`.

    Args:
        recipe: that was run.
        inputs: what its model reads.
        said: fit to scores of the test samples; `ensemble` may be among them.
        fits: fit to what it took.
        resamples: bootstrap resamples; 0 gives no intervals.
        seed: of the resamples.
    """
    alone = tuple(name for name in said if name != ENSEMBLE)
    found = evaluate_fits(said, recipe.metrics, averaged=alone, resamples=resamples, seed=seed)
    first = next(iter(said.values()))
    costs = {**fits, AVERAGE: _together(list(fits.values())), ENSEMBLE: _together(list(fits.values()))}
    facts = {
        "recipe": recipe.name,
        "digest": digest(recipe)[:8],
        "model": recipe.network.name,
        "inputs": " ".join(inputs),
        "task": recipe.task,
        "protocol": recipe.samples.protocol,
        "config": recipe.samples.config,
        "samples": len(first),
        "pedestrians": len(set(first.pedestrian.tolist())),
    }
    rows = [{**facts, **row, **_columns(costs[row["run"]])} for row in found.iter_rows(named=True)]
    return pl.DataFrame(rows, schema=RESULTS | _COST)


def _together(fits: list[Fit]) -> Fit:
    """What several fits took; the score on validation is their mean, the size that of one."""
    known = [fit.cpu_s for fit in fits if fit.cpu_s is not None]
    scores = [fit.validation for fit in fits if fit.validation is not None]
    return Fit(
        fits[0].parameters,
        round(sum(known), 1) if len(known) == len(fits) else None,
        None,
        sum(scores) / len(scores) if scores else None,
        fits[0].criterion,
    )


def _columns(fit: Fit) -> dict[str, Any]:
    return {
        "parameters": fit.parameters,
        "cpu_s": fit.cpu_s,
        "epoch": fit.epoch,
        "validation": fit.validation,
        "criterion": fit.criterion,
    }


def keep(folder: Path, rows: pl.DataFrame) -> None:
    """Write the rows of recipes that came to their end, and what they took beside them.

    Args:
        folder: of the run.
        rows: as `build_result_table` makes them.

    Raises:
        DiskError: if the disk refuses; what stood there still stands.
    """
    seconds = rows.select(*SECONDS).unique(_KEY, maintain_order=True)
    for name, table in ((TIMES, seconds), (TABLE, rows.select(*RESULTS))):
        stream = io.BytesIO()
        table.write_parquet(stream)
        write_atomically(folder / name, stream.getvalue())


def open_results(folder: Path) -> pl.DataFrame:
    """The rows of recipes with what they took: columns `RESULTS`, and `cpu_s`, null where nobody counted.

    Args:
        folder: of one recipe, or of several. Up to version 0.8 the seconds stand among the results.

    Raises:
        DamagedError: if a table is there and not whole.
        FileNotFoundError: if there are no results.
    """
    path = folder / TABLE
    try:
        held = read_parquet(path)
        if "cpu_s" in held.columns:
            return held
        path = folder / TIMES
        if not path.is_file():
            return held.with_columns(cpu_s=pl.lit(None, pl.Float64))
        return held.join(read_parquet(path).select(*SECONDS), on=_KEY, how="left", maintain_order="left")
    except FileNotFoundError:
        raise
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DamagedError(f"no whole table of results: {error}", where=str(path)) from error


def read_finished_results(
    folder: Path, recipe: PedestrianRecipe, seeds: tuple[int, ...]
) -> pl.DataFrame | None:
    """The rows that a folder holds of a recipe that came to an end; None where it has to be run.

    Raises:
        DamagedError: if the table is there and not whole.
    """
    if not (folder / TABLE).is_file():
        return None
    held = open_results(folder)
    if dict(held.schema) != RESULTS | _COST:
        return None
    whole = {f"seed {seed}" for seed in seeds} <= set(held["run"])
    return held if whole and set(held["digest"]) == {digest(recipe)[:8]} else None


def read_fit_record(path: Path) -> dict[str, Any]:
    """The record of a fit; empty where it cannot be read.

    Args:
        path: of its `fit.json` or `timing.json`.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


_ENDS = {unit: (f"low_{unit}", f"high_{unit}") for unit in ("pedestrian", "video")}
_OF_RECIPE = (
    "recipe",
    "digest",
    "model",
    "inputs",
    "task",
    "protocol",
    "config",
    "samples",
    "pedestrians",
    "parameters",
    "criterion",
)
_OF_RUN = ("cpu_s", "epoch", "validation")


def group_results(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """The table as plain data: recipe by recipe, run by run, metric by metric.

    Args:
        rows: columns `RESULTS`, and `cpu_s` where it is to be there.
    """
    found = []
    for _, part in rows.group_by(("recipe", "digest"), maintain_order=True):
        first = part.row(0, named=True)
        by_run = {}
        for (name,), run in part.group_by(("run",), maintain_order=True):
            metrics = {
                row["metric"]: {
                    "value": row["value"],
                    **{unit: [row[low], row[high]] for unit, (low, high) in _ENDS.items()},
                    "cautions": {unit: row[f"caution_{unit}"] for unit in _ENDS},
                }
                for row in run.iter_rows(named=True)
            }
            facts = run.row(0, named=True)
            by_run[str(name)] = {**{key: facts[key] for key in _OF_RUN if key in facts}, "metrics": metrics}
        found.append({**{key: first[key] for key in _OF_RECIPE}, "runs": by_run})
    return found


# Choosing: how well scores fit the ground truth, more being better, to tell one epoch or fit from another.


def score_probabilities(criterion: Criterion, probability: Floats, truth: npt.NDArray[np.int64]) -> float:
    """How well probabilities fit; rankings of several labels are means over the labels that occur.

    Args:
        criterion: average_precision, auc, log_loss (with a minus) or balanced_accuracy.
        probability: (n, k); k = 1 is that of label 1.
        truth: (n) labels.

    Returns:
        NaN where a ranking means nothing, since one label alone occurs.
    """
    if criterion == "log_loss" or criterion == "balanced_accuracy":
        return features.score(criterion, probability, truth)
    rule = classification.average_precision if criterion == "average_precision" else classification.roc_auc
    labels = [1] if probability.shape[1] == 1 else range(probability.shape[1])
    found = [rule(truth == label, probability[:, min(label, probability.shape[1] - 1)]) for label in labels]
    known = [value for value in found if value is not None]
    return float(np.mean(known)) if known else float("nan")
