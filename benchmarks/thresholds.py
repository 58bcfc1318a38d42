"""The operating threshold of a detector: chosen on scenes that are kept for it, written into its file.

    python -m benchmarks.thresholds WEIGHTS --predictions RUN/predictions --truth SCENES [--write OUT [--half]]

Rule: of the scores 0.05, 0.06, ... 0.80 the one at which the boxes of paths have the greatest F1 (IoU 0.5).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import polars as pl

RULE = "greatest F1 of the boxes of paths at IoU 0.5"


def main() -> None:
    """Choose a threshold, print what each is worth, and write it where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--predictions", type=Path, required=True, help="tables of `predict`, not linked")
    parser.add_argument(
        "--truth", type=Path, required=True, help="scenes that it neither learnt nor is judged on"
    )
    parser.add_argument("--scenes", default="", help="what these scenes are, in words")
    parser.add_argument("--trained-on", default=None, help="what the detector learnt from, in words")
    parser.add_argument("--write", type=Path, help="file to write the detector with the threshold to")
    parser.add_argument("--half", action="store_true", help="write its kernels in half precision")
    asked = parser.parse_args()
    table, best = chosen_threshold(asked.weights, asked.predictions, asked.truth)
    with pl.Config(tbl_rows=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
        print(table.with_columns(pl.exclude("min_score").mul(100).round(1)))
    print(json.dumps(best))
    if asked.write is not None:
        calibration = {"rule": RULE, "scenes": asked.scenes, **best}
        trained = {} if asked.trained_on is None else {"trained_on": asked.trained_on}
        notes = {"min_score": best["min_score"], "calibration": calibration, **trained}
        rewrite_notes(asked.weights, asked.write, notes, half=asked.half)


def chosen_threshold(weights: Path, predictions: Path, truth: Path) -> tuple[pl.DataFrame, dict[str, Any]]:
    """What each threshold is worth, and the best of them with its metrics.

    Args:
        weights: of the detector, for its advice on linking.
        predictions: its detections.
        truth: of the same scenes.
    """
    from roadaware.analysis.evaluation.event_inputs import open_truth
    from roadaware.linking.config import LinkerConfig, apply_advice
    from roadaware.linking.link import link
    from roadaware.metrics.tracking import score_floors, select_best_threshold
    from roadaware.models.detector import read_advice
    from roadaware.scenes.store import open_predictions

    found = open_predictions(predictions)
    videos = found.frames["video"].cast(pl.String).unique(maintain_order=True).to_list()
    tubes = link(found, apply_advice(LinkerConfig.default(), read_advice([weights])))
    table = score_floors(tubes, open_truth(truth).only(videos))
    best = select_best_threshold(table)
    row = table.row(by_predicate=pl.col("min_score") == best, named=True)
    return table, {name: round(value, 4) for name, value in row.items()}


def rewrite_notes(weights: Path, target: Path, notes: dict[str, Any], *, half: bool = False) -> None:
    """Write a detector's file anew with more notes; its tensors keep their bytes.

    Args:
        weights: file of ours.
        target: where to; may be the same.
        notes: added to those that it has.
        half: kernels are written in half precision; norms, biases and anchors stay as they are.
    """
    from safetensors import safe_open
    from safetensors.torch import load, save

    from roadaware.io.files import write_atomically
    from roadaware.models.detector import FACTS
    from roadaware.models.tensor_files import digest_tensors

    with safe_open(weights, framework="numpy") as file:
        facts = json.loads(file.metadata()[FACTS])
    facts["notes"] = {**facts["notes"], **notes}
    tensors = load(weights.read_bytes())
    if half:
        tensors = {
            name: tensor.half() if tensor.dim() > 2 else tensor  # anchors have two dimensions
            for name, tensor in tensors.items()
        }
        facts["digest"] = digest_tensors(tensors)
    write_atomically(target, save(tensors, {FACTS: json.dumps(facts)}))


if __name__ == "__main__":
    main()
