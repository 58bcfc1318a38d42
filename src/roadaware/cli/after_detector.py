"""Steps of `roadaware link` on either side of the linker: suppress, fuse, and leave out short paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from roadaware.cli import console
from roadaware.cli.options import Several
from roadaware.errors import UsageError

if TYPE_CHECKING:
    from roadaware.scenes.predictions import Predictions

_STEPS = Group("Before and after linking", sort_key=50)
_NOTE = "after_detector"
_FUSE = "Boxes of several sets that overlap by more than this become one; 0.55 unless told."
_WEIGHTS = "What the scores of each set count, in the order of the sets; 1 each unless told."
_NMS = (
    "Suppress first, in each set by itself: boxes that overlap a box of more agentness, as the published "
    "detector does, or the class scores that an overlapping box has more of."
)
_NMS_IOU = "The greatest overlap that --nms bears; 0.5 unless told."
_SHORT = "Boxes that a path needs, and frames that a labelled tube needs; shorter ones are left out."


@Parameter(name="*", group=_STEPS)
@dataclass(frozen=True)
class Steps:
    """What is done to detections before they are linked, and to paths afterwards."""

    nms: Annotated[Literal["agentness", "class"] | None, Parameter(help=_NMS)] = None
    nms_iou: Annotated[float | None, Parameter(help=_NMS_IOU)] = None
    fuse_iou: Annotated[float | None, Parameter(help=_FUSE)] = None
    weights: Annotated[tuple[float, ...], Parameter(help=_WEIGHTS, show_default=False), Several] = ()
    min_length: Annotated[int, Parameter(help=_SHORT)] = 1

    def check(self, count: int) -> None:
        """Refuse options that would change nothing.

        Args:
            count: sets of detections.

        Raises:
            UsageError: if an option is given without what it belongs to.
        """
        if self.nms_iou is not None and self.nms is None:
            raise UsageError("--nms-iou says how --nms suppresses; give --nms agentness or --nms class too")
        if count == 1 and (self.fuse_iou is not None or self.weights):
            raise UsageError("--fuse-iou and --weights fuse several sets of detections; there is one")
        if self.weights and len(self.weights) != count:
            raise UsageError(
                f"--weights needs a number for each of the {count} sets of detections, in their order; got "
                f"{len(self.weights)}"
            )
        if self.min_length < 1:
            raise UsageError(f"--min-length is a number of boxes from 1 on; got {self.min_length}")


AS_THEY_ARE = Steps()


def before_linking(sets: Sequence[Predictions], steps: Steps) -> Predictions:
    """One set of detections: each suppressed if asked, and several of them fused.

    Args:
        sets: detections, not linked.
        steps: what is asked.
    """
    done = [_suppressed(each, steps) for each in sets]
    if len(done) == 1:
        return done[0]
    from roadaware.linking.fusion import FusionConfig, fused

    config = FusionConfig(weights=steps.weights or None)
    if steps.fuse_iou is not None:
        config = replace(config, iou=steps.fuse_iou)
    with console.working("fusing"):
        whole = fused(done, config)
    others = [step for each in done[1:] for step in each.meta.notes.get(_NOTE, [])]
    own = whole.meta.notes[_NOTE]
    notes = {**whole.meta.notes, _NOTE: [*own[:-1], *others, own[-1]]}
    return whole.with_tables(meta=replace(whole.meta, notes=notes))


def after_linking(tubes: Predictions, steps: Steps) -> Predictions:
    """The tubes without short ones, if asked.

    Raises:
        UsageError: if paths are claimed for consecutive frames whatever frames their boxes were found in.
    """
    if steps.min_length == 1:
        return tubes
    from roadaware.linking.interpolation import InterpolationConfig, interpolated

    if "consecutive" in tubes.tubes.columns and tubes.tubes["consecutive"].any():
        raise UsageError(
            "--min-length counts the frames of a path, and the published builder claims others than it "
            "found; use --config default"
        )
    return interpolated(tubes, InterpolationConfig(max_gap=0, min_length=steps.min_length))


def steps_taken(tables: Predictions) -> list[dict[str, Any]]:
    """What was done, in its order: each step with its settings and counts, as the tables' notes have it."""
    return list(tables.meta.notes.get(_NOTE, []))


def in_words(tables: Predictions) -> list[str]:
    """The same as lines to print."""
    return [line for step in steps_taken(tables) if (line := _line(step))]


def _suppressed(detections: Predictions, steps: Steps) -> Predictions:
    if steps.nms is None:
        return detections
    from roadaware.linking.nms import NmsConfig, suppressed

    config = NmsConfig(by=steps.nms)
    if steps.nms_iou is not None:
        config = replace(config, iou=steps.nms_iou)
    with console.working("suppressing"):
        return suppressed(detections, config)


def _line(step: dict[str, Any]) -> str:
    config = step["config"]
    if step["step"] == "suppressed" and "kept" in step:
        kept = f"{step['kept']:,} of {step['boxes']:,} boxes stay"
        return f"suppressed by agentness at IoU {config['iou']:g}: {kept}"
    if step["step"] == "suppressed":
        zeroed = f"{step['scores_zeroed']:,} scores of {step['boxes']:,} boxes become 0"
        return f"suppressed by class at IoU {config['iou']:g}: {zeroed}"
    if step["step"] == "fused":
        weights = ", ".join(f"{weight:g}" for weight in config["weights"] or ()) or "1 each"
        became = f"{step['boxes']:,} boxes of {step['models']} sets become {step['fused']:,}"
        return f"fused at IoU {config['iou']:g}, weights {weights}: {became}"
    if step["step"] == "interpolated":
        kept = f"{step['tubes_kept']:,} of {step['tubes']:,} paths and tubes stay"
        return f"shorter than {config['min_length']} left out: {kept}"
    return ""
