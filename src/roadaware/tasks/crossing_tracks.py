"""Tracks of people, wherever they come from, to what a predictor says of each at every moment; torch-free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.models.crossing.inputs import InputSet
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes
from roadaware.tasks.crossing_inputs import build_inputs
from roadaware.tasks.poses import people_in
from roadaware.tasks.resampling import Pace, Paced

SPLIT = "test"
TIME = "time"
"""The task of a predictor that says when, in spans of time; beside action, intention and risk."""
_SAME_RATE = 0.01
"""Rates that differ by no more are one: files round them."""
DETECTED_STEADY_S = 0.5
"""Over which detected boxes are smoothed, as `watch` does."""
FASTEST_HEIGHTS = 60.0
"""Own heights a second (100 m/s of an adult): faster, an id has gone over to somebody else. In JAAD, whose cameras turn,
nobody moves faster than 21."""
LARGEST_IMAGES = 10.0
"""Sides of an image that a box may have: larger is no box of a person."""
_PASSES = 30
_SOON_S = 2.0
_INNER = 0.9
_HALF = 0.5


@dataclass(frozen=True)
class Moments:
    """The moments at which a predictor is asked about people.

    Args:
        rate_fps: frames a second of the predictor.
        frames: boxes that it looks back at, the newest among them.
        every: of the predictor's frames, from one question about somebody to the next.
        bridge_s: boxes of somebody that are further apart begin anew; between nearer ones lies a straight line.
        steady_s: boxes are read off a line through those of about this time, as `tasks.resampling.Line` does; 0 takes them
            as they are. Detected boxes tremble, and predictors learnt from annotated ones.

    Raises:
        UsageError: if a number has no meaning.
    """

    rate_fps: float = 30.0
    frames: int = 15
    every: int = 1
    bridge_s: float = 0.5
    steady_s: float = 0.0

    def __post_init__(self) -> None:
        if not (self.frames >= 1 and self.every >= 1):
            raise UsageError(
                f"a predictor looks at one frame at least, and is asked every frame or less often; got {self}"
            )
        self.build_pace()

    def build_pace(self) -> Pace:
        """How boxes are brought to the predictor's rate."""
        return Pace(self.rate_fps, self.bridge_s, steady_s=self.steady_s)


@dataclass(frozen=True, eq=False)
class AskedTracks:
    """Tracks at the rate of a predictor, with a sample for each moment at which it is asked.

    Args:
        scenes: a tube for each stretch of a track without a gap; `samples` of the split `test`, without answers.
        source_frame: (boxes,) the frame of the source that is nearest to each box of `scenes`.
        owner: tube of `scenes` to the video and name of the person.
        short: people of whom no stretch is long enough, as video and name.
        left_out: why boxes are not asked about, with how many.
        anew: why tracks begin anew, with how many people: they come back after a gap, or their id goes over to another place.
    """

    scenes: Scenes
    source_frame: Ints
    owner: dict[int, tuple[str, str]]
    short: list[tuple[str, str]]
    left_out: dict[str, int] = field(default_factory=dict)
    anew: dict[str, int] = field(default_factory=dict)


PUBLISHED_FPS = {"jaad": 30.0, "pie": 30.0}
"""Frame rates that annotations do not state and their papers do."""


def cut_moments(tables: Scenes | Predictions, moments: Moments, fps: float | None = None) -> AskedTracks:
    """The tracks of people at the rate of a predictor, and the moments at which it can be asked.

    Boxes are brought to its rate as those of a stream are (`tasks.resampling.Paced`): of a source with the same rate they
    stay as they are. What else the tables say of boxes and frames (the vehicle's action, looks) is that of the nearest
    frame.

    Args:
        tables: with tubes; people are found as `tasks.poses.people_in` finds them.
        moments: when.
        fps: of videos whose rate the tables do not state (default: 30 for JAAD and PIE).

    Raises:
        InputError: if nobody is there, no box lies in its image, or the rate of a video is unknown.
    """
    people, left_out = _leave_out_unseen(people_in(tables), tables)
    fps = fps or PUBLISHED_FPS.get(tables.meta.dataset.lower())
    rates = _read_rates(tables, people["video"].unique(maintain_order=True).to_list(), fps)
    parts: list[pl.DataFrame] = []
    owner: dict[int, tuple[str, str]] = {}
    short: list[tuple[str, str]] = []
    pace = moments.build_pace()
    jumped = returned = 0
    for (video, name), rows in people.group_by("video", "name", maintain_order=True):
        long_enough = False
        stretches, jumps = _resample(rows, rates[str(video)], pace)
        jumped, returned = jumped + (jumps > 0), returned + (len(stretches) - 1 > jumps)
        for boxes in stretches:
            if len(boxes) < moments.frames:
                continue
            long_enough = True
            tube = len(owner)
            owner[tube] = (str(video), str(name))
            parts.append(boxes.with_columns(video=pl.lit(str(video)), tube=pl.lit(tube, dtype=pl.Int64)))
        if not long_enough:
            short.append((str(video), str(name)))
    scenes, source = _build_scenes(tables, parts, owner, moments)
    anew = {
        f"come back after more than {moments.bridge_s:g} s": returned,
        f"are suddenly elsewhere, faster than {FASTEST_HEIGHTS:g} own heights a second": jumped,
    }
    return AskedTracks(scenes, source, owner, short, left_out, {why: n for why, n in anew.items() if n})


def _leave_out_unseen(
    people: pl.DataFrame, tables: Scenes | Predictions
) -> tuple[pl.DataFrame, dict[str, int]]:
    """The boxes that lie in their image at least in part, and why others do not count, with how many."""
    wanted = [pl.col("video").cast(pl.String)]
    for side in ("width_px", "height_px"):
        known = side in tables.videos.columns
        wanted.append(pl.col(side).cast(pl.Float64) if known else pl.lit(None, pl.Float64).alias(side))
    sizes = tables.videos.select(wanted).unique("video", keep="first")
    people = people.join(sizes, on="video", how="left", maintain_order="left")
    x1, y1, x2, y2 = (pl.col(corner).cast(pl.Float64) for corner in CORNERS)
    width, height = pl.col("width_px"), pl.col("height_px")
    no_box = ~pl.all_horizontal(pl.col(*CORNERS).is_finite()) | ~(x2 > x1) | ~(y2 > y1)
    reasons = {
        f"that are no boxes, or larger than {LARGEST_IMAGES:g} images": no_box
        | (x2 - x1 > LARGEST_IMAGES * width)
        | (y2 - y1 > LARGEST_IMAGES * height),
        "that lie outside of the image": (x2 <= 0) | (y2 <= 0) | (x1 >= width) | (y1 >= height),
    }
    left_out = {}
    for why, due in reasons.items():
        kept = people.filter(~due.fill_null(value=False))
        if len(kept) < len(people):
            left_out[why] = len(people) - len(kept)
        people = kept
    if people.is_empty():
        counts = ", ".join(f"{n:,} {why}" for why, n in left_out.items())
        raise InputError(
            f"no box lies in its image: there are {counts}",
            hint="is the size of the image right (--size), and are columns what they are taken for (--columns)?",
        )
    return people.drop("width_px", "height_px"), left_out


def _read_rates(tables: Scenes | Predictions, videos: Sequence[str], fps: float | None) -> dict[str, float]:
    known: dict[str, float | None] = {}
    if "fps" in tables.videos.columns:
        known = dict(
            tables.videos.select(pl.col("video").cast(pl.String), pl.col("fps").cast(pl.Float64)).iter_rows()
        )
    known = {video: known.get(video) or fps for video in videos}
    lost = [video for video in videos if not known[video]]
    if lost:
        raise InputError(
            f"the frame rate of {', '.join(lost[:5])} is unknown, and predictors count in seconds",
            hint="name it where the tracks are opened (--fps 30)",
        )
    return {video: float(known[video] or 0) for video in videos}


def _resample(rows: pl.DataFrame, fps: float, pace: Pace) -> tuple[list[pl.DataFrame], int]:
    """Stretches of one track at the predictor's rate, as a stream would have them: `frame`, `source_frame`, corners.

    Args:
        rows: with `frame` and corners.
        fps: of the source.
        pace: of the predictor.

    Returns:
        the stretches, and how many of them begin since the box is suddenly elsewhere.
    """
    # Files round rates: 29.97 frames a second are 30.
    fps = pace.rate_fps if abs(pace.rate_fps / fps - 1) <= _SAME_RATE else fps
    rows = rows.sort("frame").unique("frame", keep="first", maintain_order=True)
    times, corners = rows["frame"].to_numpy() / fps, rows.select(CORNERS).to_numpy().astype(np.float64)
    middle, height = (corners[:, :2] + corners[:, 2:]) / 2, corners[:, 3] - corners[:, 1]
    moved = np.abs(np.diff(middle, axis=0)).max(axis=1, initial=0.0)
    speed = moved / np.maximum(height[1:], height[:-1]) / np.diff(times)
    sudden = np.concatenate([[False], speed > FASTEST_HEIGHTS])
    found: list[pl.DataFrame] = []
    paced, begin_s, held, jumps = Paced(pace), 0.0, list[Floats](), 0
    for t_s, box, elsewhere in zip(times.tolist(), corners, sudden.tolist(), strict=True):
        if elsewhere and paced.goes_on(t_s):
            paced, jumps = Paced(pace), jumps + 1
        frames, anew = paced.add(t_s, box)
        if anew and held:
            found.append(_build_stretch(held, begin_s, fps, pace.rate_fps))
            held = []
        if anew:
            begin_s = t_s
        held.append(frames)
    found.append(_build_stretch(held, begin_s, fps, pace.rate_fps))
    return found, jumps


def _build_stretch(held: Sequence[Floats], begin_s: float, fps: float, rate: float) -> pl.DataFrame:
    corners = np.concatenate(held)
    times = begin_s + np.arange(len(corners)) / rate
    frame = round(begin_s * rate) + np.arange(len(corners))
    columns = {name: corners[:, place] for place, name in enumerate(CORNERS)}
    return pl.DataFrame({"frame": frame, "source_frame": np.round(times * fps).astype(np.int64), **columns})


def _build_scenes(
    tables: Scenes | Predictions,
    parts: Sequence[pl.DataFrame],
    owner: dict[int, tuple[str, str]],
    moments: Moments,
) -> tuple[Scenes, Ints]:
    schema: dict[str, Any] = {
        "frame": pl.Int64,
        "source_frame": pl.Int64,
        **dict.fromkeys(CORNERS, pl.Float64),
    }
    nothing = pl.DataFrame(schema=schema | {"video": pl.String, "tube": pl.Int64})
    boxes = pl.concat([nothing, *(part.select(nothing.columns) for part in parts)])
    boxes = boxes.with_columns(box=pl.int_range(pl.len(), dtype=pl.Int64))
    boxes = boxes.with_columns(name=pl.col("tube").replace_strict({t: n for t, (_, n) in owner.items()}, default=None,
                                                                  return_dtype=pl.String))  # fmt: skip
    boxes = _add_facts(boxes, tables)
    frames = pl.DataFrame(schema={"video": pl.String, "frame": pl.Int64})
    if len(tables.frames):
        rows = tables.frames.drop("scores", "score", "ready_s", "t_s", strict=False).with_columns(
            pl.col("video").cast(pl.String)
        )
        needed = boxes.select("video", "frame", "source_frame").unique(
            ["video", "frame"], maintain_order=True
        )
        frames = needed.join(
            rows.rename({"frame": "source_frame"}), on=["video", "source_frame"], how="inner"
        )
        frames = frames.drop("source_frame").sort("video", "frame")
    kept = [c for c in ("video", "width_px", "height_px") if c in tables.videos.columns]
    facts = [c for c in tables.videos.columns if c in ("weather", "time_of_day", "location")]
    videos = tables.videos.select(*kept, *facts).with_columns(
        pl.col("video").cast(pl.String), fps=pl.lit(moments.rate_fps)
    )
    tubes = pl.DataFrame(
        {
            "tube": list(owner),
            "video": [v for v, _ in owner.values()],
            "name": [f"{n}#{t}" for t, (_, n) in owner.items()],
        },
        schema={"tube": pl.Int64, "video": pl.String, "name": pl.String},
    )
    scenes = Scenes(
        videos=videos,
        frames=frames,
        boxes=boxes.drop("source_frame", "name"),
        tubes=tubes,
        samples=_list_samples(boxes, moments),
        meta=Meta(tables.meta.dataset, tables.meta.licence),
    )
    return scenes, boxes["source_frame"].to_numpy()


def _add_facts(boxes: pl.DataFrame, tables: Scenes | Predictions) -> pl.DataFrame:
    """The boxes with what the source says of them beside their corners."""
    facts = [c for c in ("look", "action", "cross", "pose_front", "occlusion") if c in tables.boxes.columns]
    if not facts or "tube" not in tables.boxes.columns or "name" not in tables.tubes.columns:
        return boxes
    names = tables.tubes.select("tube", name=pl.col("name").cast(pl.String))
    rows = tables.boxes.select(
        pl.col("video").cast(pl.String), pl.col("frame").alias("source_frame"), "tube", *facts
    )
    rows = rows.join(names, on="tube").drop("tube").unique(["video", "name", "source_frame"], keep="first")
    return boxes.join(rows, on=["video", "name", "source_frame"], how="left", maintain_order="left")


def _list_samples(boxes: pl.DataFrame, moments: Moments) -> pl.DataFrame:
    """A sample for each moment: from its oldest box to behind its newest one."""
    place = pl.int_range(pl.len()).over("tube")
    back = moments.frames - 1
    asked = boxes.select("video", "tube", "frame", place=place).filter(
        (pl.col("place") >= back) & ((pl.col("place") - back) % moments.every == 0)
    )
    return asked.select(
        pl.int_range(pl.len(), dtype=pl.Int64).alias("sample"),
        "video",
        "tube",
        start_frame=pl.col("frame") - back,
        end_frame=pl.col("frame") + 1,
        kind=pl.lit("action"),
        split=pl.lit(SPLIT),
    )


class Asked(Protocol):
    """A predictor of pedestrians, such as `models.crossing.predictor.Predictor`."""

    @property
    def task(self) -> str:
        """Action, intention or risk."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The words of its answers."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it reads."""

    def probabilities(self, given: InputSet) -> Floats:
        """(n, k) its answers."""

    def passes(self, given: InputSet, n: int, seed: int = 0) -> Floats:
        """(passes, n, k) answers of single passes."""


def read_moments(
    predictor: Any, every_s: float | None = None, bridge_s: float = 0.5, steady_s: float = 0.0
) -> Moments:
    """The rate and reach of a predictor, as its file says them.

    Args:
        predictor: of one member or an ensemble of them.
        every_s: seconds from one question to the next (default: every frame).
        bridge_s, steady_s: as of `Moments`.

    Raises:
        UsageError: if its members have several rates, or look back unequally.
    """
    members = list_members(predictor)
    rates = {float(member.facts.get("fps") or 30.0) for member in members}
    reach = {
        int(
            member.facts.get("protocol_config", {}).get("observation_frames")
            or next(iter(member.network.shapes.values()))[0]
        )
        for member in members
    }
    if len(rates) > 1 or len(reach) > 1:
        raise UsageError(
            f"the members of the ensemble have {sorted(rates)} frames a second, and look at {sorted(reach)}"
        )
    rate = rates.pop()
    every = 1 if every_s is None else max(1, round(every_s * rate))
    return Moments(rate, reach.pop(), every, bridge_s, steady_s)


def list_members(predictor: Any) -> list[Any]:
    """The single predictors of an ensemble, or the one that there is."""
    held = getattr(predictor, "members", None)
    return [one for member in held for one in list_members(member)] if held else [predictor]


def predict_tracks(predictor: Asked, asked: AskedTracks, *, spread: bool = True) -> pl.DataFrame:
    """What a predictor says at each moment.

    Args:
        predictor: with the rate and reach that the moments were cut for.
        asked: see `cut_moments`.
        spread: ask it several times too, where its answers differ from pass to pass.

    Returns:
        A row for each moment, by video, name and time: `video`, `name`, `frame` (of the source), `t_s`, the newest box, and

        - of action and intention: `probability` of the second label, `low` and `high` (the middle 90 % of passes, null
          where all are equal);
        - of the time: `within_1s` and others, the probability that the person begins to cross within so many seconds,
          `seconds` (see `describe_times`), and as `probability` that of two seconds;
        - of risk: `region` with the largest probability, counted from the left, and that probability.

        `within_limits` is false for boxes smaller than those that the predictor learnt from.

    Raises:
        InputError: if it reads what the tracks lack.
    """
    scenes, samples = asked.scenes, asked.scenes.samples
    table = list_newest(asked)
    if not len(samples):
        empty = {
            "probability": pl.Float64,
            "low": pl.Float64,
            "high": pl.Float64,
            "within_limits": pl.Boolean,
        }
        return table.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in empty.items())
    try:
        given = build_inputs(scenes, SPLIT, list(predictor.inputs))
    except InputError as error:
        raise InputError(
            error.message, where=error.where,
            hint="ask a predictor of boxes alone, such as crossing-jaad, or train one: roadaware train RECIPE --set "
            "network.inputs=[boxes,centre]",
        ) from error  # fmt: skip
    scores = np.asarray(predictor.probabilities(given))
    if predictor.task == "risk":
        best = scores.argmax(axis=1)
        table = table.with_columns(
            region=pl.Series(best), probability=pl.Series(scores[np.arange(len(best)), best])
        )
    elif predictor.task == TIME:
        edges = [float(edge) for edge in list_members(predictor)[0].facts["edges_s"]]
        table = table.with_columns(**describe_times(scores, edges))
        # The alarm of the study of it, and what people are ranked by: the next two seconds, or the first span behind them.
        soon = next((edge for edge in edges if edge >= _SOON_S), edges[-1])
        table = table.with_columns(probability=pl.col(f"within_{soon:g}s"))
    else:
        # Of two labels one column, that of the second; of three (intention with `unsure`) the last.
        table = table.with_columns(probability=pl.Series(scores[:, -1]))
        low = high = np.full(len(scores), np.nan)
        if spread and (
            len(list_members(predictor)) > 1 or any(one.doubt.draws for one in list_members(predictor))
        ):
            passes = predictor.passes(given, max(_PASSES, int(getattr(predictor, "smallest", 1))))[:, :, -1]
            low, high = np.quantile(passes, [(1 - _INNER) / 2, (1 + _INNER) / 2], axis=0)
        table = table.with_columns(low=pl.Series(low).fill_nan(None), high=pl.Series(high).fill_nan(None))
    heights = [float(one.facts.get("limits", {}).get("height") or 0.0) for one in list_members(predictor)]
    share = (pl.col("y2_px") - pl.col("y1_px")) / pl.col("height_px")
    return table.with_columns(within_limits=share >= max(heights, default=0.0)).drop("height_px")


def describe_times(scores: Floats, edges_s: Sequence[float]) -> dict[str, pl.Series]:
    """Columns of a predictor of the time: `within_1s` and others, and `seconds` until somebody begins to cross.

    Args:
        scores: (n, spans + 1) probabilities of the spans and of `later`.
        edges_s: (spans,) their ends.

    Returns:
        `seconds` is the median: the probability that the person has begun to cross reaches a half then, on straight lines
        between the ends of spans; null where it does not within the last of them.
    """
    came = 1 - survive(scores)
    columns = {f"within_{edge:g}s": pl.Series(came[:, place]) for place, edge in enumerate(edges_s)}
    return columns | {"seconds": pl.Series(estimate_median_time(came, edges_s)).fill_nan(None)}


def estimate_median_time(came: Floats, edges_s: Sequence[float]) -> Floats:
    """(n,) seconds until an event has come with a probability of one half; NaN where it has not by the last edge.

    Args:
        came: (n, m) probability of the event by each edge, rising.
        edges_s: (m,) times, from 0.

    >>> estimate_median_time(np.array([[0.25, 0.75], [0.1, 0.2]]), (1.0, 2.0)).tolist()
    [1.5, nan]
    """
    held = np.concatenate([np.zeros((len(came), 1)), came], axis=1)
    ends, rows = np.concatenate([[0.0], edges_s]), np.arange(len(came))
    last = np.minimum((held < _HALF).sum(axis=1), len(edges_s))  # the first edge at which it has
    below, above = held[rows, last - 1], held[rows, last]
    with np.errstate(divide="ignore", invalid="ignore"):
        along = (_HALF - below) / (above - below)
    found = ends[last - 1] + along * (ends[last] - ends[last - 1])
    return np.where(held[:, -1] >= _HALF, found, np.nan)


def add_times(table: pl.DataFrame, trees: Asked, asked: AskedTracks) -> pl.DataFrame:
    """The moments of another predictor with what one of the time says of them; see `describe_times`.

    Args:
        table: of `predict_tracks`.
        trees: a predictor of the time of the same rate; its own limits do not count.
        asked: that `table` is about.
    """
    said = predict_tracks(trees, asked, spread=False)
    return table.with_columns(said.select(name for name in said.columns if name not in table.columns))


def survive(probabilities: Floats) -> Floats:
    """(n, k - 1) that nothing has happened by the end of each span but the last one, of (n, k) probabilities of spans."""
    return np.clip(1 - np.cumsum(probabilities[:, :-1], axis=1), 0.0, 1.0)


def list_newest(asked: AskedTracks) -> pl.DataFrame:
    """The newest box of each moment, with whose it is, and the height of its image."""
    scenes = asked.scenes
    rate = float(scenes.videos["fps"][0]) if len(scenes.videos) else 1.0
    boxes = scenes.boxes.select("tube", "frame", *CORNERS).with_columns(
        source_frame=pl.Series(asked.source_frame, dtype=pl.Int64)
    )
    newest = scenes.samples.select(pl.col("video").cast(pl.String), "tube", frame=pl.col("end_frame") - 1)
    found = newest.join(boxes, on=["tube", "frame"], how="left", maintain_order="left")
    heights = scenes.videos.select(pl.col("video").cast(pl.String), pl.col("height_px").cast(pl.Float64))
    found = found.join(heights, on="video", how="left", maintain_order="left")
    names = {tube: name for tube, (_, name) in asked.owner.items()}
    return found.select(
        "video",
        pl.col("tube").replace_strict(names, default=None, return_dtype=pl.String).alias("name"),
        pl.col("source_frame").alias("frame"),
        (pl.col("frame") / rate).alias("t_s"),
        *CORNERS,
        "height_px",
    )


def add_truth(table: pl.DataFrame, tables: Scenes | Predictions, fps: float | None = None) -> pl.DataFrame:
    """The moments with `crossing` and `seconds_to_event`, where the source says who crosses and when.

    Args:
        table: of `predict_tracks`.
        tables: the source.
        fps: as of `cut_moments`.
    """
    if not all(column in tables.tubes.columns for column in ("name", "crossing", "event_frame")):
        return table
    videos = table["video"].unique(maintain_order=True).to_list()
    held = _read_rates(tables, videos, fps or PUBLISHED_FPS.get(tables.meta.dataset.lower()))
    rates = pl.DataFrame(
        {"video": list(held), "rate": list(held.values())}, schema={"video": pl.String, "rate": pl.Float64}
    )
    known = tables.tubes.select(
        pl.col("video").cast(pl.String), pl.col("name").cast(pl.String), "crossing", "event_frame"
    )
    known = known.unique(["video", "name"], keep="first").join(rates, on="video", how="left")
    found = table.join(known, on=["video", "name"], how="left", maintain_order="left")
    away = (pl.col("event_frame") - pl.col("frame")) / pl.col("rate")
    return found.with_columns(seconds_to_event=away).drop("event_frame", "rate")


def count_contradictions(tables: Scenes | Predictions) -> dict[str, int]:
    """What labels of who crosses contradict, with how many people; empty where nothing does, or nothing is said.

    Args:
        tables: with `crossing` and `event_frame` of tubes, and `cross` of boxes, where they are known.
    """
    found: dict[str, int] = {}
    if not {"crossing", "event_frame"} <= set(tables.tubes.columns) or "tube" not in tables.boxes.columns:
        return found
    seen = pl.col("cross").cast(pl.String) if "cross" in tables.boxes.columns else pl.lit(None, pl.String)
    spans = tables.boxes.group_by("tube").agg(
        first=pl.col("frame").min(), last=pl.col("frame").max(), shown=(seen == "crossing").any(),
        tagged=seen.is_not_null().any(),
    )  # fmt: skip
    people = tables.tubes.join(spans, on="tube")
    crosses = pl.col("crossing").cast(pl.String)
    reasons = {
        "are said not to cross, and boxes show them crossing": (crosses == "not-crossing") & pl.col("shown"),
        "are said to cross, and no box shows it": (crosses == "crossing")
        & pl.col("tagged")
        & ~pl.col("shown"),
        "have an event outside of their track": ~pl.col("event_frame").is_between(
            "first", pl.col("last") + 1
        ),
    }
    for why, due in reasons.items():
        if count := int(people.select(due.fill_null(value=False).sum()).item()):
            found[why] = count
    return found


def rank_people(table: pl.DataFrame) -> pl.DataFrame:
    """People by how likely they are to cross at their most urgent moment, the most likely first.

    Moments outside of the predictor's limits do not count; of equal ones the nearer person, whose box is taller, is first.

    Args:
        table: of `predict_tracks`, of action or intention.

    Returns:
        `video`, `name`, `moments`, `peak` with its `frame` and `t_s`, `last` and `height_px` of the box at the peak, and
        `seconds` until the person begins to cross there, where the table says when.
    """
    counted = table.filter("within_limits").with_columns(height_px=pl.col("y2_px") - pl.col("y1_px"))
    first = counted.sort("probability", "height_px", descending=True, maintain_order=True)
    people = first.group_by("video", "name", maintain_order=True).agg(
        pl.len().alias("moments"),
        peak=pl.col("probability").first(),
        frame=pl.col("frame").first(),
        t_s=pl.col("t_s").first(),
        height_px=pl.col("height_px").first(),
        last=pl.col("probability").sort_by("t_s").last(),
        **({"seconds": pl.col("seconds").first()} if "seconds" in table.columns else {}),
    )
    return people.sort("peak", "height_px", descending=True, maintain_order=True)


def count_reasons(rejected: pl.DataFrame) -> dict[str, int]:
    """Why rows were refused, without what differs from row to row, to how many; the most frequent first."""
    import polars as pl

    if rejected.is_empty():
        return {}
    # Messages end with what stands in the row, behind a colon or in quotes.
    short = pl.col("reason").cast(pl.String).str.replace(r"(: | and is )['\d\-].*$", "")
    found = (
        rejected.group_by(short.alias("why"), maintain_order=True)
        .len()
        .sort("len", descending=True, maintain_order=True)
    )
    return dict(found.iter_rows())
