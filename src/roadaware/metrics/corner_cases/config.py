"""CornerConfig: which objects count and how, when detectors are evaluated on corner cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from roadaware.config import check_words
from roadaware.errors import UsageError

Group = Literal["corner", "common", "novel", "all", "classes"]

GROUPS: dict[str, str] = {
    "corner": "corner cases of every class, whatever the predictions call them",
    "common": "objects of common classes, class by class",
    "novel": "objects of all other classes as one class, met by predictions of novel objects",
    "all": "every object, whatever the predictions call them",
    "classes": "every object, class by class",
}
AREAS = ("all", "small", "medium", "large")
AREA_BOUNDS_PX2 = np.array([[0, 1e10], [0, 32**2], [32**2, 96**2], [96**2, 1e10]], dtype=np.float64)
"""Smallest and largest area of each size; both ends belong to it.

Source: Lin et al., ECCV 2014 (COCO), and its evaluator.
"""
LOOSE = 0.3
"""The overlap below COCO's at which proposals are judged too."""


@dataclass(frozen=True)
class CornerConfig:
    """How predictions about corner cases are judged; the defaults are what `default` gives.

    Args:
        groups: which objects are asked for, in the order of the result; see `GROUPS`.
        max_detections: predictions that are taken from each image and class, the best first: the third is the
            usual number, the first two give what one and ten predictions find.
        ignored: what is neither asked for nor counted as false: all that is marked so (`marked`), or crowds
            alone (`crowds`, as the published evaluator does, which writes over other marks).
        area: what says how large an object is: the area that its annotation gives (`annotated`, which may be
            that of its outline), or the area of its box (`box`).
        common_truth: `common` asks for all objects of common classes (`all`), or for corner cases alone
            (`corner`).
        precision: where average precision is given: where ground truth holds more than corner cases (`complete`),
            everywhere (`always`), or nowhere (`never`).
        risk: corner cases are asked for wherever they are (`any`), or only where they block a path of the
            vehicle (`blocking`, see `risk.with_blocking`); where that is not known they are asked for.
        total: whether the four numbers of the challenge of 2022 are added up.
    """

    groups: tuple[Group, ...] = ("corner", "common", "novel")
    max_detections: tuple[int, int, int] = (1, 10, 100)
    ignored: Literal["marked", "crowds"] = "marked"
    area: Literal["annotated", "box"] = "annotated"
    common_truth: Literal["all", "corner"] = "all"
    precision: Literal["complete", "always", "never"] = "complete"
    risk: Literal["any", "blocking"] = "any"
    total: bool = False

    def __post_init__(self) -> None:
        check_words(self)
        if not self.groups or len(set(self.groups)) != len(self.groups) or set(self.groups) - set(GROUPS):
            raise UsageError(f"groups are some of {', '.join(GROUPS)}, each once; got {self.groups!r}")
        most = self.max_detections
        if len(most) != 3 or not all(type(n) is int and 1 <= n <= 10_000 for n in most):
            raise UsageError(f"max_detections are three whole numbers from 1 to 10,000; got {most!r}")
        if list(most) != sorted(set(most)):
            raise UsageError(f"max_detections should rise; got {most!r}")

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Overlaps from which on a prediction meets an object: 0.3, then COCO's ten, as its evaluator has them."""
        return (LOOSE, *np.linspace(0.5, 0.95, 10).tolist())

    @classmethod
    def default(cls) -> CornerConfig:
        """The paper's three groups.

        Source: Li et al., ECCV 2022 (CODA), section 5.1.
        """
        return cls()

    @classmethod
    def reference(cls) -> CornerConfig:
        """The same with pycocotools' reading of marks: crowds alone are ignored.

        Source: pycocotools, the evaluator of Lin et al., ECCV 2014 (COCO).
        """
        return cls(ignored="crowds")

    @classmethod
    def coda2022(cls) -> CornerConfig:
        """The evaluator of the challenge: AP of common classes, AP and AR of everything, AR of corner cases.

        Source: ECCV 2022 workshop SSLAD, track 3, as CODA's site describes it.
        """
        return cls(groups=("common", "all", "corner"), ignored="crowds", precision="always", total=True)

    @classmethod
    def coco(cls) -> CornerConfig:
        """COCO's evaluator on all classes of the file.

        Source: pycocotools, the evaluator of Lin et al., ECCV 2014 (COCO).
        """
        return cls(groups=("classes",), ignored="crowds", precision="always")


CONFIGS: dict[str, Callable[[], CornerConfig]] = {
    "default": CornerConfig.default,
    "reference": CornerConfig.reference,
    "coda2022": CornerConfig.coda2022,
    "coco": CornerConfig.coco,
}
