"""Selection of images for annotation, ranked by their proposals, with new scenes before similar ones."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from roadaware.errors import InputError, UsageError
from roadaware.io.csv import from_sheets
from roadaware.io.files import read_regular
from roadaware.io.json import decode, parse
from roadaware.scenes.schema import MOST_LISTED_FRAMES
from roadaware.scenes.tables import Predictions, Scenes

By = Literal["any", "best", "sum", "count", "new", "chance"]
LISTED: dict[str, Any] = {
    "rank": pl.Int64,
    "video": pl.String,
    "frame": pl.Int64,
    "priority": pl.Float64,
    "worth": pl.Float64,
    "novelty": pl.Float64,
    "proposals": pl.Int64,
    "best_score": pl.Float64,
    "reason": pl.String,
}
"""Columns of a list: `priority` is `worth` times `novelty`."""
TUBE, CHANCE = "tube", "chance"
"""Columns of proposals that were tracked: of which thing a box is, over the images of a video, and the chance that the thing
is a corner case."""
VIEW, VIEW_FRAMES = 0.4, 7
"""What a view counts that no image above shows, and how many frames away one is wholly new: what nobody proposed
may be there."""


@dataclass(frozen=True)
class SelectionConfig:
    """How images are ranked.

    Args:
        by: what makes an image worth a look: `count` of proposals; `any`, 1 - prod(1 - score), as if scores
            were independent chances; `best`, the highest score; `sum` of scores; `new`, how many things (`tube`) it shows
            that no image higher in the list shows: one question for each thing, not for each image; `chance`, the sum of
            their chances (`boxes.chance`) instead, and `VIEW` for what images above do not show.
        repeat: each image of the same video that stands higher multiplies the worth by this; 1 for no heed.
        least_score: proposals below do not count.
        column: of `boxes`, from 0 to 1, that ranks proposals.
    """

    by: By = "count"
    repeat: float = 0.5
    least_score: float = 0.0
    column: str = "score"

    def __post_init__(self) -> None:
        if not 0 < self.repeat <= 1 or not 0 <= self.least_score <= 1:
            raise UsageError("'repeat' lies above 0 and up to 1, 'least_score' from 0 to 1")


def rank_images(
    predictions: Predictions, images: pl.DataFrame, config: SelectionConfig | None = None, *, seed: int = 0
) -> pl.DataFrame:
    """Rank all images, the most useful first, see `LISTED`.

    Images of equal worth, and those without a proposal, which come last, stand in an order drawn by chance; by `new`, so
    do those that show nothing new, each video in turn, those with the fewest images above first. By `chance` each image is
    worth something, the more the farther it is from those above.

    Args:
        predictions: proposals with scores; by `new`, with the things that they are of.
        images: video and frame of all images that could be looked at.
        config: how they are ranked.
        seed: of what is drawn by chance.

    Raises:
        UsageError: if there are no images, proposals of others, no such column of scores, or by `new` no things.
    """
    config = config or SelectionConfig()
    table = images.select(pl.col("video").cast(pl.String), pl.col("frame").cast(pl.Int64)).unique(
        maintain_order=True
    )
    _check(predictions, table, config)
    tracked = config.by in ("new", "chance")
    score = pl.col(_get_column(config)).cast(pl.Float64).fill_null(0.0)
    boxes = predictions.boxes.with_columns(pl.col("video").cast(pl.String), value=score)
    worth = {
        "any": 1.0 - (1.0 - pl.col("value")).product(),
        "best": pl.col("value").max(),
        "sum": pl.col("value").sum(),
        "count": pl.len().cast(pl.Float64),
        "new": pl.len().cast(pl.Float64),
        "chance": pl.col("value").sum(),
    }[config.by]
    boxes = boxes.filter(pl.col("value") >= config.least_score)
    things: list[dict[int, float]] | None = None
    view = VIEW if config.by == "chance" else 0.0
    if tracked:
        # The best box of each thing in an image; a box of no thing is one by itself.
        own = pl.col(TUBE).cast(pl.Int64).fill_null(-1 - pl.int_range(pl.len(), dtype=pl.Int64))
        boxes = (
            boxes.with_columns(own.alias(TUBE)).group_by("video", "frame", TUBE).agg(pl.col("value").max())
        )
    rows = boxes.group_by("video", "frame").agg(
        worth=worth, proposals=pl.len().cast(pl.Int64), best_score=pl.col("value").max()
    )
    table = table.join(rows, on=["video", "frame"], how="left", maintain_order="left")
    table = table.with_columns(pl.col("worth").fill_null(0.0) + view, pl.col("proposals").fill_null(0))
    if tracked:
        counts = pl.lit(1.0) if config.by == "new" else pl.col("value")
        shown = boxes.with_columns(counts=counts).group_by("video", "frame").agg(TUBE, "counts")
        held = table.join(shown, on=["video", "frame"], how="left", maintain_order="left")
        things = [
            dict(zip(each or [], count or [], strict=True))
            for each, count in held.select(TUBE, "counts").iter_rows()
        ]
    order, novelty, above = _order(table, config.repeat, seed, things, view)
    listed = table[order].with_columns(
        pl.Series("rank", np.arange(1, len(order) + 1)),
        pl.Series("novelty", novelty),
        pl.Series("above", above),
    )
    return (
        listed.with_columns(priority=pl.col("worth") * pl.col("novelty"), reason=_reason())
        .select(list(LISTED))
        .cast(pl.Schema(LISTED))
    )


def _get_column(config: SelectionConfig) -> str:
    return CHANCE if config.by == "chance" else config.column


def _check(predictions: Predictions, table: pl.DataFrame, config: SelectionConfig) -> None:
    if table.is_empty():
        raise UsageError("there are no images to rank")
    column = _get_column(config)
    if config.by == "chance" and column not in predictions.boxes.columns:
        raise UsageError(
            f"the proposals have no column {CHANCE!r}, the chance that a thing is a corner case: propose with --track and "
            "give the tables `tracks`, or rank by count"
        )
    if column not in predictions.boxes.columns:
        numbers = [name for name, dtype in predictions.boxes.schema.items() if dtype.is_float()]
        raise UsageError(f"the proposals have no column {column!r}; numbers are {', '.join(numbers)}")
    values = predictions.boxes[column].cast(pl.Float64).drop_nulls()
    if len(values) and not values.is_between(0.0, 1.0).all():
        raise UsageError(f"the column {column!r} does not lie from 0 to 1 everywhere")
    if config.by in ("new", "chance") and TUBE not in predictions.boxes.columns:
        raise UsageError(
            f"the proposals have no column {TUBE!r}, so that nobody knows which boxes are of one thing: propose with "
            "--track and give the tables `tracks`, or rank by count"
        )
    known = predictions.boxes.with_columns(pl.col("video").cast(pl.String))
    lost = known.join(table, on=["video", "frame"], how="anti")
    if len(lost):
        row = lost.row(0, named=True)
        raise UsageError(
            f"{len(lost)} proposals are on images that are not among those to rank, first {row['video']}, "
            f"frame {row['frame']}: name the dataset that they are of"
        )


def _order(
    table: pl.DataFrame, repeat: float, seed: int, things: list[dict[int, float]] | None, view: float = 0.0
) -> tuple[list[int], list[float], list[int]]:
    """Rows in their order, their novelty, and how many of the same video stand above each.

    What an image is worth can only fall as others are taken, so a row whose worth is still the same when it
    comes up is the best that is left.

    Args:
        table: with the worth of each image by itself.
        repeat: what each image of the same video that stands higher leaves of it.
        seed: of the order of equal ones and of the rest.
        things: numbers of what each image shows and what each of them counts, of which nothing is worth anything twice; None
            for no heed.
        view: what an image counts for being far from those above of the same video.
    """
    worth, videos, frames = (table[name].to_list() for name in ("worth", "video", "frame"))
    viewed: dict[str, list[int]] = {video: [] for video in videos}
    taken: dict[str, int] = dict.fromkeys(videos, 0)
    seen: set[tuple[str, int]] = set()

    def value(row: int) -> float:
        video = videos[row]
        left = worth[row]
        if things is not None:
            left = sum(counts for thing, counts in things[row].items() if (video, thing) not in seen)
        if view:
            apart = min((abs(frames[row] - frame) for frame in viewed[video]), default=VIEW_FRAMES)
            left += view * min(apart, VIEW_FRAMES) / VIEW_FRAMES
        return float(left * repeat ** taken[video])

    rng = np.random.default_rng(seed)
    # Images of equal worth come by chance: in the order of the table those of its first videos would always be ahead.
    chance = rng.permutation(len(worth)).tolist()
    heap = [(-value(row), chance[row], row) for row in range(len(worth)) if worth[row] > 0]
    heapq.heapify(heap)
    order: list[int] = []
    novelty: list[float] = []
    above: list[int] = []
    while heap:
        known, _, row = heapq.heappop(heap)
        now = value(row)
        if things is not None and now == 0:
            continue
        if now != -known:
            heapq.heappush(heap, (-now, chance[row], row))
            continue
        order.append(row)
        novelty.append(now / worth[row])
        above.append(taken[videos[row]])
        taken[videos[row]] += 1
        viewed[videos[row]].append(frames[row])
        if things is not None:
            seen.update((videos[row], thing) for thing in things[row])
    rest = np.setdiff1d(np.arange(len(worth)), order)
    rng.shuffle(rest)
    if things is not None:
        turns = []
        for row in rest.tolist():
            turns.append(taken[videos[row]])
            taken[videos[row]] += 1
        places = np.argsort(turns, kind="stable")
        order += rest[places].tolist()
        return order, novelty + [0.0] * len(rest), above + np.array(turns, dtype=np.int64)[places].tolist()
    order += rest.tolist()
    return order, novelty + [1.0] * len(rest), above + [0] * len(rest)


def _reason() -> pl.Expr:
    several = pl.when(pl.col("proposals") > 1).then(pl.lit("s")).otherwise(pl.lit(""))
    text = pl.format("{} proposal{}, best score {}", "proposals", several, pl.col("best_score").round(2))
    more = pl.format("{}; {} of the same video stand higher", text, "above")
    own = pl.when(pl.col("above") > 0).then(more).otherwise(text)
    return pl.when(pl.col("proposals") > 0).then(own).otherwise(pl.lit("no proposal"))


# Lists of images: all of a set, those that `label select` wrote, and those that are sent out.

_LIMIT = 1 << 28


def list_images(scenes: Scenes) -> pl.DataFrame:
    """video and frame of all images of a set.

    Raises:
        InputError: if its tables do not say, or say nothing but that there are more than could be listed.
    """
    frames = scenes.frames.select(pl.col("video").cast(pl.String), "frame")
    rest = scenes.videos.with_columns(pl.col("video").cast(pl.String)).join(frames, on="video", how="anti")
    if "n_frames" in rest.columns and len(rest):
        # Of whole numbers of Python, which do not overflow.
        count = sum(rest["n_frames"].drop_nulls().to_list())
        if count > MOST_LISTED_FRAMES:
            raise InputError(
                f"{count:,} frames are said of {len(rest):,} videos and none is listed; up to "
                f"{MOST_LISTED_FRAMES:,} can be chosen from",
                where=scenes.meta.dataset or None,
            )
        counted = rest.drop_nulls("n_frames").select(
            "video", frame=pl.int_ranges(pl.col("n_frames"), dtype=pl.Int64)
        )
        frames = pl.concat([frames, counted.explode("frame").drop_nulls()])
    if frames.is_empty():
        raise InputError("the tables name no images", where=scenes.meta.dataset or None)
    return frames


def read_image_list(path: Path) -> list[tuple[str, int]]:
    """The images of a list that `label select` wrote, in its order: csv or JSON, or the folder with both.

    Raises:
        InputError: if it cannot be read, or is none.
    """
    where = path / "list.csv" if path.is_dir() else path
    try:
        data = read_regular(where, limit=_LIMIT)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError("there is no such list", where=str(where), hint="Check the path.") from error
    try:
        if where.suffix == ".json":
            content = parse(decode(data, str(where)), str(where))
            table = pl.DataFrame(content["pictures"] if isinstance(content, dict) else content)
        else:
            table = pl.read_csv(
                data, infer_schema_length=None, schema_overrides={"video": pl.String}
            ).with_columns(from_sheets(pl.col("video")))
        rows = table.select(pl.col("video").cast(pl.String), pl.col("frame").cast(pl.Int64)).rows()
    except (pl.exceptions.PolarsError, KeyError, TypeError, ValueError) as error:
        message = f"expected a list with the columns video and frame: {str(error).splitlines()[0]}"
        raise InputError(message, where=str(where), hint="`roadaware label select` writes one.") from error
    if not rows:
        raise InputError("the list is empty", where=str(where))
    return rows


def choose_images(
    predictions: Predictions,
    scenes: Scenes,
    listed: Sequence[tuple[str, int]] | None = None,
    *,
    all_pictures: bool = False,
) -> list[tuple[str, int]]:
    """The images that are sent out, in the order of the work: those of a list, else the best proposals first.

    Args:
        predictions: proposals.
        scenes: the set that they are of.
        listed: video and frame of the images to choose from; all of the set where None.
        all_pictures: also images without a proposal.

    Raises:
        UsageError: if a listed image is not of the set, or no image is left.
    """
    known = set(list_images(scenes).rows())
    score = pl.col("score").max() if "score" in predictions.boxes.columns else pl.len()
    ranked = predictions.boxes.group_by(pl.col("video").cast(pl.String), "frame").agg(best=score)
    ranked = ranked.sort(["best", "video", "frame"], descending=[True, False, False])
    own = ranked.select("video", "frame").rows()
    held = set(own)
    if listed is not None:
        wanted = list(dict.fromkeys(listed))
    else:
        wanted = own + (sorted(known - held) if all_pictures else [])
    lost = [place for place in wanted if place not in known]
    chosen = [place for place in wanted if all_pictures or place in held]
    if lost:
        video, frame = lost[0]
        raise UsageError(
            f"{len(lost)} images are not of the set that --videos names, first {video}, frame {frame}"
        )
    if not chosen:
        raise UsageError("no image has a proposal; --all sends images without one, too")
    return chosen
