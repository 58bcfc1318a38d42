"""Annotations written in the forms of AVA, VidVRD, HC-STVG and VGG-SS are read back as what they were."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

from sets import NativeSet, maker

from roadaware.cli.app import main
from roadaware.datasets import read
from roadaware.datasets.own_films import attach_films
from roadaware.errors import DatasetNotFoundError, InputError, UsageError
from roadaware.formats.truth_files import WRITERS, write_truth
from roadaware.io.pickles import load
from roadaware.io.video import VideoWriter
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Scenes

TABLES = {
    "ava": ("videos", "frames", "boxes", "labels", "tubes"),
    "vidvrd": ("videos", "frames", "boxes", "tubes", "tube_labels", "relations"),
    "hcstvg": ("videos", "boxes", "tubes", "queries"),
    "vggss": ("videos", "frames", "boxes", "sounds"),
}


def same(one: Scenes, other: Scenes, form: str) -> None:
    for name in TABLES[form]:
        a, b = getattr(one, name), getattr(other, name)
        assert a.columns == b.columns, name
        for column in a.columns:
            if a[column].dtype.is_float():
                assert np.allclose(
                    a[column].to_numpy(), b[column].to_numpy(), rtol=0, atol=1e-9, equal_nan=True
                ), column
            else:
                assert a[column].to_list() == b[column].to_list(), (name, column)
    for kind in ("action", "category", "predicate", "sound"):
        assert one.meta.vocabularies.get(kind) == other.meta.vocabularies.get(kind)
    for note in ("label_ids", "first_frame", "unit_pictures"):
        assert one.meta.notes.get(note) == other.meta.notes.get(note)


@pytest.mark.parametrize("form", TABLES)
def test_what_was_read_is_written_and_read_back_as_it_was(form: str, tmp_path: Path) -> None:
    native = NativeSet(form, maker(form))
    there = native.read(native.make(tmp_path / "native"))
    if form == "hcstvg":  # raw files say less of a sentence than prepared ones
        there = there.only([str(name) for name in there.queries["video"].unique()])
    write_truth(form, there, tmp_path / "first")
    first = read(form, tmp_path / "first", cache=False)
    write_truth(form, first, tmp_path / "second")
    second = read(form, tmp_path / "second", cache=False)
    same(first, second, form)
    if form != "hcstvg":
        same(there, first, form)
    folders = (tmp_path / "first", tmp_path / "second")
    files = [{p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in folders]
    assert files[0] == files[1]


def test_proposals_of_mmaction2_are_the_boxes_of_each_moment(tmp_path: Path) -> None:
    native = NativeSet("ava", maker("ava"))
    there = native.read(native.make(tmp_path / "native"))
    write_truth("mmaction2", there, tmp_path / "out")
    write_truth("ava", there, tmp_path / "ava")
    for path in (tmp_path / "ava").iterdir():
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()
    data = (tmp_path / "out" / "proposals.pkl").read_bytes()
    # Written here, so that Python's own reader may open it: what MMAction2 does with it.
    found = pickle.loads(data)  # noqa: S301
    due: dict[str, list[list[float]]] = {}
    for row in there.boxes.iter_rows(named=True):
        due.setdefault(f"{row['video']},{row['frame']:04d}", []).append([*(row[c] for c in CORNERS), 1.0])
    assert set(found) == set(due)
    for name, boxes in due.items():
        assert found[name].dtype == np.float32
        assert found[name].tolist() == np.array(boxes, np.float32).tolist()
    assert {name: each.tolist() for name, each in load(data, "a.pkl").items()} == {
        name: each.tolist() for name, each in found.items()
    }
    assert b"numpy._core" not in data, "which numpy 1 does not know"


def test_predictions_are_proposals_of_mmaction2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        "frame,class,score,x1,y1,x2,y2",
        "0,person,0.5,0,0,32,48",
        "7,person,0.9,0,0,9,9",
        "20,person,0.25,16,24,64,96",
        "30,person,0.25,nan,24,64,96",
    ]
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n")
    words = ["--predictions", "--option", "fps=10", "--option", "size=64x96", "--to", "mmaction2", "-q"]
    out = tmp_path / "new" / "p.pkl"
    assert main(["convert", str(tmp_path / "a.csv"), *words, "-o", str(out)]) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert "2 proposals" in said
    assert "not held: 1 boxes at other times than whole seconds" in said
    assert (
        "refused when it was read: 1 rows or files, the first a.csv:5: a corner is no finite number" in said
    )
    found = load(out.read_bytes(), "p.pkl")
    assert {name: each.tolist() for name, each in found.items()} == {
        "a,0000": [[0, 0, 0.5, 0.5, 0.5]], "a,0002": [[0.25, 0.25, 1, 1, 0.25]]
    }  # fmt: skip
    assert main(["convert", str(tmp_path / "a.csv"), *words, "-o", str(out)]) == 2, "it is there already"


def test_sentences_keep_their_words_spans_and_boxes(tmp_path: Path) -> None:
    native = NativeSet("hcstvg", maker("hcstvg"))
    there = native.read(native.make(tmp_path / "native"))
    write_truth("hcstvg", there, tmp_path / "out")
    back = read("hcstvg", tmp_path / "out", cache=False)
    key = {(row["video"], row["name"]): row for row in there.queries.iter_rows(named=True)}
    assert len(back.queries) > 1
    for row in back.queries.iter_rows(named=True):
        was = key[row["video"], row["name"]]
        for name in ("text", "start_frame", "end_frame"):
            assert (row[name] or None) == (was[name] or None)
        for frame in range(row["start_frame"], row["end_frame"]):
            boxes = [
                held.boxes.filter(pl.col("tube") == tube, pl.col("frame") == frame).select(CORNERS).to_numpy()
                for held, tube in ((there, was["tube"]), (back, row["tube"]))
            ]
            if len(boxes[0]):
                assert np.allclose(boxes[0], boxes[1], atol=1e-9)


def crowd() -> Scenes:
    """Two people in four frames at two a second, with a gap, an action, a relation, a sentence and two sounds."""
    frames = [0, 1, 2, 3, 0, 2, 3]
    tubes = [0, 0, 0, 0, 1, 1, 1]
    x = np.array([10.0, 11, 12, 13, 50, 54, 56])
    boxes = pl.DataFrame(
        {"box": range(7), "video": ["a"] * 7, "frame": frames, "tube": tubes, "x1_px": x, "y1_px": [5.0] * 7,
         "x2_px": x + 8, "y2_px": [25.0] * 7, "sound": [None, 0, 0, None, None, None, None]}
    )  # fmt: skip
    return Scenes(
        videos=pl.DataFrame(
            {"video": ["a"], "width_px": [80], "height_px": [40], "fps": [2.0], "n_frames": [4], "splits": [["default/test"]]}
        ),
        frames=pl.DataFrame({"video": ["a"] * 4, "frame": range(4), "annotated": [True] * 4}),
        boxes=boxes,
        labels=pl.DataFrame(
            {"box": [*range(7), 2], "kind": ["agent"] * 7 + ["action"], "label": [0] * 7 + [1]}
        ),
        tubes=pl.DataFrame({"tube": [0, 1], "video": ["a", "a"], "name": ["ped-0", "ped-1"]}),
        relations=pl.DataFrame(
            {"relation": [0], "video": ["a"], "subject": [0], "object": [1], "predicate": [0], "start_frame": [0],
             "end_frame": [4]}
        ),
        queries=pl.DataFrame(
            {"query": [0], "video": ["a"], "name": ["a-0"], "text": ["Somebody runs."], "tube": [1],
             "start_frame": [0], "end_frame": [4]}
        ),
        sounds=pl.DataFrame(
            {"sound": [0, 1], "video": ["a", "a"], "name": ["a-s0", "a-s1"], "frame": [1, None], "label": [0, 1]}
        ),
        meta=Meta(
            vocabularies={"agent": ("Ped",), "action": ("walk", "run"), "predicate": ("pushes",),
                          "sound": ("horn", "bell")}
        ),
    )  # fmt: skip


def test_what_a_form_cannot_hold_is_counted(tmp_path: Path) -> None:
    made = crowd()
    ava = write_truth("ava", made, tmp_path / "ava")
    assert (tmp_path / "ava" / "ava_test.csv").read_text().splitlines() == [
        "a,0001,0.15,0.125,0.25,0.625,2,0",
        "a,0000,,,,,,",
    ]
    assert ava.files == ["ava_test.csv", "action_list.pbtxt"]
    assert 'name: "run"\n  id: 2' in (tmp_path / "ava" / "action_list.pbtxt").read_text()
    vidvrd = write_truth("vidvrd", made, tmp_path / "vidvrd")
    told = json.loads((tmp_path / "vidvrd" / "test" / "a.json").read_text())
    spans = [(each["begin_fid"], each["end_fid"]) for each in told["relation_instances"]]
    assert spans == [(0, 1), (2, 4)]  # nobody saw the other one in frame 1
    assert vidvrd.left_out["relations cut where one has no box"] == 1
    assert {each["category"] for each in told["subject/objects"]} == {"person"}
    hcstvg = write_truth("hcstvg", made, tmp_path / "hcstvg")
    (entry,) = json.loads((tmp_path / "hcstvg" / "test_proc.json").read_text())
    assert [box[0] for box in entry["trajectory"]] == [50, 52, 54, 56]
    assert (entry["tube_start_frame"], entry["tube_end_frame"]) == (1, 5)
    assert hcstvg.left_out["boxes interpolated in the span of a sentence"] == 1
    write_truth("vggss", made, tmp_path / "vggss")
    horn, bell = json.loads((tmp_path / "vggss" / "vggss.json").read_text())
    assert horn == {"file": "a-s0", "class": "horn", "bbox": [[11 / 80, 5 / 40, 19 / 80, 25 / 40]]}
    assert bell == {"file": "a-s1", "class": "bell", "bbox": []}


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no form 'coco'"):
        write_truth("coco", crowd(), tmp_path)
    with pytest.raises(UsageError, match="no video 'b'"):
        write_truth("ava", crowd(), tmp_path, videos=("b",))
    for form, match in (
        ("ava", "no actions"),
        ("vidvrd", "no tube"),
        ("hcstvg", "no sentences"),
        ("vggss", "no sounds"),
    ):
        with pytest.raises(InputError, match=match):
            write_truth(form, Scenes(), tmp_path)
    with pytest.raises(InputError, match="without fps"):
        write_truth("ava", crowd().with_tables(videos=crowd().videos.drop("fps")), tmp_path)


def film(path: Path, frames: int = 8, fps: float = 4.0, size: tuple[int, int] = (64, 48)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with VideoWriter(path, *size, fps) as writer:
        for number in range(frames):
            writer.write(np.full((size[1], size[0], 3), 10 * number, np.uint8))


def test_films_beside_annotations_give_pixels_frames_and_paths(tmp_path: Path) -> None:
    rows = ["one,0001,0.25,0.5,0.75,1.0,1,0", "two,0001,0.1,0.1,0.2,0.2,1,0", "one,0009,0.1,0.1,0.2,0.2,1,0"]
    (tmp_path / "mine.csv").write_text("".join(f"{row}\n" for row in rows))
    film(tmp_path / "films" / "day" / "one.mp4")
    found = attach_films(read("ava", tmp_path / "mine.csv"), tmp_path / "films")
    assert found.videos.select("video", "path", "width_px", "n_frames").rows() == [
        ("one", "day/one.mp4", 64, 8)
    ]
    assert found.boxes.select("frame", *CORNERS).rows() == [(4, 16.0, 24.0, 48.0, 48.0)]
    assert found.rejected.filter(pl.col("table") == "videos")["item"].to_list() == ["two"]
    assert any("behind the end" in each["what"] for each in found.meta.notes["warnings"])
    with pytest.raises(DatasetNotFoundError, match="1 of 2 films are missing: 'two'"):
        attach_films(read("ava", tmp_path / "mine.csv"), tmp_path / "films", strict=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetNotFoundError, match="2 of 2 films are missing: 'one', 'two'"):
        attach_films(read("ava", tmp_path / "mine.csv"), tmp_path / "empty")
    with pytest.raises(DatasetNotFoundError, match="no such folder"):
        attach_films(read("ava", tmp_path / "mine.csv"), tmp_path / "nowhere")


def test_sounds_take_the_middle_of_their_film(tmp_path: Path) -> None:
    items = [{"file": "one", "class": "horn", "bbox": [[0.0, 0.0, 0.5, 1.0]]}]
    (tmp_path / "vggss.json").write_text(json.dumps(items))
    film(tmp_path / "one.mp4")
    found = attach_films(read("vggss", tmp_path / "vggss.json"), tmp_path)
    assert found.boxes.select("frame", *CORNERS).rows() == [(4, 0.0, 0.0, 32.0, 48.0)]
    assert found.sounds["frame"].to_list() == [4]


def test_boxes_in_pixels_of_another_size_are_scaled_and_counted(tmp_path: Path) -> None:
    film(tmp_path / "a.mp4", 4, 2.0, (160, 80))
    found = attach_films(crowd(), tmp_path)
    assert found.boxes["x1_px"].to_list() == (2 * crowd().boxes["x1_px"]).to_list()
    assert any("another size" in each["what"] for each in found.meta.notes["warnings"])


@pytest.mark.parametrize(
    "form",
    [pytest.param(form, marks=pytest.mark.slow if place else ()) for place, form in enumerate(WRITERS)],
)
def test_synthetic_scenes_are_converted_and_judged_as_themselves(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))
    simulate = [
        "simulate",
        "--preset",
        "chaos@2",
        "--scenes",
        "2",
        "--seconds",
        "3",
        "--fps",
        "4",
        "--size",
        "96x64",
    ]
    assert main([*simulate, "--tables-only", "-o", str(tmp_path / "made"), "-q"]) == 0
    out = tmp_path / form
    assert main(["convert", str(tmp_path / "made"), "--to", form, "-o", str(out), "-q"]) == 0
    assert "wrote" in capsys.readouterr().out
    assert len(read("ava" if form == "mmaction2" else form, out, cache=False).videos)
    assert (
        main(["convert", str(tmp_path / "made"), "--to", form, "-o", str(out), "-q"]) == 2
    )  # it is there already
    assert main(["convert", str(tmp_path / "made"), "--to", form, "-o", str(out), "-q", "--overwrite"]) == 0
