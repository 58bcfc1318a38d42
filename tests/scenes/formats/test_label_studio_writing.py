"""Tasks of Label Studio written and read again: boxes within the tolerance, frames and all else exactly."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from lxml import etree

from example_counts import tried
from roadaware.datasets import read
from roadaware.datasets.label_studio_tasks import interpolate_keyframes, select_keyframes
from roadaware.errors import UsageError
from roadaware.formats.label_studio import read_predictions, write_label_studio
from roadaware.scenes.tables import Meta, Predictions, Scenes

DATA = Path(__file__).resolve().parents[2] / "data"
CORNERS = ("x1_px", "y1_px", "x2_px", "y2_px")
_QUIET = tried(60, database=None, derandomize=True, suppress_health_check=list(HealthCheck))


def maker(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"make_{name}", DATA / name / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def again(scenes: Scenes, folder: Path, **options: Any) -> Scenes:
    write_label_studio(scenes, folder / "tasks.json", **options)
    return read("label_studio", folder / "tasks.json", cache=False)


@pytest.mark.parametrize("media", ["video", "image"])
def test_an_export_comes_back_as_it_was(tmp_path: Path, media: str) -> None:
    make = maker("label_studio")
    task = make.video_task if media == "video" else make.image_task
    path = tmp_path / "export.json"
    path.write_text(json.dumps([task(1, "a"), task(2, "b")]))
    before = read("label_studio", path, cache=False)
    after = again(before, tmp_path, tolerance_px=0)
    assert after.meta.vocabularies == before.meta.vocabularies
    for name, frame in before.tables().items():
        found = after.tables()[name]
        if name == "boxes":
            assert found.drop(CORNERS).equals(frame.drop(CORNERS))
            assert found.select(CORNERS).to_numpy() == pytest.approx(frame.select(CORNERS).to_numpy())
        else:
            assert found.equals(frame), name


@st.composite
def tracks(draw: st.DrawFn) -> Scenes:
    """Tracks with gaps and jumps in two videos, labelled."""
    rows: list[dict[str, Any]] = []
    tubes: list[dict[str, Any]] = []
    for video in ("v/1.mp4", "v 2"):
        for _ in range(draw(st.integers(0, 3))):
            frames = sorted(draw(st.sets(st.integers(0, 24), min_size=1, max_size=20)))
            start, speed = draw(st.integers(0, 50)), draw(st.sampled_from([0.0, 1.5, -2.25]))
            shakes = draw(st.lists(st.sampled_from([0.0, 0.25, 3.0]), min_size=25, max_size=25))
            for frame in frames:
                left = 100 + start + speed * frame + shakes[frame]
                box = (left, 50.0 + shakes[-1 - frame], left + 30, 90.5 + frame)
                place = {"video": video, "frame": frame, "tube": len(tubes)}
                rows.append({"box": len(rows), **place, **dict(zip(CORNERS, box, strict=True))})
            tubes.append({"tube": len(tubes), "video": video, "name": f"t{len(tubes)}"})
    videos = {"video": ["v/1.mp4", "v 2"], "width_px": 640, "height_px": 360, "fps": 25.0, "n_frames": 25}
    kinds = {"tube": "tube", "kind": pl.lit("agent"), "label": pl.col("tube") % 2}
    held = pl.DataFrame(tubes, schema={"tube": pl.Int64, "video": pl.String, "name": pl.String})
    corners = dict.fromkeys(CORNERS, pl.Float64)
    schema = {"box": pl.Int64, "video": pl.String, "frame": pl.Int64, "tube": pl.Int64, **corners}
    return Scenes(
        videos=pl.DataFrame(videos),
        boxes=pl.DataFrame(rows, schema=schema),
        tubes=held,
        tube_labels=held.select(**kinds),
        meta=Meta(vocabularies={"agent": ("car", "man")}),
    )


@pytest.mark.slow
@_QUIET
@given(tracks(), st.sampled_from([0.0, 0.5, 5.0]))
def test_frames_are_exact_and_boxes_within_the_tolerance(
    tmp_path_factory: pytest.TempPathFactory, scenes: Scenes, tolerance: float
) -> None:
    after = again(scenes, tmp_path_factory.mktemp("tasks"), tolerance_px=tolerance)
    assert after.videos["video"].to_list() == scenes.videos["video"].to_list()
    names = ["video", "name", "frame"]
    held = [
        each.boxes.join(each.tubes.select("tube", "name"), on="tube").sort(names) for each in (scenes, after)
    ]
    assert held[0].select(names).equals(held[1].select(names))
    away = held[0].select(CORNERS).to_numpy() - held[1].select(CORNERS).to_numpy()
    assert np.abs(away).max(initial=0) <= tolerance + 1e-6
    words = [
        each.tube_labels.join(each.tubes.select("tube", "name"), on="tube")
        .with_columns(
            word=pl.col("label").replace_strict(
                dict(enumerate(each.meta.vocabularies.get("agent", ()))), default=None, return_dtype=pl.String
            )
        )
        .select("name", "kind", "word")
        .rows()
        for each in (scenes, after)
    ]
    assert words[0] == words[1]


def test_a_straight_way_needs_two_keyframes(tmp_path: Path) -> None:
    frames = np.array([*range(10), *range(20, 25)])
    values = np.outer(frames, [1.0, 2.0]) + 7
    places, enabled = select_keyframes(frames, values, 1e-9)
    assert places.tolist() == [0, 9, 10, 14]
    assert enabled.tolist() == [True, False, True, False]
    values[4, 0] += 1
    places, _ = select_keyframes(frames, values, 0.5)
    assert places.tolist() == [0, 3, 4, 5, 9, 10, 14]
    seen, found = interpolate_keyframes(frames[places], _, values[places], 30)
    assert seen.tolist() == frames.tolist()
    assert np.abs(found - values).max() <= 0.5
    assert len(select_keyframes(frames, values, 1.0)[0]) == 4


@pytest.mark.parametrize(("tolerance", "moved"), [(0.5, 1), (0.0, 0)])
def test_boxes_that_come_back_elsewhere_are_counted(tmp_path: Path, tolerance: float, moved: int) -> None:
    left = [1.0, 2.0, 2.5, 20.0, 20.0, 20.0]
    scenes = Scenes(
        videos=pl.DataFrame({"video": ["v"], "width_px": 640, "height_px": 480, "n_frames": 9}),
        frames=pl.DataFrame({"video": "v", "frame": range(9)}),
        boxes=pl.DataFrame({"box": range(6), "video": "v", "frame": [0, 1, 2, 4, 5, 6], "tube": 0, "x1_px": left,
                            "y1_px": 1.0, "x2_px": [x + 9 for x in left], "y2_px": 9.0}),
        tubes=pl.DataFrame({"tube": [0], "video": "v", "name": "7"}),
    )  # fmt: skip
    written = write_label_studio(scenes, tmp_path / "tasks.json", tolerance_px=tolerance)
    back = read("label_studio", tmp_path / "tasks.json", cache=False).boxes
    differ = (back["x1_px"].cast(pl.Float64) - pl.Series(left)).abs() > 1e-3
    assert (sum(written.left_out.values()), int(differ.sum())) == (moved, moved)


def test_a_set_of_relations_can_be_corrected_in_label_studio(tmp_path: Path) -> None:
    make = maker("vidvrd")
    make.make(tmp_path / "set")
    scenes = read("vidvrd", tmp_path / "set", cache=False)
    written = write_label_studio(scenes, tmp_path / "tasks.json", config=tmp_path / "config.xml")
    assert (written.tasks, written.regions, written.boxes) == (3, 12, 138)
    assert written.keyframes == 24
    assert written.left_out == {"spans of relations that are shorter than both tracks": 6}
    after = read("label_studio", tmp_path / "tasks.json", cache=False)
    assert after.meta.vocabularies == scenes.meta.vocabularies
    for columns in (("subject", "object", "predicate"), ("video",)):
        assert after.relations.select(columns).equals(scenes.relations.select(columns))
    root = etree.fromstring((tmp_path / "config.xml").read_bytes())
    assert [label.get("value") for label in root.iter("Label")] == list(scenes.meta.vocabularies["category"])
    assert [each.get("value") for each in root.iter("Relation")] == list(
        scenes.meta.vocabularies["predicate"]
    )
    assert root.find("Video").get("frameRate") == "$fps"
    controls = {each.get("name") for each in root.iter() if each.get("toName")}
    used = {
        r["from_name"]
        for t in json.loads((tmp_path / "tasks.json").read_text())
        for r in t["annotations"][0]["result"]
        if "from_name" in r
    }
    assert used <= controls


def test_predictions_become_predictions_with_scores(tmp_path: Path) -> None:
    corners = {name: [10.0 + n, 11.0 + n, 200.0 + n] for n, name in enumerate(CORNERS)}
    predictions = Predictions(
        boxes=pl.DataFrame(
            {"box": [0, 1, 2], "video": "clip.mp4", "frame": [3, 4, 4], "tube": [0, 0, None], **corners}
        ).with_columns(score=pl.Series([0.5, 0.75, 0.25])),
        tubes=pl.DataFrame({"tube": [0], "video": ["clip.mp4"], "name": ["a"]}),
        labels=pl.DataFrame({"box": [0, 1, 2], "kind": "agent", "label": [1, 1, 0]}),
        meta=Meta(vocabularies={"agent": ("car", "man")}),
    )
    videos = pl.DataFrame({"video": ["clip.mp4"], "width_px": [640], "height_px": [360], "n_frames": [9]})
    write_label_studio(predictions, tmp_path / "tasks.json", videos=videos)
    (task,) = json.loads((tmp_path / "tasks.json").read_text())
    assert task["predictions"][0]["score"] == 0.5
    found = read_predictions(tmp_path / "tasks.json")
    assert found.tubes.select("name", "start_frame", "end_frame", "score").rows() == [
        ("a", 3, 5, 0.75),
        ("box-2", 4, 5, 0.25),
    ]
    assert found.boxes.select(CORNERS).to_numpy() == pytest.approx(
        predictions.boxes.select(CORNERS).to_numpy()
    )
    assert found.tube_labels["label"].to_list() == [1, 0]


def test_odd_words_make_a_config_that_is_xml(tmp_path: Path) -> None:
    words = ('<a href="x">&', "it's \x1b[2J", "führt\u2028aus")
    frame = pl.DataFrame({"box": [0], "video": ["v"], "frame": [0], **{c: [1.0] for c in CORNERS}})
    scenes = Scenes(
        videos=pl.DataFrame({"video": ["v"], "width_px": [10], "height_px": [10]}),
        boxes=frame,
        labels=pl.DataFrame({"box": [0], "kind": ["box"], "label": [0]}),
        meta=Meta(vocabularies={"box": words}),
    )
    after = again(scenes, tmp_path, config=tmp_path / "config.xml")
    root = etree.fromstring((tmp_path / "config.xml").read_bytes())
    assert [label.get("value") for label in root.iter("Label")] == [
        words[0],
        "it's [2J",
        words[2],
    ]
    assert after.meta.vocabularies == {"box_of_region": words[:1]}


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    box = {"box": [0, 1], "video": "v", "frame": [3, 3], "tube": [0, 0], **{c: [1.0, 2.0] for c in CORNERS}}
    tubes = pl.DataFrame({"tube": [0], "video": ["v"]})
    sized = pl.DataFrame({"video": ["v"], "width_px": [10], "height_px": [10]})
    twice = Scenes(videos=sized, boxes=pl.DataFrame(box), tubes=tubes)
    cases = [
        (twice, {}, "two boxes in a frame"),
        (twice, {"tolerance_px": -1}, "from 0 on"),
        (twice.with_tables(videos=sized.drop("width_px")), {}, "size of v is not known"),
        (twice, {"videos": sized.with_columns(video=pl.lit("w"))}, "does not have"),
        (
            Scenes(videos=pl.DataFrame({"video": ["v", "w"], "n_frames": [1, 5]})),
            {},
            "1 images and 1 videos cannot be one project",
        ),
    ]
    for scenes, options, reason in cases:
        with pytest.raises(UsageError, match=reason):
            write_label_studio(scenes, tmp_path / "x.json", **options)
    assert not (tmp_path / "x.json").exists()
