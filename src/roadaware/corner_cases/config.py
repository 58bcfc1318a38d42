"""CopgConfig: every parameter of the proposals, those of the paper with the paper's defaults."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from roadaware.config import from_dict, to_dict
from roadaware.errors import UsageError

BACKGROUND = ("road", "sidewalk", "building", "wall", "fence", "pole", "vegetation", "terrain", "sky")
"""Classes of Cityscapes that are no objects on the road. Source: CODA (ECCV 2022), section 4.2."""


@dataclass(frozen=True)
class CopgConfig:
    """How proposals are made; the defaults are what we recommend, `reference` is as published.

    By default returns are clustered in several ways, whose clusters are united, ranked by a learnt score and cut to the
    best of an image; `angle` is the one way of the versions up to 0.9, with the paper's thresholds.

    The first five parameters are those of the paper's Tables 5 to 7.

    Args:
        theta_deg: two returns belong together where the line between them makes at least this angle with the
            longer beam.
        min_points: fewer returns are no object; the paper's default is 5 or 10, which give the same rows; 5 in `angle`
            and `reference`.
        max_distance_m: from the LiDAR to the nearest return.
        max_background: share of a box whose pixels are background; more is background. The paper's 0.45 in `angle` and
            `reference`; a learnt score needs no such threshold, since it falls with the share.
        max_common_iou: overlap with a detected common object; more is that object; 0.25 in `angle` and `reference`.
        background: names of the classes of pixels that count as background.
        background_by: what is asked whether it is background: the pixels of the box (`box`, as published), or
            the pixels on which the returns lie (`returns`), so that the road around a thing does not count.
        min_common_score: detections below this score suppress nothing.
        min_range_m: horizontal; what is nearer belongs to the own vehicle.
        ground_m: a return less than this above the plane of the ground is ground.
        ground_range_m: the plane is fitted to returns within this range.
        ground_tilt_deg: the steepest plane that is a road.
        ground_share: of the returns below the LiDAR that a plane must explain to be a road.
        ground_draws: planes through three returns that are tried.
        ground_returns: how many returns judge them.
        columns: of the range image; None for what the sensor's layout or the returns themselves tell.
        rows: of the range image where neither rings, nor their order, nor the sensor's name is known.
        reach_rows: how many rows further the neighbour of a return is looked for, across empty pixels; 2 crosses one ring
            that met something dark or glass and saw nothing; 1 in `angle` and `reference`.
        reach_columns: the same along a ring.
        repair_rows: `reach_rows` of an image whose rows are bins of elevation, which leave holes.
        standing_m: a cluster whose lowest return is less than this above the ground reaches down to it, so
            that removing the ground does not cut off its feet; 0 for boxes around returns alone.
        max_width_m: widest cluster, along the ground; None for any.
        max_height_m: how far a cluster reaches above the ground at most; None for any.
        min_height_m: how far it must reach above the ground, where that is known.
        min_visible: returns inside the image.
        near_m: points less than this before the camera are behind it.
        margin_px: boxes grow by this on every side; None for half the distance between beams there.
        min_side_px: boxes that are narrower or lower are dropped.
        seed: of the draws.
        local_ground_m: a return less than this above the ground of its surroundings is ground, which is followed
            outwards from the plane; None for the plane itself with `ground_m`.
        reach_m: further ways to cluster, rising: neighbours in the range image that lie within so many metres of each
            other, in space, belong together; none for the angle alone.
        duplicate_iou: of boxes that overlap more than this, the one with the best score is kept; 1 keeps all.
        ranking: what a score is: learnt from the geometry of synthetic scenes (`learnt`), or the number of returns and
            the distance (`returns`).
        most: boxes of an image that are kept, those with the best scores; None for all.
        completion: whether edges of boxes are moved by up to the distance between two beams, as far as things of that shape
            reached beyond their returns on synthetic scenes (`learnt`), or stay where half a beam beside the returns is
            (`none`).
    """

    theta_deg: float = 8.0
    min_points: int = 3
    max_distance_m: float = 50.0
    max_background: float = 1.0
    max_common_iou: float = 1.0
    background: tuple[str, ...] = BACKGROUND
    background_by: Literal["box", "returns"] = "returns"
    min_common_score: float = 0.0
    min_range_m: float = 2.0
    ground_m: float = 0.15
    ground_range_m: float = 40.0
    ground_tilt_deg: float = 15.0
    ground_share: float = 0.15
    ground_draws: int = 200
    ground_returns: int = 3000
    columns: int | None = None
    rows: int = 64
    reach_rows: int = 2
    reach_columns: int = 1
    repair_rows: int = 4
    standing_m: float = 1.0
    max_width_m: float | None = None
    max_height_m: float | None = None
    min_height_m: float = 0.0
    min_visible: int = 3
    near_m: float = 0.1
    margin_px: float | None = None
    min_side_px: float = 0.0
    seed: int = 0
    local_ground_m: float | None = 0.08
    reach_m: tuple[float, ...] = (0.5, 1.0)
    duplicate_iou: float = 0.6
    ranking: Literal["learnt", "returns"] = "learnt"
    most: int | None = 25
    completion: Literal["learnt", "none"] = "learnt"

    @classmethod
    def angle(cls, **changes: Any) -> CopgConfig:
        """One way to cluster, by the angle, above a plane, with the paper's thresholds: the default up to 0.9.

        Args:
            changes: parameters that are other than that.
        """
        return cls(**{**_ANGLE, **changes})

    @classmethod
    def reference(cls) -> CopgConfig:
        """The steps as the paper has them: four neighbours, boxes of returns alone, judged by their pixels.

        What the paper does not say (the plane, the nearest range, what is too steep) is as in `angle`.
        """
        return cls.angle(background_by="box", reach_columns=1, standing_m=0.0, margin_px=0.0)

    @property
    def united(self) -> bool:
        """Whether there is more than one way to cluster."""
        return bool(self.reach_m)

    def __post_init__(self) -> None:
        """Refuse what makes no sense.

        Raises:
            UsageError: if a parameter lies outside its range.
        """
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            # Fields are annotated as text: `int` or `int | None`.
            kind = int if "int" in self.__annotations__[name] else int | float
            if kind is int and isinstance(value, float) and value.is_integer():
                # 1e2 is a whole number, too; saved as a fraction the configuration would not be opened again.
                value = int(value)
                object.__setattr__(self, name, value)
            if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
                what = "be a whole number in" if kind is int else "lie in"
                raise UsageError(f"{name} should {what} {low:g} to {high:g}, not {value!r}")
        if self.background_by not in ("box", "returns"):
            raise UsageError(f"background_by is box or returns, not {self.background_by!r}")
        if not isinstance(self.background, tuple) or not all(isinstance(n, str) for n in self.background):
            raise UsageError(f"background should be names of classes, not {self.background!r}")
        if self.ranking not in ("learnt", "returns"):
            raise UsageError(f"ranking is learnt or returns, not {self.ranking!r}")
        if self.completion not in ("learnt", "none"):
            raise UsageError(f"completion is learnt or none, not {self.completion!r}")
        reaches = self.reach_m
        sound = isinstance(reaches, tuple) and len(reaches) <= MOST_REACHES
        if not sound or not all(
            isinstance(each, int | float) and not isinstance(each, bool) and 0.01 <= each <= 10
            for each in reaches
        ):
            raise UsageError(
                f"reach_m should be up to {MOST_REACHES} lengths of 0.01 to 10 m, not {reaches!r}"
            )
        if list(reaches) != sorted(set(reaches)):
            raise UsageError(f"reach_m should rise, not {reaches!r}")


MOST_REACHES = 8
"""Each reach is one more way to cluster, and costs as much again."""
_ANGLE: dict[str, Any] = {
    "min_points": 5,
    "max_background": 0.45,
    "max_common_iou": 0.25,
    "reach_rows": 1,
    "reach_columns": 2,
    "local_ground_m": None,
    "reach_m": (),
    "duplicate_iou": 1.0,
    "ranking": "returns",
    "most": None,
    "completion": "none",
}


PRESETS: Mapping[str, Callable[[], CopgConfig]] = MappingProxyType(
    {"default": CopgConfig, "angle": CopgConfig.angle, "reference": CopgConfig.reference}
)
"""Configurations by the names that commands know them by."""


def complete_saved_config(saved: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a saved configuration with those that versions up to 0.9 did not have yet, as they were then.

    Args:
        saved: what `roadaware.config.to_dict` gave.
    """
    known = to_dict(CopgConfig.angle())
    # Within an order a configuration does not name its class.
    return {name: saved.get(name, value) for name, value in known.items() if name != "type"} | dict(saved)


def open_saved_config(saved: Mapping[str, Any]) -> CopgConfig:
    """The configuration that a run was made by, be it of an earlier version.

    Args:
        saved: what `roadaware.config.to_dict` gave.

    Raises:
        UsageError: if it is none.
    """
    return from_dict(CopgConfig, complete_saved_config(saved))


_OPTIONAL = ("columns", "max_width_m", "max_height_m", "margin_px", "local_ground_m", "most")
_RANGES = (
    ("theta_deg", 0.1, 89.0),
    ("min_points", 1, 1e6),
    ("max_distance_m", 0.1, 1e4),
    ("max_background", 0, 1),
    ("max_common_iou", 0, 1),
    ("min_common_score", 0, 1),
    ("min_range_m", 0, 100),
    ("ground_m", 0, 5),
    ("ground_range_m", 1, 1e4),
    ("ground_tilt_deg", 0, 60),
    ("ground_share", 0, 1),
    ("ground_draws", 1, 1e5),
    ("ground_returns", 3, 1e6),
    ("columns", 8, 16384),
    ("rows", 1, 512),
    ("reach_rows", 1, 64),
    ("reach_columns", 1, 64),
    ("repair_rows", 1, 64),
    ("standing_m", 0, 10),
    ("max_width_m", 0.01, 1e4),
    ("max_height_m", 0.01, 1e4),
    ("min_height_m", 0, 100),
    ("min_visible", 1, 1e6),
    ("near_m", 1e-3, 10),
    ("margin_px", 0, 1000),
    ("min_side_px", 0, 10000),
    ("seed", 0, 2**63 - 1),
    ("local_ground_m", 0, 5),
    ("duplicate_iou", 0, 1),
    ("most", 1, 100000),
)


def configure_copg(knobs: tuple[str, ...], base: str = "default") -> CopgConfig:
    """A configuration with some parameters changed.

    Args:
        knobs: NAME=VALUE each.
        base: a name of `corner_cases.config.PRESETS`.

    Raises:
        UsageError: if there is no such parameter, or its value is none.
    """
    names = {each.name for each in dataclasses.fields(CopgConfig)}
    changes: dict[str, Any] = {}
    for each in knobs:
        name, given, value = each.partition("=")
        if not given or name not in names:
            raise UsageError(f"--set is NAME=VALUE with one of {', '.join(sorted(names))}; not {each!r}")
        if name in changes:
            raise UsageError(f"--set gives {name} twice; say it once")
        # A number, nothing (`null`), a word, or names or lengths with commas between them.
        text = f"[{value}]" if name == "reach_m" and not value.startswith("[") else value
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            read = value.split(",") if name == "background" else value
        changes[name] = tuple(read) if isinstance(read, list) else read
    return dataclasses.replace(PRESETS[base](), **changes)
