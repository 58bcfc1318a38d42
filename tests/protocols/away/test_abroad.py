"""Streams abroad: outcomes are learnt from when they are known and not before; the study runs, is drawn, refuses others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from street import street

from roadaware.errors import InputError, UsageError
from roadaware.protocols.abroad import (
    BUNDLED,
    Crowd,
    choose_adaptation,
    describe_videos,
    draw_clock,
    judge_stream,
    listen,
    run_abroad_study,
    run_stream,
)
from roadaware.protocols.cross_dataset.cells import run
from roadaware.protocols.cross_dataset.config import AwayStudy, Learning
from roadaware.reports.abroad import build_abroad_section, format_abroad_study, summarise
from roadaware.reports.page import report
from roadaware.scenes.store import save
from roadaware.statistics.adaptation import AdaptiveConformal, OnlinePlatt, ShiftAlarm


def crowd(seed: int = 0, videos: int = 12, *, bias: float = 0.0) -> tuple[Crowd, np.ndarray]:
    """Samples of people in videos, with probabilities that are right up to a bias of their log odds."""
    rng = np.random.default_rng(seed)
    n = videos * 24
    video = np.repeat([f"v{i:02d}" for i in range(videos)], 24)
    person = np.array([f"{v} p{i % 24 // 6}" for i, v in enumerate(video)])
    seen = np.tile(np.arange(24) / 4, videos) + rng.random(n) / 10
    z = rng.normal(0, 1.5, n)
    truth = (rng.random(n) < 1 / (1 + np.exp(-(z + bias)))).astype(int)
    made = Crowd(truth, person, video, seen, seen + rng.uniform(1, 2, n), rng.random((n, 12)) + bias)
    return made, 1 / (1 + np.exp(-z))


def test_videos_follow_each_other_without_what_lies_between() -> None:
    made, _ = crowd()
    asked, known = draw_clock(made, 3)
    assert asked.min() == 0
    assert (known - asked == pytest.approx(made.known_s - made.seen_s)) is True
    ends = 0.0
    for video in sorted(set(made.video.tolist()), key=lambda name: asked[made.video == name].min()):
        rows = made.video == video
        assert asked[rows].min() == pytest.approx(ends)
        ends = known[rows].max()
    assert not np.array_equal(asked, draw_clock(made, 4)[0])
    heard = describe_videos(made)
    assert len(heard) == 12
    rows = made.video == next(iter(heard))
    assert heard[str(made.video[rows][0])][:-1] == pytest.approx(made.numbers[rows].mean(axis=0).tolist())
    assert heard[str(made.video[rows][0])][-1] == pytest.approx(np.log(len(set(made.person[rows].tolist()))))


def test_nothing_is_learnt_from_before_it_is_known() -> None:
    made, said = crowd(bias=-2.0)
    sets, platt = AdaptiveConformal(tuple(np.linspace(0, 1, 101).tolist()), rate=0.1), OnlinePlatt(0.98)
    told = run_stream(made, said, sets, platt, 0)
    asked, known = draw_clock(made, 0)
    # Each answer again, from nothing but the outcomes that were known by then, in the order in which they came.
    held: dict[int, tuple[bool, bool]] = {}
    for row in np.argsort(asked, kind="stable").tolist()[:60]:
        a, b = platt, sets
        for past in sorted(held, key=lambda place: known[place]):
            if known[past] <= asked[row]:
                a = a.update(float(said[past]), int(made.truth[past]))
                b = b.update(held[past][made.truth[past]])
        assert told.probability[row] == pytest.approx(a.predict(float(said[row])))
        held[row] = b.predict(a.predict(float(said[row])))
        assert tuple(told.labels[row]) == held[row]


def test_a_biased_predictor_is_mended_by_outcomes_and_heard_by_the_alarm() -> None:
    home, home_said = crowd(1, 20)
    away, away_said = crowd(2, 40, bias=-2.5)
    crowds = {("home", s): home for s in ("train", "val", "test")} | {
        ("away", s): away for s in ("train", "val", "test")
    }
    said = {
        ("m", "home", name, s): p
        for name, p in (("home", home_said), ("away", away_said))
        for s in ("train", "val", "test")
    }
    adaptation, tried = choose_adaptation([("m", "home")], ("home", "away"), crowds, said)
    assert len(tried) == 12
    cell = judge_stream("m", "home", "away", crowds, said, adaptation, 3, 50)
    assert not cell.is_home
    assert cell.coverage_before < 0.85 < 0.87 < cell.coverage_after
    assert cell.ece_late is not None
    assert cell.ece_late_before is not None
    assert cell.ece_late < 0.5 * cell.ece_late_before
    assert cell.low is not None
    assert cell.low < cell.coverage_after < (cell.high or 0)
    assert cell.alarmed == 1.0
    at_home = judge_stream("m", "home", "home", crowds, said, adaptation, 3, 0)
    assert at_home.is_home
    assert (at_home.alarmed, at_home.low) == (0.0, None)
    alarm = ShiftAlarm(tuple(map(tuple, describe_videos(home).values())))
    assert (listen(home, alarm, 0), listen(away, alarm, 0)) == (None, 5)


@pytest.mark.slow
def test_the_study_runs_on_the_folder_of_another_and_is_drawn(tmp_path: Path) -> None:
    for name, seed in (("one", 0), ("two", 1)):
        save(street(people=6, seed=seed), tmp_path / name)
    away = AwayStudy(
        models=("logistic",), domains=(f"jaad-all={tmp_path / 'one'}", f"crossing@1={tmp_path / 'two'}"), seeds=1,
        learning=Learning(updates=4), resamples=0,
    )  # fmt: skip
    run(away, tmp_path / "away")
    found = run_abroad_study(tmp_path / "away", tmp_path / "abroad", orders=2, resamples=10)
    assert {(cell.model, cell.trained_on, cell.tested_on) for cell in found.cells} == {
        *(("logistic", a, b) for a in found.domains for b in found.domains),
        *((BUNDLED, "jaad-all", b) for b in found.domains),
    }  # fmt: skip
    told = json.loads((tmp_path / "abroad" / "results.json").read_text())
    assert len(told["cells"]) == 6
    assert summarise(found)["coverage_after away"] is not None
    assert "Safe abroad" in report([build_abroad_section(found)], title="x")
    assert "crossing@1" in format_abroad_study(found)
    again = run_abroad_study(tmp_path / "away", tmp_path / "abroad", orders=2, resamples=10)
    assert json.dumps(again.as_dict()) == json.dumps(found.as_dict())


def test_a_folder_without_a_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="of a study out of domain"):
        run_abroad_study(tmp_path, tmp_path / "out")
    with pytest.raises(UsageError, match="orders"):
        run_abroad_study(tmp_path, tmp_path / "out", orders=0)


def test_the_command_asks_for_the_folder_of_a_study(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from roadaware.cli import main

    assert main(["reproduce", "abroad", "--output", str(tmp_path / "out")]) == 2
    assert "cross-dataset" in capsys.readouterr().err
    assert main(["reproduce", "abroad", "--data", str(tmp_path), "--output", str(tmp_path / "out")]) == 3
    assert not (tmp_path / "out").exists()
