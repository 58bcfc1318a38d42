"""`roadaware ablate`: tables beside the printed rows, files, and what is wrong with wrong requests."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "corner_cases"))

from planted_kitti import planted_kitti

from roadaware.analysis.corner_tables import COLUMNS
from roadaware.cli.app import main
from roadaware.corner_cases.runner import Order, run
from roadaware.datasets import read
from roadaware.errors import UsageError
from roadaware.protocols.copg_ablation import parse_grid
from roadaware.scenes.store import save


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return planted_kitti(tmp_path_factory.mktemp("planted") / "kitti", 3)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))


@pytest.fixture
def truth(root, tmp_path):
    """The set in which exactly what is proposed is a corner case."""
    found, _ = run(Order("kitti", str(root)), tmp_path / "plain")
    boxes = found.boxes.drop("score").with_columns(pl.lit(value=True).alias("corner_case"))
    scenes = read("kitti", root)
    frames = scenes.frames.with_columns(annotated=pl.lit(value=True))
    save(scenes.with_tables(boxes=boxes, frames=frames, labels=scenes.labels.clear()), tmp_path / "truth")
    return tmp_path / "truth"


@pytest.mark.slow
def test_knobs_are_turned_judged_and_drawn(root, truth, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["ablate", str(root), "--out", str(out), "--truth", str(truth), "--grid", "theta_deg=4,12"]
    words += ["max_distance_m=10,25", "max_background=0.3", "--config", "default", "--resamples", "50", "-q"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "4 images with a sweep" in told
    assert "default: max_distance_m" in told
    assert "printed AP" in told
    assert "left out: max_background: no semantic maps are given" in told
    assert main([*words, "--json", "-"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["made"], data["pictures"], data["judged"]) == (0, 4, True)
    rows = {(row["knob"], row["value"]): row for row in data["rows"]}
    own, near = rows["theta_deg", "8"], rows["max_distance_m", "10"]
    assert (own["ar"], own["ap"], own["unchanged"], own["ar_gain"]) == (1, pytest.approx(1), True, None)
    assert near["ar"] < 1
    assert near["ar_gain"] == pytest.approx(near["ar"] - 1)
    # Two scenes say so little of a difference that its interval is bounded by what shares can differ by.
    assert -1 <= near["ar_gain_low"] < near["ar_gain"] < near["ar_gain_high"] <= 1
    assert rows["max_distance_m", "25"]["printed_ar"] == pytest.approx(0.045)
    assert near["printed_ar"] is None
    table = pl.read_csv(out / "knobs.csv")
    assert (table.columns, len(table)) == (list(COLUMNS), 1 + 3 + 3)
    assert (out / "knobs.svg").read_text().startswith("<svg")
    assert (out / "knobs.png").read_bytes().startswith(b"\x89PNG")


def test_a_set_without_corner_cases_is_counted_only(root, tmp_path, capsys):
    words = ["ablate", str(root), "--out", str(tmp_path / "out"), "--grid", "min_points=20", "-q"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "AP and AR are unknown: nothing says which objects are corner cases" in told
    assert "reference: min_points" in told
    assert (
        "runs of steps: check 4, ground 4, grid 4, local ground 4, clusters 8, reach 8, projection 8" in told
    )


@pytest.mark.parametrize(
    ("more", "code", "told"),
    [
        (["--grid", "theta_deg"], 2, "--grid is NAME=V1,V2"),
        (["--grid", "theta=4"], 2, "there is no parameter 'theta'"),
        (["--grid", "theta_deg=900"], 2, "theta_deg should lie in"),
        (["--config", "best"], 2, "best"),
        (["--truth", "/nowhere"], 3, "nowhere"),
    ],
)
def test_wrong_requests_say_what_is_wrong(root, tmp_path, capsys, more, code, told):
    assert main(["ablate", str(root), "--out", str(tmp_path / "out"), *more]) == code
    assert told in capsys.readouterr().err


def test_values_are_numbers_names_and_nothing():
    found = parse_grid(("theta_deg=4,8.5", "background_by=box,returns", "margin_px=null,2"))
    assert found == {"theta_deg": (4, 8.5), "background_by": ("box", "returns"), "margin_px": (None, 2)}
    assert parse_grid(("background=road+sky,sky",)) == {"background": (("road", "sky"), ("sky",))}
    with pytest.raises(UsageError, match="names theta_deg twice"):
        parse_grid(("theta_deg=4", "theta_deg=8"))


def test_two_grids_in_one_folder_are_refused(root, tmp_path, capsys):
    from threading import Thread

    from roadaware.io.folders import Hold

    (out := tmp_path / "out").mkdir()
    held = []
    thread = Thread(target=lambda: held.append(Hold(out)))
    thread.start()
    thread.join()
    words = ["ablate", str(root), "--out", str(out), "--grid", "theta_deg=4", "--config", "default", "-q"]
    assert main(words) == 2
    assert "is being written to by" in capsys.readouterr().err
    assert list(out.iterdir()) == []
    held[0].release()
