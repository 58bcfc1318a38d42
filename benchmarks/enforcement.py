"""How fast requirements are enforced, and how the ways of doing it agree, on perturbed ground truth of synthetic drives.

    python -m benchmarks.enforcement requirements_dimacs.txt [--write FOLDER]

With --write the drives (`drives`) and their detections (`detections`) are kept, for `audit`, `enforce` and `evaluate road`.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from pathlib import Path

import numpy as np

from roadaware.demo_data.detector import simulate_detections
from roadaware.demo_data.road import generate_road_scenes
from roadaware.linking.enforcement import EnforcementConfig, Enforcer, Method, measure_distance
from roadaware.metrics.requirements import bind_to_predictions, build_score_rows
from roadaware.scenes.requirements import open_requirements
from roadaware.scenes.store import save

THRESHOLDS = (0.1, 0.3, 0.5)
METHODS: tuple[Method, ...] = ("nearest", "propagation", "maxsat")
_MOST_SOLVED = 300
"""Boxes that MaxSAT is asked about: it takes seconds for some hundreds."""


def main() -> None:
    """Print milliseconds of processor time for 100 boxes, and how much the methods change."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("requirements", type=Path)
    parser.add_argument("--write", type=Path, help="folder for drives and detections")
    asked = parser.parse_args()
    scenes = generate_road_scenes(videos=40, frames=60, seed=11)
    predictions = simulate_detections(scenes, seed=12)
    if asked.write is not None:
        save(scenes, asked.write / "drives", overwrite=True)
        save(predictions, asked.write / "detections", overwrite=True)
    bound = bind_to_predictions(open_requirements([asked.requirements]), predictions)
    rows, own = build_score_rows(predictions, bound), predictions.boxes["score"].to_numpy()
    has_solver = importlib.util.find_spec("pysat") is not None
    for threshold in THRESHOLDS:
        scores = np.ascontiguousarray(rows[own >= np.float32(threshold)])
        some = slice(None, None, max(1, len(scores) // _MOST_SOLVED))
        distances = {}
        for method in METHODS if has_solver else METHODS[:2]:
            part = scores[some] if method == "maxsat" else scores
            enforcer = Enforcer(bound, EnforcementConfig(threshold, method))
            enforcer.find_labels(part[:2])  # compiled
            seconds = []
            for _ in range(1 if method == "maxsat" else 5):
                started = time.process_time()
                labels, states = enforcer.find_labels(part)
                seconds.append(time.process_time() - started)
            distances[method] = measure_distance(part, threshold, labels)
            print(
                f"at {threshold:g} {method}: {len(part):,} boxes, {int((states > 0).sum()):,} violate, "
                f"{1e5 * min(seconds) / len(part):.3f} ms for 100 boxes, distance {distances[method].sum():.1f}"
            )
        same = np.isclose(distances["propagation"], distances["nearest"], atol=1e-6)
        print(f"  propagation is as near as can be for {100 * same.mean():.1f} % of the boxes")
        if has_solver:
            gap = np.abs(distances["nearest"][some] - distances["maxsat"]).max()
            print(f"  greatest difference of nearest and maxsat: {gap:g}")


if __name__ == "__main__":
    main()
