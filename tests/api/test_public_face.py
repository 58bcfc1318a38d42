"""What `import roadaware as ra` offers, as somebody in a notebook uses it."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import roadaware as ra
from roadaware.cli import main
from roadaware.demo_data.road import generate_road_scenes
from roadaware.errors import InputError, UsageError
from roadaware.metrics.tracking_pairs import TrackingConfig
from roadaware.reports.runs import EVENT_ROWS
from roadaware.scenes.store import save


@pytest.fixture(scope="module")
def scenes() -> ra.Scenes:
    return generate_road_scenes(videos=3, frames=60, seed=1)


def _arrays(scenes: ra.Scenes) -> dict[str, object]:
    """The true agents of the annotated boxes as arrays, with scores."""
    named = scenes.labels.filter(pl.col("kind") == "agent").select("box", "label")
    rows = scenes.boxes.join(named, on="box").sort("video", "frame")
    classes = scenes.meta.vocabularies["agent"]
    return {
        "boxes": rows.select("x1_px", "y1_px", "x2_px", "y2_px").to_numpy(),
        "scores": np.linspace(0.5, 0.99, len(rows)),
        "frames": rows["frame"].to_numpy(),
        "videos": rows["video"].cast(pl.String).to_list(),
        "classes": classes,
        "labels": rows["label"].to_numpy(),
    }


def test_importing_loads_nothing_and_names_are_found() -> None:
    code = (
        "import sys, roadaware as ra\n"
        "heavy = {'numpy', 'polars', 'numba', 'torch'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert all(getattr(ra, name) is not None for name in ra.__all__)\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert set(ra.__all__) <= set(dir(ra))
    with pytest.raises(AttributeError, match="it has AdaptivePredictor, Model"):
        _ = ra.nothing  # type: ignore[attr-defined]


def test_ten_lines_from_arrays_to_numbers_pictures_and_a_page(scenes: ra.Scenes, tmp_path: Path) -> None:
    predictions = ra.Predictions.from_numpy(**_arrays(scenes))  # type: ignore[arg-type]
    tubes = ra.link(predictions)
    result = ra.evaluate(tubes, scenes, resamples=50)
    assert result.value("frame_map@0.5:agent") == pytest.approx(1.0)
    assert result.value("video_map@0.2:agent") > 0.5  # type: ignore[operator]
    row = result.summary.filter(pl.col("metric") == "frame_map@0.5:agent").row(0, named=True)
    assert row["low_video"] <= row["value"] <= row["high_video"]
    assert "frame_map@0.5:agent" in result._repr_html_()
    assert result.plot().axes
    page = result.to_html(tmp_path / "page.html").read_text()
    assert "<svg" in page or "<table" in page
    worse = ra.evaluate(ra.link(_shifted(scenes)), scenes, resamples=50)
    table = result.compare(worse, resamples=50)
    difference = table.filter(pl.col("metric") == "frame_map@0.5:agent")["difference"].item()
    assert difference == pytest.approx(1 - worse.value("frame_map@0.5:agent"))  # type: ignore[operator]
    moved = scenes.with_tables(boxes=scenes.boxes.with_columns(pl.col("x1_px") - 5))
    with pytest.raises(InputError, match="different ground truth"):
        result.compare(ra.evaluate(tubes, moved, resamples=0), resamples=5)


@pytest.mark.slow
def test_requirements_are_enforced_from_python(scenes: ra.Scenes, tmp_path: Path) -> None:
    rules = tmp_path / "rules.txt"
    rules.write_text("Car\n", encoding="utf-8")
    predictions = ra.Predictions.from_numpy(**_arrays(scenes))  # type: ignore[arg-type]
    found = ra.enforce(predictions, rules, threshold=0.5)
    car = list(scenes.meta.vocabularies["agent"]).index("Car")
    scores = np.array(found.boxes["scores"].to_list())
    before = np.array(predictions.boxes["scores"].to_list())
    column = scores.shape[1] - len(scenes.meta.vocabularies["agent"]) + car
    assert (scores[:, column] >= np.float32(0.5)).all()
    assert (before[:, column] < np.float32(0.5)).any()
    assert isinstance(ra.link(found), ra.Predictions)
    with pytest.raises(UsageError, match="threshold"):
        ra.enforce(predictions, rules, threshold=2.0)
    with pytest.raises(InputError, match=r"none\.txt"):
        ra.enforce(predictions, tmp_path / "none.txt")


def _shifted(scenes: ra.Scenes) -> ra.Predictions:
    """Every third box stands elsewhere."""
    held = _arrays(scenes)
    boxes = np.array(held["boxes"])
    boxes[::3] += 300
    return ra.Predictions.from_numpy(**{**held, "boxes": boxes})  # type: ignore[arg-type]


def test_scores_of_every_class_and_a_frame_of_a_table_give_the_same(scenes: ra.Scenes) -> None:
    held = _arrays(scenes)
    labels, scores = np.array(held["labels"]), np.array(held["scores"])
    dense = np.zeros((len(labels), len(held["classes"])))  # type: ignore[arg-type]
    dense[np.arange(len(labels)), labels] = scores
    one = ra.Predictions.from_numpy(**held)  # type: ignore[arg-type]
    other = ra.Predictions.from_numpy(**{**held, "scores": dense, "labels": None})  # type: ignore[arg-type]
    assert one == other
    names = list(held["classes"])  # type: ignore[call-overload]
    boxes = np.array(held["boxes"])
    table = pl.DataFrame(
        {
            "video": held["videos"],
            "frame": held["frames"],
            **{name: boxes[:, j] for j, name in enumerate(("x1_px", "y1_px", "x2_px", "y2_px"))},
            "score": scores,
            "label": [names[n] for n in labels],
        }
    )
    of_table = ra.Predictions.from_pandas(table)
    assert of_table.boxes.drop("scores").equals(one.boxes.drop("scores"))


def test_coco_leads_out_and_in(scenes: ra.Scenes, tmp_path: Path) -> None:
    from roadaware.formats.coco import write_annotations

    predictions = ra.Predictions.from_numpy(**_arrays(scenes))  # type: ignore[arg-type]
    written = predictions.to_coco(tmp_path / "results.json", scenes)
    assert written == len(predictions.boxes) == len(json.loads((tmp_path / "results.json").read_text()))
    write_annotations(scenes, tmp_path / "truth.json")
    back = ra.Predictions.from_coco(tmp_path / "results.json", tmp_path / "truth.json")
    assert len(back.boxes) == written
    assert back.boxes["score"].sum() == pytest.approx(predictions.boxes["score"].sum(), rel=1e-5)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"scores": [0.5, 1.5]}, "box 1 has 1.5\n  pass them through a sigmoid"),
        ({"scores": [float("nan"), 0.5]}, "box 0 has nan\n  leave boxes without a score away"),
        ({"labels": ["Ped", "Car"]}, "classes.index(name)"),
        ({"labels": [0, 2]}, "labels are whole numbers from 0 to 1"),
        ({"labels": [0.5, 1.0]}, "labels are whole numbers"),
        ({"labels": None}, "give `labels`"),
        ({"frames": [0]}, "whole frame numbers"),
        ({"frames": [0, 0.5]}, "whole frame numbers"),
        ({"videos": ["a"]}, "names of videos"),
        ({"boxes": [[5, 5, 1, 1], [0, 0, 1, 1]]}, "x, y, width, height"),
        ({"boxes": [[0, 0, float("nan"), 1], [0, 0, 1, 1]]}, "finite numbers"),
        ({"boxes": [[0, 0, 1], [0, 0, 1]]}, "boxes are (n, 4)"),
        ({"boxes": [["a"] * 4] * 2}, "an array of numbers"),
        ({"boxes": [[0, 0, 1, 1], [0, 0, 1]]}, "an array of numbers"),
        ({"scores": ["x", 0.5]}, "an array of numbers"),
        ({"frames": [0, -1]}, "frames count from 0"),
        (
            {"boxes": np.ma.array([[0, 0, 1, 1], [0, 0, 2, 2]], mask=[[0] * 4, [1] * 4])},
            "values of boxes are masked",
        ),
        ({"scores": np.ma.array([0.5, 0.6], mask=[True, False])}, "values of scores are masked"),
        ({"labels": np.ma.array([0, 1], mask=[True, False])}, "values of labels are masked"),
        ({"frames": np.ma.array([0, 1], mask=[True, False])}, "values of frames are masked"),
        ({"tracks": np.ma.array([0, 1], mask=[True, False])}, "values of tracks are masked"),
        ({"videos": ["a", None]}, "that of box 1 is None"),
        ({"videos": [float("nan"), "a"]}, "that of box 0 is nan"),
        ({"videos": np.array([b"a", b"a"])}, "videos are names"),
    ],
)
def test_wrong_arrays_are_refused_in_words(changes: dict[str, object], says: str) -> None:
    given = {
        "boxes": [[0, 0, 1, 1], [0, 0, 2, 2]],
        "scores": [0.5, 0.6],
        "frames": [0, 1],
        "videos": "drive",
        "classes": ("Ped", "Car"),
        "labels": [0, 1],
    }
    with pytest.raises(InputError) as caught:
        ra.Predictions.from_numpy(**{**given, **changes})  # type: ignore[arg-type]
    assert says in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"videos": Path("drive")}, "videos is one name"),
        ({"videos": 3}, "videos is one name"),
        ({"videos": np.array("drive")}, "videos is one name"),
        ({"classes": {"Ped", "Car"}}, "classes is a list"),
        ({"classes": None}, "classes is a list"),
        ({"classes": 3}, "classes is a list"),
        ({"seen": [("drive", 2.7)]}, "seen is a list"),
        ({"seen": [("drive", float("inf"))]}, "seen is a list"),
        ({"seen": [(None, 1)]}, "seen is a list"),
        ({"facts": [("drive", {})]}, "facts is list"),
        ({"facts": {"drive": {"fps": -1}}}, "fps=-1 of 'drive', which is no number above 0"),
        ({"facts": {"drive": {"width_px": 100.5}}}, "which is no whole number above 0"),
        ({"facts": {"drive": {"height_px": 0}}}, "which is no whole number above 0"),
    ],
)
def test_arguments_that_are_no_names_or_facts_are_refused(changes: dict[str, object], says: str) -> None:
    given = {"boxes": [[0, 0, 1, 1]], "frames": [0], "videos": "drive", "classes": ["Ped"], "labels": [0]}
    with pytest.raises(UsageError, match=says):
        ra.Scenes.from_numpy(**{**given, **changes})  # type: ignore[arg-type]


def test_numbers_that_are_none_are_refused_in_words(tmp_path: Path) -> None:
    for options in (
        {"scenes": 1.5},
        {"size": "160x120"},
        {"size": (160, 120.5)},
        {"size": (160,)},
        {"size": 3},
    ):
        with pytest.raises(UsageError, match="whole"):
            ra.simulate(tmp_path / "made", **options)
    with pytest.raises(UsageError, match="scenes can be made"):
        ra.simulate(tmp_path / "made", size=(np.int64(160), np.int64(120)), scenes=0)
    with pytest.raises(UsageError, match="a video to its file"):
        ra.Predictions.from_trackeval(["drive.txt"])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"a number in \[0, 1\]"):
        ra.evaluate(ra.Predictions(), ra.Scenes(), "tracking", min_score="0.5")


def test_an_empty_path_is_not_the_folder_that_python_runs_in() -> None:
    with pytest.raises(UsageError, match="path is a path or a name, not ''"):
        ra.read("jaad", "")


def test_classes_may_be_any_that_can_be_listed() -> None:
    given = {"boxes": [[0, 0, 1, 1]], "frames": [0], "videos": "drive", "labels": [1]}
    found = [
        ra.Scenes.from_numpy(**given, classes=classes)  # type: ignore[arg-type]
        for classes in (["Ped", "Car"], np.array(["Ped", "Car"]), iter(["Ped", "Car"]), {0: "Ped", 1: "Car"})
    ]
    assert all(each == found[0] for each in found)


def test_boxes_in_shares_of_the_image_are_not_scored_0(scenes: ra.Scenes) -> None:
    given = _arrays(scenes)
    width, height = scenes.videos.select("width_px", "height_px").row(0)
    shares = np.asarray(given["boxes"]) / [width, height, width, height]
    with pytest.raises(InputError, match="every score is 0, and that is why: Predicted boxes are shares"):
        ra.evaluate(ra.Predictions.from_numpy(**{**given, "boxes": shares}), scenes, resamples=0)  # type: ignore[arg-type]


def test_no_boxes_are_predictions_too(scenes: ra.Scenes) -> None:
    none = ra.Predictions.from_numpy(np.zeros((0, 4)), [], np.zeros(0, int), [], classes=("Ped",), labels=[])
    assert none.boxes.is_empty()
    assert ra.evaluate(ra.link(none), scenes, resamples=0).value("frame_map@0.5:agent") in (0.0, None)


def test_road_events_have_the_numbers_of_the_command(scenes: ra.Scenes, tmp_path: Path) -> None:
    tubes = ra.link(ra.Predictions.from_numpy(**_arrays(scenes)))  # type: ignore[arg-type]
    result = ra.evaluate(tubes, scenes, resamples=20)
    save(scenes, tmp_path / "truth")
    save(tubes, tmp_path / "found")
    words = ["evaluate", "road", "--truth", str(tmp_path / "truth"), "--predictions", str(tmp_path / "found")]
    assert main([*words, "--resamples", "20", "-o", str(tmp_path / "run"), "-q"]) == 0
    rows = pl.read_parquet(tmp_path / "run" / EVENT_ROWS).filter(pl.col("group").is_null())
    both = result.summary.join(rows, on=["metric", "overlap"], how="inner", nulls_equal=True)
    assert len(both) == len(result.summary) <= len(rows)
    for column in ("value", "low_video", "high_video"):
        assert both[column].equals(both[f"{column}_right"]), column


@pytest.mark.parametrize("task", [None, 3, "cars"])
def test_a_task_that_there_is_not_names_those_that_there_are(scenes: ra.Scenes, task: object) -> None:
    with pytest.raises(UsageError, match="task is one of road, ucf24, tracking, pedestrians"):
        ra.evaluate(ra.Predictions(), scenes, task)  # type: ignore[arg-type]


def test_what_is_no_path_and_no_number_is_refused_in_words(tmp_path: Path) -> None:
    for attempt, says in (
        (lambda: ra.read("jaad", None), "path is a path"),  # type: ignore[arg-type]
        (lambda: ra.load_model(None), "a model is a path or a name"),  # type: ignore[arg-type]
        (lambda: ra.watch(None), "watch takes a video"),  # type: ignore[arg-type]
        (lambda: ra.watch("x.mp4", seconds="3"), "seconds is more than 0, not '3'"),  # type: ignore[arg-type]
        (lambda: ra.simulate(tmp_path, size=320), "size is"),  # type: ignore[arg-type]
        (lambda: ra.simulate(tmp_path, seconds=0), "seconds should lie in"),
        (lambda: ra.Predictions.from_pandas({}), "takes a data frame"),
    ):
        with pytest.raises(UsageError, match=says):
            attempt()
    assert ra.link(ra.Predictions()).tubes.is_empty()


def test_wrong_words_are_refused(scenes: ra.Scenes) -> None:
    predictions = ra.Predictions.from_numpy(**_arrays(scenes))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="config is"):
        ra.link(predictions, "best")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="task is one of road"):
        ra.evaluate(predictions, scenes, task="cars")
    other = ra.Predictions.from_numpy(**_arrays(scenes), kind="agents")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="labels of the kind agents, the ground truth of"):
        ra.evaluate(other, scenes)
    with pytest.raises(InputError, match="expected columns frame"):
        ra.Predictions.from_pandas(pl.DataFrame({"video": []}))


def test_scenes_are_simulated_and_read(tmp_path: Path) -> None:
    scenes = ra.simulate(tmp_path / "made", seed=3, size=(160, 120), seconds=1.0, fps=5.0)
    assert len(scenes.videos) >= 1
    assert ra.read("simulator", tmp_path / "made").boxes.equals(scenes.boxes)


def test_tracks_in_arrays_are_judged_as_tracks_with_intervals(scenes: ra.Scenes, tmp_path: Path) -> None:
    named = scenes.boxes.filter(pl.col("tube").is_not_null()).sort("video", "frame")
    boxes = named.select("x1_px", "y1_px", "x2_px", "y2_px").to_numpy()
    # As np.loadtxt gives the columns of MOT text: floats
    frames, tracks = (named[name].cast(pl.Float64).to_numpy() for name in ("frame", "tube"))
    videos, n = named["video"].cast(pl.String).to_list(), len(named)
    predictions = ra.Predictions.from_numpy(
        boxes, np.full(n, 0.9), frames, videos, classes=["any"], labels=np.zeros(n), tracks=tracks
    )
    result = ra.evaluate(predictions, scenes, "tracking", resamples=20)
    assert result.value("hota") == pytest.approx(1)
    assert result.value("switches") == 0
    row = result.summary.filter(pl.col("metric") == "det_pr").row(0, named=True)
    assert None not in (row["low_video"], row["high_video"])
    assert "HOTA" in result.to_html(tmp_path / "page.html").read_text()
    with pytest.raises(UsageError, match="no comparison of tracking"):
        ra.compare(result, result)
    with pytest.raises(InputError, match="have no tracks"):
        ra.evaluate(ra.Predictions.from_numpy(**_arrays(scenes)), scenes, "tracking")  # type: ignore[arg-type]
    asked = TrackingConfig(min_score=0.5)
    with pytest.raises(UsageError, match=r"min_score 0\.5 already"):
        ra.evaluate(predictions, scenes, "tracking", config=asked, min_score=0.4)
    unscored = predictions.with_tables(boxes=predictions.boxes.drop("score"))
    with pytest.raises(UsageError, match=r"^min_score asks for scores"):
        ra.evaluate(unscored, scenes, "tracking", min_score=0.4)


def _coco_files(folder: Path, change: object) -> tuple[Path, Path]:
    """Two videos of five images with a box that stands still, and results that `change` made of the true ones."""
    images = [
        {"id": 5 * v + f + 1, "file_name": f"v{v}/{f:05d}.jpg", "width": 640, "height": 480}
        for v in range(2)
        for f in range(5)
    ]
    held = [
        {"image_id": each["id"], "category_id": 3, "bbox": [40.0 * (each["id"] + k), 100.0, 38.0, 60.0]}
        for each in images
        for k in range(4)
    ]
    truth = {
        "images": images,
        "categories": [{"id": 3, "name": "car"}],
        "annotations": [{"id": n, "area": 2280, "iscrowd": 0, **row} for n, row in enumerate(held)],
    }
    results = [change({"score": 0.9, **row}) for row in held]  # type: ignore[operator]
    paths = folder / "truth.json", folder / "results.json"
    for path, content in zip(paths, (truth, results), strict=True):
        path.write_text(json.dumps(content))
    return paths


def test_images_in_folders_of_a_coco_file_are_frames_of_videos(tmp_path: Path) -> None:
    truth, results = _coco_files(tmp_path, lambda row: row)
    scenes, predictions = ra.Scenes.from_coco(truth), ra.Predictions.from_coco(results, truth)
    assert (scenes.videos["video"].to_list(), scenes.frames["frame"].max()) == (["v0", "v1"], 4)
    assert ra.evaluate(predictions, scenes, resamples=20).summary["low_video"].count()
    for by, videos in (("images", 1), ("pictures", 10)):
        whole = ra.Scenes.from_coco(truth, by=by)  # type: ignore[arg-type]
        assert len(whole.videos) == videos
        found = ra.evaluate(ra.Predictions.from_coco(results, truth, by=by), whole, resamples=20)  # type: ignore[arg-type]
        assert found.value("frame_map@0.5:agent") == pytest.approx(1)
        assert any("ground truth is one video" in note for note in found.notes) == (by == "images")


def test_results_of_which_rows_were_refused_say_so(tmp_path: Path) -> None:
    truth, results = _coco_files(tmp_path, lambda row: {**row, "image_id": str(row["image_id"])})
    with pytest.raises(InputError, match=r"not one of its rows can be taken \(40 refused\)"):
        ra.evaluate(ra.Predictions.from_coco(results, truth), ra.Scenes.from_coco(truth), resamples=0)
    truth, results = _coco_files(tmp_path, lambda row: {**row, "score": 0.12 * row["image_id"]})
    found = ra.evaluate(ra.Predictions.from_coco(results, truth), ra.Scenes.from_coco(truth), resamples=0)
    assert any(note.startswith("8 rows of the predictions were refused") for note in found.notes)


def _write_corners(row: dict[str, object]) -> dict[str, object]:
    left, top, width, height = row["bbox"]  # type: ignore[misc]
    # Every other image is as it should be: a score that is low, not 0
    return row if row["image_id"] == 1 else {**row, "bbox": [left, top, left + width, top + height]}


def test_a_usual_mistake_in_boxes_is_noted_where_the_score_is_low(tmp_path: Path) -> None:
    truth, results = _coco_files(tmp_path, _write_corners)
    found = ra.evaluate(ra.Predictions.from_coco(results, truth), ra.Scenes.from_coco(truth), resamples=0)
    assert 0 < (found.value("frame_map@0.5:agent") or 0) < 0.3
    assert any("corners already" in note and "0.9" in note for note in found.notes), found.notes


def test_what_bridges_are_given_instead_of_what_they_take_is_said(tmp_path: Path) -> None:
    one: dict[str, object] = {"boxes": [[0, 0, 9, 9]], "frames": [0], "videos": "a"}
    with pytest.raises(UsageError, match="facts has 'width' of 'a'"):
        ra.Scenes.from_numpy(**one, facts={"a": {"width": 3}})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="facts has 'fps': 3"):
        ra.Scenes.from_numpy(**one, facts={"fps": 3})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="seen is a list of"):
        ra.Scenes.from_numpy(**one, seen=[0])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="videos is one name"):
        ra.Scenes.from_numpy([[0, 0, 9, 9]], [0], None)  # type: ignore[arg-type]
    with pytest.raises(UsageError) as caught:
        ra.Predictions.from_coco([{"image_id": n} for n in range(999)], tmp_path)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 300
    (tmp_path / "truth.json.gz").write_bytes(gzip.compress(b"{}"))
    with pytest.raises(InputError, match="no text but gzip"):
        ra.Scenes.from_coco(tmp_path / "truth.json.gz")


def test_a_class_of_two_videos_has_the_interval_of_two_however_many_others_there_are() -> None:
    videos = [f"v{n:02d}" for n in range(30)] + ["v03", "v07"]
    boxes, frames, labels = [[5, 5, 50, 60]] * 32, [0] * 30 + [1, 1], [0] * 30 + [1, 1]
    classes = ["car", "tram"]
    scenes = ra.Scenes.from_numpy(boxes, frames, videos, classes=classes, labels=labels)
    found = ra.Predictions.from_numpy(boxes, [0.9] * 32, frames, videos, classes=classes, labels=labels)
    rows = {row["label"]: row for row in ra.evaluate(found, scenes).summary.iter_rows(named=True)}
    assert rows["car"]["low_video"] == pytest.approx(0.025 ** (1 / 30))
    assert rows["tram"]["low_video"] == pytest.approx(0.025 ** (1 / 2))
