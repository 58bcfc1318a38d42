"""Evaluations of any kind lead from a number to the frame of what it costs, and costs are those of judging again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numbered import FRAMES, Client, Open, make_predictions, make_truth

from roadaware.analysis.evaluation.runs import Run, SceneRun
from roadaware.analysis.scene_tasks import CORNER_CASES, TASKS, get_task
from roadaware.analysis.worst_tubes import list_box_errors
from roadaware.cli import main
from roadaware.errors import InputError, UsageError
from roadaware.metrics.corner_cases.evaluate import evaluate as evaluate_corners
from roadaware.metrics.detection.config import DetectionConfig, list_box_kinds
from roadaware.metrics.detection.evaluate import evaluate as evaluate_events
from roadaware.metrics.pedestrians import PedestrianConfig, evaluate_samples
from roadaware.metrics.scores import SampleScores
from roadaware.reports import runs
from roadaware.scenes.sampling import Iv2024, sample
from roadaware.scenes.store import save
from roadaware.scenes.tables import Meta, Predictions, Scenes
from roadaware.statistics.average_precision import average_precision
from roadaware.viewer.index import Index
from roadaware.viewer.items import list_items, list_metrics
from roadaware.viewer.opening import Opened, TableSource, find_place, open_paths
from simulated_answers import simulate_predictions


def as_source(tables: Scenes | Predictions) -> TableSource:
    held = {name: frame.lazy() for name, frame in tables.filled().items()}
    return TableSource("set", isinstance(tables, Predictions), tables.meta, held, None, Path())


def open_run(run: Any, truth: Scenes | None, predictions: Predictions | None = None) -> Opened:
    sides = {"truth": truth, "a": predictions}
    evaluations = () if run is None else ((Path("run"), run),)
    return Opened({key: as_source(each) for key, each in sides.items() if each is not None}, evaluations, ())


def build_pedestrian_run(state: SampleScores, protocol: str = "") -> Run:
    config = PedestrianConfig.default("action")
    return Run(
        "mine", state, config, evaluate_samples(state, config), 0, 0, protocol, {"config_name": "default"}
    )


# Pedestrians.


def make_samples() -> SampleScores:
    scores = np.array([0.9, 0.3, 0.95, 0.2, 0.6])
    names = ["one/t0", "one/t0", "one/t2", "two/t3", "two/t3"]
    videos = ["one"] * 3 + ["two"] * 2
    return SampleScores(scores, np.array([1, 1, 0, 0, 1]), names, videos, np.array([30, 10, 5, 20, 10]))


@pytest.mark.parametrize("metric", ["accuracy", "average_precision", "soft_f1", "confidence_delta_max"])
def test_a_sample_costs_what_judging_again_with_it_right_gains(metric: str) -> None:
    state = make_samples()
    run = build_pedestrian_run(state)
    rows = list_items(run, metric, open_run(run, make_truth()))
    sign = -1 if metric.startswith("confidence_delta") else 1
    assert len(rows) == 5
    for row in rows.iter_rows(named=True):
        place = int(
            np.flatnonzero(
                np.isclose(np.where(state.truth, state.scores[:, 0], 1 - state.scores[:, 0]), row["score"])
            )[0]
        )
        scores = state.scores.copy()
        scores[place] = state.truth[place]
        again = evaluate_samples(replace(state, scores=scores), run.config).value(metric)
        assert row["cost"] == pytest.approx(max(0.0, sign * ((again or 0) - (run.result.value(metric) or 0))))
    assert rows["cost"].is_sorted(descending=True)


def test_samples_are_found_by_name_and_time_before_the_event() -> None:
    run = build_pedestrian_run(make_samples())
    truth = make_truth()
    truth = truth.with_tables(tubes=truth.tubes.with_columns(event_frame=pl.Series([55, None, None, 29])))
    rows = list_items(run, "accuracy", open_run(run, truth)).sort("truth", "frame")
    found = rows.select("fault", "label", "video", "truth", "frame").rows()
    assert found == [
        ("unsure", "crossing", "one", 0, 24),  # 30 frames before the event at 55
        ("missed", "crossing", "one", 0, 44),
        ("false alarm", "not crossing", "one", 2, 84),  # no event is known: before the track's end
        ("unsure", "not crossing", "two", 3, 8),
        ("unsure", "crossing", "two", 3, 18),
    ]
    assert "said crossing by 0.95, one/t2, 5 frames before" in rows["words"].to_list()
    bare = list_items(run, "accuracy", open_run(run, None))
    assert bare["frame"].null_count() == 5


@pytest.mark.slow
def test_samples_of_a_protocol_lie_where_it_cuts_them(tmp_path: Path) -> None:
    from roadaware.datasets import read
    from roadaware.demo_data import write_demo
    from roadaware.metrics.pedestrians import collect_sample_scores
    from roadaware.scenes.sampling import split_samples
    from roadaware.scenes.tables import build_sample_predictions

    write_demo(tmp_path / "jaad")
    scenes = read("jaad", tmp_path / "jaad", cache=False)
    held = split_samples(sample(scenes, Iv2024.default("action")), "test")
    scores = np.random.default_rng(0).random((len(held.samples), 1))
    state, _ = collect_sample_scores(build_sample_predictions(held.samples, scores), held, "action")
    run = build_pedestrian_run(state, "jaad-action@iv2024")
    rows = list_items(run, "average_precision", open_run(run, scenes))
    cut = {(row["tube"], row["end_frame"] - 1) for row in held.samples.iter_rows(named=True)}
    assert len(rows) > 50
    assert {*rows.select("truth", "frame").rows()} <= cut
    named = held.samples.with_columns(pl.col("video").cast(pl.String)).select("tube", "video").rows()
    assert {*rows.select("truth", "video").rows()} <= set(named)


# Tasks on scenes.


@pytest.fixture(scope="module")
def crowd() -> Scenes:
    """Three people in a video, with actions, relations, sentences and sounds."""
    base = make_truth()
    words = {
        "agent": ("Ped", "Car"),
        "action": ("walk", "run"),
        "predicate": ("follows", "meets"),
        "sound": ("siren",),
    }
    first = base.boxes.filter(pl.col("video") == "one")
    labels = pl.DataFrame({"box": first["box"], "kind": "action", "label": (first["tube"] % 2).to_list()})
    relations = pl.DataFrame(
        {
            "relation": [0, 1],
            "video": "one",
            "subject": [0, 1],
            "object": [1, 2],
            "predicate": [0, 1],
            "start_frame": [10, 70],
            "end_frame": [50, 85],
        }
    )
    queries = pl.DataFrame(
        {
            "query": [0, 1],
            "video": ["one", "one"],
            "name": ["q0", "q1"],
            "text": ["a man <b>walks</b>", "who runs?"],
            "sentence_kind": ["declarative", "interrogative"],
            "tube": [0, 1],
            "start_frame": [5, 20],
            "end_frame": [40, 60],
        }
    )
    sounds = pl.DataFrame({"sound": [0], "video": ["one"], "name": ["s0"], "frame": [12], "label": [0]})
    boxes = base.boxes.with_columns(sound=pl.when((pl.col("tube") == 1) & (pl.col("frame") == 12)).then(0))
    return base.with_tables(
        boxes=boxes,
        labels=labels,
        relations=relations,
        queries=queries,
        sounds=sounds,
        meta=Meta(vocabularies=words),
    )


def judge(name: str, scenes: Scenes, predictions: Predictions) -> SceneRun:
    import importlib

    task = get_task(name)
    metric = importlib.import_module(f"roadaware.metrics.{name}")
    result = metric.evaluate(predictions, scenes, metric.CONFIGS["default"]())
    return SceneRun("mine", task, "default", result)


@pytest.mark.parametrize("name", list(TASKS))
def test_each_task_lists_what_its_numbers_lack(name: str, crowd: Scenes) -> None:
    found = simulate_predictions(crowd, name, seed=3, blur=1.0)
    run = judge(name, crowd, found)
    index = Index(open_run(run, crowd, found))
    metrics = index.metrics(0)
    assert {row["level"] for row in metrics} == {""}
    assert [row["label"] for row in metrics].count(None) == len(run.result.whole())
    listed = 0
    for kind in dict.fromkeys(row["kind"] for row in metrics):
        told = index.items(0, kind, "")
        json.dumps(told, allow_nan=False)
        costs = [row["cost"] or 0 for row in told["rows"]]
        assert costs == sorted(costs, reverse=True)
        assert all(row["video"] in (0, 1) and 0 <= row["frame"] < FRAMES for row in told["rows"])
        for label in told["labels"]:
            assert {row["label"] for row in index.items(0, kind, label)["rows"]} == {label}
        listed += len(told["rows"])
    assert listed
    with pytest.raises(UsageError):
        index.items(0, "nothing", "")
    with pytest.raises(UsageError):
        index.items(1, "map", "")


def test_costs_of_actions_and_relations_are_gains_of_their_mean(crowd: Scenes) -> None:
    """Without any prediction right the mean is 0; with everything missed found first it is 1."""
    found = simulate_predictions(crowd, "actions", seed=3, blur=1.0)
    run = judge("actions", crowd, found)
    rows = list_items(run, "map@0.5", open_run(run, crowd, found))
    missed = rows.filter(pl.col("fault") == "missed")
    lost = run.result.instances("truth").filter(~pl.col("found"))
    assert sorted(missed.select("truth_box", "label").rows()) == sorted(lost.select("box", "label").rows())
    both = run.result.instances("prediction").sort("score", descending=True, maintain_order=True)
    means = [
        average_precision(
            both.filter(pl.col("label") == each)["hit"].to_numpy(),
            (run.result.instances("truth")["label"] == each).sum(),
            "envelope",
        )
        for each in ("walk", "run")
    ]
    assert np.mean(means) == pytest.approx(run.result.value("map@0.5"))
    # One more hit before all others: its gain is that of the ranking with it, over two classes.
    label = missed["label"][0]
    predictions = (
        run.result.instances("prediction")
        .filter(pl.col("label") == label)
        .sort("score", descending=True, maintain_order=True)
    )
    n = run.result.instances("truth").filter(pl.col("label") == label).height
    hits = predictions["hit"].to_numpy()
    gain = average_precision(np.insert(hits, 0, True), n, "envelope") - average_precision(hits, n, "envelope")
    assert missed["cost"][0] == pytest.approx(gain / 2)

    related = simulate_predictions(crowd, "relations", seed=3, blur=1.0)
    run = judge("relations", crowd, related)
    predictions = run.result.instances("prediction").sort("video", "rank")
    base = average_precision(predictions["hit"].to_numpy(), 2, "envelope")
    assert base == pytest.approx(run.result.value("map"))
    rows = list_items(run, "recall@50", open_run(run, crowd, related))
    asked = run.result.value("recall@50") or 0.0
    assert rows["cost"].sum() == pytest.approx(1 - asked)


def test_tables_that_were_not_judged_are_told_from_those_that_were(crowd: Scenes) -> None:
    found = simulate_predictions(crowd, "actions", seed=3, blur=1.0)
    run = judge("actions", crowd, found)
    assert Index(open_run(run, crowd, found)).items(0, "map@0.5", "")["strange"] == 0
    later = found.with_tables(boxes=found.boxes.with_columns(pl.col("frame") + 1))
    told = Index(open_run(run, crowd, later)).items(0, "map@0.5", "")
    assert told["strange"] == sum(row["fault"] == "false alarm" for row in told["rows"])
    assert all(row["box"] is None for row in told["rows"])


def test_means_over_sentences_and_sounds_are_short_by_what_their_items_cost(crowd: Scenes) -> None:
    for name, metrics in (
        ("grounding", ("m_viou", "m_tiou", "gt_viou", "viou@0.5")),
        ("sound", ("ciou", "success@0.5")),
    ):
        run = judge(name, crowd, simulate_predictions(crowd, name, seed=3, blur=1.0))
        for metric in metrics:
            rows = list_items(run, metric, open_run(run, crowd))
            assert rows["cost"].sum() == pytest.approx(1 - (run.result.value(metric) or 0.0)), metric
    rows = list_items(
        judge("grounding", crowd, simulate_predictions(crowd, "grounding", seed=3, blur=1.0)),
        "m_viou",
        open_run(run, crowd),
    )
    assert any("a man <b>walks</b>" in words for words in rows["words"])


def test_corner_cases_list_missed_objects_and_proposals_on_nothing() -> None:
    truth = make_truth()
    frames = pl.DataFrame({"video": "one", "frame": range(3), "annotated": True})
    boxes = truth.boxes.filter((pl.col("video") == "one") & (pl.col("frame") < 3)).with_columns(
        corner_case=True
    )
    scenes = truth.with_tables(
        boxes=boxes.drop("tube"),
        frames=frames,
        tubes=truth.tubes.clear(),
        tube_labels=truth.tube_labels.clear(),
    )
    # Of three people in as many images one is met, loosely in the second; the third proposal lies on nothing.
    proposals = boxes.select(
        "box", "video", "frame", *(f"{c}_px" for c in ("x1", "y1", "x2", "y2"))
    ).with_columns(
        x2_px=pl.col("x2_px") + pl.Series([0.0, 10.0, 0.0]),
        y1_px=pl.col("y1_px") + pl.Series([0.0, 0.0, 90.0]),
        y2_px=pl.col("y2_px") + pl.Series([0.0, 0.0, 90.0]),
        score=pl.Series([0.9, 0.8, 0.7]),
    )
    found = Predictions(boxes=proposals, meta=Meta())
    run = SceneRun("mine", CORNER_CASES, "default", evaluate_corners(found, scenes))
    rows = list_items(run, "corner_ar", open_run(run, scenes, found))
    assert rows.select("fault", "frame", "truth_box", "box").rows() == [
        ("missed", 2, boxes["box"][2], None),
        ("loose", 1, boxes["box"][1], None),
        ("on nothing annotated", 2, None, boxes["box"][2]),
    ]
    assert rows["cost"].sum() == pytest.approx(1 - (run.result.value("corner_ar") or 0.0))
    half = list_items(run, "corner_ar50", open_run(run, scenes, found))
    assert half["cost"].sum() == pytest.approx(1 - (run.result.value("corner_ar50") or 0.0))
    assert list_items(run, "corner_ar10", open_run(run, scenes))["cost"].null_count() == 2


def test_a_run_without_rows_of_items_says_what_to_do(crowd: Scenes) -> None:
    run = judge("actions", crowd, simulate_predictions(crowd, "actions", seed=3, blur=1.0))
    bare = replace(run, result=replace(run.result, makers={}))
    with pytest.raises(InputError, match="keeps no rows") as told:
        list_items(bare, "map@0.5", open_run(bare, crowd))
    assert "evaluate again" in str(told.value)


def test_runs_in_folders_are_opened_with_their_intervals(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    names = [f"{video}/t{tube}" for video, tube in (("one", 0), ("one", 2), ("two", 3)) for _ in range(4)]
    state = SampleScores(rng.random(12), np.arange(12) % 2, names, [name[:3] for name in names])
    config = PedestrianConfig.default("action")
    run = Run(
        "mine",
        state,
        config,
        evaluate_samples(state, config, resamples=20),
        20,
        0,
        "",
        {"config_name": "default"},
    )
    (tmp_path / "run").mkdir()
    for name, data in runs.build_run_files(run, "").items():
        (tmp_path / "run" / name).write_bytes(data)
    save(make_truth(), tmp_path / "truth")
    index = Index(open_paths([tmp_path / "run", tmp_path / "truth"]))
    row = next(row for row in index.metrics(0) if row["kind"] == "accuracy")
    assert row["low"] is not None
    assert row["low"] <= row["value"] <= row["high"]
    assert index.describe()["evaluations"][0] | {"config": ""} == {
        "name": "mine",
        "folder": "run",
        "config": "",
        "resamples": 20,
        "subject": "pedestrians",
        "events": False,
        "levels": {},
    }
    assert [row["truth_path"] for row in index.items(0, "accuracy", "")["rows"]]
    with pytest.raises(UsageError, match="holds no boxes"):
        open_paths([tmp_path / "run"])


# Boxes of road events.


def add_frames(truth: Scenes) -> Scenes:
    frames = [
        pl.DataFrame({"video": video, "frame": range(FRAMES), "annotated": True}) for video in ("one", "two")
    ]
    return label_boxes(truth.with_tables(frames=pl.concat(frames)))


def label_boxes(tables: Any) -> Any:
    """Boxes with the labels of their tubes."""
    kept = ["box", "kind", "label", *(["score"] if "score" in tables.tube_labels.columns else [])]
    labels = tables.boxes.select("box", "tube").join(tables.tube_labels, on="tube").select(kept)
    return tables.with_tables(labels=labels)


def test_errors_of_boxes_cost_what_the_mean_gains() -> None:
    truth, found, config = (
        add_frames(make_truth()),
        label_boxes(make_predictions()),
        DetectionConfig.default(),
    )
    rows = list_box_errors(found, truth, config, "agent", 0.5)
    assert rows["cost"].is_sorted(descending=True)
    missed = rows.filter(pl.col("fault") == "missed")
    # All boxes of the person in the other video; those of the third are taken for a car and so not missed.
    assert missed.select("video", "label", "words", "first", "end").rows() == [
        ("two", "Ped", "30 boxes", 0, 30)
    ]
    car = rows.filter((pl.col("label") == "Car") & (pl.col("fault") == "class"))
    assert set(car["meant_for"]) == {"Ped"}
    assert set(car["frame"]) == set(range(70, 90))
    wrong = rows.filter(pl.col("fault") == "background")
    assert set(wrong["frame"]) == set(range(20, 40))
    base = evaluate_events(found, truth, config, frame_thresholds=(0.5,), video_thresholds=()).value(
        "frame_map@0.5:agent"
    )
    kept = found.boxes.filter(pl.col("box") != wrong["box"][0])
    left = found.labels.join(kept, on="box", how="semi")
    again = evaluate_events(
        found.with_tables(boxes=kept, labels=left),
        truth,
        config,
        frame_thresholds=(0.5,),
        video_thresholds=(),
    ).value("frame_map@0.5:agent")
    assert wrong["cost"][0] == pytest.approx((again or 0) - (base or 0))


def test_errors_of_boxes_lead_to_their_frames(tmp_path: Path) -> None:
    save(add_frames(make_truth()), tmp_path / "truth")
    save(label_boxes(make_predictions()), tmp_path / "found")
    index = Index(open_paths([tmp_path / "truth", tmp_path / "found"]))
    assert "agent" in index.describe()["box_kinds"]
    rows = index.errors("a", "agent", 0.5, "frame")
    first = next(row for row in rows if row["fault"] == "class")
    assert (first["video"], first["path"], first["truth_path"]) == (0, 2, 2)
    assert first["span"] == [first["frame"], first["frame"] + 1]
    missed = next(row for row in rows if row["fault"] == "missed")
    assert (missed["video"], missed["truth_path"], missed["span"], missed["frame"]) == (1, 3, [0, 30], 15)
    with pytest.raises(UsageError):
        index.errors("a", "agent", 0.5, "picture")


def test_agentness_is_told_of_boxes_as_other_kinds_are(tmp_path: Path) -> None:
    truth, found, config = add_frames(make_truth()), make_predictions(), DetectionConfig.default()
    save(truth, tmp_path / "truth")
    save(found, tmp_path / "found")
    index = Index(open_paths([tmp_path / "truth", tmp_path / "found"]))
    assert index.describe()["box_kinds"] == ["agentness"]
    rows = index.errors("a", "agentness", 0.5, "frame")
    # Of whatever class: the third person, taken for a car, is found.
    assert {row["label"] for row in rows} == {"agentness"}
    faults = {row["fault"]: row for row in rows}
    assert set(faults) == {"missed", "background"}
    missed, wrong = faults["missed"], [row for row in rows if row["fault"] == "background"]
    assert (missed["video"], missed["truth_path"], missed["span"], missed["words"]) == (
        1, 3, [0, 30], "30 boxes",
    )  # fmt: skip
    assert sorted(row["frame"] for row in wrong) == list(range(20, 40))
    assert {row["path"] for row in wrong} == {3}

    def judge(predictions: Predictions) -> float:
        told = evaluate_events(predictions, truth, config, frame_thresholds=(0.5,), video_thresholds=())
        return told.value("frame_map@0.5:agentness") or 0.0

    left = found.with_tables(boxes=found.boxes.filter(pl.col("box") != wrong[0]["box"]))
    assert wrong[0]["cost"] == pytest.approx(judge(left) - judge(found))
    bare = Index(open_run(None, make_truth(), found))
    assert bare.describe()["box_kinds"] == []  # which frames were annotated is not known


def test_scores_are_agentness_where_the_metrics_take_them_for_it() -> None:
    found = make_predictions()
    named = Meta(vocabularies={"agentness": ("agent",), **found.meta.vocabularies})
    kinds = found.with_tables(
        tubes=found.tubes.with_columns(kind=pl.lit("agent"), parent=pl.lit(None, pl.Int64))
    )
    vehicle = kinds.with_tables(tubes=kinds.tubes.with_columns(kind=pl.lit("av_action")))
    parts = kinds.with_tables(
        tubes=pl.concat([found.tubes, kinds.tubes.with_columns(tube=pl.col("tube") + 9, parent=0)], how="diagonal_relaxed")
    )  # fmt: skip
    cases = {
        "plain": found,
        "labels": label_boxes(found),
        "named": label_boxes(found.with_tables(meta=named)),
        "kinds": kinds,
        "vehicle": vehicle,
        "parts": parts,
        "loose": found.with_tables(boxes=found.boxes.drop("tube")),
    }
    told = {}
    for name, case in cases.items():
        judged = list_box_kinds(case, add_frames(make_truth()))
        told[name] = "agentness" in judged
        kinds_told = Index(open_run(None, add_frames(make_truth()), case)).describe()["box_kinds"]
        assert ("agentness" in kinds_told) == told[name], name
    assert [name for name, judged in told.items() if not judged] == ["labels", "kinds"]


# Findings.


def test_a_text_names_the_video_and_the_frame_that_it_is_about() -> None:
    videos = {"video_0003": 0, "video_0003_night": 1, "set01/video_0002": 2, "one": 3}
    for text, wanted in (
        ("annotations/video_0003.xml: track 'p', frame '17' is upside down", (0, 17)),
        ("annotations_attributes/video_0003_attributes.xml: second box", (0, None)),
        ("video_0003_night at frame 4", (1, 4)),
        ("set01/video_0002: frames 9 to 12", (2, 9)),
        ("one of 3 tracks has gaps", (3, None)),
        ("video_0004.xml, frame 2", (None, 2)),
        ("", (None, None)),
    ):
        assert find_place(text, videos) == wanted, text


def test_findings_of_audit_check_doctor_and_reader_open_their_frames(tmp_path: Path) -> None:
    truth = make_truth()
    rejected = pl.DataFrame(
        {
            "table": ["boxes"],
            "file": ["one.xml"],
            "line": [3],
            "item": ["track 't1', frame '21'"],
            "reason": ["upside down"],
        }
    )
    save(truth.with_tables(rejected=rejected), tmp_path / "truth")
    example = {"video": "one", "pedestrian": "t2", "frame": 71, "note": "no event"}
    gone = {"video": "five", "pedestrian": None, "frame": 1, "note": ""}
    finding = {
        "name": "crosser-without-event",
        "severity": "warning",
        "sentence": "2 of 4 ...",
        "advice": "mend",
        "examples": [example, gone],
    }
    (tmp_path / "audit.json").write_text(json.dumps({"dataset": "x", "protocol": {}, "findings": [finding]}))
    told = {
        "code": "scale",
        "severity": "wrong",
        "says": "boxes",
        "evidence": "two, frame 4",
        "remedy": "scale them",
    }
    (tmp_path / "doctor.json").write_text(json.dumps({"subject": "x", "diagnoses": [told]}))
    for name, shift in (("original", 0.0), ("round1", 40.0)):
        moved = truth.boxes.with_columns(
            x2_px=pl.when(pl.col("box") == 5).then(pl.col("x2_px") + shift).otherwise("x2_px")
        )
        save(truth.with_tables(boxes=moved), tmp_path / name)
    assert (
        main(
            f"check annotations {tmp_path}/original {tmp_path}/round1 -o {tmp_path}/checked --dictionary none -q".split()
        )
        == 0
    )
    names = ("truth", "audit.json", "doctor.json", "checked")
    index = Index(open_paths([tmp_path / name for name in names]))
    rows = index.findings()
    json.dumps(rows, allow_nan=False)
    by = {name: [row for row in rows if row["from"] == name] for name in names}
    assert [(row["video"], row["frame"], row["truth_path"]) for row in by["audit.json"]] == [
        (None, None, None),
        (0, 71, 2),
        (None, 1, None),
    ]
    assert by["audit.json"][2]["named"] == "five"
    assert [(row["video"], row["frame"]) for row in by["doctor.json"]] == [(1, 4)]
    assert [(row["video"], row["frame"], row["truth_path"]) for row in by["truth"]] == [(0, 21, 1)]
    frame, video = truth.boxes.filter(pl.col("box") == 5).select("frame", "video").row(0)
    assert [(row["video"], row["frame"]) for row in by["checked"] if row["title"] == "box"] == [(0, frame)]
    assert video == "one"
    corners = next(row["corners"] for row in by["checked"] if row["title"] == "box")
    assert corners[2] == truth.boxes.filter(pl.col("box") == 5)["x2_px"][0] + 40


@pytest.mark.parametrize(
    "text",
    [
        '{"findings": 3, "protocol": 1}',
        '{"findings": [{}], "protocol": 1}',
        '{"diagnoses": [{"code": 1}]}',
        '{"findings": [[',
        '{"protocol": 1, "findings": [{"name": "x", "severity": "y", "sentence": "", "advice": "", "examples": [3]}]}',
    ],
)
def test_findings_of_another_form_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    save(make_truth(), tmp_path / "truth")
    with pytest.raises(InputError):
        open_paths([tmp_path / "truth", tmp_path / "x.json"])


# Verdicts on annotations, as rounds of checking.


def judge_all(client: Client, videos: Sequence[tuple[str, int, str]]) -> None:
    for video, tube, verdict in videos:
        act = {
            "side": "truth",
            "video": video,
            "tube": tube,
            "box": None,
            "frame": 0,
            "verdict": verdict,
            "note": "",
        }
        assert client.post("/api/verdicts", act)[0] == 200


def test_verdicts_on_annotations_are_a_round_of_a_check(
    tmp_path: Path, viewed: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    save(make_truth(), tmp_path / "truth")
    client = viewed(tmp_path / "truth")
    judge_all(client, [("one", 0, "right"), ("one", 1, "right"), ("one", 2, "wrong")])
    status, _, data = client.ask("/api/corrections?side=truth")
    assert status == 200
    (tmp_path / "corrections.parquet").write_bytes(data)
    words = f"check annotations {tmp_path}/truth {tmp_path}/corrections.parquet --dictionary none -q --json -"
    assert main(words.split()) == 0
    told = json.loads(capsys.readouterr().out)
    wrong = [item for item in told["items"] if item["status"] == "fail"]
    # The person whom the reviewer took away: the track and each of its boxes; nobody judged the other video.
    assert {item["name"] for item in wrong} == {"t2"}
    assert sum(item["what"] == "box" for item in wrong) == 20
    assert sum(item["what"] == "box" for item in told["items"]) == 60 + 80 + 20
    assert main([*words.split()[:4], str(tmp_path / "truth"), str(tmp_path / "truth")]) == 2

    second = viewed(tmp_path / "truth", annotator="ben")
    judge_all(second, [("one", 0, "right"), ("one", 1, "wrong"), ("one", 2, "right")])
    (tmp_path / "corrections.parquet").write_bytes(second.ask("/api/corrections?side=truth")[2])
    capsys.readouterr()
    assert main(words.split()) == 0
    told = json.loads(capsys.readouterr().out)
    assert {item["name"] for item in told["items"] if item["status"] == "disputed"} == {"t1", "t2"}


def test_corrections_of_other_annotations_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(make_truth(), tmp_path / "truth")
    row = {
        "video": ["one"],
        "frame": [0],
        "annotator": ["a"],
        "proposal": [999],
        "x1_px": [1.0],
        "y1_px": [1.0],
        "x2_px": [2.0],
        "y2_px": [2.0],
        "label": [None],
    }
    table = pl.DataFrame(row)
    for wrong in (
        table,
        pl.concat([table.with_columns(annotator=pl.lit(name)) for name in "abc"]),
        table.drop("x1_px"),
        table.clear(),
    ):
        wrong.write_parquet(tmp_path / "c.parquet")
        assert main(["check", "annotations", str(tmp_path / "truth"), str(tmp_path / "c.parquet")]) == 3
    (tmp_path / "c.parquet").write_bytes(b"nothing")
    assert main(["check", "annotations", str(tmp_path / "truth"), str(tmp_path / "c.parquet")]) == 3
    assert "Traceback" not in capsys.readouterr().err


def test_list_metrics_attaches_classes_to_the_mean_that_they_are_a_part_of(crowd: Scenes) -> None:
    run = judge("actions", crowd, simulate_predictions(crowd, "actions", seed=3, blur=1.0))
    rows = list_metrics(run)
    assert {row["kind"] for row in rows} == {"map@0.5"}
    assert {row["label"] for row in rows} >= {None, "walk", "run"}
