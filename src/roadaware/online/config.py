"""WatchConfig: how a stream is watched."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from roadaware.errors import UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.online.tubes import LabelRule
from roadaware.scenes.advice import Advice


@dataclass(frozen=True)
class WatchConfig:
    """How a stream is watched.

    Args:
        linker: how detections become tubes; without `tube_nms`, which compares tubes of a whole video.
        jump_gap_s: a path may miss frames for so long, where that is more than the linker's `jump_gap`
            frames of those that are considered, and than its own `jump_gap_s`.
        fps: frames a second that are considered, where the source has more; None for all.
        recorded_fps: frames a second at which a video was recorded, where it plays faster or slower; None for
            the rate at which it plays.
        begin_after: detections of at least `begin_score` that prove a tube; then it is reported and drawn. Of
            fewer than ten frames a second fewer are needed, in proportion.
        begin_score: agentness that each of them needs.
        keep_share: a tube that is proven goes on with detections of this share of `begin_score`; weaker ones
            are linked and kept in the tables, and otherwise passed over.
        labels: which labels are reported.
        budget_s: of a live source, a frame that could not be answered within so many seconds of its arrival
            is passed over for a newer one; None for always the newest.
        seconds: of the stream, after which the watch ends; None for all of it.
        advice: of the detector, which its tables carry; `linker` and `begin_score` are what is followed.
        rescale: scale images of another size to that of the first; otherwise they end the watch.

    Raises:
        UsageError: if a number has no meaning.
    """

    linker: LinkerConfig = field(default_factory=LinkerConfig.default)
    jump_gap_s: float = 1 / 3
    fps: float | None = None
    recorded_fps: float | None = None
    begin_after: int = 3
    begin_score: float = 0.2
    keep_share: float = 2 / 3
    labels: LabelRule = field(default_factory=LabelRule)
    budget_s: float | None = None
    seconds: float | None = None
    advice: Advice = field(default_factory=Advice)
    rescale: bool = False

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if self.linker.tube_nms is not None:
            raise UsageError(
                "tube_nms compares the tubes of a whole video, and a stream has no end: set it to None"
            )
        if self.begin_after < 1 or not 0 <= self.begin_score <= 1 or not 0 <= self.keep_share <= 1:
            raise UsageError(
                "a tube is told after at least one detection, with an agentness from 0 to 1 and a share of it"
            )
        for name in ("fps", "recorded_fps"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise UsageError(f"{name} should be more than 0 frames a second, not {value!r}")
        for name in ("jump_gap_s", "budget_s", "seconds"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise UsageError(f"{name} should be a number of seconds, not {value!r}")

    def linker_at(self, fps: float | None) -> LinkerConfig:
        """The linker for a rate.

        Of fewer than ten frames a second paths and tubes need fewer boxes, in proportion, and of fewer than
        five those overlap less: things move farther in between.

        Args:
            fps: frames per second of the source; None where it is not known.

        >>> WatchConfig().linker_at(12.0).jump_gap, WatchConfig().linker_at(30.0).jump_gap
        (4, 10)
        >>> WatchConfig(fps=2.0).linker_at(12.0).jump_gap  # every sixth frame is looked at
        24
        >>> slow = WatchConfig().linker_at(2.0)
        >>> slow.min_path_len, slow.min_tube_len
        (1, 0)
        """
        gap = round(self.jump_gap_s * fps) if fps else 0
        # 1e-6: 30 / 10 frames a second is a step of 3, whatever its last bit says.
        step = max(1, math.ceil(fps / self.fps - 1e-6)) if fps and self.fps else 1
        share, linker = self._share_of_usual(fps), self.linker
        if share < 1:
            length, labelled = math.ceil(linker.min_path_len * share), linker.min_tube_len * share - 0.5
            linker = replace(linker, min_path_len=length, min_tube_len=max(0, math.floor(labelled)))
        if share < _FAR:
            linker = replace(linker, min_iou=min(linker.min_iou, _FAR_IOU))
        return replace(linker, jump_gap=min(max(linker.jump_gap * step, gap), 10_000))

    def begin_after_at(self, fps: float | None) -> int:
        """Detections that prove a tube at a rate.

        Args:
            fps: frames per second of the source; None where it is not known.

        >>> [WatchConfig().begin_after_at(fps) for fps in (2.0, 6.0, 10.0, 30.0)]
        [1, 2, 3, 3]
        """
        return math.ceil(self.begin_after * self._share_of_usual(fps))

    def _share_of_usual(self, fps: float | None) -> float:
        """The rate that is looked at as a share of the usual one; at most 1."""
        looked = min(rate for rate in (fps, self.fps, _USUAL_FPS) if rate)
        return looked / _USUAL_FPS


_USUAL_FPS = 10.0
"""Frames per second for which the linker's counts of boxes are meant, and above."""
_FAR, _FAR_IOU = 0.5, 0.2
"""Below this share of the usual rate boxes of one thing overlap no more than this."""
