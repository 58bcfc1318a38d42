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
            frames of those that are looked at, and than its own `jump_gap_s`.
        fps: frames a second that are looked at, where the source has more; None for all.
        begin_after: detections of at least `begin_score` that prove a tube; then it is told and drawn.
        begin_score: agentness that each of them needs.
        keep_share: a tube that is proven goes on with detections of this share of `begin_score`; weaker ones
            are linked and kept in the tables, and otherwise passed over.
        labels: which labels are told.
        budget_s: of a live source, a frame that could not be answered within so many seconds of its arrival
            is passed over for a newer one; None for always the newest.
        seconds: of the stream, after which the watch ends; None for all of it.
        advice: of the detector, which its tables carry; `linker` and `begin_score` are what is followed.
        rescale: scale pictures of another size to that of the first; otherwise they end the watch.

    Raises:
        UsageError: if a number has no meaning.
    """

    linker: LinkerConfig = field(default_factory=LinkerConfig.default)
    jump_gap_s: float = 1 / 3
    fps: float | None = None
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
        if self.fps is not None and not 0 < self.fps < math.inf:
            raise UsageError(f"fps should be more than 0 frames a second, not {self.fps!r}")
        for name in ("jump_gap_s", "budget_s", "seconds"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise UsageError(f"{name} should be a number of seconds, not {value!r}")

    def linker_at(self, fps: float | None) -> LinkerConfig:
        """The linker for a rate.

        Args:
            fps: frames per second of the source; None where it is not known.

        >>> WatchConfig().linker_at(12.0).jump_gap, WatchConfig().linker_at(30.0).jump_gap
        (4, 10)
        >>> WatchConfig(fps=2.0).linker_at(12.0).jump_gap  # every sixth frame is looked at
        24
        """
        gap = round(self.jump_gap_s * fps) if fps else 0
        step = max(1, math.ceil(fps / self.fps - 1e-6)) if fps and self.fps else 1
        return replace(self.linker, jump_gap=min(max(self.linker.jump_gap * step, gap), 10_000))
