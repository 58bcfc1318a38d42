"""What the page is told of videos, boxes, tubes, metrics and errors is what the tables say."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from numbered import FRAMES, make_predictions, make_truth

from roadaware.analysis.worst_tubes import list_tube_errors
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.scenes import store
from roadaware.scenes.store import save, scan_tables
from roadaware.viewer.index import Index, build_sentences
from roadaware.viewer.opening import open_paths


def test_sides_videos_and_kinds_are_those_of_the_tables(sets: Path) -> None:
    told = Index(open_paths([sets / "found", sets / "truth", sets / "other"])).describe()
    assert {side: (held["name"], held["predicted"]) for side, held in told["sides"].items()} == {
        "truth": ("truth", False),
        "a": ("found", True),
        "b": ("other", True),
    }
    assert told["videos"]["name"] == ["one", "two"]
    assert told["videos"]["n_frames"] == [FRAMES, FRAMES]
    assert (told["videos"]["tubes_truth"], told["videos"]["tubes_a"]) == ([3, 1], [4, 0])
    assert told["error_kinds"] == ["agentness", "agent"]
    json.dumps(told, allow_nan=False)


@pytest.mark.parametrize("order", ["sorted", "scattered"])
def test_a_window_has_the_boxes_of_its_frames_and_no_others(tmp_path: Path, order: str) -> None:
    truth = make_truth()
    boxes = truth.boxes if order == "sorted" else truth.boxes.sample(fraction=1, shuffle=True, seed=1)
    save(truth.with_tables(boxes=boxes), tmp_path / "truth")
    index = Index(open_paths([tmp_path / "truth"]))
    seen: list[tuple[int, int, float]] = []
    for first in range(0, FRAMES, 32):
        found = index.boxes("one", first, first + 32)["truth"]
        assert found["frame"] == sorted(found["frame"])
        assert all(first <= frame < first + 32 for frame in found["frame"])
        seen += zip(found["frame"], found["tube"], found["x1"], strict=True)
    wanted = boxes.filter(pl.col("video") == "one").select("frame", "tube", "x1_px").rows()
    assert sorted(seen) == sorted(wanted)
    with pytest.raises(UsageError):
        index.boxes("one", 5, 5)


def test_tubes_carry_their_labels_parts_and_scores(sets: Path) -> None:
    told = Index(open_paths([sets / "truth", sets / "found"])).describe_video("one")
    assert told["truth"]["paths"][1] == [1, "t1", 10, 90, None, [["agent", "Car", None]]]
    assert told["a"]["paths"][2] == [2, "t2", 70, 90, 0.7, [["agent", "Car", 0.7]]]
    assert [path[0] for path in told["truth"]["paths"]] == [0, 1, 2]
    assert told["a"]["gaps"] == []
    assert set(told["truth"]["says"]) == {"0", "1", "2"}
    assert told["truth"]["says"]["1"].startswith("A car is there")


def test_errors_are_sorted_by_what_each_alone_costs() -> None:
    """By hand: two people are asked for and one is found; the car takes the second rank behind a hit."""
    found = list_tube_errors(make_predictions(), make_truth(), DetectionConfig.default(), "agent", 0.5)
    rows = {(row["fault"], row["tube"], row["truth"]): row for row in found.iter_rows(named=True)}
    # Of three true people one is found first, then something on the background: average precision 1/3. The car is
    # found first of two: 1. The third tube is a person taken for a car; relabelled it is the second of three hits.
    swapped = rows["class", 2, 2]
    assert (swapped["label"], swapped["meant_for"], swapped["score"]) == ("Car", "Ped", 0.7)
    assert swapped["cost"] == pytest.approx((2 / 3 - 1 / 3) / 2)
    missed = rows["missed", None, 3]
    assert missed["video"] == "two"
    assert missed["cost"] == pytest.approx((2 / 3 - 1 / 3) / 2)
    assert rows["background", 3, None]["cost"] == pytest.approx(0)
    assert found["cost"].is_sorted(descending=True)
    # The person taken for a car is meant by somebody, and so not missed as well.
    assert set(rows) == {("class", 2, 2), ("missed", None, 3), ("background", 3, None)}


def test_an_error_leads_to_the_frame_that_shows_it(sets: Path) -> None:
    index = Index(open_paths([sets / "truth", sets / "found"]))
    rows = {row["fault"]: row for row in index.errors("a", "agent", 0.5)}
    assert (rows["class"]["video"], rows["class"]["path"], rows["class"]["truth_path"]) == (0, 2, 2)
    assert 70 <= rows["class"]["frame"] < 90
    assert rows["class"]["span"] == [70, 90]
    assert (rows["missed"]["video"], rows["missed"]["path"]) == (1, None)
    with pytest.raises(UsageError):
        index.errors("truth", "agent", 0.5)


@pytest.mark.slow
@pytest.mark.slow
def test_an_evaluation_brings_its_numbers_and_curves(judged: Path) -> None:
    index = Index(open_paths([judged / "run", judged / "truth", judged / "found"]))
    rows = {row["metric"]: row for row in index.metrics(0)}
    assert rows["video_ap@0.2:agent:Ped"]["value"] == pytest.approx(1 / 3)
    curve = index.curve(0, "video:stiou", "agent", "Ped", 0.2)
    assert curve["n_truth"] == 3
    assert curve["recall"] == [0.3333, 0.3333]
    assert curve["precision"] == [1.0, 0.5]
    for wrong in (
        ("video:stiou", "agent", "Bus", 0.2),
        ("x", "agent", "Ped", 0.2),
        ("frame", "agent", "Ped", 0.21),
    ):
        with pytest.raises(UsageError):
            index.curve(0, *wrong)


def test_what_cannot_be_looked_at_is_said(sets: Path) -> None:
    with pytest.raises(UsageError, match="name what to look at"):
        open_paths([])
    with pytest.raises(InputError, match="no such file"):
        open_paths([sets / "nothing"])
    with pytest.raises(UsageError, match="one set of ground truth"):
        open_paths([sets / "truth", Path(shutil.copytree(sets / "truth", sets / "copy"))])
    assert list(open_paths([sets / "truth", sets / "truth"]).sides) == ["truth"]
    (sets / "empty").mkdir()
    with pytest.raises(InputError):
        open_paths([sets / "empty"])


def test_a_flipped_bit_is_no_table(sets: Path) -> None:
    path = next((sets / "truth").glob("boxes-*.parquet"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedError, match="blake2b"):
        open_paths([sets / "truth"])
    path.unlink()
    with pytest.raises(InputError):
        scan_tables(sets / "truth")


def test_a_table_that_lacks_columns_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    parts, content = store.encode(make_truth())
    name = next(name for name in parts if name.startswith("boxes"))
    bare = pl.read_parquet(parts[name]).drop("x1_px")
    data = json.loads(content)
    buffer = io.BytesIO()
    bare.write_parquet(buffer)
    digest = hashlib.blake2b(buffer.getvalue(), digest_size=32).hexdigest()
    part = {"file": f"boxes-{digest[:16]}.parquet", "rows": len(bare), "bytes": len(buffer.getvalue())}
    data["tables"]["boxes"] = part | {"blake2b": digest}
    data.pop("blake2b")
    data["blake2b"] = store.compute_meta_digest(data)
    folder = tmp_path / "bare"
    folder.mkdir()
    for each, held in (parts | {part["file"]: buffer.getvalue()}).items():
        (folder / each).write_bytes(held)
    (folder / "meta.json").write_text(json.dumps(data))
    with pytest.raises(DamagedError, match=r"table boxes needs the columns \['x1_px'\]"):
        open_paths([folder])


def test_tubes_without_labels_are_called_as_most_of_their_boxes(tmp_path: Path) -> None:
    truth = make_truth()
    boxes = truth.boxes.filter(pl.col("tube") == 1)["box"].to_list()
    words = ["Ped", "Car", "Car"] + ["Car"] * (len(boxes) - 3)
    labels = pl.DataFrame(
        {"box": boxes, "kind": "agent", "label": [("Ped", "Car").index(word) for word in words]}
    )
    bare = truth.with_tables(tube_labels=truth.tube_labels.clear(), labels=labels)
    save(bare, tmp_path / "truth")
    paths = Index(open_paths([tmp_path / "truth"])).describe_video("one")["truth"]["paths"]
    assert [path[5] for path in paths] == [[], [["agent", "Car", None]], []]


def test_proposals_are_all_shown_and_have_no_errors_of_tubes(tmp_path: Path, sets: Path) -> None:
    found = make_predictions()
    loose = found.with_tables(
        videos=found.videos.clear(),
        boxes=found.boxes.drop("tube"),
        tubes=found.tubes.clear(),
        tube_labels=found.tube_labels.clear(),
    )
    save(loose, tmp_path / "proposals")
    index = Index(open_paths([sets / "truth", tmp_path / "proposals"]))
    assert len(index.boxes("one", 0, 5)["a"]["box"]) == 5
    told = index.describe()
    assert (told["sides"]["a"]["min_score"], told["error_kinds"]) == (0.0, [])


def test_a_path_is_said_in_words_by_what_it_has_longest() -> None:
    paths = [
        [7, "t7", 10, 60, 0.9, [["agent", "Car", 0.4], ["agent", "Bus", 0.6]]],
        [8, None, 0, 5, None, [["agent", "person", None]]],
        [9, None, None, None, None, [["agent", "Ped", None]]],
    ]
    parts = [
        [1, 7, [[10, 20], [40, 60]], 0.9, [["action", "Stop", None]]],
        [2, 7, [[20, 45]], 0.9, [["action", "MovAway", None]]],
        [3, 7, [[10, 60]], 0.5, [["location", "Jun", 0.5], ["duplex", "Bus-Stop", 0.5]]],
    ]
    assert build_sentences(paths, parts, 10.0) == {
        "7": "A bus at the junction stands still, 1.0 to 6.0 s.",
        "9": "A pedestrian is there.",
    }
    assert build_sentences(paths, parts, None)["7"] == "A bus at the junction stands still."
