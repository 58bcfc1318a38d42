"""Ten mistakes planted by hand in files of four tasks: `doctor` names each, and what it corrects scores as the sound file."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_files import Command

from roadaware.demo_data.chaos import write_chaos
from roadaware.demo_data.corner_files import BASE, PROPOSALS, write_corner_demo
from roadaware.demo_data.road import write_road_demo
from roadaware.formats.road_detections import encode_pickle
from roadaware.io.pickles import load

PEOPLE, EACH = 24, 7
Plant = Callable[[Path], None]


def edit_rows(change: Callable[[Any], Any]) -> Plant:
    """A change of every row of the detections of ROAD: (n, columns) four corners, then scores."""

    def plant(folder: Path) -> None:
        for path in folder.rglob("*.pkl"):
            held = load(path.read_bytes(), path.name)
            held["main"] = change(np.array(held["main"], dtype=np.float64)).astype(np.float32)
            path.write_bytes(encode_pickle(held))

    return plant


def number_frames_from_one_more(folder: Path) -> None:
    for path in sorted(folder.rglob("*.pkl"), reverse=True):
        path.rename(path.with_name(f"{int(path.stem) + 1:05d}.pkl"))


def name_other_videos(folder: Path) -> None:
    for path in [each for each in folder.iterdir() if each.is_dir()]:
        path.rename(path.with_name(f"{path.name}.mp4"))


def give_shares(rows: Any) -> Any:
    return np.hstack([rows[:, :4] / [682, 512, 682, 512], rows[:, 4:]])


def give_logits(rows: Any) -> Any:
    inside = np.clip(rows[:, 4:], 1e-6, 1 - 1e-6)
    return np.hstack([rows[:, :4], np.log(inside / (1 - inside))])


def give_pixels_of_small_images(path: Path) -> None:
    """Of images that a network was given with 640 x 360 pixels."""
    truth = json.loads((path.parents[1] / "truth.json").read_text())
    factor = {each["id"]: (640 / each["width"], 360 / each["height"]) for each in truth["images"]}
    listed = json.loads(path.read_text())
    for each in listed:
        each["bbox"] = [number * factor[each["image_id"]][n % 2] for n, number in enumerate(each["bbox"])]
    path.write_text(json.dumps(listed))


def edit_results(change: Callable[[list[float]], list[float]]) -> Plant:
    def plant(path: Path) -> None:
        listed = json.loads(path.read_text())
        for each in listed:
            each["bbox"] = change(each["bbox"])
        path.write_text(json.dumps(listed))

    return plant


def edit_csv(column: int, change: Callable[[str], str]) -> Plant:
    def plant(path: Path) -> None:
        with path.open(newline="") as file:
            rows = list(csv.reader(file))
        for row in rows:
            row[column] = change(row[column])
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)

    return plant


def edit_samples(column: int, change: Callable[[float], float]) -> Plant:
    def plant(folder: Path) -> None:
        head, *lines = (folder / "samples.csv").read_text().splitlines()
        rows = [line.split(",") for line in lines]
        for row in rows:
            row[column] = f"{change(float(row[column])):g}"
        (folder / "samples.csv").write_text("\n".join([head, *(",".join(row) for row in rows)]) + "\n")

    return plant


MISTAKES: list[tuple[str, str, str, Plant]] = [
    ("road", "frames numbered from one more", "1 late", number_frames_from_one_more),
    ("road", "videos by other names", "Videos have other names", name_other_videos),
    ("road", "shares of the image for pixels", "shares of the image", edit_rows(give_shares)),
    ("road", "logits for scores", "logits", edit_rows(give_logits)),
    ("corner-cases", "second corner for width and height", "second corner where width and height",
     edit_results(lambda b: [b[0], b[1], b[0] + b[2], b[1] + b[3]])),
    ("corner-cases", "pixels of smaller images", "pixels of images of 640x360", give_pixels_of_small_images),
    ("actions", "classes from 0", "low by one", edit_csv(6, lambda word: str(int(word) - 1))),
    ("actions", "per cent for scores", "per cent", edit_csv(7, lambda word: str(100 * float(word)))),
    ("pedestrians", "seconds for frames", "seconds", edit_samples(2, lambda frames: frames / 30)),
    ("pedestrians", "classes from 1", "from 1", edit_samples(0, lambda label: label + 1)),
]  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[str], Path]]:
    """Task to the words of the command but for the predictions, and where these lie."""
    root = tmp_path_factory.mktemp("sound")
    write_road_demo(root / "road", videos=6, frames=60)
    write_chaos(root / "chaos")
    write_corner_demo(root / "corner")
    rng, actions, people = np.random.default_rng(0), root / "chaos" / "actions", root / "people"
    people.mkdir()
    label = np.repeat(np.arange(PEOPLE) % 3 == 0, EACH).astype(int)
    logit = np.repeat(rng.normal(0, 1, PEOPLE), EACH) + 3 * label - 1.5 + rng.normal(0, 0.1, len(label))
    (people / "scores.csv").write_text("".join(f"{1 / (1 + math.exp(-each)):.9g}\n" for each in logit))
    rows = [
        f"{each},p{n // EACH},{90 - 10 * (n % EACH)},v{n // EACH % 4},x\n" for n, each in enumerate(label)
    ]
    (people / "samples.csv").write_text("truth,pedestrian,tte_frames,video,weather\n" + "".join(rows))
    corner = ["--truth", str(root / "corner" / BASE)]
    return {
        "road": (["--truth", str(root / "road")], root / "road" / "detections"),
        "actions": (
            ["--truth", str(actions / "gt.csv"), "--labels", str(actions / "action_list.pbtxt")],
            actions / "pred.csv",
        ),
        "corner-cases": (corner, root / "corner" / PROPOSALS),
        "pedestrians": ([], people),
    }


def call_doctor(roadaware: Command, task: str, words: list[str], place: Path, *more: str) -> Any:
    """What the command says of predictions, as data; what it notes beside mistakes is left out."""
    named = ["--predictions", str(place)]
    if task == "pedestrians":
        named = ["--scores", str(place / "scores.csv"), "--samples", str(place / "samples.csv")]
    done = roadaware("doctor", task, *words, *named, *more, "--json")
    assert done.code == 0, done.err
    data = done.data
    data["diagnoses"] = [each for each in data["diagnoses"] if each["severity"] != "note"]
    return data


@pytest.mark.slow
def test_ten_of_ten_are_named_and_their_scores_are_given(
    roadaware: Command, sound: dict[str, tuple[list[str], Path]], tmp_path: Path
) -> None:
    assert len(MISTAKES) == 10
    assert {task for task, *_ in MISTAKES} == set(sound)
    clean = {}
    for task, (words, place) in sound.items():
        found = call_doctor(roadaware, task, words, place)
        assert found["diagnoses"] == [], task
        clean[task] = found["score"]["before"]
    shutil.copy(sound["corner-cases"][0][1], tmp_path / "truth.json")
    for n, (task, what, says, plant) in enumerate(MISTAKES):
        words, place = sound[task]
        given, mended = tmp_path / str(n) / place.name, tmp_path / f"{n}-mended" / place.name
        (shutil.copytree if place.is_dir() else shutil.copy)(
            place, given if place.is_dir() else (given.parent.mkdir(), given)[1]
        )
        mended.parent.mkdir()
        plant(given)
        found = call_doctor(roadaware, task, words, given, "--output", str(mended))
        named = " ".join(f"{each['code']} {each['says']} {each['remedy']}" for each in found["diagnoses"])
        assert says in named, f"{task}, {what}: {named}"
        assert len(found["diagnoses"]) == 1, f"{what}: {named}"
        before, after = found["score"]["before"], found["score"]["after"]
        assert after == pytest.approx(clean[task], abs=2e-3), what
        assert before is None or before < after, f"{what}: {before} and {after}"
        # What it says is what the corrected file scores.
        again = call_doctor(roadaware, task, words, mended)
        assert again["diagnoses"] == [], what
        assert again["score"]["before"] == after
