"""COCO files become tables and back; what cannot be taken is named and counted."""

import contextlib
import json
import random
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from example_counts import tried
from roadaware.analysis.evaluation.event_inputs import read_image_index
from roadaware.demo_data.detector import simulate_detections
from roadaware.demo_data.road import generate_road_scenes
from roadaware.errors import DatasetNotFoundError, FindingsError, InputError, RoadawareError, UsageError
from roadaware.formats.coco import (
    build_scenes_index,
    read_annotations,
    read_index,
    read_results,
    write_annotations,
    write_results,
)
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import evaluate
from roadaware.scenes.concatenation import rescale_predictions
from roadaware.scenes.tables import Predictions, Scenes

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))
import mutants

IMAGES = [
    {"id": 7, "file_name": "a/00001.jpg", "width": 100, "height": 50},
    {"id": 5, "file_name": "a/00003.jpg", "width": 100, "height": 50},
    {"id": 6, "file_name": "b/00001.jpg", "width": 80, "height": 50},
]
CATEGORIES = [{"id": 3, "name": "Car"}, {"id": 1, "name": "Ped"}]


def annotation(number, image=7, category=3, bbox=(10, 20, 30, 5), **more):
    return {"id": number, "image_id": image, "category_id": category, "bbox": list(bbox), **more}


def result(image=7, category=3, bbox=(10, 20, 30, 5), score=0.5):
    return {"image_id": image, "category_id": category, "bbox": list(bbox), "score": score}


def truth_file(folder, annotations=(), **changes):
    content = {"images": IMAGES, "categories": CATEGORIES, "annotations": annotations, **changes}
    path = folder / "truth.json"
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
    return path


def results_file(folder, results):
    path = folder / "results.json"
    path.write_text(results if isinstance(results, str) else json.dumps(results))
    return path


def test_annotations_by_hand(tmp_path) -> None:
    path = truth_file(
        tmp_path, [annotation(1), annotation(2, 5, 1, (0, 0, 1.5, 2)), annotation(9, 6, iscrowd=1)]
    )
    scenes = read_annotations(path, by="folders")
    assert scenes.videos.rows() == [("a", 100, 50), ("b", 80, 50)]
    assert scenes.frames.select("video", "frame", "annotated").rows() == [
        ("a", 0, True),
        ("a", 2, True),
        ("b", 0, True),
    ]
    corners = ("x1_px", "y1_px", "x2_px", "y2_px")
    assert scenes.boxes.select("video", "frame", *corners, "ignore").rows() == [
        ("a", 0, 10, 20, 40, 25, False),
        ("a", 2, 0, 0, 1.5, 2, False),
        ("b", 0, 10, 20, 40, 25, True),
    ]
    assert scenes.meta.vocabularies == {"agent": ("Car", "Ped")}
    assert scenes.labels.sort("box")["label"].to_list() == [0, 1, 0]


def test_a_set_of_images_is_one_video(tmp_path) -> None:
    scenes = read_annotations(truth_file(tmp_path, [annotation(1, 5)]), name="coda", kind="thing")
    assert scenes.frames.select("video", "frame", "file_name").rows() == [
        ("coda", 0, "a/00001.jpg"),
        ("coda", 1, "a/00003.jpg"),
        ("coda", 2, "b/00001.jpg"),
    ]
    assert scenes.videos.rows() == [("coda", None, None)], "the images differ in size"
    assert scenes.boxes["frame"].to_list() == [1]
    assert scenes.labels["kind"].to_list() == ["thing"]


def test_images_of_listed_videos(tmp_path) -> None:
    images = [{"id": 1, "video_id": 4, "frame_id": 0}, {"id": 2, "video_id": 4, "frame_id": 9}]
    path = truth_file(tmp_path, images=images, videos=[{"id": 4, "name": "drive"}])
    assert read_annotations(path).frames.select("video", "frame").rows() == [("drive", 0), ("drive", 9)]


def test_results_by_hand(tmp_path) -> None:
    index = read_index(truth_file(tmp_path, annotations=None), by="folders")
    path = results_file(
        tmp_path, [result(6, 1, score=0.9), result(5, score=0), result(7, 3, (1, 2, 3, 4), 1), result(5)]
    )
    predictions = read_results(path, index)
    assert predictions.boxes.select("box", "video", "frame", "score").rows() == [
        (0, "a", 0, 1.0),
        (1, "a", 2, 0.0),
        (2, "a", 2, 0.5),
        (3, "b", 0, 0.9),
    ]
    assert predictions.labels.select("box", "kind", "label", "score").rows() == [
        (0, "agent", 0, 1.0),
        (1, "agent", 0, 0.0),
        (2, "agent", 0, 0.5),
        (3, "agent", 1, np.float64(0.9)),
    ]
    assert len(predictions.frames) == 3


BAD = [
    (result(image=99), "image_id 99 is none of the images"),
    (result(image="7"), 'image_id "7" is none of the images'),
    (result(image=7.0), "image_id 7.0 is none"),
    (result(category=2), "category_id 2 is none of the categories"),
    (result(bbox=(1, 2, 3)), "bbox [1, 2, 3] is not four finite numbers"),
    (result(bbox=(1, 2, 3, 4, 5)), "is not four finite numbers"),
    (result(bbox=(1, 2, "3", 4)), "is not four finite numbers"),
    (result(bbox=(1, 2, True, 4)), "is not four finite numbers"),
    (result(bbox=(1, 2, -3, 4)), "negative width or height"),
    (result(bbox=(1, 2, 3, 10**400)), "is not four finite numbers"),
    (result(score=1.0000001), "is no number in [0, 1]"),
    (result(score=-0.1), "is no number in [0, 1]"),
    (result(score=None), "score null is no number"),
    (result(score=True), "score true is no number"),
    ([], "expected an object, found a list"),
]


def test_bad_results_are_named_and_counted(tmp_path) -> None:
    index = read_index(truth_file(tmp_path), by="folders")
    path = results_file(tmp_path, [row for row, _ in BAD] + [result()])
    predictions = read_results(path, index)
    assert len(predictions.boxes) == 1
    assert predictions.meta.rows_read == {"boxes": len(BAD) + 1}
    for number, (row, (_, reason)) in enumerate(zip(predictions.rejected.rows(named=True), BAD, strict=True)):
        assert row["item"] == f"entry {number}"
        assert reason in row["reason"]
    with pytest.raises(FindingsError, match="15 rejected rows"):
        read_results(path, index, strict=True)


def test_an_infinite_number_is_refused_in_its_place(tmp_path) -> None:
    index = read_index(truth_file(tmp_path), by="folders")
    text = json.dumps([result()]).replace("0.5", "1e400")
    assert len(read_results(results_file(tmp_path, text), index).rejected) == 1
    with pytest.raises(InputError, match="not strict JSON"):
        read_results(results_file(tmp_path, text.replace("1e400", "NaN")), index)


def test_bad_annotations_are_named_and_counted(tmp_path) -> None:
    bad = [
        annotation(1, 99),
        annotation(2, category=8),
        annotation(3, bbox=(1, 2, 3)),
        annotation(4, bbox=(1, 1, -1, 1)),
    ]
    path = truth_file(tmp_path, [*bad, annotation(5), annotation(6, bbox=(90, 0, 20, 5))])
    scenes = read_annotations(path, by="folders")
    assert len(scenes.rejected) == 4
    assert scenes.meta.rows_read == {"boxes": 6}
    assert len(scenes.boxes) == 2, "a box that reaches out of its image is kept"
    (warning,) = scenes.meta.notes["warnings"]
    assert warning["what"] == "a box reaches out of its image"
    assert warning["count"] == 1
    with pytest.raises(FindingsError, match="4 annotations were rejected"):
        read_annotations(path, by="folders", strict=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"images": [*IMAGES, IMAGES[0]]}, "image id 7 stands twice"),
        ({"images": [{"id": "7"}]}, "'id' of image 0 should be a whole number"),
        ({"images": [{"file_name": "x"}]}, "is missing"),
        ({"images": {}}, "'images' should be a list and is an object"),
        ({"images": [{**IMAGES[0], "file_name": "../../etc/passwd"}]}, "leads out of its folder"),
        ({"images": [{**IMAGES[0], "file_name": "C:\\x.jpg"}]}, "leads out of its folder"),
        ({"images": [{**IMAGES[0], "file_name": "/etc/x.jpg"}]}, "leads out of its folder"),
        ({"images": [{**IMAGES[0], "width": -5}]}, "image 7 is -5 x 50 pixels"),
        ({"images": [{**IMAGES[0], "file_name": 7}]}, "file name of image 7 is a number"),
        ({"images": [{**IMAGES[0], "file_name": "00001.jpg"}]}, "is not <video>/<number>"),
        ({"images": [{**IMAGES[0], "file_name": "a/00000.jpg"}]}, "numbered from 1"),
        ({"images": [IMAGES[0], {**IMAGES[0], "id": 8}]}, "frame 0 of a stands twice"),
        ({"categories": [*CATEGORIES, {"id": 3, "name": "Bus"}]}, 'category 3, "Bus", stands twice'),
        ({"categories": [*CATEGORIES, {"id": 4, "name": "Car"}]}, "stands twice"),
        ({"categories": [{"id": 1}]}, "name of category 1 is null"),
        ({"categories": None}, "'categories' should be a list and is null"),
        ({"annotations": None}, "'annotations' should be a list"),
    ],
)
def test_files_that_contradict_themselves_are_refused(tmp_path, changes, message) -> None:
    with pytest.raises(InputError, match=message.replace("\\", "\\\\")) as caught:
        read_annotations(truth_file(tmp_path, **changes), by="folders")
    assert "truth.json" in str(caught.value)


def test_an_id_that_is_none_costs_its_annotation_alone(tmp_path) -> None:
    listed = [
        annotation(1),
        annotation(1),
        annotation("1"),
        7,
        annotation(2),
        annotation(True),
        annotation(-3),
    ]
    scenes = read_annotations(truth_file(tmp_path, listed), by="folders")
    assert len(scenes.boxes) == 2
    assert scenes.rejected["item"].to_list() == [f"entry {n}" for n in (1, 2, 3, 5, 6)]
    reasons = scenes.rejected["reason"].to_list()
    assert reasons[0] == "id 1 of annotation 1 stands twice"
    assert "is no whole number" in reasons[1]
    assert "expected an object" in reasons[2]
    with pytest.raises(FindingsError, match="5 annotations were rejected"):
        read_annotations(truth_file(tmp_path, listed), by="folders", strict=True)


def test_plain_annotations_are_taken_together_as_one_by_one(tmp_path, monkeypatch) -> None:
    rng = random.Random(3)  # noqa: S311
    odd = [{"area": -1}, {"area": "x"}, {"iscrowd": 1}, {"iscrowd": True}, {"track_id": 4}, {"track_id": "4"}, {"area": 5},
           {"bbox": [1, 2, 3]}, {"bbox": [1, 2, -3, 4]}, {"image_id": 99}, {"category_id": None}, {"ignore": 1},
           {"attributes": {"track_id": 9}}, {"corner_case": 1}, {"bbox": [1e30, 2, 3, 4]}, {"area": None}]  # fmt: skip
    listed = [{**annotation(n), **(rng.choice(odd) if rng.random() < 0.2 else {})} for n in range(200)]
    for each in listed[::9]:
        each.pop("area", None)
    path = truth_file(tmp_path, listed)
    monkeypatch.setattr("roadaware.formats.coco._CHUNK", 7)
    together = read_annotations(path, by="folders")
    monkeypatch.setattr("roadaware.formats.coco._take_plain", lambda *_: False)
    assert read_annotations(path, by="folders") == together
    assert len(together.boxes) > 100
    assert len(together.rejected) > 5


def test_files_that_are_none_are_refused(tmp_path) -> None:
    with pytest.raises(DatasetNotFoundError, match="found none"):
        read_annotations(tmp_path / "absent.json")
    index = read_index(truth_file(tmp_path), by="folders")
    for text, message in (
        ("", "empty"),
        ("[", "not strict JSON"),
        ("{}", "should be a list and is an object"),
        ('[{"score": 1, "score": 2}]', "stands twice"),
        ("[" * 100_000, "nested"),
        ("[] []", "behind the end"),
    ):
        with pytest.raises(InputError, match=message):
            read_results(results_file(tmp_path, text), index)
    with pytest.raises(InputError, match="should be an object and is a list"):
        read_index(results_file(tmp_path, []))


OUTLINES = [
    {"counts": [2**62], "size": [10**6, 10**6]},
    {"counts": [5000, 5000], "size": [10, 10]},
    [[1, 2]],
    [[1, 2, 3, 4, 5]],
    "x",
]


def test_outlines_are_not_read(tmp_path) -> None:
    listed = [annotation(number, segmentation=each) for number, each in enumerate(OUTLINES, 1)]
    scenes = read_annotations(truth_file(tmp_path, listed), by="folders")
    assert (len(scenes.boxes), len(scenes.rejected)) == (len(OUTLINES), 0)


def test_numbers_of_thousands_of_digits_are_refused(tmp_path) -> None:
    index = read_index(truth_file(tmp_path), by="folders")
    text = json.dumps([result()]).replace("0.5", "9" * 5000)
    with pytest.raises(InputError, match="4300 digits"):
        read_results(results_file(tmp_path, text), index)


@pytest.fixture(scope="module")
def road():
    world = generate_road_scenes(videos=2, frames=40, seed=4)
    return world, simulate_detections(world, seed=4)


def test_truth_goes_out_and_comes_back(road, tmp_path) -> None:
    world, _ = road
    written = write_annotations(world, tmp_path / "truth.json")
    back = read_annotations(tmp_path / "truth.json", by="folders", strict=True)
    key = ["video", "frame", "name", "x1_px", "y1_px", "x2_px", "y2_px"]

    def rows(scenes):
        names = pl.col("label").replace_strict(
            dict(enumerate(scenes.meta.vocabularies["agent"])), return_dtype=pl.String
        )
        labels = scenes.labels.filter(pl.col("kind") == "agent").with_columns(name=names)
        return scenes.boxes.join(labels, on="box").select(key).sort(key)

    before, after = rows(world), rows(back)
    assert written == len(after) == len(before)
    assert np.allclose(before.select(key[3:]).to_numpy(), after.select(key[3:]).to_numpy(), atol=1e-3)
    assert before.select(key[:3]).equals(after.select(key[:3]))


def test_predictions_go_out_and_score_the_same_when_they_come_back(road, tmp_path) -> None:
    world, predictions = road
    index = build_scenes_index(world)
    images = pl.DataFrame(list(index.images.values()), schema=["video", "frame"], orient="row")
    inside = predictions.boxes.join(images, on=["video", "frame"], how="semi", maintain_order="left")
    own = rescale_predictions(predictions.with_tables(boxes=inside), world)
    assert own.videos.select("width_px", "height_px").unique().rows() == [(1280, 960)]
    n = write_results(own, tmp_path / "results.json", index)
    write_annotations(world, tmp_path / "truth.json", index)
    there = read_index(tmp_path / "truth.json", by="folders")
    back = read_results(tmp_path / "results.json", there, strict=True)
    assert len(back.boxes) == n == len(inside) * len(index.labels)
    config = DetectionConfig.default()
    asked = {"kinds": ["agent"], "video_thresholds": ()}
    expected = evaluate(own, world, config, **asked).values()
    assert evaluate(back, world, config, **asked).values() == pytest.approx(expected, abs=1e-6)


def test_pycocotools_reads_what_is_written(road, tmp_path) -> None:
    coco = pytest.importorskip("pycocotools.coco")
    evaluation = pytest.importorskip("pycocotools.cocoeval")
    world, _ = road
    index = build_scenes_index(world)
    write_annotations(world, tmp_path / "truth.json", index)
    right = world.boxes.with_columns(score=pl.lit(0.9))
    scored = world.labels.with_columns(score=pl.lit(0.9))
    predictions = Predictions(boxes=right.drop("tube"), labels=scored, meta=world.meta)
    write_results(predictions, tmp_path / "results.json", index)
    truth = coco.COCO(str(tmp_path / "truth.json"))
    judged = evaluation.COCOeval(truth, truth.loadRes(str(tmp_path / "results.json")), "bbox")
    judged.evaluate()
    judged.accumulate()
    precision = judged.eval["precision"][:, :, :, 0, -1]
    assert precision[precision > -1].min() == pytest.approx(1.0)


def test_what_cannot_be_written_is_refused(road, tmp_path) -> None:
    world, predictions = road
    with pytest.raises(UsageError, match="no labels of kind 'mood'"):
        build_scenes_index(world, "mood")
    with pytest.raises(UsageError, match="frames with predictions are no images"):
        write_results(
            predictions, tmp_path / "r.json", read_index(truth_file(tmp_path), by="folders", kind="agent")
        )
    bare = predictions.with_tables(boxes=predictions.boxes.drop("scores"))
    with pytest.raises(UsageError, match="neither dense scores nor scored labels"):
        write_results(bare, tmp_path / "r.json", build_scenes_index(world))


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(list(result())), inner),
    max_leaves=8,
)


@tried(150)
@given(
    st.lists(
        st.one_of(
            junk,
            st.builds(
                dict,
                st.fixed_dictionaries(
                    {
                        "image_id": st.one_of(st.just(7), junk),
                        "category_id": st.one_of(st.just(3), junk),
                        "bbox": st.one_of(st.just([1, 2, 3, 4]), junk),
                        "score": st.one_of(st.just(0.5), junk),
                    }
                ),
            ),
        ),
        max_size=6,
    )
)
def test_any_list_is_taken_or_refused_row_by_row(tmp_path_factory, rows) -> None:
    folder = tmp_path_factory.mktemp("coco")
    index = read_index(truth_file(folder), by="folders")
    path = results_file(folder, rows)
    constants: list[str] = []
    json.loads(path.read_text(), parse_constant=constants.append)
    if constants:
        with pytest.raises(InputError, match="not strict JSON"):
            read_results(path, index)
        return
    predictions = read_results(path, index)
    assert len(predictions.boxes) + len(predictions.rejected) == len(rows)


CHANGES = st.lists(
    st.tuples(st.sampled_from(sorted(mutants.JSON_KINDS)), st.floats(0, 0.999), st.floats(0, 0.999)),
    min_size=1,
    max_size=4,
)


@pytest.mark.slow
@tried(200)
@given(CHANGES)
def test_damaged_files_give_whole_tables_or_an_error_of_ours(tmp_path_factory, changes) -> None:
    folder = tmp_path_factory.mktemp("coco")
    index = read_index(truth_file(folder), by="folders")
    listed = [annotation(1), annotation(2, 5, 1), annotation(9, 6, iscrowd=1)]
    truth, results = truth_file(folder, listed), results_file(folder, [result(), result(5, 1), result(6)])
    for path in (truth, results):
        path.write_bytes(mutants.mutated(path.read_bytes(), changes))
    for read in (lambda: read_annotations(truth, by="folders"), lambda: read_results(results, index)):
        with contextlib.suppress(RoadawareError):
            found = read()
            assert found.meta.rows_read["boxes"] == len(found.boxes) + len(found.rejected)


NAMES = {
    "one folder, two series": (("images/a_001.jpg", "images/b_001.jpg"), [("truth", 0), ("truth", 1)]),
    "times of a clock": (
        ("cam/1690000000123456.jpg", "cam/1690000000123457.jpg"),
        [("truth", 0), ("truth", 1)],
    ),
    "folders": (("a/001.jpg", "b/shot_001.jpg"), [("a", 0), ("b", 0)]),
}


@pytest.mark.parametrize("case", NAMES)
def test_folders_are_videos_only_where_each_file_is_a_frame_of_its_own(tmp_path: Path, case: str) -> None:
    names, places = NAMES[case]
    path = truth_file(tmp_path, images=[{"id": n, "file_name": name} for n, name in enumerate(names)])
    assert list(read_index(path, by="auto").images.values()) == places


def test_a_frame_that_stands_twice_in_folders_says_how_else_images_are_taken(tmp_path: Path) -> None:
    path = truth_file(tmp_path, images=[{"id": n, "file_name": "a/001.jpg"} for n in range(2)])
    with pytest.raises(InputError, match="stands twice") as caught:
        read_index(path, by="auto")
    assert "by='images'" in (caught.value.hint or "")


def test_images_of_folders_that_the_truth_knows_are_found_though_the_file_lists_videos(
    tmp_path: Path,
) -> None:
    images = [{"id": n, "file_name": f"seqA/{n}.jpg", "video_id": 1, "frame_id": n} for n in range(2)]
    path = truth_file(tmp_path, images=images, videos=[{"id": 1, "name": "renamed"}])
    places = {
        name: list(read_image_index(path, Scenes(videos=pl.DataFrame({"video": [name]}))).images.values())
        for name in ("seqA", "renamed")
    }
    assert places == {name: [(name, 0), (name, 1)] for name in places}
