"""VGG-SS: corners as the file has them, sounds with their classes, pixels and upside-down boxes refused."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sets import SETS, maker, rows_add_up

from roadaware.errors import InputError
from roadaware.scenes.tables import Scenes

VGGSS = SETS["vggss"]
make = maker("vggss")


def read_content(tmp_path: Path, content: Any) -> Scenes:
    (tmp_path / "vggss.json").write_text(json.dumps(content))
    scenes = VGGSS.read(tmp_path / "vggss.json")
    rows_add_up(scenes)
    return scenes


def item(*boxes: list[float], name: str = "a_000010", label: str = "airplane") -> dict[str, Any]:
    return {"file": name, "class": label, "bbox": list(boxes)}


def test_an_item_by_hand(tmp_path: Path) -> None:
    scenes = read_content(
        tmp_path, [item([0.1, -0.01, 1.02, 1], [0, 0, 0.5, 0.5]), item([0, 0, 1, 1], name="b")]
    )
    assert scenes.sounds.rows() == [(0, "a_000010", "a_000010", 0, 0), (1, "b", "b", 0, 0)]
    assert scenes.videos.rows() == [("a_000010", 1, 1, 1), ("b", 1, 1, 1)]
    assert scenes.boxes.select("sound", "x1_px", "y1_px", "x2_px", "y2_px").rows() == [
        (0, 0.1, -0.01, 1.02, 1.0),
        (0, 0.0, 0.0, 0.5, 0.5),
        (1, 0.0, 0.0, 1.0, 1.0),
    ]
    assert scenes.meta.notes["unit_pictures"] is True
    (told,) = scenes.meta.notes["warnings"]
    assert told["count"] == 1
    assert "reach out of their image" in told["what"]


def test_pixels_are_refused_with_what_is_due(tmp_path: Path) -> None:
    scenes = read_content(tmp_path, [item([0.1, 0.1, 0.2, 0.2]), item([10, 20, 120, 200], name="b")])
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["item"]) == ("boxes", "b, frame 0, box 0")
    assert "in pixels" in row["reason"]
    assert len(scenes.sounds) == 2
    with pytest.raises(InputError, match=r"none of the boxes of 2 items can be read.*in pixels"):
        read_content(tmp_path, [item([10, 20, 120, 200]), item([10, 20, 120, 201], name="b")])


REFUSED: dict[str, tuple[Any, str]] = {
    "a list": ([], "expected an object with 'file', 'class' and 'bbox'"),
    "no file": ({"class": "x", "bbox": []}, "'file' should be a name and is null"),
    "no class": (item(label=" "), "'class' should be a text"),
    "no boxes": ({"file": "x", "class": "x"}, "'bbox' should be a list of boxes and is null"),
    "twice": (item([0, 0, 1, 1]), "a second reading of this file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_items_are_refused(tmp_path: Path, name: str) -> None:
    bad, reason = REFUSED[name]
    scenes = read_content(tmp_path, [item([0, 0, 1, 1]), bad])
    (row,) = scenes.rejected.to_dicts()
    assert row["table"] == "sounds"
    assert reason in row["reason"]
    assert len(scenes.sounds) == 1


def test_what_is_no_list_of_items_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no list of items"):
        read_content(tmp_path, {"a": [[0, 0, 1, 1]]})
    with pytest.raises(InputError, match="none of the 1 items can be read; the first, place 0"):
        read_content(tmp_path, [3])


def test_the_published_file(tmp_path: Path) -> None:
    folder = os.environ.get("ROADAWARE_DATA_DIR")
    path = Path(folder or "") / "vggss" / "vggss.json"
    if not folder or not path.is_file():
        pytest.skip("ROADAWARE_DATA_DIR has no vggss/vggss.json")
    scenes = VGGSS.read(path)
    rows_add_up(scenes)
    listed = json.loads(path.read_bytes())
    assert scenes.sounds["name"].to_list() == [each["file"] for each in listed]
    classes = Counter(each["class"] for each in listed)
    words = scenes.meta.vocabularies["sound"]
    assert len(listed) == 5158
    assert len(words) == 221
    assert Counter(words[label] for label in scenes.sounds["label"]) == classes
    assert classes["playing congas"] == 45
    kept = [
        (place, *map(float, box))
        for place, each in enumerate(listed)
        for box in each["bbox"]
        if box[0] <= box[2] and box[1] <= box[3]
    ]
    assert scenes.boxes.select("sound", "x1_px", "y1_px", "x2_px", "y2_px").rows() == kept
    assert len(kept) == 5929
    assert len(scenes.rejected) == 12
    assert scenes.rejected["reason"].str.contains("upside down").all()
