"""Step cache: proposals of many configurations for one image, each step computed once for its parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from roadaware.arrays import Bools, Floats
from roadaware.corner_cases.captures import Capture
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.copg import (
    Geometry,
    Proposals,
    apply_cluster_limits,
    build_grid,
    build_proposals,
    compute_background,
    compute_object_overlap,
    estimate_ground,
    extract_clusters,
    project_clusters,
)
from roadaware.corner_cases.ground import check, validate_lidar_points
from roadaware.corner_cases.projection import Boxes

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
    "clusters": ("theta_deg", "reach_columns"),
    "projection": ("standing_m", "min_visible", "near_m", "margin_px", "min_side_px"),
    "background": ("background", "background_by", "near_m"),
    "overlaps": ("min_common_score",),
}
"""Step to the parameters that it reads itself."""
BEFORE: Mapping[str, tuple[str, ...]] = {
    "check": (),
    "ground": ("check",),
    "grid": ("check",),
    "clusters": ("check", "ground", "grid"),
    "projection": ("check", "ground", "grid", "clusters"),
    "background": ("check", "ground", "grid", "clusters", "projection"),
    "overlaps": ("check", "ground", "grid", "clusters", "projection"),
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
)
"""Parameters that choose among boxes that are there already; `max_distance_m` scales scores, too."""


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
        kept: dict[Hashable, Bools] = {}
        for each, geometry in zip(self.variants, found, strict=True):
            key = build_step_key("projection", each.config)
            kept[key] = (geometry.limited == 0) | kept.get(key, np.zeros(len(geometry.limited), np.bool_))
        return [
            self._proposals(capture, each, geometry, kept[build_step_key("projection", each.config)])
            for each, geometry in zip(self.variants, found, strict=True)
        ]

    def _geometry(self, capture: Capture, config: CopgConfig) -> Geometry:
        def once(step: str, make: Callable[[], Any]) -> Any:
            return self._once(self._of_sweep, step, config, make)

        points, checked = once("check", lambda: _check_points(capture, config))
        ground = once("ground", lambda: estimate_ground(points, checked, capture, config))
        grid = once("grid", lambda: build_grid(points, checked, capture, config))
        image, clusters = once("clusters", lambda: extract_clusters(points, checked, ground, grid, config))
        return Geometry(
            points, checked, ground, grid, image, clusters, apply_cluster_limits(clusters, config)
        )

    def _proposals(self, capture: Capture, variant: Variant, geometry: Geometry, kept: Bools) -> Proposals:
        """Boxes of all clusters that any variant keeps are made and judged once; each takes its own."""
        config = variant.config

        def once(step: str, make: Callable[[], Any]) -> Any:
            return self._once(self._of_picture, step, config, make)

        boxes: Boxes = once("projection", lambda: project_clusters(geometry, capture, config, kept))
        own = geometry.limited[boxes.cluster - 1] == 0
        shares: Floats | None = None
        overlap: Floats | None = None
        if variant.semantics and capture.semantics is not None:
            shares = once("background", lambda: compute_background(geometry, boxes, capture, config))[own]
        if variant.detections and capture.common is not None:
            overlap = once("overlaps", lambda: compute_object_overlap(boxes, capture, config))[own]
        held = replace(boxes, **{name: values[own] for name, values in vars(boxes).items()})
        return build_proposals(geometry, held, shares, overlap, config, capture.name)

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
