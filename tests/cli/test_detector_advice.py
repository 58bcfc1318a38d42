"""What a detector advises, from its file through predict, link, evaluate and report to what is printed."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from event_files import Events
from small_files import Command

from roadaware.analysis.evaluation.events import select_tracking_threshold
from roadaware.datasets import read
from roadaware.demo_data.detector import simulate_detections
from roadaware.errors import UsageError
from roadaware.io.video import VideoWriter
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.metrics.tracking import evaluate_tracks, score_floors, select_best_threshold
from roadaware.metrics.tracking_pairs import TrackingConfig
from roadaware.scenes.advice import Advice, get_advice, set_advice
from roadaware.scenes.store import open_predictions, save
from roadaware.scenes.tables import Predictions
from roadaware.simulator.synthetic_films import MARK, is_synthetic_film

ADVICE = Advice({"min_iou": 0.1, "jump_gap": 6}, 0.4)


def advised(predictions: Predictions, advice: Advice = ADVICE) -> Predictions:
    return predictions.with_tables(meta=set_advice(predictions.meta, advice))


@pytest.fixture
def predictions(events: Events, tmp_path: Path) -> Path:
    save(advised(events.predictions), tmp_path / "advised")
    return tmp_path / "advised"


@pytest.mark.slow
def test_predictions_carry_what_the_file_of_the_detector_says(
    roadaware: Command, made_up: Path, tmp_path: Path
) -> None:
    import torch

    from roadaware.models import create
    from roadaware.models.retinanet3d.config import default
    from roadaware.models.weights import save_detector
    from roadaware.tasks.road_events import collect_classes

    torch.manual_seed(0)
    classes = collect_classes(read("simulator", made_up / "road", cache=False))
    small = {"stage_widths": (8, 8, 8, 8), "stage_blocks": (1, 1, 1, 1), "width": 8, "head_layers": 1}
    config = default(causal=True, short_side_px=64, prior=0.1, **small)
    network = create(
        "retinanet3d-compact", config=config, n_classes=classes.n_classes, n_av=len(classes.av_labels)
    )
    weights, kinds, av = tmp_path / "net.safetensors", dict(classes.kinds), classes.av_labels
    save_detector(weights, network, kinds, av, {"linking": {"min_iou": 0.1}, "min_score": 0.4})
    out = tmp_path / "run"
    done = roadaware("predict", weights, "--videos", made_up / "road", "--out", out, "--top", "3")
    assert done.code == 0, done.err
    assert get_advice(open_predictions(out / "predictions").meta) == Advice({"min_iou": 0.1}, 0.4)
    linked = roadaware("link", out / "predictions", "--out", tmp_path / "tubes")
    assert "linking overlap 0.1, as the detector advises; --iou to change" in linked.out
    assert get_advice(open_predictions(tmp_path / "tubes").meta).min_score == 0.4


@pytest.mark.slow
def test_link_follows_advice_says_so_and_can_be_told_otherwise(
    roadaware: Command, events: Events, predictions: Path, tmp_path: Path
) -> None:
    plain, told = LinkerConfig.default("road"), "as the detector advises"
    cases = (
        ((), replace(plain, min_iou=0.1, jump_gap=6), (f"linking overlap 0.1, {told}; --iou to change",)),
        (("--iou", "0.3"), replace(plain, min_iou=0.3, jump_gap=6), ("0.3, as asked for", f"miss 6, {told}")),
        (("--config", "reference"), LinkerConfig.reference("road"), ("overlap 0.5, as published",)),
    )
    for number, (words, config, printed) in enumerate(cases):
        out = tmp_path / str(number)
        done = roadaware("link", predictions, *words, "--out", out)
        assert done.code == 0, done.err
        assert all(word in done.out for word in printed)
        assert open_predictions(out) == link(advised(events.predictions), config)
    silent = roadaware("link", events.saved, "--out", tmp_path / "silent")
    assert "advise" not in silent.out
    assert open_predictions(tmp_path / "silent") == link(events.predictions, plain)


@pytest.mark.slow
def test_detectors_that_disagree_are_said_and_neither_is_followed(
    roadaware: Command, events: Events, predictions: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    save(
        advised(simulate_detections(events.scenes, seed=2), Advice({"min_iou": 0.2, "jump_gap": 6}, 0.5)),
        other,
    )
    done = roadaware("link", predictions, other, "--out", tmp_path / "out", "--json")
    assert done.data["config"]["min_iou"] == LinkerConfig.default("road").min_iou
    assert done.data["config"]["jump_gap"] == 6
    assert any("different ones (0.1 and 0.2)" in note for note in done.data["notes"])
    kept = get_advice(open_predictions(tmp_path / "out").meta)
    assert kept.disputed == {"linking.min_iou": (0.1, 0.2), "min_score": (0.4, 0.5)}
    assert "differ" in select_tracking_threshold(open_predictions(tmp_path / "out"), None)[1]


def test_odd_advice_in_tables_is_named_and_no_fault_of_the_program(
    roadaware: Command, events: Events, tmp_path: Path
) -> None:
    for number, advice in enumerate(({"linking": {"nearness": 1}}, {"min_score": 7}, [1], {"linking": 3})):
        notes = {**events.predictions.meta.notes, "advice": advice}
        odd = events.predictions.with_tables(meta=replace(events.predictions.meta, notes=notes))
        save(odd, tmp_path / str(number))
        done = roadaware("link", tmp_path / str(number), "--out", tmp_path / "out")
        assert done.code == 3
        assert "detector" in done.err
        assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_evaluate_links_and_judges_tracks_as_the_detector_advises(
    roadaware: Command, events: Events, predictions: Path, tmp_path: Path
) -> None:
    words = ["evaluate", "road", "--truth", events.truth, "--kinds", "agent", "--tracking"]
    done = roadaware(*words, "--predictions", predictions, "--json", "-o", tmp_path / "run")
    assert done.code == 0, done.err
    scenes = read("road", events.truth)
    tubes = link(advised(events.predictions), replace(LinkerConfig.default("road"), min_iou=0.1, jump_gap=6))
    for floor, more in ((0.4, []), (0.7, ["--min-score", "0.7"]), (0.0, ["--min-score", "0"])):
        found = roadaware(*words, *more, "--predictions", predictions, "--json").data["tracking"]
        wanted = evaluate_tracks(tubes, scenes, replace(TrackingConfig.default(), min_score=floor))
        values = dict(zip(wanted.summary["metric"], wanted.summary["value"], strict=True))
        assert found["mota"]["value"] == pytest.approx(100 * values["mota"])
    assert any("linking overlap 0.1" in note for note in done.data["run"]["notes"])
    said = "boxes at or above 0.4, the detector's threshold; --min-score to change"
    assert said in roadaware(*words, "--predictions", predictions).out
    assert roadaware("report", tmp_path / "run", "-o", tmp_path / "again.html").code == 0
    for page in (tmp_path / "run" / "report.html", tmp_path / "again.html"):
        assert said[1:] in html.unescape(page.read_text(encoding="utf-8"))
    assert "no threshold is known" in roadaware(*words, "--predictions", events.saved).out
    save(link(advised(events.predictions), LinkerConfig.default("road")), tmp_path / "half")
    other = roadaware(*words, "--predictions", tmp_path / "half").out
    assert "linking overlap of these tubes: 0.2; the detector advises 0.1" in other


def test_floors_that_have_no_meaning_are_refused(
    roadaware: Command, events: Events, predictions: Path
) -> None:
    words = ["evaluate", "road", "--truth", events.truth, "--predictions", predictions]
    assert roadaware(*words, "--min-score", "0.3").code == 2
    assert roadaware(*words, "--tracking", "--min-score", "1.5").code == 2
    bare = events.predictions.with_tables(boxes=events.predictions.boxes.drop("score"))
    with pytest.raises(UsageError, match="have none"):
        select_tracking_threshold(bare, 0.3)
    assert select_tracking_threshold(advised(bare), None) == (None, "")


def test_a_floor_leaves_weak_boxes_out_and_the_best_one_is_found(events: Events) -> None:
    scenes = read("road", events.truth)
    tubes = link(events.predictions, LinkerConfig.default("road"))
    scores = tubes.boxes["score"].to_numpy()
    for floor in (0.0, 0.5, 0.9):
        counts = evaluate_tracks(tubes, scenes, replace(TrackingConfig.default(), min_score=floor)).counts
        assert counts["predictions"].sum() <= int(np.sum(scores >= np.float32(floor)))
    table = score_floors(tubes, scenes, floors=(0.9, 0.2, 0.5))
    assert table["min_score"].to_list() == [0.2, 0.5, 0.9]
    assert table["recall"].is_sorted(descending=True)
    assert select_best_threshold(table) in (0.2, 0.5, 0.9)


def test_films_of_the_simulator_are_known_by_their_mark_or_their_tables(
    made_up: Path, tmp_path: Path
) -> None:
    rendered = next((made_up / "road").glob("scenes/*/video.mp4"))
    moved, plain, worded = (tmp_path / f"{name}.mp4" for name in ("moved", "plain", "worded"))
    moved.write_bytes(rendered.read_bytes())
    for path, comment in ((plain, ""), (worded, f"not a {MARK}")):
        with VideoWriter(path, 16, 16, 12.0, comment=comment) as film:
            film.write(np.zeros((16, 16, 3), np.uint8))
    assert is_synthetic_film(rendered)
    assert is_synthetic_film(moved)
    for path in (plain, worded, tmp_path, tmp_path / "absent.mp4", None):
        assert not is_synthetic_film(path)
    old = tmp_path / "old"  # as versions before the mark rendered it
    (old / "tables").mkdir(parents=True)
    (old / "video.mp4").write_bytes(plain.read_bytes())
    (old / "tables" / "meta.json").write_text(json.dumps({"meta": {"dataset": "simulator"}}))
    assert is_synthetic_film(old / "video.mp4")
    (old / "tables" / "meta.json").write_text(json.dumps([1]))
    assert not is_synthetic_film(old / "video.mp4")
