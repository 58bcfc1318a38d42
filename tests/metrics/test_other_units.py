"""Predicted boxes in pixels are not judged by shares of the image, nor shares by pixels: the number would be 0."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from roadaware.errors import InputError
from roadaware.metrics import actions, grounding, relations
from roadaware.scenes.tables import Meta, Predictions, Scenes

WORDS = {"action": ("walking",), "predicate": ("following after",)}
SPAN = {"video": ["v"], "start_frame": [0], "end_frame": [2]}


def make_tables(scale: float) -> dict[str, pl.DataFrame]:
    """Two people in two frames, within an image whose sides are `scale`."""
    left = pl.Series([0.1, 0.1, 0.6, 0.6]) * scale
    boxes = {"box": range(4), "video": "v", "frame": [0, 1, 0, 1], "tube": [0, 0, 1, 1]}
    sides = {"x1_px": left, "y1_px": left, "x2_px": left + 0.3 * scale, "y2_px": left + 0.3 * scale}
    return {
        "boxes": pl.DataFrame(boxes | sides),
        "tubes": pl.DataFrame({"tube": [0, 1], "video": ["v", "v"]}),
        "relations": pl.DataFrame({"relation": [0], "subject": [0], "object": [1], "predicate": [0]} | SPAN),
        "queries": pl.DataFrame({"query": [0], "tube": [0]} | SPAN),
    }


def make_truth(scale: float) -> Scenes:
    size = int(scale)
    videos = {"video": ["v"], "width_px": [size], "height_px": [size], "fps": [5.0], "n_frames": [2]}
    labels = pl.DataFrame({"box": range(4), "kind": "action", "label": 0})
    notes: dict[str, Any] = {"unit_pictures": True} if size == 1 else {}
    meta = Meta(vocabularies=WORDS, notes=notes)
    return Scenes(videos=pl.DataFrame(videos), labels=labels, meta=meta, **make_tables(scale))


def make_predictions(scale: float) -> Predictions:
    labels = pl.DataFrame({"box": range(4), "kind": "action", "label": 0, "score": 0.5})
    tables = make_tables(scale)
    tables["relations"] = tables["relations"].with_columns(score=0.5)
    return Predictions(labels=labels, meta=Meta(vocabularies=WORDS), **tables)


@pytest.mark.parametrize("metric", ["map@0.5", "recall@20", "m_viou"])
def test_boxes_in_other_units_than_those_of_the_truth_are_refused(metric: str) -> None:
    task: Any = {"map@0.5": actions, "recall@20": relations, "m_viou": grounding}[metric]
    for scale in (1.0, 100.0):
        result = task.evaluate(make_predictions(scale), make_truth(scale), task.CONFIGS["default"]())
        assert result.value(metric) == 1
    with pytest.raises(InputError, match=r"in pixels .* shares of the image") as refused:
        task.evaluate(make_predictions(100.0), make_truth(1.0), task.CONFIGS["default"]())
    assert "read TRUTH --media FILMS" in str(refused.value)
    with pytest.raises(InputError, match="look like shares of the image"):
        task.evaluate(make_predictions(1.0), make_truth(100.0), task.CONFIGS["default"]())
