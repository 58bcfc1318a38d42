"""Studies of streams and countries: tables by name, resumed, drawn, and what they refuse."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from roadaware.demo_data.road import generate_road_scenes
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.protocols.continual import FINE_TUNING, JOINT, REPLAY, measure_time, run_continual_study
from roadaware.protocols.countries import METHODS, SOURCE, run_countries_study
from roadaware.protocols.event_domains import (
    EventDomain,
    JudgedBoxes,
    Measured,
    build_table_domain,
    build_weights,
    split_videos,
)
from roadaware.reports.continual import build_continual_section, describe_aim, format_continual_study
from roadaware.reports.countries import build_countries_section, format_countries_study
from roadaware.reports.page import report
from roadaware.scenes.tables import Scenes
from roadaware.statistics.intervals import PercentileResamples
from roadaware.training.events.online import FitConfig, LearnerConfig
from roadaware.training.events.rows import AV_LABELS, LABELS, TubeRows, read_table_truths


@pytest.fixture(scope="module")
def tables() -> Scenes:
    """Eight short videos of the demo's ROAD, of which every fourth is tested."""
    scenes = generate_road_scenes(videos=8, frames=24, boxes_per_frame=4, seed=3)
    return scenes.with_tables(videos=scenes.videos.drop("splits"))


@pytest.fixture(scope="module")
def domains(tables: Scenes) -> list[EventDomain]:
    """Two domains that annotate different labels."""
    one = build_table_domain("one", tables, hidden=("action/Stop",))
    return [one, build_table_domain("two", tables, hidden=("location/Jun",))]


def test_tables_are_read_by_name(tables: Scenes) -> None:
    names = sorted(tables.videos["video"].to_list())
    read = read_table_truths(tables, names)
    kinds = {k: list(v) for k, v in tables.meta.vocabularies.items()}
    # The same words in another order are the same labels.
    turned = {k: tuple(reversed(v)) if k == "action" else tuple(v) for k, v in kinds.items()}
    last = len(kinds["action"]) - 1
    flipped = tables.with_tables(
        labels=tables.labels.with_columns(
            label=pl.when(pl.col("kind").cast(pl.String) == "action")
            .then(last - pl.col("label").cast(pl.Int64))
            .otherwise(pl.col("label").cast(pl.Int64))
        ),
        meta=replace(tables.meta, vocabularies=turned),
    )
    again = read_table_truths(flipped, names)
    assert again.labels == read.labels
    for a, b in zip(read.scenes, again.scenes, strict=True):
        assert np.array_equal(a.action, b.action)
        assert np.array_equal(a.location, b.location)
    taken = sum(len(each.box) for each in read.scenes)
    passed = sum(n for why, n in read.passed.items() if why.startswith(("without", "marked")))
    assert taken + passed == len(tables.boxes)
    with pytest.raises(InputError, match="has no video nowhere"):
        read_table_truths(tables, ["nowhere"])


def test_videos_are_split_by_their_names_or_every_fourth(tables: Scenes) -> None:
    train, test = split_videos(tables)
    assert (len(train), len(test)) == (6, 2)
    road = generate_road_scenes(videos=8, frames=24, seed=1)
    train, test = split_videos(road)
    assert train
    assert test
    assert not set(train) & set(test)
    alone = road.with_tables(
        videos=road.videos.with_columns(splits=pl.Series([["default/train"]] * len(road.videos)))
    )
    with pytest.raises(InputError, match="no videos to test on"):
        build_table_domain("road", alone)
    with pytest.raises(InputError, match="no box with an action or location"):
        build_table_domain("road", tables.with_tables(labels=tables.labels.clear()))


def test_accuracy_is_the_mean_of_each_label_over_the_scenes_that_count() -> None:
    rng = np.random.default_rng(0)
    n = 120
    truth = rng.random((n, 3)) < 0.3
    scene = np.repeat(np.arange(4), 30)
    truth[:, 2] &= scene == 0
    rows = TubeRows(
        LABELS[:3], np.zeros((n, 1), np.float32), truth, np.ones(n, np.float32), np.ones(n, bool), np.arange(n), scene
    )  # fmt: skip
    test = JudgedBoxes.build(rows, 0)
    assert (test.judged, test.passed) == (LABELS[:2], LABELS[2:3])
    scores = rng.random((n, 2)).astype(np.float32)
    weights, _ = build_weights(4, 100)
    found = test.measure(scores, weights, 0)
    for value, counts in zip(found, weights, strict=True):
        each = []
        for k in range(2):
            order = sorted(range(n), key=lambda i: -scores[i, k])
            seen = hits = area = 0.0
            for i in order:
                seen += counts[scene[i]]
                if truth[i, k]:
                    hits += counts[scene[i]]
                    area += counts[scene[i]] * hits / seen if seen else 0
            each.append(area / hits)
        assert value == pytest.approx(np.mean(each))


@pytest.mark.slow
def test_a_continual_study_of_tables_goes_on_and_is_drawn(domains: list[EventDomain], tmp_path: Path) -> None:
    found = run_continual_study(tmp_path / "a", domains=domains, seeds=1, memory_tubes=20, resamples=9)
    first, second = found.experiences
    assert "action/Stop" not in first.judged
    assert second.new == ("action/Stop",)
    replay, base = found.get_method(REPLAY), found.get_method(FINE_TUNING)
    assert len(replay.matrix) == 3
    assert len(found.get_method(JOINT).matrix) == 1
    assert replay.memory_bytes is not None
    assert base.memory_bytes is not None
    assert replay.memory_bytes > base.memory_bytes
    assert base.average.value == pytest.approx(np.mean(base.matrix[-1]))
    results = (tmp_path / "a" / "results.json").read_bytes()
    # Broken off after some states were saved: those that are there are taken, and the end is the same.
    gone = tmp_path / "a" / "states" / "replay-0.npz"
    gone.unlink()
    (tmp_path / "a" / "results.json").unlink()
    again = run_continual_study(tmp_path / "a", domains=domains, seeds=1, memory_tubes=20, resamples=9)
    assert (tmp_path / "a" / "results.json").read_bytes() == results
    assert again.timing == found.timing
    assert json.loads(results)["memory_tubes"] == 20
    text = format_continual_study(found)
    page = report([build_continual_section(found)], title="x")
    assert describe_aim(found) in text
    assert "Accuracy after each experience" in page
    with pytest.raises(UsageError, match="memory tubes 20, and 21"):
        run_continual_study(tmp_path / "a", domains=domains, seeds=1, memory_tubes=21, resamples=9)
    with pytest.raises(UsageError, match="resamples 9, and percentile:9"):
        run_continual_study(
            tmp_path / "a", domains=domains, seeds=1, memory_tubes=20, resamples=PercentileResamples(9)
        )
    # Tables of as many videos, of which one box is another: what was learnt from the old ones is not gone on from.
    truth = domains[1].test[0]
    other = replace(
        domains[1],
        test=(replace(truth, box=truth.box + (truth.tube == truth.tube[0])[:, None]), *domains[1].test[1:]),
    )
    with pytest.raises(UsageError, match=r"holds a study with digest of tables .*name another folder"):
        run_continual_study(
            tmp_path / "a", domains=[domains[0], other], seeds=1, memory_tubes=20, resamples=9
        )
    gone.write_bytes(b"nothing")
    with pytest.raises(DamagedError, match="state of a learner"):
        run_continual_study(tmp_path / "a", domains=domains, seeds=1, memory_tubes=20, resamples=9)
    with pytest.raises(UsageError, match="two experiences or more"):
        run_continual_study(tmp_path / "b", domains=domains[:1])
    with pytest.raises(UsageError, match="a name each"):
        run_continual_study(tmp_path / "b", domains=[domains[0], domains[0]])
    with pytest.raises(InputError, match="cannot be judged"):
        run_continual_study(tmp_path / "b", domains=[domains[0], replace(domains[1], labels=())])


@pytest.mark.slow
def test_what_the_own_vehicle_does_is_learnt_where_all_know_it(
    domains: list[EventDomain], tmp_path: Path
) -> None:
    """It stands in the first half of every scene, which the boxes' features do not hide."""

    def drive(domain: EventDomain) -> EventDomain:
        train, test = (
            tuple(replace(each, av=np.repeat([0, 1], each.n_frames)[::2]) for each in held)
            for held in (domain.train, domain.test)
        )
        return replace(domain, train=train, test=test, vehicle=True)

    told = [drive(each) for each in domains]
    how = {"seeds": 1, "memory_tubes": 20, "resamples": 9}
    found = run_continual_study(tmp_path / "a", domains=told, **how)
    vehicle = found.vehicle
    assert vehicle is not None
    assert vehicle.memory_tubes == 5
    assert [each.judged for each in vehicle.experiences] == [AV_LABELS[:2]] * 2
    # Each scene has 24 frames at 12 a second.
    assert [each.tubes for each in vehicle.experiences] == [2 * len(each.train) for each in told]
    assert vehicle.get_method(REPLAY).average.value > vehicle.get_method(REPLAY).matrix[0][0]
    held = json.loads((tmp_path / "a" / "results.json").read_text())
    assert held["vehicle"]["memory_tubes"] == 5
    assert "the own vehicle's actions" in format_continual_study(found)
    assert "The own vehicle&#39;s actions" in report([build_continual_section(found)], title="x")
    # Where one experience does not know it, it is not learnt.
    alone = run_continual_study(tmp_path / "b", domains=[told[0], domains[1]], **how)
    assert alone.vehicle is None
    assert "vehicle" not in json.loads((tmp_path / "b" / "results.json").read_text())


def test_learning_is_measured_beside_inference(domains: list[EventDomain]) -> None:
    found = measure_time(domains[0], LearnerConfig(batch=16, memory_tubes=4))
    assert found["inference"] > 0
    assert found["ratio"] == pytest.approx(found["with learning"] / found["inference"])


def test_a_study_of_countries_matches_labels_by_name(domains: list[EventDomain], tmp_path: Path) -> None:
    config = FitConfig(hidden=(8,), epochs=1)
    found = run_countries_study(tmp_path / "a", domains=domains, seeds=1, resamples=9, config=config)
    assert found.only == (("location/Jun",), ("action/Stop",))
    for each in found.directions:
        assert tuple(each.methods) == METHODS
        assert SOURCE not in each.differences
        assert not {"location/Jun", "action/Stop"} & {*each.judged, *each.passed}
        joint, source = each.methods["joint"][0].value, each.methods[SOURCE][0].value
        assert each.differences["joint"].value == pytest.approx(joint - source)
    assert "mean teacher" in format_countries_study(found)
    assert "Learnt here, tested there" in report([build_countries_section(found)], title="x")
    held = json.loads((tmp_path / "a" / "results.json").read_text())
    assert held["domains"][0]["only_there"] == ["location/Jun"]
    with pytest.raises(UsageError, match="two countries are compared"):
        run_countries_study(tmp_path / "b", domains=domains[:1])
    with pytest.raises(UsageError, match="seeds 1, and 2"):
        run_countries_study(tmp_path / "a", domains=domains, seeds=2, resamples=9, config=config)
    foreign = [replace(domains[0], labels=LABELS[:1]), replace(domains[1], labels=LABELS[1:2])]
    with pytest.raises(InputError, match="both domains annotate"):
        run_countries_study(tmp_path / "c", domains=foreign, seeds=1, resamples=0, config=config)


def test_numbers_without_intervals_and_undefined_ones() -> None:
    assert Measured.of(np.array([[np.nan, 0.1]]), None, "share") == Measured(None)
    found = Measured.of(np.array([[0.5], [0.7]]), None, "share")
    assert (found.value, found.low, found.seeds) == (0.6, None, (0.5, 0.7))
    assert not found.is_above_zero
    assert not found.is_below_zero
