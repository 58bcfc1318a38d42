"""DetectRule: which boxes of a network are detections, and which frames of a clip it answers; torch-free."""

from __future__ import annotations

from dataclasses import dataclass

from roadaware.errors import UsageError


@dataclass(frozen=True)
class DetectRule:
    """Rule for the boxes that are kept, and the positions of a clip; the boxes of a frame come by falling agentness.

    Args:
        min_agentness: a box must have more.
        nms_iou: the greatest overlap with a kept box of more agentness, whatever the classes; None keeps all.
        top: boxes that a frame keeps, those of most agentness.
        dropped: last positions of a clip that are not answered, since they see fewer later frames; the next
            clip answers them. The release drops 2, though its text speaks of the first ones.
        backwards: clips are laid from the end of a video to its start, as released; else from the start.

    Raises:
        UsageError: if a number is out of range.

    Source: the ROAD paper, section 4.1, and the released code of 3D-RetinaNet.
    """

    min_agentness: float = 0.025  # GEN_CONF_THRESH, GEN_NMS and GEN_TOPK of the release
    nms_iou: float | None = 0.5
    top: int = 100
    dropped: int = 0
    backwards: bool = False

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if not 0 <= self.min_agentness <= 1 or not (self.nms_iou is None or 0 <= self.nms_iou <= 1):
            raise UsageError(
                f"min_agentness and nms_iou lie in [0, 1]; got {self.min_agentness} and {self.nms_iou}"
            )
        if self.top < 1 or self.dropped < 0:
            raise UsageError(f"needed: top from 1 on, dropped from 0 on; got {self.top} and {self.dropped}")

    @classmethod
    def reference(cls) -> DetectRule:
        """As released."""
        return cls(dropped=2, backwards=True)


@dataclass(frozen=True)
class Clip:
    """Frames of a video that go through the network together, and for which of them it is asked.

    Args:
        start: the first frame.
        answers: frames of the video, consecutive, that this clip answers.
    """

    start: int
    answers: range


def split_into_clips(frames: int, window: int, rule: DetectRule | None = None) -> list[Clip]:
    """The clips of a video, each frame answered by exactly one, by rising start.

    The last clip ends with the video and the first begins with it. A video shorter than a clip is one clip,
    to be filled up with its last frame; the release leaves such a video out.

    Args:
        frames: in the video.
        window: frames of a clip.
        rule: `dropped` and `backwards`.

    Raises:
        UsageError: if as many positions are dropped as a clip has.
    """
    rule = rule or DetectRule()
    step = window - rule.dropped
    if step < 1:
        raise UsageError(f"a clip of {window} frames that drops {rule.dropped} answers nothing")
    if frames <= window:
        return [Clip(0, range(frames))] if frames else []
    last = frames - window
    if not rule.backwards:
        starts = [*range(0, last, step), last]
        ends = [start + step for start in starts[:-1]] + [frames]
        return [
            Clip(start, range(begin, end))
            for start, begin, end in zip(starts, [0, *ends[:-1]], ends, strict=True)
        ]
    starts = sorted({0, *range(last, -1, -step)})
    ends = [start + step for start in starts[:-1]] + [frames]
    return [
        Clip(start, range(begin, end))
        for start, begin, end in zip(starts, [0, *ends[:-1]], ends, strict=True)
    ]
