"""Factors of a sample's scene, and boxes of tubes and observations as dense arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

Labels = npt.NDArray[np.object_]

UNKNOWN = "unknown"
LIGHTS = ("undefined", "red", "yellow", "green")
"""States of a traffic light in the order of the published codes; another state is as good as undefined."""


@dataclass(frozen=True)
class FactorConfig:
    """How samples are sorted into scenarios.

    Args:
        window: averages run over the `observation` (what the paper says), or over the `sequence` of
            observation and prediction (what the published code does).
        prediction_frames: length of the prediction in a `sequence`.
        scale_edges_px: upper ends of the classes of mean box height, each inclusive.
        speed_edges_kmh: upper ends of the classes of mean ego speed, each inclusive.
        untagged_state: a pedestrian without action tags is `unknown`, or `standing` as published (the
            missing tag is the code -1, which lowers the mean). JAAD tags those alone who interact.
        light: a signal `forbid`s where the mean of the light's codes (undefined 0, red 1, yellow 2,
            green 3) is below 2 (`mean_code`), or where red is its most frequent known state, also beside an
            equal (`majority`).
        narrow_lanes: roads with fewer lanes than this are narrow.
    """

    window: Literal["observation", "sequence"] = "observation"
    prediction_frames: int = 30
    scale_edges_px: tuple[float, ...] = (80, 100, 150, 200, 300)
    speed_edges_kmh: tuple[float, ...] = (0, 5, 10, 20, 30)
    untagged_state: Literal["unknown", "standing"] = "unknown"
    light: Literal["majority", "mean_code"] = "majority"
    narrow_lanes: int = 3

    @classmethod
    def reference(cls) -> FactorConfig:
        """The published code's choices."""
        return cls(window="sequence", untagged_state="standing", light="mean_code")

    @classmethod
    def default(cls) -> FactorConfig:
        """The paper's words, and nothing guessed."""
        return cls()


def build_scenario_labels(
    scenes: Scenes, factors: Sequence[str], config: FactorConfig, samples: pl.DataFrame | None = None
) -> Labels:
    """(n,) the scenario of each sample, such as `state=walking; road=one-way`.

    Args:
        scenes: boxes, frames and tubes.
        factors: names of `FACTORS`; several make a product.
        config: how samples are sorted.
        samples: (n rows) the samples (default: those of the scenes).

    Raises:
        UsageError: if a factor is unknown or none is given.

    Source: Rasouli and Kotseruba, IV 2024, section IV-C.
    """
    unknown = [name for name in factors if name not in FACTORS]
    if unknown or not factors:
        raise UsageError(f"no factor {unknown or 'is named'}; there are {', '.join(FACTORS)}")
    held = scenes.samples if samples is None else samples
    columns = [FACTORS[name](scenes, held, config) for name in factors]
    parts = [[f"{name}={label}" for label in column] for name, column in zip(factors, columns, strict=True)]
    return np.array(["; ".join(labels) for labels in zip(*parts, strict=True)], dtype=object)


def _scale(scenes: Scenes, samples: pl.DataFrame, config: FactorConfig) -> Labels:
    """Mean height of the box in pixels."""
    tops = _over(scenes, samples, config, ("y1_px", "y2_px"))
    if tops is None:
        return _nothing(samples)
    return classify_by_edges(np.abs(tops[..., 1] - tops[..., 0]).mean(axis=1), config.scale_edges_px)


def _state(scenes: Scenes, samples: pl.DataFrame, config: FactorConfig) -> Labels:
    """Walking or standing, by the larger part of the time."""
    tags = _over(scenes, samples, config, ("action",))
    if tags is None:
        return _nothing(samples)
    codes = _categories(scenes.boxes["action"])
    walking = tags[..., 0] == (codes.index("walking") if "walking" in codes else -1)
    tagged = ~np.isnan(tags[..., 0])
    # The published code averages the codes, where a missing tag is -1.
    if config.untagged_state == "standing":
        share = np.where(tagged, walking, -1).mean(axis=1)
        return np.where(share > 0.5, "walking", "standing").astype(object)
    share = walking.sum(axis=1) / np.maximum(tagged.sum(axis=1), 1)
    named = np.where(share > 0.5, "walking", "standing").astype(object)
    return np.where(tagged.any(axis=1), named, UNKNOWN)


def _classify_ego_speed(scenes: Scenes, samples: pl.DataFrame, config: FactorConfig) -> Labels:
    """Mean speed of the ego vehicle in km/h."""
    speeds = _frames_over(scenes, samples, config, "ego_speed_kmh")
    if speeds is None:
        return _nothing(samples)
    known = ~np.isnan(speeds)
    mean = np.where(known, speeds, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return np.where(known.any(axis=1), classify_by_edges(mean, config.speed_edges_kmh), UNKNOWN)


def _ego_action(scenes: Scenes, samples: pl.DataFrame, config: FactorConfig) -> Labels:
    """What the ego vehicle does most of the time, where a category stands for its speed."""
    if "vehicle_action" not in scenes.frames.columns:
        return _nothing(samples)
    names = _categories(scenes.frames["vehicle_action"])
    codes = _frames_over(scenes, samples, config, "vehicle_action", names)
    return _nothing(samples) if codes is None or not names else _most_frequent(codes, names)


def _signal(scenes: Scenes, samples: pl.DataFrame, config: FactorConfig) -> Labels:
    """The traffic light for the ego vehicle: forbid, allow, or none where no light is there."""
    kinds = _of_tubes(scenes, samples, "signalized")
    lights = _frames_over(scenes, samples, config, "traffic_light", LIGHTS)
    if kinds is None:
        return _nothing(samples)
    lit = np.isin(kinds, ("S", "CS"))
    state = _nothing(samples) if lights is None else _light(lights, config)
    return np.where(kinds == UNKNOWN, UNKNOWN, np.where(lit, state, "none"))


def _road(scenes: Scenes, samples: pl.DataFrame, config: FactorConfig) -> Labels:
    """One-way or two-way traffic."""
    names = {"OW": "one-way", "TW": "two-way"}
    values = _of_tubes(scenes, samples, "traffic_direction")
    if values is None:
        return _nothing(samples)
    return np.array([names.get(value, UNKNOWN) for value in values], dtype=object)


def _lanes(scenes: Scenes, samples: pl.DataFrame, config: FactorConfig) -> Labels:
    """Narrow or wide, by the number of lanes."""
    lanes = _of_tubes(scenes, samples, "num_lanes")
    if lanes is None:
        return _nothing(samples)
    named = [UNKNOWN if n == UNKNOWN else "narrow" if int(n) < config.narrow_lanes else "wide" for n in lanes]
    return np.array(named, dtype=object)


def _flag(column: str) -> Callable[[Scenes, pl.DataFrame, FactorConfig], Labels]:
    """A factor that says whether a frame flag holds at the first observed frame."""

    def label(scenes: Scenes, samples: pl.DataFrame, config: FactorConfig) -> Labels:
        values = _frames_over(scenes, samples, config, column)
        if values is None:
            return _nothing(samples)
        first = values[:, 0]
        return np.where(np.isnan(first), UNKNOWN, np.where(first > 0, "yes", "no")).astype(object)

    return label


FACTORS: dict[str, Callable[[Scenes, pl.DataFrame, FactorConfig], Labels]] = {
    "scale": _scale,
    "state": _state,
    "speed": _classify_ego_speed,
    "ego_action": _ego_action,
    "signal": _signal,
    "road": _road,
    "lanes": _lanes,
    "crosswalk": _flag("ped_crossing"),
    "pedestrian_sign": _flag("ped_sign"),
    "stop_sign": _flag("stop_sign"),
}


def _nothing(samples: pl.DataFrame) -> Labels:
    return np.full(len(samples), UNKNOWN, dtype=object)


def _over(
    scenes: Scenes, samples: pl.DataFrame, config: FactorConfig, columns: Sequence[str]
) -> npt.NDArray[np.float64] | None:
    """(n, t, c) box columns over the window, None where the dataset lacks them."""
    if scenes.boxes.is_empty() or any(c not in scenes.boxes.columns for c in columns):
        return None
    after = config.prediction_frames if config.window == "sequence" else 0
    return extract_windows(scenes, samples, columns, after=after)


def _frames_over(
    scenes: Scenes,
    samples: pl.DataFrame,
    config: FactorConfig,
    column: str,
    names: Sequence[str] | None = None,
) -> npt.NDArray[np.float64] | None:
    """(n, t) a column of the frames over the window, NaN where unknown; None where there is none."""
    frames = _over(scenes, samples, config, ("frame",))
    if frames is None or column not in scenes.frames.columns:
        return None
    return get_frame_values(scenes, column, samples["video"], frames[..., 0], names)


def _of_tubes(scenes: Scenes, samples: pl.DataFrame, column: str) -> Labels | None:
    """(n,) an attribute of each sample's pedestrian as text; None where the dataset has no such column."""
    if column not in scenes.tubes.columns:
        return None
    known = scenes.tubes.select("tube", pl.col(column).cast(pl.String).fill_null(UNKNOWN))
    found = samples.select("tube").join(known, on="tube", how="left", maintain_order="left")[column]
    return np.array(found.to_list(), dtype=object)


def classify_by_edges(values: npt.NDArray[np.float64], edges: Sequence[float]) -> Labels:
    """The class of each value: up to the first edge, (low, high] between two, above the last."""
    ends = [f"{edge:g}" for edge in edges]
    names = [f"{low}-{high}" for low, high in zip(["0", *ends[:-1]], ends, strict=True)] + [f"{ends[-1]}+"]
    # side="left" puts a value at an edge into the class that ends there, as published.
    return np.array(names, dtype=object)[np.searchsorted(np.asarray(edges), values, side="left")]


def _most_frequent(codes: npt.NDArray[np.float64], names: Sequence[str]) -> Labels:
    """The most frequent known code of each row by name, the first of equals."""
    counts = np.stack([(codes == code).sum(axis=1) for code in range(len(names))], axis=1)
    named = np.array(names, dtype=object)[counts.argmax(axis=1)]
    return np.where(counts.any(axis=1), named, UNKNOWN)


def _light(codes: npt.NDArray[np.float64], config: FactorConfig) -> Labels:
    """Whether the light, a place in LIGHTS, forbids or allows the ego vehicle to go on."""
    if config.light == "mean_code":
        return np.where(np.nan_to_num(codes).mean(axis=1) < 2, "forbid", "allow").astype(object)
    red, yellow, green = ((codes == code).sum(axis=1) for code in (1, 2, 3))
    # As many frames of red as of another state forbid.
    named = np.where(red >= np.maximum(yellow, green), "forbid", "allow").astype(object)
    return np.where(red + yellow + green > 0, named, UNKNOWN)


def _categories(column: pl.Series) -> list[str]:
    """The names behind a column's codes, in the order of the codes."""
    dtype = encode_as_enum(column).dtype
    return [str(name) for name in dtype.categories] if isinstance(dtype, pl.Enum) else []


@dataclass(frozen=True)
class Positions:
    """Boxes grouped by tube and ordered by frame; a position counts the boxes of a tube, gaps ignored.

    Args:
        tube: (t,) the tubes that own boxes, ascending.
        first: (t + 1,) where each tube's boxes begin in `frame`, and the end of the last.
        frame: (m,) the frame of each box.
        row: (m,) its row in the boxes table.
    """

    tube: Ints
    first: Ints
    frame: Ints
    row: Ints

    def place(self, tube: Ints) -> Ints:
        """(n,) index of each tube in `tube`, -1 for a tube without boxes."""
        if not len(self.tube):
            return np.full(len(tube), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.tube, tube), len(self.tube) - 1)
        return np.where(self.tube[place] == tube, place, -1)

    def extent(self, tube: Ints) -> tuple[Ints, Ints]:
        """(n,) where each tube's boxes begin in `frame` and (n,) how many there are; 0, 0 without boxes."""
        place = self.place(tube)
        owns = place >= 0
        begin = np.where(owns, self.first[place], 0)
        return begin, np.where(owns, self.first[place + owns] - begin, 0)

    def from_frame(self, tube: Ints, frame: Ints) -> Ints:
        """(n,) index in `frame` of each tube's first box at or behind a frame; the end of its boxes if none.

        Args:
            tube: (n,) the tubes, each with boxes.
            frame: (n,) the frames, not negative.
        """
        # Tube and frame as one number: a single sorted array answers for all tubes at once.
        stride = int(self.frame.max(initial=0)) + 1
        key = np.repeat(np.arange(len(self.tube)), np.diff(self.first)) * stride + self.frame
        # Not beyond the stride, or a late frame would be looked for in the next tube.
        return np.searchsorted(key, self.place(tube) * stride + np.minimum(frame, stride))

    def locate(self, tube: Ints, frame: Ints) -> Ints:
        """(n,) index in `frame` of each tube's box at that frame, -1 where there is none.

        Args:
            tube: (n,) the tubes.
            frame: (n,) the frames; a negative one is never found.
        """
        if not len(self.frame):
            return np.full(len(tube), -1, dtype=np.int64)
        found = self.from_frame(tube, np.maximum(frame, 0))
        begin, length = self.extent(tube)
        inside = (frame >= 0) & (found >= begin) & (found < begin + length)
        return np.where(inside & (self.frame[np.where(inside, found, 0)] == frame), found, -1)


def build_position_index(boxes: pl.DataFrame) -> Positions:
    """The positions of all boxes that belong to a tube.

    Args:
        boxes: a boxes table, in any order.
    """
    if boxes.is_empty() or "tube" not in boxes.columns:
        return from_rows(*(np.empty(0, dtype=np.int64),) * 3)
    held = boxes.select("tube", "frame").with_row_index("row").drop_nulls("tube")
    tube, frame, row = (held[c].cast(pl.Int64).to_numpy() for c in ("tube", "frame", "row"))
    return from_rows(tube, frame, row)


def from_rows(tube: Ints, frame: Ints, row: Ints) -> Positions:
    """Positions of boxes given as arrays.

    Args:
        tube: (m,) owner of each box.
        frame: (m,) its frame.
        row: (m,) what to remember it by.
    """
    ordered = (tube[1:] > tube[:-1]) | ((tube[1:] == tube[:-1]) & (frame[1:] >= frame[:-1]))
    # Boxes mostly come in order, and then need not be sorted.
    if not ordered.all():
        order = np.lexsort((frame, tube))
        tube, frame, row = tube[order], frame[order], row[order]
    owners, first = np.unique(tube, return_index=True)
    return Positions(owners, np.append(first, len(tube)), frame, row)


# The boxes of each sample's observation as one dense array.


def extract_windows(
    scenes: Scenes,
    samples: pl.DataFrame,
    columns: Sequence[str] = CORNERS,
    *,
    before: int = 0,
    after: int = 0,
) -> npt.NDArray[np.float64]:
    """(n, before + T + after, c) columns of the boxes of each sample's observation, by position in the tube.

    A position counts the boxes of a tube, so a gap in its frames takes no place. T is the number of boxes
    that every sample observes; only where a tube ends are there fewer, and its last box is repeated. Where
    a tube begins, its first is. Nothing behind an observation is read but by `after`.

    Args:
        scenes: the boxes.
        samples: (n rows) with `tube`, `start_frame` and `end_frame`.
        columns: (c) columns of the boxes table; text comes as the codes of `encode_as_enum`, null as NaN.
        before: positions to add ahead of the observation.
        after: positions to add behind it.

    Raises:
        InputError: if a column is unknown, or a sample's tube has no box at its first frame.
        UsageError: if samples observe unequal numbers of boxes inside their tubes.
    """
    missing = [c for c in columns if c not in scenes.boxes.columns]
    if missing:
        raise InputError(f"the boxes have no column {missing}; they have {scenes.boxes.columns}")
    index = build_position_index(scenes.boxes)
    rows = find_observed_rows(index, samples, before=before, after=after)
    values = np.empty((*rows.shape, len(columns)))
    for place, column in enumerate(columns):
        values[..., place] = _numbers(scenes.boxes[column])[rows]
    return values


def find_observed_rows(index: Positions, samples: pl.DataFrame, *, before: int = 0, after: int = 0) -> Ints:
    """(n, before + T + after) rows of the boxes table that each sample's observation covers.

    Args:
        index: the positions of the boxes.
        samples: (n rows) with `tube`, `start_frame` and `end_frame`.
        before: positions to add ahead of the observation.
        after: positions to add behind it.

    Raises:
        InputError: if there are no boxes, or a sample's tube has none at its first frame.
        UsageError: if samples observe unequal numbers of boxes inside their tubes.
    """
    if samples.is_empty():
        return np.empty((0, before + after), dtype=np.int64)
    if not len(index.row):
        raise InputError(
            f"{len(samples)} samples look at boxes, and these scenes have none",
            hint="attributes alone carry intention only; read the box annotations too (of PIE, annotations/)",
        )
    tube, start, end = (samples[c].to_numpy() for c in ("tube", "start_frame", "end_frame"))
    first = index.locate(tube, start)
    if (first < 0).any():
        lost = samples.filter(pl.Series(first < 0)).select("sample", "tube", "start_frame")
        raise InputError(
            f"{len(lost)} samples begin where their tube has no box, first {lost.head(3).rows()}",
            hint="samples belong to the scenes they were cut from",
        )
    begin, length = index.extent(tube)
    last = begin + length - 1
    behind = index.from_frame(tube, end)
    observed = max(1, int((behind - first).max()))
    uneven = (behind - first < observed) & (behind <= last)
    if uneven.any():
        shown = samples.filter(pl.Series(uneven)).select("sample", "start_frame", "end_frame").head(3).rows()
        raise UsageError(
            f"{int(uneven.sum())} samples observe fewer than the {observed} boxes that others do, "
            f"first {shown}; one array would show them the future: ask for the samples of each length "
            "by themselves"
        )
    offsets = np.arange(-before, observed + after)
    # Clipped to the tube: its first and its last box are repeated, never another tube's.
    place = np.clip(first[:, None] + offsets, begin[:, None], last[:, None])
    return np.asarray(index.row[place], dtype=np.int64)


def encode_as_enum(column: pl.Series) -> pl.Series:
    """A column of text as an Enum: one that is an Enum keeps its codes, other text is numbered in its order.

    Args:
        column: (n,) text of any type.
    """
    if isinstance(column.dtype, pl.Enum):
        return column
    text = column.cast(pl.String)
    return text.cast(pl.Enum(text.drop_nulls().unique().sort()))


def _numbers(column: pl.Series) -> npt.NDArray[np.float64]:
    """The column as float64, null as NaN."""
    if column.dtype in (pl.Enum, pl.Categorical, pl.String):
        column = encode_as_enum(column).to_physical()
    return column.cast(pl.Float64).to_numpy()


# What the frames table tells of the moments at which samples are observed, as one dense array.


def get_frame_values(
    scenes: Scenes, column: str, video: pl.Series, frames: Floats, names: Sequence[str] | None = None
) -> Floats:
    """(n, t) a column of the frames table at the given frames, NaN where unknown.

    Args:
        scenes: with the frames table.
        column: of the frames table; all is unknown where the table lacks it.
        video: (n,) the video of each sample.
        frames: (n, t) whole numbers of frames.
        names: text by name: a value is its place in `names`, unknown where it is none of them, however the
            dataset orders its own dictionary. Needed for text, and for text alone.
    """
    if column not in scenes.frames.columns:
        return np.full(frames.shape, np.nan)
    value = pl.col(column)
    if names is not None:
        value = value.cast(pl.String).replace_strict(list(names), list(range(len(names))), default=None)
    known = scenes.frames.select(pl.col("video").cast(pl.String), "frame", value.cast(pl.Float64))
    asked = pl.DataFrame(
        {
            "video": np.repeat(video.cast(pl.String).to_numpy(), frames.shape[1]),
            "frame": frames.reshape(-1).astype(np.int64),
        }
    )
    found = asked.join(known, on=["video", "frame"], how="left", maintain_order="left")[column]
    return np.asarray(found.fill_null(float("nan")).to_numpy(), dtype=np.float64).reshape(frames.shape)


def split_tubes_by_label(scenes: Scenes, kinds: Sequence[str], *, max_hole: int | None = None) -> Scenes:
    """The scenes with the derived tubes of some kinds cut anew where the labels of a track's boxes change.

    A tube begins with the first box of a track that has the label and ends with the last one before a box
    without it; with several labels at once each has its own tubes. Frames without a box of the track (a
    hole) do not end a tube unless they are more than `max_hole`; its spans leave them out. Derived tubes of
    other kinds, and tubes without boxes, stay as they are; the new ones follow them, by kind, track, label
    and time, numbered from the largest number on.

    Args:
        scenes: with `boxes` that name tubes, and `labels` of the kinds.
        kinds: of labels, such as ["duplex", "event"].
        max_hole: the longest run of frames without a box that a tube lasts over; None for any.

    Raises:
        InputError: if `max_hole` is negative.

    Source: the ROAD paper, section 3.3: "generate action tubes by looking for changes in the action label
    series associated with each agent tube".
    """
    if max_hole is not None and max_hole < 0:
        raise InputError(f"the longest hole of a tube is a number of frames from 0 on, not {max_hole}")
    tubes, tube_labels = _without(scenes, kinds)
    pieces = extract_segments(scenes.boxes, scenes.labels, kinds, max_hole=max_hole)
    largest: Any = scenes.tubes["tube"].max()
    first = 0 if largest is None else int(largest) + 1
    pieces = pieces.with_columns(tube=pl.int_range(first, first + pl.len()))
    videos = scenes.tubes.select(parent="tube", video="video")
    rows = pieces.drop("label").join(videos, on="parent", how="left", maintain_order="left")
    return scenes.with_tables(
        tubes=pl.concat([tubes, rows], how="diagonal_relaxed"),
        tube_labels=pl.concat(
            [
                tube_labels,
                pieces.select("tube", "kind", "label").cast(
                    {"kind": tube_labels.schema.get("kind", pl.String())}
                ),
            ],
            how="diagonal_relaxed",
        ),
    )


def extract_segments(
    boxes: pl.DataFrame, labels: pl.DataFrame, kinds: Sequence[str], *, max_hole: int | None = None
) -> pl.DataFrame:
    """The stretches alone: parent, kind, label, start_frame, end_frame and spans, in the order of tubes.

    Args:
        boxes: with box, tube (null if untracked) and frame.
        labels: with box, kind and label.
        kinds: the kinds to cut, in the order wanted.
        max_hole: as `split_tubes_by_label`.
    """
    if "tube" not in boxes.columns:
        boxes = boxes.with_columns(tube=pl.lit(None, pl.Int64))
    # Each tracked box with its track, frame and place: its frame's rank among the frames of the track
    owned = boxes.select("box", "tube", "frame").filter(pl.col("tube").is_not_null())
    owned = owned.sort("tube", "frame", maintain_order=True)
    new = pl.any_horizontal(pl.col("tube", "frame").ne_missing(pl.col("tube", "frame").shift(1)))
    places = owned.with_columns(place=new.cum_sum().cast(pl.Int64))
    parts = [_of_kind(places, labels, kind, max_hole) for kind in kinds]
    return pl.concat(parts or [_of_kind(places, labels.clear(), "", None)])


def _without(scenes: Scenes, kinds: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tubes and their labels without the derived ones of some kinds."""
    tubes = scenes.tubes
    if not {"parent", "kind"} <= set(tubes.columns):
        return tubes, scenes.tube_labels
    old = pl.col("parent").is_not_null() & pl.col("kind").cast(pl.String).is_in(list(kinds))
    gone = tubes.filter(old)["tube"]
    return (
        tubes.filter(~old.fill_null(value=False)),
        scenes.tube_labels.filter(~pl.col("tube").is_in(gone.implode())),
    )


def _of_kind(places: pl.DataFrame, labels: pl.DataFrame, kind: str, max_hole: int | None) -> pl.DataFrame:
    """The stretches of one kind, by track, label and time."""
    wanted = labels.lazy().filter(pl.col("kind").cast(pl.String) == kind).select("box", "label")
    items = (
        wanted.join(places.lazy(), on="box")
        .select("tube", "label", "place", "frame")
        .unique()
        .sort("tube", "label", "place")
        .collect()
    )
    tube, label, place, frame = (items[c].to_numpy() for c in ("tube", "label", "place", "frame"))
    step = np.diff(frame, prepend=0)
    begins = (_changes(tube) | _changes(label)) | (np.diff(place, prepend=-2) != 1)
    if max_hole is not None:
        begins |= step > max_hole + 1
    first = np.flatnonzero(begins)
    runs = run_spans(np.cumsum(begins) - 1, frame)
    return runs.select(
        pl.Series("parent", tube[first], dtype=pl.Int64),
        pl.Series("kind", [kind] * len(first), dtype=pl.String),
        pl.Series("label", label[first], dtype=pl.Int64),
        "start_frame",
        "end_frame",
        "spans",
    )


def run_spans(run: Ints, frame: Ints) -> pl.DataFrame:
    """For each run: run, start_frame, end_frame (after its last) and spans (its frames without the holes).

    Args:
        run: (n,) which run each frame belongs to, ascending.
        frame: (n,) frames, ascending within a run.

    >>> run_spans(np.array([7, 7, 7]), np.array([2, 3, 6])).row(0)
    (7, 2, 7, [[2, 4], [6, 7]])
    """
    breaks = _changes(run) | (np.diff(frame, prepend=-2) != 1)
    first = np.flatnonzero(breaks)
    last = np.append(first[1:], len(frame))[: len(first)] - 1
    pieces = pl.DataFrame(
        {"run": run[first], "low": frame[first], "high": frame[last] + 1},
        schema={"run": pl.Int64, "low": pl.Int64, "high": pl.Int64},
    )
    return pieces.group_by("run", maintain_order=True).agg(
        pl.col("low").first().alias("start_frame"),
        pl.col("high").last().alias("end_frame"),
        spans=pl.concat_list("low", "high"),
    )


def _changes(values: Ints) -> npt.NDArray[np.bool_]:
    """Where a value differs from the one before; the first does."""
    changed = np.ones(len(values), dtype=np.bool_)
    changed[1:] = values[1:] != values[:-1]
    return changed
