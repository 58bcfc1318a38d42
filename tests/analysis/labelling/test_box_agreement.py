"""Agreement of annotators: worked by hand, by other formulas, and planted disagreement is found again."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from roadaware.analysis.annotation.agreement import (
    MEASURES,
    build_annotation_table,
    build_consensus,
    group_objects,
    measure_box_agreement,
)
from roadaware.analysis.annotation.cost import build_labelled_scenes, compute_outcomes
from roadaware.analysis.quality.agreement import krippendorff_alpha
from roadaware.demo_data.labelling import (
    CLASSES,
    HEIGHT,
    WIDTH,
    Annotator,
    generate_labelling_sets,
    label_studio_export,
)
from roadaware.errors import InputError
from roadaware.formats.corrections import read_corrections
from roadaware.formats.proposal_tasks import KIND, select_task_proposals
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Scenes

_A, _B, _C = (0.0, 0.0, 10.0, 10.0), (20.0, 0.0, 30.0, 10.0), (40.0, 0.0, 50.0, 10.0)


def _scenes(rows, seen, proposals=None) -> Scenes:
    """Boxes as (frame, annotator, corners, label, proposal), and who saw each frame."""
    boxes = [(n, "v", frame, who, *edges, link) for n, (frame, who, edges, _, link) in enumerate(rows)]
    labels = [(n, label) for n, (*_, label, _) in enumerate(rows) if label is not None]
    schema = {"box": pl.Int64, "video": pl.String, "frame": pl.Int64, "annotator": pl.String}
    schema |= dict.fromkeys(CORNERS, pl.Float64) | {"proposal": pl.Int64}
    shown = proposals or {}
    frames = [("v", frame, True, names, shown.get(frame, [])) for frame, names in seen.items()]
    return Scenes(
        videos=pl.DataFrame({"video": ["v"]}),
        frames=pl.DataFrame(
            frames,
            schema={
                "video": pl.String,
                "frame": pl.Int64,
                "annotated": pl.Boolean,
                "annotators": pl.List(pl.String),
                "proposals": pl.List(pl.Int64),
            },
            orient="row",
        ),
        boxes=pl.DataFrame(boxes, schema=schema, orient="row"),
        labels=pl.DataFrame(labels, schema={"box": pl.Int64, "label": pl.Int64}, orient="row").with_columns(
            kind=pl.lit(KIND)
        ),
        meta=Meta(vocabularies={KIND: ("dog", "cart")}),
    )


def _by_hand() -> Scenes:
    shifted = (0.0, 0.0, 10.0, 8.0)
    rows = [
        (0, "a", _A, 0, 1),
        (0, "b", shifted, 0, 1),
        (0, "c", _A, 1, 1),
        (0, "a", _B, 1, 2),
        (0, "b", _B, 1, None),
        (0, "c", _C, None, 3),
        (1, "a", _A, 0, None),
        (2, "a", _A, 0, None),
    ]
    seen = {0: ["a", "b", "c"], 1: ["a", "b"], 2: ["a"], 3: ["a", "b"]}
    return _scenes(rows, seen, {0: [1, 2, 3, 4]})


def test_measures_worked_by_hand():
    found = measure_box_agreement(group_objects(_by_hand()))
    assert found.counts.rows() == [(2, 1, 1), (3, 1, 1), (3, 2, 1), (3, 3, 1)]
    assert found.value("found_by_all") == pytest.approx(1 / 4)
    assert found.value("found_by_one") == pytest.approx(2 / 4)
    # a with b: 2 of (2 + 2) and 0 of (1 + 0); a with c: 1 of (2 + 2); b with c: 1 of (2 + 2)
    assert found.value("existence") == pytest.approx(2 * 4 / 13)
    assert found.value("existence", "a, b") == pytest.approx(4 / 5)
    assert found.value("mean_iou") == pytest.approx((0.8 + 1.0 + 1.0 + 0.8) / 4)
    assert found.value("same_class") == pytest.approx(2 / 4)
    assert found.value("class_alpha") == pytest.approx(
        krippendorff_alpha([[0, 1], [0, 1], [1, -1]]), abs=1e-12
    )
    kept = krippendorff_alpha([[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 1, 0]])
    assert found.value("kept_alpha") == pytest.approx(kept, abs=1e-12)
    assert found.value("found_by_all", "class: dog") == pytest.approx(1 / 2)
    assert found.value("mean_iou", "class: dog") == pytest.approx((0.8 + 1.0 + 0.8) / 3)
    assert found.value("class_alpha", "class: dog") == pytest.approx(
        krippendorff_alpha([[1, 0], [1, 0], [0, -1]]), abs=1e-12
    )
    assert found.value("no such") is None
    assert set(found.table["measure"]) == set(MEASURES)


def test_a_proposal_of_which_nobody_knows_whether_one_kept_it_is_not_counted_as_deleted():
    unknown = pl.DataFrame({"annotator": ["b"], "proposals": [2]})
    found = measure_box_agreement(replace(group_objects(_by_hand()), unknown=unknown))
    kept = krippendorff_alpha([[1, 1, 0, 0], [1, -1, 0, 0], [1, 0, 1, 0]])
    assert found.value("kept_alpha") == pytest.approx(kept, abs=1e-12)


def test_the_consensus_is_the_majority_and_the_rest_is_disputed():
    scenes = _by_hand()
    things = group_objects(scenes)
    found = build_consensus(things, scenes)
    assert found.scenes.boxes.select("frame", *CORNERS, "n_found", "n_saw").rows() == [
        (0, *_A, 3, 3),
        (0, *_B, 2, 3),
    ]
    assert found.scenes.labels["label"].to_list() == [0, 1]
    assert found.scenes.boxes["corner_case"].all()
    assert found.scenes.frames["frame"].to_list() == [0, 1, 3]
    assert found.disputes.select("frame", "reason", "found_by", "said").rows() == [
        (0, "drawn by 1 of 3", "c", "-"),
        (1, "drawn by 1 of 2", "a", "dog"),
        (2, "only a saw the image", None, None),
    ]
    assert build_annotation_table(things)["n_saw"].to_list() == [3, 3, 3, 2]


def test_a_class_without_a_majority_is_disputed():
    rows = [(0, who, _A, label, None) for who, label in (("a", 0), ("b", 1))]
    rows += [(0, who, _B, None, None) for who in "ab"]
    scenes = _scenes(rows, {0: ["a", "b"]})
    found = build_consensus(group_objects(scenes), scenes)
    assert (len(found.scenes.boxes), len(found.scenes.labels)) == (2, 0)
    assert found.disputes["reason"].to_list() == ["no class has a majority", "nobody named it"]


def test_perfect_agreement_and_nothing_to_agree_on():
    rows = [(0, who, edges, 0, None) for who in "ab" for edges in (_A, _B)]
    found = measure_box_agreement(group_objects(_scenes(rows, {0: ["a", "b"]})), resamples=20)
    assert [found.value(name) for name in ("found_by_all", "existence", "mean_iou", "same_class")] == [
        1.0
    ] * 4
    assert found.value("class_alpha") is None  # one class everywhere tells nothing
    assert found.value("kept_alpha") is None
    assert found.table["low_video"].null_count() == len(found.table)
    empty = _scenes([], {0: ["a", "b"], 1: ["a", "b"]})
    nothing = measure_box_agreement(group_objects(empty), resamples=20)
    assert nothing.table["value"].null_count() == len(nothing.table)
    assert build_consensus(group_objects(empty), empty).disputes.is_empty()


@pytest.mark.parametrize(
    ("rows", "seen", "told"),
    [
        ([(0, "a", _A, 0, None)], {0: ["a"]}, "only a looked"),
        ([], {0: []}, "nobody looked"),
        ([(0, "a", _A, 0, None)], {0: ["a"], 1: ["b"]}, "none of 2 images was seen by two"),
    ],
)
def test_one_annotator_or_different_pictures_say_so(rows, seen, told):
    with pytest.raises(InputError, match=told):
        group_objects(_scenes(rows, seen))


def test_boxes_that_say_nothing_of_their_annotator():
    scenes = _by_hand()
    bare = scenes.with_tables(boxes=scenes.boxes.drop("annotator"))
    with pytest.raises(InputError, match="no column 'annotator'"):
        group_objects(bare)
    plain = scenes.with_tables(frames=scenes.frames.drop("annotators", "proposals"))
    assert group_objects(plain).alone.is_empty()  # everybody is taken to have seen everything


def test_names_and_the_order_of_boxes_do_not_matter():
    scenes = _by_hand()
    first = measure_box_agreement(group_objects(scenes), resamples=30)
    mixed = scenes.with_tables(boxes=scenes.boxes.sample(fraction=1.0, shuffle=True, seed=1))
    second = measure_box_agreement(group_objects(mixed), resamples=30)
    assert first.table.drop("low_video", "high_video").equals(second.table.drop("low_video", "high_video"))


TRUTH, PREDICTIONS = generate_labelling_sets(seed=5, videos=48)
_FRAMES = TRUTH.frames.rename({"path": "picture"}).with_columns(width_px=WIDTH, height_px=HEIGHT)
SENT, _ = select_task_proposals(PREDICTIONS, _FRAMES, CLASSES)
_EXACT = Annotator(edge_px=0.0, missed=0.0, wrong=0.0, spurious=0.0, seed=2)


def _agreed(tmp_path, model: Annotator, resamples: int = 0):
    path = tmp_path / "back.json"
    path.write_bytes(label_studio_export(TRUTH, SENT, {1: model, 2: model, 3: model}))
    answers = read_corrections(path, SENT)
    scenes = build_labelled_scenes(SENT, answers, compute_outcomes(SENT, answers))
    things = group_objects(scenes)
    return measure_box_agreement(things, resamples=resamples), build_consensus(things, scenes)


def test_annotators_without_error_agree_and_give_back_the_truth(tmp_path):
    found, agreed = _agreed(tmp_path, _EXACT)
    for measure in ("found_by_all", "existence", "same_class", "class_alpha", "kept_alpha"):
        assert found.value(measure) == 1.0
    assert len(agreed.scenes.boxes) == len(TRUTH.boxes)
    assert agreed.disputes.is_empty()


def test_planted_misses_are_found_again(tmp_path):
    missed = 0.2
    found, agreed = _agreed(tmp_path, replace(_EXACT, missed=missed), resamples=200)
    seen = 1 - missed**3
    row = found.table.filter(pl.col("group").is_null() & (pl.col("measure") == "found_by_all")).row(
        0, named=True
    )
    assert row["low_picture"] < (1 - missed) ** 3 / seen < row["high_picture"]
    assert found.value("existence") == pytest.approx(1 - missed, abs=0.05)
    majority = (1 - missed) ** 3 + 3 * missed * (1 - missed) ** 2
    assert len(agreed.scenes.boxes) / len(TRUTH.boxes) == pytest.approx(majority, abs=0.06)


def test_planted_wrong_classes_are_found_again(tmp_path):
    wrong = 0.3
    found, _ = _agreed(tmp_path, replace(_EXACT, wrong=wrong))
    same = (1 - wrong) ** 2 + wrong**2 / (len(CLASSES) - 1)
    assert found.value("same_class") == pytest.approx(same, abs=0.06)
    alpha = (same - 1 / len(CLASSES)) / (1 - 1 / len(CLASSES))  # classes are about as frequent as each other
    assert found.value("class_alpha") == pytest.approx(alpha, abs=0.08)


def test_larger_jitter_lowers_the_overlap_and_nothing_else(tmp_path):
    found, _ = _agreed(tmp_path, replace(_EXACT, edge_px=1.0))
    assert 0.8 < (found.value("mean_iou") or 0) < 0.99
    assert found.value("same_class") == 1.0
