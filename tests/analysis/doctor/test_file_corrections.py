"""A mistake planted in a whole file of predictions is named and undone, and the corrected file scores as the clean one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from roadaware.analysis.corrected_scores import CorrectedTask, Source, correct_file
from roadaware.analysis.corrected_scores import _open as open_raw
from roadaware.analysis.doctor.corrections import TrueBoxes, find_corrections
from roadaware.demo_data.chaos import write_chaos
from roadaware.demo_data.corner_files import write_corner_demo
from roadaware.demo_data.detector import Detector
from roadaware.demo_data.road import write_road_demo
from roadaware.errors import InputError
from roadaware.formats.raw_predictions import RawPredictions
from roadaware.formats.road_detections import encode_pickle

Change = Callable[[RawPredictions], RawPredictions]


def _unit(raw):
    return np.tile(raw.image_px / raw.unit_px, 2)


def _sides(raw):
    c = raw.corners
    return raw.with_changes(corners=np.hstack([c[:, :2], c[:, 2:] - c[:, :2]]))


def _centre(raw):
    c = raw.corners
    if raw.holds_sides:  # the file holds left, top, width, height
        return raw.with_changes(corners=c + np.tile((c[:, 2:] - c[:, :2]) / 2, 2))
    return raw.with_changes(corners=np.hstack([(c[:, :2] + c[:, 2:]) / 2, c[:, 2:] - c[:, :2]]))


def _second_corners(raw):
    c = raw.corners
    return raw.with_changes(corners=np.hstack([c[:, :2], c[:, :2] + c[:, 2:]]))


def _logit(values):
    p = np.clip(values, 1e-6, 1 - 1e-6)
    return np.log(p / (1 - p))


def _moved(frames):
    return lambda raw: raw.move(lambda frame: frame + frames)


def _renamed(raw):
    return raw.rename({name: f"clips/{name}.mp4" for name in raw.video.unique().to_list()})


BOXES: dict[str, tuple[str, Change]] = {
    "late": ("1 late", _moved(1)),
    "late by seven": ("7 late", _moved(7)),
    "sides": ("width and height where the second corner", _sides),
    "centre": ("centre", _centre),
    "exchanged": ("x and y exchanged", lambda raw: raw.with_changes(corners=raw.corners[:, [1, 0, 3, 2]])),
    "shares": ("are shares of the image", lambda raw: raw.with_changes(corners=raw.corners / _unit(raw))),
    "per cent": (
        "are per cent of the image",
        lambda raw: raw.with_changes(corners=raw.corners / _unit(raw) * 100),
    ),
    "640": (
        "pixels of images of 640x360",
        lambda raw: raw.with_changes(corners=raw.corners / _unit(raw) * np.array([640, 360] * 2)),
    ),
    "logits": ("Scores are logits", lambda raw: raw.rescale(_logit)),
    "percent": ("Scores are per cent", lambda raw: raw.rescale(lambda p: 100 * p)),
    "inverted": ("Scores are low", lambda raw: raw.rescale(lambda p: 1 - p)),
}
NAMES: dict[str, tuple[str, Change]] = {"names": ("Videos have other names", _renamed)}
SIDES: dict[str, tuple[str, Change]] = {
    "second corners": ("second corner where width and height", _second_corners),
}
COLUMNS: dict[str, tuple[str, Change]] = {
    "moved columns": (
        "Columns of agent scores are moved by one to the right",
        lambda raw: raw.with_changes(
            scores=np.hstack([raw.scores[:, :1], np.roll(raw.scores[:, 1:11], 1, axis=1), raw.scores[:, 11:]])
        ),
    ),
    "shares, sides and late": (
        "width and height",
        lambda raw: _sides(raw.with_changes(corners=raw.corners / _unit(raw)).move(lambda frame: frame + 1)),
    ),
}
LABELS: dict[str, tuple[str, Change]] = {
    "from 0": ("low by one", lambda raw: raw.with_changes(label=raw.label - 1)),
    "numbered otherwise": (
        "numbered otherwise",
        lambda raw: raw.with_changes(
            label=np.array([dict(zip(*_shuffled(raw.label), strict=True))[n] for n in raw.label.tolist()])
        ),
    ),
}


def _shuffled(label):
    known = sorted(set(label.tolist()))
    return known, np.random.default_rng(0).permutation(known).tolist()


CASES = [
    *(("corner-cases", name) for name in (*BOXES, *SIDES) if name != "sides"),  # which its form has
    *(("actions", name) for name in (*BOXES, *NAMES, *LABELS) if name != "shares"),  # which its form is
    *(("road", name) for name in (*BOXES, *NAMES, *COLUMNS)),
]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Source]:
    root = tmp_path_factory.mktemp("sets")
    write_road_demo(root / "road", videos=6, frames=60)
    write_chaos(root / "chaos")
    write_corner_demo(root / "corner")
    actions, corner = root / "chaos" / "actions", root / "corner"
    return {
        "road": Source("road", root / "road", root / "road" / "detections"),
        "actions": Source(
            "actions", actions / "gt.csv", actions / "pred.csv", labels=actions / "action_list.pbtxt"
        ),
        "corner-cases": Source("corner-cases", corner / "corner_case.json", corner / "proposals.json"),
    }


@pytest.fixture(scope="module")
def clean(sources: dict[str, Source]) -> dict[str, float]:
    found = {task: correct_file(source) for task, source in sources.items()}
    assert {task: each.findings for task, each in found.items()} == dict.fromkeys(sources, ())
    return {task: each.before or 0.0 for task, each in found.items()}


# A few of each task are fast, the others slow.
@pytest.mark.parametrize(
    ("task", "name"),
    [pytest.param(*case, marks=pytest.mark.slow if place % 6 else ()) for place, case in enumerate(CASES)],
)
def test_a_planted_mistake_is_named_and_undone(
    sources: dict[str, Source], clean: dict[str, float], task: CorrectedTask, name: str, tmp_path: Path
) -> None:
    says, change = {**BOXES, **NAMES, **SIDES, **COLUMNS, **LABELS}[name]
    source = sources[task]
    raw, _, _ = open_raw(source)
    planted, output = tmp_path / source.predictions.name, tmp_path / "corrected" / source.predictions.name
    output.parent.mkdir()
    changed = change(raw)
    changed.write(changed, planted)
    found = correct_file(replace(source, predictions=planted), output)
    assert says in " ".join(each.says for each in found.findings)
    codes = [each.code for each in found.findings if each.code != "strange_images"]
    assert len(codes) == (2 if name.startswith("shares,") else 1)
    assert found.after == pytest.approx(clean[task], abs=2e-3)
    if name != "inverted":  # which recall does not see
        assert found.before is None or found.before < clean[task]
    again = correct_file(replace(source, predictions=output))
    assert again.findings == ()
    assert again.before == found.after


@pytest.mark.parametrize("seed", range(3))
def test_a_poor_detector_is_no_mistake(tmp_path: Path, seed: int) -> None:
    write_road_demo(tmp_path, seed=seed, videos=2, frames=40, detector=Detector(jitter=0.15, missed=0.5))
    assert correct_file(Source("road", tmp_path, tmp_path / "detections")).findings == ()


def test_boxes_of_nothing_are_not_read_otherwise(sources: dict[str, Source], tmp_path: Path) -> None:
    raw, _, _ = open_raw(sources["road"])
    rng = np.random.default_rng(0)
    start = rng.uniform(0, 500, (len(raw.frame), 2))
    corners = np.hstack([start, start + rng.uniform(5, 150, start.shape)])
    noise = raw.with_changes(corners=corners)
    noise.write(noise, tmp_path / "detections")
    found = correct_file(replace(sources["road"], predictions=tmp_path / "detections"))
    assert found.findings == ()
    assert (found.before or 0) < 0.05


def test_whole_numbers_for_scores_are_no_per_cent(sources: dict[str, Source], tmp_path: Path) -> None:
    raw, _, _ = open_raw(sources["actions"])
    persons = raw.with_changes(scores=np.round(1 + 20 * raw.scores))
    persons.write(persons, tmp_path / "pred.csv")
    found = correct_file(replace(sources["actions"], predictions=tmp_path / "pred.csv"), tmp_path / "out.csv")
    assert not found.corrected
    assert not (tmp_path / "out.csv").exists()
    assert "numbers of persons" in found.reason


@pytest.mark.parametrize(
    "rows",
    [
        '[{"image_id": [1], "bbox": [1, 2, 3, 4], "score": 0.5}]',
        '[{"image_id": 1, "bbox": [1, 2, 3], "score": 0.5}]',
        '[{"image_id": 1, "bbox": [1, 2, 3, true], "score": 0.5}]',
        '[{"image_id": 1, "bbox": [1, 2, 3, 4], "score": [0.4]}]',
        '[{"image_id": true, "bbox": [1, 2, 3, 4], "score": 0.4}]',
        '[{"image_id": "7", "bbox": [1, 2, 3, 4], "score": 0.4}]',
        "[3]",
        "{}",
        "",
    ],
)
def test_what_are_no_results_is_refused(sources: dict[str, Source], tmp_path: Path, rows: str) -> None:
    (tmp_path / "rows.json").write_text(rows)
    with pytest.raises(InputError):
        correct_file(replace(sources["corner-cases"], predictions=tmp_path / "rows.json"))


@pytest.mark.parametrize(
    "line", ["v,1,0,0,1,1,2,abc", "video,timestamp,x1,y1,x2,y2,action,score", "v,1.5,0,0,1,1,2,.5", "v"]
)
def test_lines_that_are_no_actions_are_refused(sources: dict[str, Source], tmp_path: Path, line: str) -> None:
    (tmp_path / "pred.csv").write_text(f"crowd-01,0901,0.1,0.1,0.3,0.4,8,0.5\n{line}\n")
    with pytest.raises(InputError, match="a row should be"):
        correct_file(replace(sources["actions"], predictions=tmp_path / "pred.csv"))


def test_detections_without_scores_are_refused(sources: dict[str, Source], tmp_path: Path) -> None:
    place = tmp_path / "detections" / "v"
    place.mkdir(parents=True)
    (place / "00001.pkl").write_bytes(encode_pickle({"ego": np.zeros(0), "main": np.ones((2, 4))}))
    with pytest.raises(InputError, match="four corners, agentness"):
        correct_file(replace(sources["road"], predictions=tmp_path / "detections"))


def noisy_rows(
    shift: int, noise: float, kept: float, extra: float, seed: int
) -> tuple[RawPredictions, TrueBoxes]:
    """Tracks of eighty road users in ten videos, and detections of them that are jittered, missing, beside false ones."""
    rng = np.random.default_rng(seed)
    video, frame, corners, tracks = [], [], [], []
    for track in range(80):
        place, speed, side = rng.uniform(100, 1000, 2), rng.normal(0, 3, 2), rng.uniform(40, 200, 2)
        begin, end = int(rng.integers(0, 100)), int(rng.integers(130, 200))
        middle = place + speed * np.arange(end - begin)[:, None]
        video += [f"v{track % 10}"] * (end - begin)
        frame += range(begin, end)
        tracks += [track] * (end - begin)
        corners.append(np.hstack([middle - side / 2, middle + side / 2]))
    boxes = pl.DataFrame({"video": video, "frame": frame}).with_columns(
        pl.DataFrame(np.concatenate(corners), schema=["x1_px", "y1_px", "x2_px", "y2_px"])
    )
    some = boxes.filter(pl.Series(rng.random(len(boxes)) < kept))
    found = some.select("x1_px", "y1_px", "x2_px", "y2_px").to_numpy()
    found = found + np.tile(found[:, 2:] - found[:, :2], 2) * rng.normal(0, noise, found.shape)
    at = rng.integers(0, len(some), int(extra * len(some)))
    false = rng.uniform(0, 1000, (len(at), 2))
    found = np.vstack([found, np.hstack([false, false + rng.uniform(40, 200, (len(at), 2))])])
    frames = np.concatenate([some["frame"].to_numpy(), some["frame"].to_numpy()[at]]) + shift
    image = np.tile([1920.0, 1080.0], (len(found), 1))
    raw = RawPredictions(
        pl.concat([some["video"], some["video"].gather(at)]), frames, found, rng.random((len(found), 1)), None,
        np.ones_like(image), image, lambda rows, path: None,
    )  # fmt: skip
    return raw, TrueBoxes(boxes, np.array(tracks))


@pytest.mark.spread(5)
@pytest.mark.parametrize(("noise", "kept", "extra"), [(0.05, 1.0, 0.0), (0.1, 0.7, 0.5), (0.2, 0.4, 1.0)])
@pytest.mark.parametrize("shift", [0, 1, -2, 7, -25])
def test_frames_of_noisy_detections_are_found_to_the_frame(
    shift: int, noise: float, kept: float, extra: float
) -> None:
    raw, truth = noisy_rows(shift, noise, kept, extra, seed=abs(shift))
    found, rows = find_corrections(raw, truth, boxes_alone=True)
    assert (rows.frame == raw.frame - shift).all()
    assert len(found) == (shift != 0)


@pytest.mark.parametrize("shift", [2, -5])
def test_images_whose_detections_are_mostly_missing_are_found_too(
    shift: int, sources: dict[str, Source]
) -> None:
    raw, truth, _ = open_raw(sources["corner-cases"])
    kept = np.random.default_rng(0).random(len(raw.frame)) < 0.5
    half = raw.with_changes(
        video=raw.video.filter(pl.Series(kept)), frame=raw.frame[kept] + shift, corners=raw.corners[kept],
        scores=raw.scores[kept], label=None if raw.label is None else raw.label[kept],
        unit_px=raw.unit_px[kept], image_px=raw.image_px[kept],
    )  # fmt: skip
    _, rows = find_corrections(half, truth, boxes_alone=True)
    assert (rows.frame == half.frame - shift).all()


def test_the_corrected_score_of_noisy_late_detections_is_that_of_the_file_without_the_mistake(
    sources: dict[str, Source], tmp_path: Path
) -> None:
    raw, _, _ = open_raw(sources["actions"])
    rng = np.random.default_rng(1)
    kept = rng.random(len(raw.frame)) < 0.6
    side = np.tile(raw.corners[:, 2:] - raw.corners[:, :2], 2)
    noisy = raw.with_changes(
        video=raw.video.filter(pl.Series(kept)), frame=raw.frame[kept],
        corners=(raw.corners + side * rng.normal(0, 0.08, side.shape))[kept],
        scores=raw.scores[kept], label=None if raw.label is None else raw.label[kept],
        unit_px=raw.unit_px[kept], image_px=raw.image_px[kept],
    )  # fmt: skip
    found = {}
    for name, rows in (("right", noisy), ("late", _moved(3)(noisy))):
        (tmp_path / name).mkdir()
        planted = tmp_path / name / sources["actions"].predictions.name
        rows.write(rows, planted)
        found[name] = correct_file(replace(sources["actions"], predictions=planted))
    assert [each.code for each in found["late"].findings] == ["frames"]
    assert found["late"].after == pytest.approx(found["right"].before, abs=1e-12)
    assert found["right"].findings == ()
