"""Predictions of relations: by hand, written and read again, and what is refused or counted."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from example_counts import tried

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

from mutants import JSON_KINDS, Change, mutated

from roadaware.errors import FindingsError, InputError, UsageError
from roadaware.formats.relations import read_relation_predictions, write_relation_predictions
from roadaware.scenes.tables import Meta, Predictions, Scenes

TRUTH = Scenes(
    videos=pl.DataFrame({"video": ["v1", "v2", "v3"], "n_frames": [8, 8, 8]}),
    meta=Meta(vocabularies={"category": ("dog", "person"), "predicate": ("bite", "chase")}),
)
_UNIT = st.floats(0, 1, exclude_max=True, allow_nan=False)
CHANGES = st.lists(st.tuples(st.sampled_from(sorted(JSON_KINDS)), _UNIT, _UNIT), min_size=1, max_size=3)


def track(left: float, n: int = 3) -> list[list[float]]:
    return [[left + k, 10.5, left + k + 20, 30] for k in range(n)]


def prediction(
    score: float, left: float = 0.0, *, who: str = "person", what: str = "chase", start: int = 2
) -> dict[str, Any]:
    return {
        "triplet": [who, what, "dog"],
        "score": score,
        "duration": [start, start + 3],
        "sub_traj": track(left),
        "obj_traj": track(200.0),
    }


def read_content(folder: Path, content: Any) -> Predictions:
    (folder / "predictions.json").write_text(json.dumps(content))
    return read_relation_predictions(folder / "predictions.json", TRUTH)


def test_predictions_by_hand(tmp_path: Path) -> None:
    content = {
        "version": "1",
        "results": {"v2": [prediction(0.5), prediction(0.9, 40), prediction(0.5, start=3)], "v1": []},
    }
    predictions = read_content(tmp_path, content)
    assert predictions.relations["score"].to_list() == [0.5, 0.9, 0.5]
    assert predictions.relations.schema["score"] == pl.Float64
    assert predictions.relations.select("video", "start_frame", "end_frame").rows() == [
        ("v2", 2, 5),
        ("v2", 2, 5),
        ("v2", 3, 6),
    ]
    subjects, objects = predictions.relations["subject"].to_list(), predictions.relations["object"].to_list()
    assert objects[0] == objects[1] != objects[2]
    assert len({*subjects, *objects}) == 5
    first = predictions.boxes.filter(tube=subjects[0]).select("frame", "x1_px", "y1_px", "x2_px", "y2_px")
    assert first.rows() == [
        (2, 0.0, 10.5, 20.0, 30.0),
        (3, 1.0, 10.5, 21.0, 30.0),
        (4, 2.0, 10.5, 22.0, 30.0),
    ]
    assert predictions.meta.vocabularies == TRUTH.meta.vocabularies
    labels = dict(predictions.tube_labels.select("tube", "label").iter_rows())
    assert [labels[tube] for tube in subjects] == [1, 1, 1]
    assert predictions.meta.rows_read == {"relations": 3}


def test_without_the_wrapper_it_is_the_same(tmp_path: Path) -> None:
    listed = {"v2": [prediction(0.5)], "v1": [prediction(0.25)]}
    assert read_content(tmp_path, listed) == read_content(tmp_path, {"results": listed})


def test_what_is_written_is_what_was_read(tmp_path: Path) -> None:
    listed = {
        "v1": [],
        "v2": [prediction(0.1 + 0.2), prediction(0.9, 40.125), prediction(0.9)],
        "v3": [prediction(1e-9, start=0)],
    }
    predictions = read_content(tmp_path, {"results": listed})
    assert write_relation_predictions(predictions, TRUTH, tmp_path / "again.json") == 4
    assert json.loads((tmp_path / "again.json").read_text()) == {"results": listed}
    assert read_relation_predictions(tmp_path / "again.json", TRUTH) == predictions


def test_scores_out_of_bounds_keep_their_order_and_ties(tmp_path: Path) -> None:
    scores = [-3.5, 7, 0.5, 7.0, -3.5, 1e30, 0]
    listed = {"v1": [prediction(score, 40.0 * n) for n, score in enumerate(scores)]}
    predictions = read_content(tmp_path, listed)
    within = predictions.relations["score"].to_list()
    assert all(0.5 < score <= 1 for score in within)
    for a, x in zip(scores, within, strict=True):
        for b, y in zip(scores, within, strict=True):
            assert (a < b, a == b) == (x < y, x == y)
    assert predictions.relations["predicted_score"].to_list() == scores
    assert "ranks" in predictions.meta.notes["scores"]
    write_relation_predictions(predictions, TRUTH, tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text())["results"]["v1"] == listed["v1"]


def test_saved_tables_of_version_0_8_keep_the_scores_of_the_file(tmp_path: Path) -> None:
    predictions = read_content(tmp_path, {"v1": [prediction(7), prediction(-3, 40)]})
    former = predictions.relations.rename({"predicted_score": "claimed_score"})
    assert replace(predictions, relations=former) == predictions


def test_scores_in_bounds_stay_as_they_are(tmp_path: Path) -> None:
    predictions = read_content(
        tmp_path, {"v1": [prediction(0), prediction(1, 40), prediction(1 - 1e-16, 80)]}
    )
    assert predictions.relations["score"].to_list() == [0.0, 1.0, 1 - 1e-16]
    assert "scores" not in predictions.meta.notes
    assert "predicted_score" not in predictions.relations.columns


def test_words_that_the_truth_lacks_come_behind_its_own(tmp_path: Path) -> None:
    predictions = read_content(tmp_path, {"v1": [prediction(0.5, who="cat", what="admire")]})
    assert predictions.meta.vocabularies["category"] == ("dog", "person", "cat")
    assert predictions.meta.vocabularies["predicate"] == ("bite", "chase", "admire")
    assert predictions.relations["predicate"].to_list() == [2]


def test_a_prediction_on_oneself_and_behind_the_end_is_a_prediction(tmp_path: Path) -> None:
    own = prediction(0.5, start=100) | {"obj_traj": track(0.0), "triplet": ["dog", "bite", "dog"]}
    predictions = read_content(tmp_path, {"v1": [own]})
    assert predictions.rejected.is_empty()
    assert predictions.relations.select("subject", "object").rows() == [(0, 0)]


def test_foreign_videos_are_counted_and_none_known_is_an_error(tmp_path: Path) -> None:
    predictions = read_content(tmp_path, {"v1": [prediction(0.5)], "v9": [prediction(0.5), prediction(0.4)]})
    (warning,) = predictions.meta.notes["warnings"]
    assert (warning["count"], warning["example"]) == (2, "v9")
    with pytest.raises(InputError, match=r"not one of 1 videos.*\n.*V1.*v1, v2, v3.*to the letter"):
        read_content(tmp_path, {"V1": [prediction(0.5)]})


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "too few boxes": ({"sub_traj": track(0, 2)}, "'sub_traj' has 2 boxes, and the duration 3 frames"),
    "too many boxes": ({"obj_traj": track(0, 4)}, "'obj_traj' has 4 boxes"),
    "three numbers": ({"sub_traj": [[0, 1, 2]] * 3}, "four numbers"),
    "a text": ({"sub_traj": [[0, 1, "2", 3]] * 3}, "no finite number"),
    "a flag": ({"sub_traj": [[0, 1, True, 3]] * 3}, "no finite number"),
    "nothing": ({"sub_traj": [[0, 1, None, 3]] * 3}, "no finite number"),
    "far away": ({"sub_traj": [[0, 1, 10**400, 3]] * 3}, "within reason"),
    "upside down": ({"sub_traj": [[0, 1, 5, 3], [5, 1, 2, 3], [0, 1, 5, 3]]}, "upside down, the 2. one"),
    "two words": ({"triplet": ["person", "chase"]}, "three texts"),
    "end before start": ({"duration": [5, 2]}, "ends before"),
    "no frame": ({"duration": [5, 5], "sub_traj": [], "obj_traj": []}, "ends before"),
    "before the first frame": ({"duration": [-1, 2]}, "frames from 0 on"),
    "half a frame": ({"duration": [0.5, 3.5]}, "frames from 0 on"),
    "no score": ({"score": None}, "finite number"),
    "a score in words": ({"score": "0.5"}, "finite number"),
    "no object": ({"obj_traj": 5}, "list of boxes"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_predictions_are_refused_with_the_reason(tmp_path: Path, name: str) -> None:
    change, reason = BAD[name]
    predictions = read_content(
        tmp_path, {"v1": [prediction(0.5), prediction(0.4, 40) | change, prediction(0.3, 80)]}
    )
    assert predictions.relations["score"].to_list() == [0.5, 0.3]
    assert predictions.rejected.select("table", "file", "item").rows() == [
        ("relations", "predictions.json", "v1, prediction 1")
    ]
    assert reason in predictions.rejected["reason"][0]
    with pytest.raises(FindingsError, match="1 rejected"):
        read_relation_predictions(tmp_path / "predictions.json", TRUTH, strict=True)


def test_whole_frames_may_be_written_as_floats(tmp_path: Path) -> None:
    assert read_content(tmp_path, {"v1": [prediction(0.5) | {"duration": [2.0, 5.0]}]}) == read_content(
        tmp_path, {"v1": [prediction(0.5)]}
    )


def test_other_files_are_refused(tmp_path: Path) -> None:
    for content in ([prediction(0.5)], {"results": [prediction(0.5)]}, 5):
        with pytest.raises(InputError, match=r"predictions|videos|should be an object"):
            read_content(tmp_path, content)
    with pytest.raises(InputError, match="no such file"):
        read_relation_predictions(tmp_path / "absent.json", TRUTH)
    for nothing in ({}, {"results": {}}):
        assert read_content(tmp_path, nothing).relations.is_empty()


def test_what_is_no_prediction_cannot_be_written(tmp_path: Path) -> None:
    predictions = read_content(tmp_path, {"v1": [prediction(0.5)]})
    with pytest.raises(UsageError, match="without scores"):
        write_relation_predictions(
            predictions.with_tables(relations=predictions.relations.drop("score")), TRUTH, tmp_path / "x"
        )
    with pytest.raises(UsageError, match="not one box in each"):
        write_relation_predictions(
            predictions.with_tables(boxes=predictions.boxes.head(4)), TRUTH, tmp_path / "x"
        )
    with pytest.raises(UsageError, match="no label"):
        write_relation_predictions(
            predictions.with_tables(tube_labels=predictions.tube_labels.clear()), TRUTH, tmp_path / "x"
        )


def test_mutants_are_read_or_refused(tmp_path: Path) -> None:
    original = json.dumps(
        {"results": {"v1": [prediction(0.5), prediction(0.4, 40)], "v2": [prediction(0.25)]}}
    ).encode()
    path = tmp_path / "predictions.json"
    ended: Counter[str] = Counter()

    @tried(300, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(CHANGES)
    def run(changes: list[Change]) -> None:
        path.write_bytes(mutated(original, changes))
        try:
            predictions = read_relation_predictions(path, TRUTH)
        except InputError as error:
            ended["refused" if error.where else "refused without a place"] += 1
        else:
            ended["rejected" if len(predictions.rejected) else "read"] += 1
            assert len(predictions.relations) + len(predictions.rejected) == predictions.meta.rows_read.get(
                "relations", 0
            )

    run()
    assert min(ended["refused"], ended["rejected"], ended["read"]) > 5
    assert "refused without a place" not in ended
