"""What `watch` knows of pedestrians who may cross: which predictors are asked, and of which detectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from roadaware.cli import console
from roadaware.cli.devices import log_warmup
from roadaware.errors import UsageError

if TYPE_CHECKING:
    from roadaware.models.detector import Detector
    from roadaware.online.crossing import CrossingAnnotator
    from roadaware.online.frame_queue import Clock

INSTALLED = ("crossing-jaad.safetensors", "risk-jaad.safetensors")
"""The predictors that came with roadaware, where they did."""
_CROSSING = (
    "Predictor of crossing or of risk, as `train` writes it (model.safetensors, or the folder of a run). "
    "Said again: one of the other question, or one to average with it. auto, also where nothing is said: "
    "those that came with roadaware. none: pedestrians are not asked about."
)
CrossingOption = Annotated[
    tuple[str, ...], Parameter(name="--crossing", help=_CROSSING, negative="", show_default=False)
]


def find_predictors(asked: Sequence[str]) -> list[Path]:
    """The files that are meant; none where pedestrians are not asked about.

    Args:
        asked: as of `--crossing`; nothing means auto.

    Raises:
        UsageError: if words and files are mixed.
    """
    words = [each for each in asked if each in ("auto", "none")]
    if words and len(asked) > 1:
        raise UsageError(f"--crossing {words[0]} stands alone; name files, or say {words[0]}")
    if asked and not words:
        return [Path(each) for each in asked]
    if words == ["none"]:
        return []
    return [path for name in INSTALLED if (path := _weights() / name).is_file()]


def build_annotator(
    asked: Sequence[str], detector: Detector, clock: Clock, *, waits: bool = True
) -> CrossingAnnotator | None:
    """What gives pedestrians their outlook in one watch; None where nothing does.

    Args:
        asked: as of `--crossing`.
        detector: that looks.
        clock: of the watch.
        waits: whether frames wait for what is done once. Then predictors are warmed up when somebody is first
            asked about, which may be never; otherwise before the first frame.

    Raises:
        UsageError: if a predictor cannot be asked about a stream, or the detector tells no pedestrians.
        InputError: if a file cannot be read.
    """
    files = find_predictors(asked)
    if not files:
        return None
    from roadaware.online.forecast_event import OutlookRule

    rule, agents = OutlookRule(), detector.kinds.get("agent", ())
    if not set(rule.agents) & set(agents):
        if not asked or list(asked) == ["auto"]:
            return None
        raise UsageError(
            f"this detector tells no pedestrians ({', '.join(rule.agents)}) but "
            f"{', '.join(agents) or 'no agents'}; leave --crossing out"
        )
    from roadaware.online.crossing import CrossingAnnotator
    from roadaware.online.crossing_forecaster import open_foresight

    with console.log_step("opening the predictors"):
        foresight = open_foresight(files)
    if not waits:
        with log_warmup("the predictors"):
            foresight.warm_up()
    return CrossingAnnotator(foresight, rule, clock)


def _weights() -> Path:
    return Path(__file__).resolve().parent.parent / "weights"
