"""Proposals of a grid of parameters for all images of a set, each step computed once for its parameters: part by part,
resumable, several at a time."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats
from roadaware.config import to_dict
from roadaware.corner_cases import checkpointed_parts
from roadaware.corner_cases.captures import Capture
from roadaware.corner_cases.config import PRESETS, CopgConfig, complete_saved_config
from roadaware.corner_cases.copg import (
    Geometry,
    Proposals,
    build_geometry,
    build_grid,
    build_proposals,
    complete_boxes,
    compute_background,
    compute_object_overlap,
    estimate_ground,
    estimate_local_ground,
    extract_clusters,
    extract_reach_clusters,
    fit_proposal_cuboids,
    project_hypotheses,
)
from roadaware.corner_cases.cuboids import Cuboids
from roadaware.corner_cases.ground import check, validate_lidar_points
from roadaware.corner_cases.loader import Moment
from roadaware.corner_cases.proposal_tables import SCHEMA, build_proposal_rows, merge_proposal_rows
from roadaware.corner_cases.range_image import Boxes
from roadaware.corner_cases.runner import (
    Order,
    build_head,
    build_part_digests,
    iterate_captures,
    load_run_inputs,
    run_due_parts,
    split_parts,
)
from roadaware.datasets.loading import parse_json_or_word
from roadaware.errors import InputError, UsageError
from roadaware.io import folders
from roadaware.io.parallel import HERE, Workers
from roadaware.metrics.corner_cases.evaluate import (
    RANDOM,
    WHOLE,
    JudgedCorners,
    build_corner_state,
    propose_whole_images,
    sample_random_boxes,
)
from roadaware.metrics.corner_cases.matching import (
    CornerConfig,
    Detections,
    Group,
    Met,
    Objects,
    extract_objects,
    extract_proposals,
    match_group,
)
from roadaware.metrics.metric_state import compute_values, resample_metrics
from roadaware.scenes.tables import Meta, Predictions, Scenes
from roadaware.statistics.intervals import Scale, Units

# The step cache: proposals of many configurations for one image, each step computed once for its parameters.

KNOBS: Mapping[str, tuple[str, ...]] = {
    "check": ("min_range_m",),
    "ground": (
        "ground_m",
        "ground_range_m",
        "ground_tilt_deg",
        "ground_share",
        "ground_draws",
        "ground_returns",
        "seed",
    ),
    "grid": ("columns", "rows", "reach_rows", "repair_rows"),
    "local ground": ("local_ground_m",),
    "clusters": ("theta_deg", "reach_columns"),
    "reach": ("reach_m",),
    "projection": ("standing_m", "min_visible", "near_m", "margin_px", "min_side_px", "completion"),
    "background": ("background", "background_by", "near_m"),
    "overlaps": ("min_common_score",),
}
"""Step to the parameters that it reads itself."""
_OF_BOXES = ("check", "ground", "grid", "local ground", "clusters", "reach")
BEFORE: Mapping[str, tuple[str, ...]] = {
    "check": (),
    "ground": ("check",),
    "grid": ("check",),
    "local ground": ("check", "ground", "grid"),
    "clusters": ("check", "ground", "grid", "local ground"),
    "reach": ("check", "ground", "grid", "local ground", "clusters"),
    "projection": _OF_BOXES,
    "background": (*_OF_BOXES, "projection"),
    "overlaps": (*_OF_BOXES, "projection"),
}
"""Step to those whose results it takes."""
CHEAP = (
    "min_points",
    "max_distance_m",
    "max_width_m",
    "max_height_m",
    "min_height_m",
    "max_background",
    "max_common_iou",
    "duplicate_iou",
    "ranking",
    "most",
)
"""Parameters that choose among boxes that are there already; `max_distance_m` and `ranking` make scores, too."""


@dataclass(frozen=True)
class Variant:
    """One way to propose.

    Args:
        config: the parameters.
        semantics: whether background is removed, where a semantic map is given.
        detections: whether common objects are suppressed, where detections are given.
    """

    config: CopgConfig
    semantics: bool = True
    detections: bool = True


class Bench:
    """Proposes for one image after another by several variants.

    Args:
        variants: in the order of what `propose` gives.

    Attributes:
        counts: how many times each step was run.
    """

    def __init__(self, variants: Sequence[Variant]) -> None:
        self.variants = tuple(variants)
        self.counts: Counter[str] = Counter()
        self._sweep: Hashable = None
        self._of_sweep: dict[Hashable, Any] = {}
        self._of_picture: dict[Hashable, Any] = {}

    def propose(self, capture: Capture, sweep: Hashable = None) -> list[Proposals]:
        """The proposals of `copg.propose` for each variant, bit for bit.

        Args:
            capture: what was seen.
            sweep: names its returns; where it is that of the image before, their geometry serves again.

        Raises:
            InputError: if any variant cannot be proposed for.
        """
        # A sweep without a name may be any: nothing of the last one is used again.
        if sweep is None or sweep != self._sweep:
            self._of_sweep.clear()
        self._sweep = sweep
        self._of_picture.clear()
        found = [self._geometry(capture, each.config) for each in self.variants]
        # Of each way to cluster, which clusters any variant keeps.
        kept: dict[Hashable, list[Bools]] = {}
        for each, geometry in zip(self.variants, found, strict=True):
            own = [held.limited == 0 for held in geometry.hypotheses]
            key = build_step_key("projection", each.config)
            kept[key] = [a | b for a, b in zip(own, kept.get(key, own), strict=True)]
        return [
            self._proposals(capture, each, geometry, kept[build_step_key("projection", each.config)])
            for each, geometry in zip(self.variants, found, strict=True)
        ]

    def _geometry(self, capture: Capture, config: CopgConfig) -> Geometry:
        def once(step: str, make: Callable[[], Any]) -> Any:
            return self._once(self._of_sweep, step, config, make)

        points, checked = once("check", lambda: _check_points(capture, config))
        plane = once("ground", lambda: estimate_ground(points, checked, capture, config))
        grid = once("grid", lambda: build_grid(points, checked, capture, config))
        ground = once("local ground", lambda: estimate_local_ground(plane, checked, grid, config))
        image, clusters = once("clusters", lambda: extract_clusters(points, checked, ground, grid, config))
        reached = once("reach", lambda: extract_reach_clusters(points, checked, ground, grid, image, config))
        return build_geometry(points, checked, ground, grid, image, clusters, reached, config)

    def _proposals(
        self, capture: Capture, variant: Variant, geometry: Geometry, kept: Sequence[Bools]
    ) -> Proposals:
        """Boxes of all clusters that any variant keeps are made and judged once; each takes its own."""
        config = variant.config

        def once(step: str, make: Callable[[], Any]) -> Any:
            return self._once(self._of_picture, step, config, make)

        def make() -> tuple[Boxes, Cuboids]:
            boxes = project_hypotheses(geometry, capture, config, kept)
            cuboids = fit_proposal_cuboids(geometry, boxes, config)
            return complete_boxes(geometry, boxes, cuboids, config, size=size), cuboids

        size = (capture.camera.width_px, capture.camera.height_px)
        boxes, cuboids = once("projection", make)
        own = np.zeros(len(boxes), dtype=np.bool_)
        for place, each in enumerate(geometry.hypotheses):
            mine = boxes.hypothesis == place
            own[mine] = each.limited[boxes.cluster[mine] - 1] == 0
        shares: Floats | None = None
        overlap: Floats | None = None
        if variant.semantics and capture.semantics is not None:
            shares = once("background", lambda: compute_background(geometry, boxes, capture, config))[own]
        if variant.detections and capture.common is not None:
            overlap = once("overlaps", lambda: compute_object_overlap(boxes, capture, config))[own]
        held = replace(boxes, **{name: values[own] for name, values in vars(boxes).items()})
        solid = Cuboids(**{name: values[own] for name, values in vars(cuboids).items()})
        return build_proposals(geometry, held, solid, shares, overlap, config, capture.name, size=size)

    def _once(self, held: dict[Hashable, Any], step: str, config: CopgConfig, make: Callable[[], Any]) -> Any:
        key = step, build_step_key(step, config)
        if key not in held:
            self.counts[step] += 1
            held[key] = make()
        return held[key]


def build_step_key(step: str, config: CopgConfig) -> tuple[Any, ...]:
    """Values of all parameters that the result of a step depends on.

    Args:
        step: one of `KNOBS`.
        config: the parameters.
    """
    return tuple(getattr(config, knob) for part in (*BEFORE[step], step) for knob in KNOBS[part])


def _check_points(capture: Capture, config: CopgConfig) -> tuple[Any, Any]:
    points = validate_lidar_points(capture.points)
    return points, check(points, min_range_m=config.min_range_m)


FORMAT, FORMAT_VERSION, MAIN = "roadaware-ablation", 1, "ablation.json"
_VARIANT = "variant"


@dataclass(frozen=True)
class GridOrder:
    """A request for an ablation of proposals.

    Args:
        source: set, masks and detections; its own configuration and stage are not asked.
        variants: what is proposed by.
    """

    source: Order
    variants: tuple[Variant, ...]


@dataclass(frozen=True, eq=False)
class GridFound:
    """Result of an ablation.

    Args:
        proposals: of each variant.
        counts: of each variant, final proposals.
        with_one: of each variant, images with a proposal.
        pictures: that have a sweep and calibration.
        skipped: images without proposals because something is wrong or missing, by reason.
        runs: how many times each step was run.
        made: images done now, not before.
        seconds: of one process, spent on those.
    """

    proposals: tuple[Predictions, ...]
    counts: tuple[int, ...]
    with_one: tuple[int, ...]
    pictures: int
    skipped: dict[str, int]
    runs: dict[str, int]
    made: int
    seconds: float


def run_grid(
    order: GridOrder,
    folder: Path,
    *,
    workers: Workers = HERE,
    progress: Callable[[int, int], None] | None = None,
    overwrite: bool = False,
) -> GridFound:
    """Propose for all images by all variants; parts that the folder has already are left as they are.

    An image that one variant cannot be proposed for is left out for all, so that all are judged on the same.

    Args:
        order: what is asked for.
        folder: where to: new, empty, or that of the same order.
        workers: where parts are done, and how many at a time.
        progress: called with the number of images done and the total.
        overwrite: do all parts again, whatever order they were of.

    Raises:
        UsageError: if the folder holds other things, files have changed of what was proposed for, another
            process is at work in it, or one died.
        InputError: if the set cannot be read.
        DiskError: if the disk refuses; finished parts stay.
    """
    with folders.hold_folder(folder):
        head = build_head(FORMAT, FORMAT_VERSION, order, load_run_inputs(order.source))
        checkpointed_parts.prepare_result_folder(
            folder, MAIN, head, "an ablation", overwrite=overwrite, complete=_complete_head
        )
        work = partial(make_grid_part, order, folder)
        due, seconds = run_due_parts(order, order.source, folder, work, workers, progress)
        return _gather_parts(order, folder, due, seconds)


def make_grid_part(order: GridOrder, folder: Path, number: int) -> None:
    """Propose for the images of one part; one that cannot be opened is reported and left out.

    Raises:
        DiskError: if the disk refuses.
    """
    bench = Bench(order.variants)
    rows: list[pl.DataFrame] = []
    counts, with_one = ([0] * len(order.variants) for _ in range(2))
    skipped: Counter[str] = Counter()
    left: set[Moment] = set()
    for moment, opened in iterate_captures(order.source, split_parts(order.source)[number]):
        try:
            found = bench.propose(opened(), (moment.scene, moment.frame, moment.lidar))
        except (InputError, UsageError) as error:
            skipped[error.message if isinstance(error, InputError) else str(error)] += 1
            left.add(moment)
            continue
        for place, each in enumerate(found):
            counts[place] += len(each)
            with_one[place] += bool(len(each))
            if len(each):
                held = build_proposal_rows(each, moment.video, moment.frame)
                rows.append(held.with_columns(pl.lit(place, dtype=pl.Int64).alias(_VARIANT)))
    table = pl.concat(rows) if rows else pl.DataFrame(schema={**SCHEMA, _VARIANT: pl.Int64()})
    record = {
        "counts": counts,
        "with_one": with_one,
        "skipped": dict(skipped),
        "runs": dict(bench.counts),
        **build_part_digests(order, order.source, number, left),
    }
    checkpointed_parts.write_part(folder, number, table, record)


def _complete_head(known: Any) -> Any:
    """The request of an earlier version, whose configurations had fewer parameters."""
    saved = known.get("order") if isinstance(known, dict) else None
    variants = saved.get("variants") if isinstance(saved, dict) else None
    source = saved.get("source") if isinstance(saved, dict) else None
    if not isinstance(saved, dict) or not isinstance(variants, list) or not isinstance(source, dict):
        return known
    variants = [{**each, "config": complete_saved_config(each["config"])} for each in variants]
    source = {**source, "config": complete_saved_config(source["config"])}
    return {**known, "order": {**saved, "variants": variants, "source": source}}


def _gather_parts(order: GridOrder, folder: Path, due: list[int], seconds: float) -> GridFound:
    """All parts as one."""
    held = load_run_inputs(order.source)
    numbers = range(len(split_parts(order.source)))
    records = [checkpointed_parts.read_finished_part(folder, number) or {} for number in numbers]
    skipped, runs = Counter(held.captures.skipped), Counter[str]()
    for part in records:
        skipped.update(part.get("skipped", {}))
        runs.update(part.get("runs", {}))

    def summed(name: str) -> tuple[int, ...]:
        columns = [part.get(name, [0] * len(order.variants)) for part in records]
        return tuple(sum(column[place] for column in columns) for place in range(len(order.variants)))

    return GridFound(
        _predictions(order, [checkpointed_parts.read_part_table(folder, number) for number in numbers]),
        counts=summed("counts"),
        with_one=summed("with_one"),
        pictures=len(held.moments),
        skipped=dict(skipped.most_common()),
        runs=dict(runs),
        made=sum(len(split_parts(order.source)[number]) for number in due),
        seconds=seconds,
    )


def _predictions(order: GridOrder, tables: list[pl.DataFrame]) -> tuple[Predictions, ...]:
    """The proposals of each variant, in the order of the parts."""
    meta = Meta(dataset=load_run_inputs(order.source).scenes.meta.dataset)
    rows = pl.concat([pl.DataFrame(schema={**SCHEMA, _VARIANT: pl.Int64()}), *tables])
    split = {
        int(str(key[0])): each.drop(_VARIANT) for key, each in rows.group_by(_VARIANT, maintain_order=True)
    }
    found = []
    for place, variant in enumerate(order.variants):
        notes = {"proposals": {"variant": to_dict(variant)}}
        held = [split[place]] if place in split else []
        found.append(merge_proposal_rows(held, replace(meta, notes=notes)))
    return tuple(found)


# A grid of parameters of the proposals: each varied with the others as they are, as in the paper's appendix.

GRID: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {
        "theta_deg": (4.0, 8.0, 12.0, 16.0),
        "min_points": (5, 10, 20),
        "max_distance_m": (25.0, 50.0, 100.0),
        "max_background": (0.15, 0.30, 0.45, 0.60, 0.75),
        "max_common_iou": (0.0, 0.25, 0.50),
    }
)
"""Parameters and values of Tables 5 to 7."""
BASES = PRESETS
"""Configurations whose parameters are turned."""
INPUTS = "inputs"
"""The rows that leave steps away instead of turning a parameter."""
_OF_SEMANTICS = ("max_background", "background", "background_by")
_OF_DETECTIONS = ("max_common_iou", "min_common_score")


@dataclass(frozen=True)
class Cell:
    """One row of a table.

    Args:
        base: name of the configuration whose parameter is changed.
        knob: a field of `CopgConfig`, or `INPUTS`.
        value: of the parameter, or which steps are run.
        variant: what is proposed by.
        unchanged: whether it is the configuration as it is, with every step.
    """

    base: str
    knob: str
    value: Any
    variant: Variant
    unchanged: bool


def build_cells(
    bases: Sequence[str],
    grid: Mapping[str, Sequence[Any]] = GRID,
    *,
    semantics: bool = True,
    detections: bool = True,
) -> tuple[list[Cell], list[str]]:
    """The rows of all tables, and in words which parameters were left out.

    A configuration's own value stands among those of each parameter whether it was asked for or not. A parameter of a
    step whose input is not given turns nothing and is left out.

    Args:
        bases: names in `BASES`.
        grid: parameter to its values.
        semantics: whether semantic maps are given.
        detections: whether detections are given.

    Raises:
        UsageError: if there is no such configuration or parameter, or a value lies outside its range.
    """
    unknown = [name for name in bases if name not in BASES]
    if unknown or not bases:
        raise UsageError(f"configurations are {', '.join(BASES)}; not {', '.join(unknown) or 'none'}")
    found: list[Cell] = []
    idle = {} if semantics else dict.fromkeys(_OF_SEMANTICS, "semantic maps")
    idle |= {} if detections else dict.fromkeys(_OF_DETECTIONS, "detections")
    left_out = [f"{knob}: no {idle[knob]} are given" for knob in grid if knob in idle]
    for base in bases:
        found += _inputs(base, semantics=semantics, detections=detections)
        for knob, values in grid.items():
            if knob not in idle:
                found += _list_variants(base, knob, values, semantics=semantics, detections=detections)
    return found, left_out


def collect_variants(rows: Sequence[Cell]) -> tuple[tuple[Variant, ...], list[int]]:
    """What is proposed by, each once, and for each row the place of its own."""
    places: dict[Variant, int] = {}
    numbers = [places.setdefault(row.variant, len(places)) for row in rows]
    return tuple(places), numbers


def _inputs(base: str, *, semantics: bool, detections: bool) -> list[Cell]:
    """The steps by themselves and together, as far as there is anything to leave away."""
    config = BASES[base]()
    names = {
        (False, False): "geometry alone",
        (True, False): "background removed",
        (False, True): "common objects suppressed",
        (True, True): "both",
    }
    found = []
    for (seg, det), name in names.items():
        if (seg and not semantics) or (det and not detections):
            continue
        whole = (seg, det) == (semantics, detections)
        found.append(Cell(base, INPUTS, name, Variant(config, semantics=seg, detections=det), whole))
    return found


def _list_variants(
    base: str, knob: str, values: Sequence[Any], *, semantics: bool, detections: bool
) -> list[Cell]:
    config = BASES[base]()
    if knob not in {each.name for each in dataclasses.fields(config)}:
        known = ", ".join(sorted(each.name for each in dataclasses.fields(config)))
        raise UsageError(f"there is no parameter {knob!r}; there are {known}")
    own = getattr(config, knob)
    found = []
    for value in _sort_values([*values, own]):
        turned = config if value == own else dataclasses.replace(config, **{knob: value})
        variant = Variant(turned, semantics=semantics, detections=detections)
        found.append(Cell(base, knob, value, variant, value == own))
    return found


def _sort_values(values: Sequence[Any]) -> list[Any]:
    """Each once, in rising order where they are numbers."""
    # Lists cannot be keys.
    once = list(dict.fromkeys(tuple(v) if isinstance(v, list) else v for v in values))
    # True and False are whole numbers to Python, and would be sorted with them.
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in once):
        return sorted(once)
    return once


# Proposals of many variants judged on the same images, with differences on the same resamples.

METRICS = ("ap", "ar", "ar50", "ar30")
"""Of corner cases, over all sizes."""
JUDGED_BY = CornerConfig(groups=("corner",), precision="always")
"""AP counts every proposal that meets no corner case as false, as the paper's does."""


@dataclass(frozen=True)
class Value:
    """A number with its 95 % interval over videos.

    Args:
        value: None where undefined.
        low: None where there are no resamples.
        high: the same.
        caution: why the interval is to be taken with caution; None where it is not.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    caution: str | None = None


@dataclass(frozen=True, eq=False)
class Score:
    """How well one variant's proposals meet the corner cases.

    Args:
        values: metric of `METRICS` to its value.
        resamples: metric to its (resamples,) values; empty without resamples.
        units: the videos of the resamples.
    """

    values: dict[str, Value]
    resamples: dict[str, Floats]
    units: Units

    def over(self, other: Score) -> dict[str, Value]:
        """By how much it is above another on the same images and resamples.

        Args:
            other: judged with the same resamples and seed.
        """
        found = {}
        for name, mine in self.values.items():
            theirs = other.values[name].value
            gain = None if mine.value is None or theirs is None else mine.value - theirs
            both = name in self.resamples and name in other.resamples
            apart = self.resamples[name] - other.resamples[name] if both else None
            found[name] = _value(gain, apart, self.units, "difference")
        return found


def compute_states(proposals: Sequence[Predictions], scenes: Scenes) -> list[JudgedCorners]:
    """Match each set of proposals with the corner cases.

    Args:
        proposals: of several variants.
        scenes: with `boxes.corner_case`.

    Raises:
        InputError: if there is no ground-truth box in an annotated image.
    """
    truth = extract_objects(scenes, area=JUDGED_BY.area)
    return [match_corner_cases(extract_proposals(each, truth)[0], truth) for each in proposals]


def compute_scores(
    proposals: Sequence[Predictions],
    scenes: Scenes,
    resamples: int = 0,
    seed: int = 0,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> list[Score]:
    """The score of each set of proposals; arguments as of `compute_states` and `compute_score`.

    Args:
        proposals, scenes: what is judged, and against what.
        resamples, seed: of the intervals.
        progress: called with the number of sets done and of all.
    """
    scores: list[Score] = []
    states = compute_states(proposals, scenes)
    for state in states:
        if progress is not None:
            progress(len(scores), len(states))
        scores.append(compute_score(state, resamples, seed))
    if progress is not None:
        progress(len(states), len(states))
    return scores


def match_corner_cases(predictions: Detections, truth: Objects) -> JudgedCorners:
    """Match predictions with the corner cases.

    Args:
        predictions: about the images of the ground truth.
        truth: all objects.
    """
    met: dict[Group, Met] = {"corner": match_group("corner", truth, predictions, JUDGED_BY)}
    return build_corner_state(truth, predictions, met, {}, JUDGED_BY)


def compute_trivial_states(scenes: Scenes, seed: int = 0) -> dict[str, JudgedCorners]:
    """The same of answers without a detector: the whole image, and a hundred random boxes."""
    truth = extract_objects(scenes, area=JUDGED_BY.area)
    most = JUDGED_BY.max_detections[-1]
    answers = {WHOLE: propose_whole_images(truth), RANDOM: sample_random_boxes(truth, most, seed)}
    return {name: match_corner_cases(predictions, truth) for name, predictions in answers.items()}


def compute_score(state: JudgedCorners, resamples: int = 0, seed: int = 0) -> Score:
    """The metrics of a state, with intervals over videos.

    Args:
        state: what was met.
        resamples: most weightings of videos; 0 for no intervals.
        seed: of the weightings; equal numbers of videos and seeds give equal ones.
    """
    plain = compute_values(state)
    found = resample_metrics(state, resamples, seed) if resamples and len(state.videos) > 1 else {}
    kept = {name: found[f"corner_{name}", None] for name in METRICS if (f"corner_{name}", None) in found}
    units = Units(len(state.videos), resamples, seed)
    values = {name: _value(plain.get(f"corner_{name}"), kept.get(name), units) for name in METRICS}
    return Score(values, kept, units)


def rename_videos(state: JudgedCorners, prefix: str) -> JudgedCorners:
    """The same with other names of videos, so that states of sets that use the same names merge."""
    names = pl.lit(prefix) + pl.col("video").cast(pl.String)
    return replace(state, items=state.items.with_columns(video=names))


def _value(value: float | None, resamples: Floats | None, units: Units, scale: Scale = "share") -> Value:
    if value is None or resamples is None:
        return Value(value)
    found = units.interval(value, resamples, scale)
    return Value(value, found.low, found.high, found.caution)


def parse_grid(grid: tuple[str, ...]) -> dict[str, tuple[Any, ...]]:
    """Knob to values, of what stands behind `--grid`.

    Args:
        grid: such as `theta_deg=4,8`.

    Raises:
        UsageError: if it is no such list, or names a parameter twice.
    """
    found: dict[str, tuple[Any, ...]] = {}
    for each in grid:
        name, given, values = each.partition("=")
        if not given or not values:
            raise UsageError(f"--grid is NAME=V1,V2, such as theta_deg=4,8; not {each!r}")
        if name in found:
            raise UsageError(f"--grid names {name} twice; list all its values once")
        found[name] = tuple(
            tuple(value.split("+")) if name == "background" else parse_json_or_word(value)
            for value in values.split(",")
        )
    return found
