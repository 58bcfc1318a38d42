"""What a detector says of itself to whoever watches with it: its advice, and what it was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from roadaware.cli.linker_choice import choose_linker

if TYPE_CHECKING:
    from roadaware.online.config import WatchConfig


def follow_advice(
    config: WatchConfig, files: Sequence[Path], iou: float | None = None, threshold: float | None = None
) -> tuple[WatchConfig, list[str]]:
    """How a stream is watched with a detector, and what to say of its advice.

    Args:
        config: where neither the detector nor anybody else says anything.
        files: of the detector, as of `--weights`.
        iou: overlap that a link needs, whatever the detector advises.
        threshold: agentness that proves a tube, whatever the detector advises.

    Raises:
        DamagedError: if a file's advice is none.
    """
    from roadaware.models.detector_notes import read_advice

    advice = read_advice(files)
    linker, said = choose_linker("default", "road", advice, {"min_iou": iou})
    score = config.begin_score
    if threshold is not None:
        score = threshold
    elif advice.min_score is not None:
        score = advice.min_score
        said.append(
            f"boxes at or above {score:g} prove a tube, the detector's threshold; --threshold to change"
        )
    elif "min_score" in advice.disputed:
        said.append(f"the detectors' thresholds differ: {score:g} is taken; --threshold to change")
    return replace(config, linker=linker, begin_score=score, advice=advice), said


def notice_of_training(files: Sequence[Path], source: str | None) -> str:
    """What to tell whoever watches something real with a detector that saw nothing real; empty otherwise.

    Args:
        files: of the detector.
        source: the file that is watched; None for a camera.

    Raises:
        DamagedError: if a file says what it was trained on in no words.
    """
    from roadaware.models.detector_notes import read_training_data
    from roadaware.scenes.synthetic_films import is_synthetic_film

    words = read_training_data(files)
    return f"detector trained on {words}" if words and not is_synthetic_film(source) else ""
