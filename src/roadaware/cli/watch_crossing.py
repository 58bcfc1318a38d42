"""What `watch` knows of pedestrians who may cross: which predictors are asked, and of which detectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from roadaware.cli import console
from roadaware.cli.devices import log_warmup
from roadaware.online import setup

if TYPE_CHECKING:
    from roadaware.models.detector import Detector
    from roadaware.online.crossing import CrossingAnnotator
    from roadaware.online.frame_queue import Clock

_CROSSING = (
    "Predictor of crossing or of risk, as `train` writes it (model.safetensors, or the folder of a run). "
    "Said again: one of the other question, or one to average with it. auto, also where nothing is said: "
    "those that came with roadaware. none: pedestrians are not asked about."
)
CrossingOption = Annotated[
    tuple[str, ...], Parameter(name="--crossing", help=_CROSSING, negative="", show_default=False)
]


def build_annotator(
    asked: Sequence[str], detector: Detector, clock: Clock, *, waits: bool = True
) -> CrossingAnnotator | None:
    """What gives pedestrians their outlook in one watch, see `online.setup`, which needs torch."""

    with console.log_step("opening the predictors"):
        return setup.build_annotator(asked, detector, clock, waits=waits, timed=log_warmup)
