"""`evaluate actions` where right and wrong predictions of an action share a score."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_files import Command

HERE, AWAY = (0.1, 0.1, 0.4, 0.5), (0.6, 0.6, 0.9, 0.9)
SCORES = (0.9, 0.9, 0.5, 0.5, 0.5, 0.1)


def row(frame: int, box: tuple[float, ...], *rest: object) -> str:
    return ",".join(["v", f"{902 + frame:04d}", *(f"{edge:.3f}" for edge in box), *map(str, rest)])


def files(root: Path, wrong: int = 6) -> tuple[Path, list[str], list[str]]:
    """A truth, right predictions on six of its frames, and wrong ones with the same scores on the others.

    One prediction of the class stands in each frame, since within one the heap decides and not the file.
    """
    truth = root / "truth.csv"
    labelled = [(frame, label) for frame in range(12) for label in ((1, 2) if frame < 6 else (2,))]
    truth.write_text("\n".join(row(frame, HERE, label, 0) for frame, label in labelled) + "\n")
    right = [row(frame, HERE, 1, score) for frame, score in enumerate(SCORES)]
    right += [row(frame, HERE, 2, score) for frame, score in enumerate(SCORES)]
    return truth, right, [row(6 + frame, AWAY, 1, score) for frame, score in enumerate(SCORES[:wrong])]


def evaluated(truth: Path, predictions: list[str], *more: object, config: str) -> tuple[object, ...]:
    """The words of a command on these predictions, in this order."""
    path = truth.with_name("predictions.csv")
    path.write_text("\n".join(predictions) + "\n")
    return ("evaluate", "actions", "--truth", truth, "--predictions", path, "--config", config, *more)


@pytest.mark.slow
@pytest.mark.parametrize("config", ["ava-official", "mmaction2"])
def test_every_order_of_rows_gives_a_number_in_the_span(
    roadaware: Command, tmp_path: Path, config: str
) -> None:
    truth, right, wrong = files(tmp_path)
    rng = np.random.default_rng(0)
    orders = [right + wrong, wrong + right]
    orders += [[(right + wrong)[k] for k in rng.permutation(len(right + wrong))] for _ in range(6)]
    values, spans = [], []
    for predictions in orders:
        data = roadaware(*evaluated(truth, predictions, "--json", config=config)).data
        values.append(data["summary"]["map@0.5"])
        spans.append(data["facts"]["tied_scores"]["span"])
        assert data["facts"]["tied_scores"]["predictions"] == 12
    assert all(span == spans[0] for span in spans)
    assert set(spans[0]) == {"map@0.5", "ap@0.5:1"}
    low, high = spans[0]["map@0.5"]
    assert low < high
    assert low - 1e-9 <= min(values)
    assert max(values) <= high + 1e-9
    if config == "ava-official":  # the other ranks frames as the truth lists them
        assert (min(values), max(values)) == pytest.approx((low, high), abs=1e-9)


def test_terminal_and_page_say_so_in_one_sentence(roadaware: Command, tmp_path: Path) -> None:
    truth, right, wrong = files(tmp_path)
    page = tmp_path / "page.html"
    done = roadaware(*evaluated(truth, right + wrong, "--html", page, config="ava-official"))
    assert done.code == 0, done.err
    said = "12 predictions share their score with others, some right and some wrong"
    assert done.out.count("share their score") == 1
    assert said in done.out
    assert said in page.read_text()
    assert "tied scores" not in done.out


@pytest.mark.parametrize(("config", "wrong"), [("default", 6), ("ava-official", 0)])
def test_nothing_is_said_where_nothing_is_left_open(
    roadaware: Command, tmp_path: Path, config: str, wrong: int
) -> None:
    truth, right, off = files(tmp_path, wrong)
    data = roadaware(*evaluated(truth, right + off, "--json", config=config)).data
    assert "tied_scores" not in data["facts"]
    assert not any("share their score" in note for note in data["run"]["notes"])
