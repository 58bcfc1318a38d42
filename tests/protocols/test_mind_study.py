"""The study of minds on rows whose answers are known: what shows is found, and what does not show is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import polars as pl
import pytest

from roadaware.cli.app import main
from roadaware.errors import InputError, UsageError
from roadaware.models.event_head.anticipation import join_inputs
from roadaware.models.event_head.head import FEATURES, open_head
from roadaware.protocols import minds as protocol
from roadaware.protocols.minds import (
    BASE,
    BEHAVIOUR,
    GAP,
    GOAL,
    JOINT,
    LOOKS,
    MIND,
    NETWORK,
    NOTICED,
    STAYS,
    TAGS,
    TRUE_MIND,
    TURN,
    MindStudy,
    judge_looks,
    judge_minds,
)
from roadaware.reports.decisions import build_mind_section, format_mind_study, list_mind_findings
from roadaware.reports.page import report
from roadaware.scenes.tables import Scenes
from roadaware.training.events import decisions
from roadaware.training.events.decisions import MindRows, fit_small_network

HEAD = open_head()


def make_rows(scenes: int, seed: int) -> MindRows:
    """Walkers whose goal shows and whose gap does not; who means to cross does so if the gap is short; turns show."""
    rng = np.random.default_rng(seed)
    n = 40 * scenes
    features = np.zeros((n, len(FEATURES)))
    features[:, 2:6] = rng.normal(size=(n, 4))
    walks = np.arange(n) % 2 == 0
    crosses = walks & (rng.random(n) < 0.4)
    features[:, 0] = 2.0 * crosses + rng.normal(0, 0.5, n)
    margin = np.where(walks, rng.uniform(0.5, 4, n), np.nan)
    turn = np.where(walks, -1, rng.integers(0, 3, n))
    features[:, 1] = 2.0 * turn
    steps = np.where(walks, (crosses & (np.nan_to_num(margin, nan=9) < 2)).astype(int), -1)
    moved = np.where(
        walks[:, None], np.column_stack([2.0 * crosses, np.zeros(n)]) + rng.normal(0, 0.1, (n, 2)), np.nan
    )
    logits = np.zeros((n, len(HEAD.actions) + len(HEAD.locations)), np.float32)
    return MindRows(
        join_inputs(features, logits), walks, crosses, walks & (rng.random(n) < 0.3), margin,
        np.zeros(n, np.bool_), steps, moved, turn, np.repeat(np.arange(scenes), 40),
    )  # fmt: skip


@pytest.fixture(scope="module")
def study() -> MindStudy:
    with pytest.MonkeyPatch.context() as patch:
        # Few rows are learnt from in small steps.
        patch.setattr(decisions, "_MIND_BATCH", 32)
        found = judge_minds(make_rows(30, 0), make_rows(12, 1), HEAD, 1, 1000)
    counts = {"train": 30, "val": 6, "test": 12}
    return replace(found, scenes=counts, boxes=counts)


def test_what_shows_is_found_and_what_does_not_is_no_better_than_the_base_rate(study: MindStudy) -> None:
    rows = {(row.question, row.way): row for row in study.minds}
    base = rows[GOAL, BASE]
    assert base.value.value == pytest.approx(base.share)
    assert base.gain.value == 0
    for question in (GOAL, TURN):
        gain = rows[question, NETWORK].gain
        assert gain.value is not None
        assert gain.value > 0.3
        assert gain.excludes_zero
    for question in (NOTICED, GAP):
        gain = rows[question, NETWORK].gain
        assert gain.value is not None
        assert gain.value < 0.15
    assert 2.0 < study.gap_s < 2.5


def test_a_mind_that_nobody_sees_helps_and_one_that_shows_adds_nothing(study: MindStudy) -> None:
    rows = {row.way: row for row in study.forecasts}
    # The gap does not show in behaviour, and decides: only the true mind knows more.
    true = rows[TRUE_MIND].gain_steps_out
    assert true.value is not None
    assert true.value > 0.1
    assert true.excludes_zero
    for way in (MIND, JOINT):
        gain = rows[way].gain_steps_out
        assert gain.value is not None
        assert not gain.excludes_zero or abs(gain.value) < 0.1
        assert rows[way].error_m.value is not None
        assert rows[way].error_m.value < 0.6
    assert rows[BEHAVIOUR].gain_steps_out.value == 0
    stays, network = rows[STAYS].error_m.value, rows[BEHAVIOUR].error_m.value
    assert stays is not None
    assert network is not None
    assert network < stays
    assert rows[STAYS].steps_out.value is None


def test_the_page_says_so(study: MindStudy) -> None:
    page = report([build_mind_section(study)], title="x")
    assert "minds are the simulator" in page
    assert "The mind as a help to foresee" in page
    assert "not told apart from" in " ".join(list_mind_findings(study))
    assert GOAL in format_mind_study(study)
    assert study.as_dict()["seeds"] == 1


@pytest.mark.slow
def test_who_has_looked_is_foreseen_though_boxes_say_nothing(
    study: MindStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`collect_times` is tested with its readers; here its answer is given."""
    rng = np.random.default_rng(0)
    n = 600
    looked = rng.random(n) < 0.5
    video = np.array([f"v{k % 30}" for k in range(n)])
    table = pl.DataFrame(
        {"video": video, "name": [f"p{k}" for k in range(n)], "frame": np.full(n, 10), "t_s": np.zeros(n)}
    )
    corners = np.tile([0.4, 0.5, 0.45, 0.7], (n, 15, 1)) + rng.normal(0, 0.01, (n, 15, 4))
    # One in ten looked before frame 5 and no longer; of the last twenty nobody tagged anything.
    boxes = pl.DataFrame(
        {
            "video": np.repeat(video, 2), "frame": np.tile([5, 10], n), "tube": np.repeat(np.arange(n), 2),
            "look": np.column_stack([looked, looked & (np.arange(n) % 10 > 0)]).ravel(),
            "nod": ["__undefined__"] * 2 * n, "hand_gesture": ["__undefined__"] * 2 * n,
        }
    ).with_columns(
        look=pl.when(pl.col("tube") < n - 20).then(
            pl.when(pl.col("look")).then(pl.lit("looking")).otherwise(pl.lit("not-looking"))
        )
    )  # fmt: skip
    tubes = pl.DataFrame({"tube": np.arange(n), "video": video, "name": table["name"]})
    # Half of those who looked cross in a second, the others in three; a few tracks end before two seconds.
    crosses = looked & (rng.random(n) < 0.8)
    time_s = np.where(crosses, 1.0, 3.0)
    ends = rng.random(n) < 0.1
    event, time_s = crosses & ~ends, np.where(ends, 1.5, time_s)
    given = SimpleNamespace(
        table=table, time_s=time_s, event=event, person=np.arange(n),
        inputs=SimpleNamespace(take=lambda rows: {"boxes": corners[rows]}),
    )  # fmt: skip
    monkeypatch.setattr(protocol, "collect_times", lambda *_: given)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decisions, "_MIND_BATCH", 32)
        found = judge_looks(cast(Scenes, SimpleNamespace(boxes=boxes, tubes=tubes)), 1, 1000)
    known = (event | (time_s >= 2)) & (np.arange(n) < n - 20)
    assert found.moments == known.sum()
    assert found.taught == 2 * found.moments
    assert found.people == found.moments
    assert found.share == pytest.approx((event & known).sum() / known.sum())
    assert found.looked == pytest.approx(looked[known].mean())
    assert found.nodded == 0
    rows = {row.way: row for row in found.rows}
    assert rows[BASE].value.value == pytest.approx(found.share)
    for way in (LOOKS, TAGS):
        assert rows[way].value.value is not None
        assert rows[way].value.value > 0.7
        assert rows[way].gain.excludes_zero
    assert rows[BEHAVIOUR].gain.value == 0
    drawn = report([build_mind_section(replace(study, looks=found))], title="x")
    assert "The part of a mind that shows: JAAD" in drawn
    with pytest.raises(InputError, match="look, nod"):
        judge_looks(cast(Scenes, SimpleNamespace(boxes=boxes.drop("look", "nod"), tubes=tubes)), 1, 0)


def test_what_is_not_known_teaches_nothing() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 4)).astype(np.float32)
    due = np.column_stack([x[:, 0] > 0, 3 + 2 * x[:, 1]]).astype(float)
    known = rng.random((600, 2)) < 0.7
    wrong = np.where(known, due, 1e6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decisions, "_MIND_BATCH", 32)
        one, other = (fit_small_network(x, each, known, 1, epochs=10)(x[:50]) for each in (due, wrong))
    np.testing.assert_array_equal(one, other)
    assert ((one[:, 0] > 0.5) == (x[:50, 0] > 0)).mean() > 0.85
    assert np.abs(one[:, 1] - due[:50, 1]).mean() < 0.9


@pytest.mark.parametrize("held", [False, True])
def test_jaad_is_taken_where_the_folder_of_data_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: bool
) -> None:
    asked: list[object] = []

    def note(folder: Path, *, jaad: object, **others: object) -> None:
        asked.append(jaad)
        raise UsageError("enough")

    (tmp_path / "data" / ("jaad" if held else "pie")).mkdir(parents=True)
    monkeypatch.setenv("ROADAWARE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(protocol, "run_mind_study", note)
    monkeypatch.setattr("roadaware.cli.reproduce.open_dataset", lambda name, source: (name, source))
    assert main(["reproduce", "minds", "-o", str(tmp_path / "run")]) == 2
    assert asked == [("jaad", tmp_path / "data" / "jaad") if held else None]
