"""Files of ROAD for tests: made, changed and read."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
from sets import SETS, maker, rows_add_up

from roadaware.scenes.tables import Scenes

ROAD = SETS["road"]
make = maker("road")
HOUSE = {"agent": "agent", "action": "action", "loc": "location", "duplex": "duplex", "triplet": "event"}
Content = dict[str, Any]


def read_content(folder: Path, content: Content, name: str = "road_trainval_v1.0.json") -> Scenes:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(content))
    scenes = ROAD.read(folder / name)
    rows_add_up(scenes)
    return scenes


def head() -> Content:
    """The labels of a file, for one test alone."""
    found: Content = copy.deepcopy(make.head())
    return found


def read_from(tmp_path: Path, content: Content) -> Scenes:
    return read_content(tmp_path / "set", content)


def native_tubes(content: Content, native: str) -> list[tuple[str, str, list[tuple[int, tuple[float, ...]]]]]:
    """Each tube with a used label, as the file has it: name, label, and frame with box as shares."""
    every, used = content[f"all_{native}_labels"], content[f"{native}_labels"]
    found = []
    for entry in content["db"].values():
        for uid, tube in entry[f"{native}_tubes"].items():
            if every[tube["label_id"]] in used:
                members = [
                    (int(frame) - 1, tuple(entry["frames"][frame]["annos"][key]["box"]))
                    for frame, key in tube["annos"].items()
                ]
                found.append((uid, every[tube["label_id"]], sorted(members)))
    return found


def read_tubes(scenes: Scenes, kind: str) -> list[tuple[str, str, list[tuple[int, tuple[float, ...]]]]]:
    """Each derived tube as the tables have it, box by box from its parent."""
    labels = dict(scenes.tube_labels.filter(kind=kind).select("tube", "label").iter_rows())
    sizes = {
        v: (w, h, w, h) for v, w, h in scenes.videos.select("video", "width_px", "height_px").iter_rows()
    }
    of_track: dict[int, dict[int, tuple[float, ...]]] = {}
    for row in scenes.boxes.iter_rows(named=True):
        if row["tube"] is not None:
            corners = (row[f"{c}_px"] for c in ("x1", "y1", "x2", "y2"))
            shares = tuple(value / side for value, side in zip(corners, sizes[row["video"]], strict=True))
            frames = of_track.setdefault(row["tube"], {})
            assert row["frame"] not in frames, "a track is in one frame twice"
            frames[row["frame"]] = shares
    found = []
    for tube in scenes.tubes.filter(kind=kind).iter_rows(named=True):
        frames = [frame for low, high in tube["spans"] for frame in range(low, high)]
        assert (tube["start_frame"], tube["end_frame"]) == (frames[0], frames[-1] + 1)
        members = [(frame, of_track[tube["parent"]][frame]) for frame in frames]
        found.append((tube["name"], scenes.meta.vocabularies[kind][labels[tube["tube"]]], members))
    return found


def agree(found: list[Any], wanted: list[Any]) -> None:
    """The same tubes in the same order, boxes to single precision."""
    assert [(name, label) for name, label, _ in found] == [(name, label) for name, label, _ in wanted]
    for (_, _, mine), (_, _, theirs) in zip(found, wanted, strict=True):
        assert [frame for frame, _ in mine] == [frame for frame, _ in theirs]
        np.testing.assert_allclose([box for _, box in mine], [box for _, box in theirs], atol=1e-6)
