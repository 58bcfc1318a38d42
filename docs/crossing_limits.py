"""Measure what the bundled predictors learnt from, and write it into their files.

    python docs/crossing_limits.py data/jaad

The weights stay as they are. `train` writes the same into the predictors that it makes.
"""

from __future__ import annotations

import sys
from pathlib import Path

WEIGHTS = Path(__file__).parents[1] / "src/roadaware/weights"


def main(arguments: list[str]) -> None:
    """Measure the train split of each predictor's task."""
    from roadaware.datasets import read
    from roadaware.models.crossing.predictor import Predictor
    from roadaware.online.camera_motion import LIMITS
    from roadaware.scenes.sampling import Iv2024, sample
    from roadaware.tasks.pedestrians import split_samples
    from roadaware.training.pedestrians.samples import measure_limits

    scenes = read("jaad", Path(arguments[0]))
    for task in ("crossing", "risk"):
        path = WEIGHTS / f"{task}-jaad.safetensors"
        predictor = Predictor.open(path)
        held = split_samples(sample(scenes, Iv2024.default(predictor.task)), "train")
        predictor.facts[LIMITS] = measure_limits(held)
        predictor.save(path)
        print(path.name, predictor.facts[LIMITS])


if __name__ == "__main__":
    main(sys.argv[1:])
