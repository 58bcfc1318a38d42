"""Predictions on sentences: two published forms, names and frames of each, and what is refused or counted."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from roadaware.datasets import read
from roadaware.errors import FindingsError, InputError
from roadaware.formats.grounding import read_grounding_predictions
from roadaware.scenes.tables import Predictions, Scenes

DATA = Path(__file__).resolve().parents[2] / "data"


def maker(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"predictions_make_{name}", DATA / name / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


HCSTVG, VIDSTG = maker("hcstvg"), maker("vidstg")
FILES = {"a_b.mp4": HCSTVG.raw(12), "c.mp4": HCSTVG.raw(14, start=2)}


def truth(tmp_path: Path, content: Any, name: str = "hcstvg") -> Scenes:
    HCSTVG.write(tmp_path / "truth.json", content)
    return read(name, tmp_path / "truth.json", cache=False)


@pytest.fixture
def raw(tmp_path: Path) -> Scenes:
    """Sentences a_b.mp4 and c.mp4 of frames 3..10 and 1..12, counted from 0."""
    return truth(tmp_path, FILES)


def read_content(tmp_path: Path, content: Any, scenes: Scenes, **options: Any) -> Predictions:
    (tmp_path / "predictions.json").write_text(json.dumps(content))
    return read_grounding_predictions(tmp_path / "predictions.json", scenes, **options)


def tubedetr(spans: dict[str, Any], boxes: dict[str, Any]) -> dict[str, Any]:
    return {
        "predictions": {key: {"boxes": [box]} for key, box in boxes.items()},
        "video_predictions": {key: {"sted": span} for key, span in spans.items()},
    }


def warnings(predictions: Predictions) -> dict[str, int]:
    return {warning["what"]: warning["count"] for warning in predictions.meta.notes["warnings"]}


def spans(predictions: Predictions) -> list[tuple[Any, ...]]:
    return predictions.queries.select("query", "start_frame", "end_frame").rows()


def boxes(predictions: Predictions) -> list[tuple[Any, ...]]:
    return predictions.boxes.select("video", "frame", "tube", "x1_px", "y2_px").rows()


def test_tubedetr_by_hand(tmp_path: Path, raw: Scenes) -> None:
    content = tubedetr(
        {"c.mp4": [2.0, 9.0], "a_b.mp4": [0, 4]}, {"a_b.mp4_3": [1, 2, 3, 4.5], "c.mp4_11": [5, 6, 7, 8]}
    )
    predictions = read_content(tmp_path, content, raw)
    assert spans(predictions) == [(0, 0, 4), (1, 2, 9)]
    assert boxes(predictions) == [("a_b", 3, 0, 1.0, 4.5), ("c", 11, 1, 5.0, 8.0)]
    assert predictions.meta.notes["form"] == "tubedetr"
    assert predictions.rejected.is_empty()


def test_the_official_form_by_hand(tmp_path: Path, raw: Scenes) -> None:
    content = {"c.mp4": {"st_frame": 3, "ed_frame": 9, "bbox": {"3": [5, 6, 7, 8], "40": [1, 1, 2, 2]}}}
    predictions = read_content(tmp_path, content, raw)
    assert spans(predictions) == [(1, 2, 9)]
    assert boxes(predictions) == [("c", 2, 0, 5.0, 8.0), ("c", 39, 0, 1.0, 2.0)]
    assert warnings(predictions) == {"sentences without a prediction": 1}


def test_names_are_those_of_any_published_file(tmp_path: Path, raw: Scenes) -> None:
    processed = truth(tmp_path, HCSTVG.processed(FILES))
    for scenes in (raw, processed):
        for names in (("a_b.mp4", "c.mp4"), ("a_b", "c"), ("0", "1")):
            content = tubedetr(
                {name: [2, 5] for name in names}, {f"{name}_2": [1, 2, 3, 4] for name in names}
            )
            predictions = read_content(tmp_path, content, scenes)
            assert spans(predictions) == [(0, 2, 5), (1, 2, 5)], names
            assert predictions.boxes["video"].to_list() == ["a_b", "c"]


def test_the_log_of_tubedetr_holds_predictions_too(tmp_path: Path, raw: Scenes) -> None:
    inner = tubedetr({"0": [2, 5]}, {"0_2": [1, 2, 3, 4]})
    predictions = read_content(tmp_path, {"test_loss": 1.5, "test_hcstvg_hcstvg": inner}, raw)
    assert spans(predictions) == [(0, 2, 5)]


def test_ids_of_vidstg_and_kinds_of_sentence(tmp_path: Path) -> None:
    pair = (VIDSTG.annotation("77", 12), VIDSTG.vidor("77", 12))
    scenes = truth(tmp_path, VIDSTG.processed([pair]), "vidstg")
    content = tubedetr({"0": [2, 9], "2": [0, 1]}, {"0_2": [1, 2, 3, 4], "77_3": [1, 2, 3, 4]})
    content["video_predictions"]["0"]["qtype"] = "declarative"
    predictions = read_content(tmp_path, content, scenes)
    assert spans(predictions) == [(0, 2, 9), (2, 0, 1)]
    assert (
        warnings(predictions)["predictions whose kind of sentence is not that of the truth, which counts"]
        == 1
    )
    assert "3 sentences of the truth are called so" in predictions.rejected["reason"][0]


REFUSED: dict[str, tuple[Any, str]] = {
    "a fraction": (tubedetr({"0": [1, 2], "1": [1.5, 3]}, {}), "no pair of whole frame numbers"),
    "a text": (tubedetr({"0": [1, 2], "1": ["1", 3]}, {}), "no pair of whole frame numbers"),
    "three numbers": (tubedetr({"0": [1, 2], "1": [1, 2, 3]}, {}), "'sted' should be a pair"),
    "unknown": (tubedetr({"0": [1, 2], "9": [1, 2]}, {}), "a sentence that the truth does not have"),
    "twice": (tubedetr({"0": [1, 2], "a_b": [1, 2]}, {}), "a second reading of this sentence"),
    "no boxes": (
        {"c": {"st_frame": 1, "ed_frame": 2, "bbox": {}}, "a_b": {"st_frame": 1, "bbox": []}},
        "'bbox' should be an object, boxes by frame, and is a list",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_predictions_are_refused_and_counted(tmp_path: Path, raw: Scenes, name: str) -> None:
    content, reason = REFUSED[name]
    predictions = read_content(tmp_path, content, raw)
    assert len(predictions.queries) == 1
    (row,) = predictions.rejected.to_dicts()
    assert (row["table"], row["file"]) == ("queries", "predictions.json")
    assert reason in row["reason"]
    assert predictions.meta.rows_read["queries"] == 2
    with pytest.raises(FindingsError, match=r"predictions\.json"):
        read_content(tmp_path, content, raw, strict=True)


def test_bad_boxes_are_refused_and_counted(tmp_path: Path, raw: Scenes) -> None:
    bad = {"c_3": [5, 6, 4, 8], "c_x": [1, 2, 3, 4], "c_-1": [1, 2, 3, 4], "c_4": [1, 2, None, 4], "9_3": []}
    predictions = read_content(
        tmp_path, tubedetr({"c": [2, 5], "9": [1, 2]}, {"c_2": [1, 2, 3, 4], **bad}), raw
    )
    assert boxes(predictions) == [("c", 2, 0, 1.0, 4.0)]
    refused = predictions.rejected.filter(table="boxes")
    assert len(refused) == 4
    assert sorted(refused["item"]) == ["c", "c", "c.mp4, frame 3", "c.mp4, frame 4"]
    assert warnings(predictions)["boxes of sentences that are not taken, left out"] == 1


def test_odd_predictions_are_taken_and_counted(tmp_path: Path, raw: Scenes) -> None:
    content = tubedetr({"c": [5, 3]}, {"a_b_2": [1, 2, 3, 4]})
    content["predictions"]["c_4"] = {"boxes": [[1, 2, 3, 4], [0, 0, 9, 9]]}
    predictions = read_content(tmp_path, content, raw)
    assert spans(predictions) == [(0, None, None), (1, 5, 5)]
    assert boxes(predictions)[1] == ("c", 4, 1, 1.0, 4.0)
    assert warnings(predictions) == {
        "predicted spans that end before they start, taken as empty": 1,
        "frames with several boxes, of which the first counts": 1,
        "sentences with predicted boxes and no span": 1,
    }


def test_predictions_on_other_sentences_are_an_error_that_names_both(tmp_path: Path, raw: Scenes) -> None:
    with pytest.raises(InputError, match=r"(?s)names \['x', 'y'\], the truth \['a_b.mp4', 'c.mp4'\]"):
        read_content(tmp_path, tubedetr({"x": [1, 2], "y": [1, 2]}, {}), raw)
    with pytest.raises(InputError, match="in neither of the known forms"):
        read_content(tmp_path, {"a": {"segments": []}}, raw)
    with pytest.raises(InputError, match="the top should be an object"):
        read_content(tmp_path, [], raw)
    with pytest.raises(InputError, match="has no sentences"):
        read_content(tmp_path, {}, Scenes())
