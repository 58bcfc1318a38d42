"""Bad tracks: `crossing` answers and says what it left out, or gives an error that says what to do."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import roadaware as ra
from roadaware.cli import main
from roadaware.models.crossing.tabular import Boosting, Logistic

Row = tuple[Any, ...]
HEAD = "frame,track_id,x,y,w,h"
USUAL = ("--fps", "30", "--size", "1920x1080")


def walk(
    fps: float = 30, seconds: float = 2, *, who: str = "4", hole: tuple[int, int] = (0, 0), first: int = 0, x: float = 300.0,
    speed: float = 200.0,
) -> list[Row]:  # fmt: skip
    """Somebody who walks to the right: frame, id, left, top, width, height."""
    kept = (n for n in range(round(seconds * fps)) if not hole[0] <= n < hole[1])
    return [(first + n, who, x + speed * n / fps, 400.0, 60.0, 160.0) for n in kept]


def scaled(rows: Iterable[Row], across: float, down: float) -> list[Row]:
    return [(f, who, x * across, y * down, w * across, h * down) for f, who, x, y, w, h in rows]


def table(rows: Iterable[Row], head: str = HEAD) -> str:
    return "\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n"


BAD_ROWS = [
    (60, "4", "nan", 400, 60, 160), (61, "4", 300, 400, -5, 160), (62, "", 300, 400, 60, 160), ("x", "4", 300, 400, 60, 160),
    (63, "4", 1e30, 400, 60, 160), (64, "4", 300, 400, 60, 1e30), (65, "4", 300, 400, 0, 160),
]  # fmt: skip
CALENDAR = [(1.7e9 + n / 30, *row[1:]) for n, row in enumerate(walk())]
LABELLED = [(*row, "person" if row[0] % 3 else "car") for row in walk()]
COCO = {
    "images": [{"id": n, "file_name": f"v/{n:04d}.jpg", "width": 1920, "height": 1080} for n in range(40)],
    "categories": [{"id": 1, "name": "person"}],
    "annotations": [
        {"id": n, "image_id": n, "category_id": 1, "bbox": [300 + 6 * n, 400, 60, 160], "track_id": 7} for n in range(40)
    ],
}  # fmt: skip
UNTRACKED = {**COCO, "annotations": [{**each, "track_id": None} for each in COCO["annotations"]]}  # type: ignore[dict-item]
NAMED = ("--columns", "frame=Bild", "id=Wer", "left=links", "top=oben", "width=breite", "height=hoch")
NUMBERED = ("--columns", "frame=1", "id=2", "left=3", "top=4", "width=5", "height=6")

ANSWERED: dict[str, tuple[str, str, tuple[str, ...], int, str]] = {
    # name: (file, its text, options, moments, what is said)
    **{
        f"{fps} frames a second": ("t.csv", table(walk(fps)), ("--fps", str(fps), "--size", "1920x1080"), low, "")
        for fps, low in ((5, 41), (10, 44), (15, 45), (25, 45), (50, 46), (60, 46))
    },
    "every third frame": ("t.csv", table(walk()[::3]), USUAL, 44, ""),
    "rows out of order": ("t.csv", table(walk()[::-1]), USUAL, 46, ""),
    "frames from a million": ("t.csv", table(walk(first=1_000_000)), USUAL, 46, ""),
    "one box beside others": ("t.csv", table([*walk(), (3, "9", 10, 10, 30, 90)]), USUAL, 46, "1 people have fewer than 15"),
    "a short hole": ("t.csv", table(walk(hole=(20, 30))), USUAL, 46, ""),
    "a long hole": ("t.csv", table(walk(hole=(20, 40))), USUAL, 12, "1 people come back after more than 0.5 s"),
    "an id that comes back elsewhere": (
        "t.csv", table(walk(30, 1) + walk(30, 1, first=90, x=1200)), USUAL, 32, "1 people come back after more than 0.5 s",
    ),
    "an id that goes over to somebody else": (
        "t.csv", table(walk(30, 1) + walk(30, 1, first=30, x=1500)), USUAL, 32, "1 people are suddenly elsewhere",
    ),
    "an id twice in a frame": (
        "t.csv", table(walk() + walk(x=1000)), USUAL, 46, "60 rows of the tracks were refused: a second box of the same id",
    ),
    "out of the image while crossing": (
        "t.csv", table(walk(30, 4, x=1200, speed=300)), USUAL, 58,
        "48 boxes that lie outside of the image are not asked about",
    ),
    "pixels of a larger image": (
        "t.csv", table(scaled(walk(x=700), 2, 2)), USUAL, 25, "reach out of an image of 1920x1080: is --size",
    ),
    "pixels of a smaller image": (
        "t.csv", table(scaled(walk(), 0.25, 0.25)), USUAL, 46, "no box of 60 reaches beyond 188x140 of an image of 1920x1080",
    ),
    "shares of the image": ("t.csv", table(scaled(walk(), 1 / 1920, 1 / 1080)), USUAL, 46, "were brought to 1920x1080"),
    "far too small boxes": ("t.csv", table(scaled(walk(), 0.02, 0.02)), USUAL, 46, "46 moments have a box smaller than any"),
    "broken rows": (
        "t.csv", table(walk() + BAD_ROWS), USUAL, 46,
        "4 rows of the tracks were refused: a corner is no finite number (1); the box is upside down, x2 < x1 (1)",
    ),
    "classes that contradict themselves": (
        "t.csv", table(LABELLED, HEAD + ",class"), USUAL, 46,
        "1 tracks are called people in some rows and other things in others",
    ),
    "no class of people": (
        "t.csv", table([(*r, "car") for r in walk()], HEAD + ",class"), USUAL, 46, "every track is asked about",
    ),
    "times in place of frames": (
        "t.csv", table([(r[0] / 30, *r[1:]) for r in walk()], "t" + HEAD[5:]), USUAL, 46, "t is 't'",
    ),
    "times of a calendar": (
        "t.csv", table(CALENDAR, "time" + HEAD[5:]), USUAL, 46, "times are counted from the first of each video",
    ),
    "names that nobody knows": (
        "t.csv", table(walk(), "Bild,Wer,links,oben,breite,hoch"), (*USUAL, *NAMED), 46, "id is 'Wer'",
    ),
    "a column that is not read": (
        "t.csv", table([(*r, 7) for r in walk()], HEAD + ",mood"), USUAL, 46, "not read: mood",
    ),
    "no header, numbers given": (
        "t.csv", table(walk()[1:], table(walk()).splitlines()[1]), (*USUAL, *NUMBERED), 46, "frame is '1'",
    ),
    "MOT with a broken line": (
        "t.txt", "".join(f"{n + 1},1,{300 + 6 * n},400,60,160,1\n" for n in range(40)) + "41,1,x\n", USUAL, 26,
        "1 rows of the tracks were refused: 3 fields",
    ),
    "COCO with tracks": ("t.json", json.dumps(COCO), USUAL, 26, ""),
}  # fmt: skip
REFUSED: dict[str, tuple[str, str, tuple[str, ...], int, str]] = {
    # name: (file, its text, options, exit code, what is said)
    "one box": ("t.csv", table(walk()[:1]), USUAL, 3, "nobody is followed for 15 boxes"),
    "a box a second": (
        "t.csv", table(walk(1, 20, speed=50)), ("--fps", "1", *USUAL[2:]), 3, "further apart than 0.5 s begin anew",
    ),
    "no rate": ("t.csv", table(walk()), USUAL[2:], 2, "--fps 30"),
    "no size": ("t.csv", table(walk()), USUAL[:2], 2, "--size 1920x1080"),
    "shares and no size": ("t.csv", table(scaled(walk(), 1 / 1920, 1 / 1080)), USUAL[:2], 2, "in parts of the image"),
    "all boxes outside": ("t.csv", table(walk(x=5000)), USUAL, 3, "no box lies in its image: there are 60"),
    "two columns of frames": (
        "t.csv", table([(r[0], *r) for r in walk()], "image_id," + HEAD), USUAL, 3, "say which: --columns frame=image_id",
    ),
    "two columns of ids": ("t.csv", table([(1, *r) for r in walk()], "id," + HEAD), USUAL, 3, "say which: --columns id="),
    "unknown columns": ("t.csv", table(walk(), "a,b,c,d,e,f"), USUAL, 3, "say which is which, such as --columns"),
    "no header": ("t.csv", table(walk()[1:], table(walk()).splitlines()[1]), USUAL, 3, "the names of columns are missing"),
    "semicolons": ("t.csv", table(walk()).replace(",", ";"), USUAL, 3, "expected commas between cells"),
    "milliseconds": (
        "t.csv", table([(r[0] * 33.3, *r[1:]) for r in walk()], "time" + HEAD[5:]), USUAL, 3, "divide milliseconds by 1,000",
    ),
    "no row that can be taken": ("t.csv", table(BAD_ROWS[:4]), USUAL, 3, "the first reason: a corner is no finite number"),
    "a header alone": ("t.csv", HEAD + "\n", USUAL, 3, "none of 0 rows"),
    "nothing": ("t.csv", "", USUAL, 3, "found nothing"),
    "COCO without tracks": ("t.json", json.dumps(UNTRACKED), USUAL, 3, "no box has the id of somebody"),
    "no table": ("t.jpg", "x", USUAL, 2, "is no table of tracks"),
    "broken rows under --strict": (
        "t.csv", table(walk() + BAD_ROWS), (*USUAL, "--strict"), 1, "line 62: a corner is no finite",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERED)
def test_what_can_be_answered_is_and_what_is_left_out_is_counted(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, text, options, moments, told = ANSWERED[name]
    (tmp_path / file).write_text(text)
    out = tmp_path / "out"
    assert main(["crossing", str(tmp_path / file), "--output", str(out), *options]) == 0
    said = capsys.readouterr()
    assert told in said.out + said.err
    scores = pl.read_parquet(out / "scores.parquet")
    assert len(scores) == moments
    assert scores["probability"].is_between(0, 1).all()
    assert scores["frame"].is_sorted()


@pytest.mark.parametrize("weights", ["risk-jaad", "crossing-time-jaad", "logistic"])
def test_every_predictor_answers_the_same_moments(weights: str, tmp_path: Path) -> None:
    """Networks, trees of the time and models on hand features are asked of whatever the bundled classifier answers."""
    if weights == "logistic":
        weights = str(tmp_path / "model.npz")
        Logistic.create(vehicle=False).fit(Street(300, 0), Street(200, 1)).save(Path(weights))
    model = ra.load_model(weights)
    for name, (file, text, options, moments, _) in ANSWERED.items():
        if "--columns" in options:
            continue  # names of columns are an option of the command alone
        (tmp_path / file).write_text(text)
        found = ra.predict_crossing(
            tmp_path / file, model, fps=float(options[1]), size=(1920, 1080), when=False
        )
        assert len(found) == moments, name
        assert found["probability"].is_between(0, 1).all(), name


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_answered_says_what_to_do(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, text, options, code, told = REFUSED[name]
    (tmp_path / file).write_text(text)
    assert main(["crossing", str(tmp_path / file), "--output", str(tmp_path / "out"), *options]) == code
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


class Street:
    """Observations of people who walk or stand, with who crosses."""

    def __init__(self, n: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        speed, height = rng.normal(0, 4, n), rng.uniform(80, 300, (n, 1))
        x = rng.uniform(100, 1500, (n, 1)) + speed[:, None] * np.arange(15)
        top = np.full_like(x, 400.0)
        self.boxes = np.stack([x, top, x + 0.4 * height, top + height], axis=-1)
        self.vehicle_action = np.full((n, 15), np.nan)
        self.width_px, self.height_px = np.full(n, 1920.0), np.full(n, 1080.0)
        self.traffic = None
        self.truth = (np.abs(speed) > 3).astype(np.int64)


@pytest.mark.parametrize("model", [Logistic, Boosting])
def test_models_on_hand_features_are_asked_of_tracks_as_of_arrays(
    model: type[Logistic] | type[Boosting], tmp_path: Path
) -> None:
    fitted = model.create(vehicle=False).fit(Street(300, 0), Street(200, 1))
    fitted.save(tmp_path / "model.npz")
    (tmp_path / "t.csv").write_text(table(walk()))
    found = ra.predict_crossing(
        tmp_path / "t.csv", tmp_path / "model.npz", fps=30, size=(1920, 1080), steady_s=0, when=False
    )
    street = Street(46, 0)
    x = np.stack([[row[2] for row in walk()[n : n + 15]] for n in range(46)])
    street.boxes = np.stack([x, np.full_like(x, 400), x + 60, np.full_like(x, 560)], axis=-1)
    assert found["probability"].to_numpy() == pytest.approx(fitted.predict(street)[:, 0], abs=1e-6)
    assert found["low"].null_count() == 46


def test_a_model_that_reads_the_vehicle_says_what_tracks_lack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    street, held_out = Street(300, 0), Street(200, 1)
    for each in (street, held_out):
        each.vehicle_action = np.zeros_like(each.vehicle_action)
    Logistic.create().fit(street, held_out).save(tmp_path / "model.npz")
    (tmp_path / "t.csv").write_text(table(walk()))
    given = ["crossing", str(tmp_path / "t.csv"), *USUAL, "--weights", str(tmp_path / "model.npz")]
    assert main([*given, "--output", str(tmp_path / "out")]) == 3
    said = capsys.readouterr().err
    assert "vehicle_action" in said
    assert "a predictor of boxes alone" in said
    assert not (tmp_path / "out").exists()
