"""Violations of requirements by threshold: every number against a count written from its definition."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

from roadaware.analysis.audit.requirements import audit_requirements
from roadaware.demo_data.detector import simulate_detections
from roadaware.demo_data.road import generate_road_scenes
from roadaware.errors import InputError, UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.metrics.requirements import RequirementConfig, build_label_rows, evaluate_requirements
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout
from roadaware.scenes.requirements import bind_requirements, parse_requirements
from roadaware.statistics.intervals import Units

RULES = parse_requirements(
    "not Ped not Car\nnot Red not Green\nMovAway not Ped MovTow Mov Stop Xing XingFmLft XingFmRht Wait2X\nPed Car Cyc TL\n"
    "not LftPav not RhtPav\n",
    "mine.txt",
)


@pytest.fixture(scope="module")
def drive():
    scenes = generate_road_scenes(videos=4, frames=40, boxes_per_frame=5, seed=5)
    return scenes, simulate_detections(scenes, seed=6)


def clause_holds(clause: frozenset[tuple[str, bool]], there: set[str]) -> bool:
    return any((name in there) == wanted for name, wanted in clause)


def list_label_sets(scenes, predictions, threshold: float, *, everything: bool) -> list[tuple[str, set[str]]]:
    """(video, labels) of each judged box, one at a time."""
    layout = get_score_layout(predictions.meta, "boxes")
    dense = convert_to_matrix(predictions.boxes["scores"], layout.width)
    names = [
        label
        for kind, labels in layout.kinds.items()
        for label in (labels if kind in ("agent", "action", "location") else [""] * len(labels))
    ]
    annotated = {
        (str(row["video"]), row["frame"]) for row in scenes.frames.filter("annotated").iter_rows(named=True)
    }
    found = []
    for box, scores in zip(predictions.boxes.iter_rows(named=True), dense.tolist(), strict=True):
        if (str(box["video"]), box["frame"]) not in annotated:
            continue
        if everything or box["score"] >= np.float32(threshold):
            held = {name for name, score in zip(names, scores, strict=True) if score >= np.float32(threshold)}
            found.append((str(box["video"]), held - {""}))
    return found


@pytest.mark.parametrize("which", ["predicted", "all"])
def test_numbers_of_boxes_are_those_of_the_definition(drive, which) -> None:
    scenes, predictions = drive
    result = evaluate_requirements(RULES, predictions, None, scenes, RequirementConfig((0.2, 0.5), which))
    clauses = RULES.named_clauses()
    for threshold in (0.2, 0.5):
        boxes = [
            held for _, held in list_label_sets(scenes, predictions, threshold, everything=which == "all")
        ]
        broken = [[not clause_holds(clause, held) for clause in clauses] for held in boxes]
        assert result.value(threshold) == pytest.approx(np.mean([any(row) for row in broken]))
        assert result.value(threshold, "violations") == pytest.approx(np.mean([sum(row) for row in broken]))
        used = [any(column) for column in zip(*broken, strict=True)]
        assert result.value(threshold, "requirements_violated") == pytest.approx(np.mean(used))
        rows = result.summary.filter(pl.col("threshold") == threshold)
        of_clauses = dict(rows.filter(pl.col("metric") == "clause").select("name", "count").iter_rows())
        counts = [sum(column) for column in zip(*broken, strict=True)]
        assert of_clauses == {str(k): n for k, n in enumerate(counts, 1) if n}
        of_labels = {
            row["name"]: row for row in rows.filter(pl.col("metric") == "label").iter_rows(named=True)
        }
        for name in ("Ped", "Car", "Green", "LftPav"):
            held = [any(row) for labels, row in zip(boxes, broken, strict=True) if name in labels]
            assert (name in of_labels) == bool(held)
            if not held:
                continue
            assert of_labels[name]["n"] == len(held)
            assert of_labels[name]["value"] == pytest.approx(np.mean(held))


def test_tubes_are_judged_at_every_moment(drive) -> None:
    scenes, predictions = drive
    tubes = link(predictions, LinkerConfig.default("road"))
    result = evaluate_requirements(RULES, None, tubes, scenes, RequirementConfig((0.3,)))
    words = tubes.meta.vocabularies
    parts = tubes.tubes.filter(pl.col("parent").is_not_null()).join(
        tubes.tube_labels.select("tube", "label", "score", of="kind"), on="tube"
    )
    at_moment: dict[int, dict[int, set[str]]] = {}
    for row in parts.iter_rows(named=True):
        if str(row["of"]) in ("agent", "action", "location") and row["score"] >= np.float32(0.3):
            for start, end in row["spans"] or [[row["start_frame"], row["end_frame"]]]:
                for frame in range(start, end):
                    held = at_moment.setdefault(row["parent"], {}).setdefault(frame, set())
                    held.add(words[str(row["of"])][row["label"]])
    clauses = RULES.named_clauses()
    broken = [
        any(not clause_holds(clause, held) for held in frames.values() for clause in clauses)
        for frames in at_moment.values()
    ]
    row = result.summary.filter((pl.col("metric") == "violating") & (pl.col("level") == "tubes"))
    assert row["n"][0] == len(broken)
    assert row["count"][0] == sum(broken) > 0


def test_intervals_are_those_of_the_jackknife_over_videos(drive) -> None:
    scenes, predictions = drive
    result = evaluate_requirements(RULES, predictions, None, scenes, RequirementConfig((0.2,)), resamples=100)
    row = result.summary.filter(pl.col("metric") == "violating").row(0, named=True)
    assert row["low"] < row["value"] < row["high"]
    assert row["units"] == len(scenes.videos)
    without = result.summary.filter(pl.col("metric") == "requirements_violated").row(0, named=True)
    assert without["low"] is None
    videos = [str(video) for video in scenes.videos["video"]]
    without_one = [
        evaluate_requirements(
            RULES, predictions, None, scenes.only([v for v in videos if v != left]), RequirementConfig((0.2,))
        ).value(0.2)
        for left in videos
    ]
    expected = Units(len(videos), 100, 0).interval(row["value"], np.array(without_one))
    assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high))


def test_predictions_without_scores_are_refused(drive) -> None:
    scenes, predictions = drive
    bare = predictions.with_tables(boxes=predictions.boxes.drop("scores"))
    with pytest.raises(InputError, match="scores of boxes"):
        evaluate_requirements(RULES, bare, None, scenes)
    with pytest.raises(InputError, match="nothing here"):
        evaluate_requirements(RULES, None, None, scenes)
    with pytest.raises(UsageError):
        RequirementConfig(())
    with pytest.raises(UsageError):
        RequirementConfig((0.0,))


def test_frames_that_nobody_annotated_are_not_judged(drive) -> None:
    scenes, predictions = drive
    none = scenes.with_tables(frames=scenes.frames.with_columns(annotated=pl.lit(False)))
    assert evaluate_requirements(RULES, predictions, None, none).summary["n"].sum() == 0


def test_nothing_predicted_has_no_share(drive) -> None:
    scenes, predictions = drive
    empty = predictions.with_tables(boxes=predictions.boxes.clear(), labels=predictions.labels.clear())
    result = evaluate_requirements(RULES, empty, None, scenes, resamples=50)
    assert result.value(0.5) is None
    assert result.to_dict()["rows"][0]["n"] == 0


class TestAudit:
    def test_counts_are_those_of_the_definition(self, drive) -> None:
        scenes, _ = drive
        labels = scenes.labels.with_columns(pl.col("kind").cast(pl.String))
        held: dict[int, set[str]] = {box: set() for box in scenes.boxes["box"].to_list()}
        for box, kind, label in labels.select("box", "kind", "label").iter_rows():
            if kind in ("agent", "action", "location"):
                held[box].add(scenes.meta.vocabularies[kind][label])
        rules = parse_requirements("not Red not Green\nnot Ped not MovTow\nnot Car Jun\n", "mine.txt")
        clauses = rules.named_clauses()
        broken = {box: [not clause_holds(clause, there) for clause in clauses] for box, there in held.items()}
        audit = audit_requirements(scenes, rules)
        finding = audit.finding("requirements-violated")
        assert finding is not None
        assert finding.count == sum(map(any, broken.values()))
        assert finding.out_of == len(held)
        counts = {row[0]: row[2] for row in finding.table.rows}
        columns = list(zip(*broken.values(), strict=True))
        assert counts == {f"mine.txt:{k}": sum(column) for k, column in enumerate(columns, 1) if any(column)}
        tracks = dict(scenes.boxes.select("box", "tube").iter_rows())
        assert finding.measures["violating_tracks"] == len(
            {tracks[box] for box, row in broken.items() if any(row)}
        )
        example = finding.examples[0]
        box = int(example.note.removeprefix("box ").split(":")[0])
        assert any(broken[box])
        place = scenes.boxes.filter(pl.col("box") == box).row(0, named=True)
        assert (example.video, example.frame) == (str(place["video"]), place["frame"])

    def test_labels_that_no_requirement_names_are_counted(self, drive) -> None:
        scenes, _ = drive
        audit = audit_requirements(scenes, parse_requirements("not Red not Green"))
        # Those of ROAD are all named, whichever stand in the file.
        assert audit.finding("labels-outside-requirements") is None
        rules = parse_requirements("not agent:Ped not agent:Car")
        outside = audit_requirements(scenes, rules).finding("labels-outside-requirements")
        assert outside is not None
        assert {row[0] for row in outside.table.rows} == {"agent"}

    def test_ignored_boxes_are_left_out(self, drive) -> None:
        scenes, _ = drive
        rules = parse_requirements("not Car")
        marked = scenes.with_tables(boxes=scenes.boxes.with_columns(ignore=pl.lit(True)))
        assert audit_requirements(scenes, rules).finding("requirements-violated") is not None
        assert audit_requirements(marked, rules).finding("requirements-violated") is None

    def test_a_set_without_labels_is_refused(self, drive) -> None:
        with pytest.raises(InputError, match="labels"):
            audit_requirements(drive[0].with_tables(labels=drive[0].labels.clear()), RULES)


def test_rows_of_labels_are_those_of_the_table(drive) -> None:
    scenes, _ = drive
    bound = bind_requirements(RULES, scenes.meta.vocabularies)
    rows = build_label_rows(scenes, bound)
    for (kind, label), column in zip(bound.columns, itertools.count()):
        held = scenes.labels.filter((pl.col("kind").cast(pl.String) == kind) & (pl.col("label") == label))[
            "box"
        ]
        assert set(scenes.boxes["box"].to_numpy()[rows[:, column]].tolist()) == set(held.to_list())
