"""Numbers that no table can hold, planted in every numeric field of every native set, one at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sets import SETS, NativeSet, maker
from test_fuzz import ENDS, judge

from roadaware.scenes.tables import Scenes

PLANTED = (b"NaN", b"1e400", b"-1e39", b"1e308", b"-inf", b"1e-300", b"9" * 60, b"1e39", b"5e-324", b"0")
"""Not finite, beyond double or single precision, too small to divide by."""
FEW = 5
_NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\w)")


def fields(name: str, data: bytes) -> Iterator[tuple[int, int]]:
    """Where one number of each field stands; a field is known by the letters before it or by its column."""
    seen = set()
    for found in _NUMBER.finditer(data):
        before = data[data.rfind(b"\n", 0, found.start()) + 1 : found.start()]
        field: object = re.sub(rb"[^A-Za-z_]", b"", before[-25:])[-8:]
        if name.endswith((".csv", ".txt")):
            field = before.count(b",") + before.count(b" ")
        if field not in seen:
            seen.add(field)
            yield found.span()


def plant(each: NativeSet, folder: Path, *, every: bool) -> int:
    """Plant numbers in a set and hold the laws of damaged files; returns how many.

    Args:
        each: the set.
        folder: where it is made.
        every: whether every number is planted in every field, or one in each of a few fields of a file.
    """
    root = each.alone(each.make(folder / "set", frames=4))
    clean, count = each.read(root), 0
    for name in (each.main, *each.others_in(root)):
        data = (root / name).read_bytes()
        spans = list(fields(name, data))
        kept = spans if every else spans[:: 1 + len(spans) // FEW]
        for place, (start, end) in enumerate(kept):
            for value in PLANTED if every else (PLANTED[place % len(PLANTED)],):
                (root / name).write_bytes(data[:start] + value + data[end:])
                assert judge(each, root, name, clean) in ENDS, (name, data[max(0, start - 40) : start], value)
                count += 1
        (root / name).write_bytes(data)
    return count


@pytest.mark.slow
def test_a_number_that_no_table_holds_is_refused_or_told(native: NativeSet, tmp_path: Path) -> None:
    assert plant(native, tmp_path, every=False) >= 3


@pytest.mark.slow
def test_every_such_number_is_refused_or_told(native: NativeSet, tmp_path: Path) -> None:
    assert plant(native, tmp_path, every=True) >= 3 * len(PLANTED)


def changed(name: str, root: Path, pattern: str, value: str, file: str | None = None) -> tuple[str, Scenes]:
    """How a set is judged and read whose number behind a pattern is another."""
    each = SETS[name]
    each.alone(each.make(root, frames=4))
    clean, path = each.read(root), file or each.main
    text = (root / path).read_text("utf-8")
    (root / path).write_text(re.sub(f"({pattern})" + r"[-+.\d]+", rf"\g<1>{value}", text, count=1), "utf-8")
    assert (root / path).read_text("utf-8") != text
    return judge(each, root, path, clean), each.read(root)


@pytest.mark.slow
@pytest.mark.parametrize("value", ["1e39", "-1e39", "1e308", "nan", "inf", "1e400"])
def test_a_speed_of_pie_beyond_single_precision_is_null_and_told(tmp_path: Path, value: str) -> None:
    file = "annotations_vehicle/set01/video_0001_obd.xml"
    ending, scenes = changed("pie", tmp_path, 'OBD_speed="', value, file)
    assert ending == "read with warnings"
    (warning,) = scenes.meta.notes["warnings"]
    assert (warning["count"], warning["example"]) == (1, f"{file}: '{value}'")
    assert warning["what"].startswith("OBD_speed: no finite number")
    assert scenes.frames["ego_speed_kmh"].null_count() == 1


@pytest.mark.parametrize("value", ["1e-300", "5e-324", "0", "1e400"])
def test_a_frame_rate_too_low_for_times_is_null_and_told(tmp_path: Path, value: str) -> None:
    ending, scenes = changed("vidvrd", tmp_path, r'"fps":\s*', value)
    assert ending == "read with warnings"
    assert scenes.videos["fps"].to_list() == [None]
    assert scenes.frames["t_s"].null_count() == len(scenes.frames)


def test_a_moment_beyond_single_precision_has_no_time(tmp_path: Path) -> None:
    each = SETS["chaotic_world"]
    each.alone(each.make(tmp_path, frames=4))
    header, *rows = (tmp_path / each.main).read_text("utf-8").splitlines()
    place = header.split(",").index("time_current")
    cells = rows[0].split(",")
    cells[place - len(header.split(","))] = "1e39"
    (tmp_path / each.main).write_text("\n".join([header, ",".join(cells), *rows[1:]]) + "\n", "utf-8")
    times = each.read(tmp_path).frames["t_s"]
    assert times.drop_nulls().is_finite().all()


def test_a_number_of_a_simulation_beyond_double_precision_is_refused_with_its_file(tmp_path: Path) -> None:
    each = SETS["simulator"]
    each.alone(each.make(tmp_path, frames=4))
    clean, main = each.read(tmp_path), tmp_path / "simulation.json"
    held = json.loads(main.read_text())
    held["config"]["fps"] = 12345.5
    main.write_text(json.dumps(held).replace("12345.5", "1e400"))
    assert judge(each, tmp_path, "simulation.json", clean) == "typed error"


def boxes_add_up(name: str, root: Path, content: dict[str, Any]) -> Scenes:
    """What is read of a document of VoTT; each of its regions is a box or refused."""
    (root / "drive-export.json").write_text(json.dumps(content))
    scenes = SETS["vott"].read(root)
    regions = content.get("frames") or {key: each["regions"] for key, each in content["assets"].items()}
    refused = len(scenes.rejected.filter(pl.col("table") == "boxes"))
    assert len(scenes.boxes) + refused == sum(map(len, regions.values())), name
    return scenes


def test_no_region_of_a_refused_frame_is_lost(tmp_path: Path) -> None:
    make = maker("vott")
    first = make.version_1(12, (1280, 720))
    first["frames"]["0"] = first["frames"].pop("3")
    assert "frames" in boxes_add_up("a frame before the first", tmp_path, first).rejected["table"]
    second = make.version_2(8)
    second["assets"]["f3"]["asset"]["timestamp"] = 1e39
    assert "frames" in boxes_add_up("a frame without a time", tmp_path, second).rejected["table"]
    second = make.version_2(8)
    second["assets"]["f3"]["asset"] = {"name": "drive.mp4", "type": 2}
    boxes_add_up("regions of a video as a whole", tmp_path, second)
