"""Folders of JAAD for tests: read, changed, and what their reader said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
from sets import rows_add_up

from roadaware.datasets import read
from roadaware.scenes.tables import Scenes

MAIN = "annotations/video_0001.xml"


def scenes_of(root: Path, **options: Any) -> Scenes:
    scenes = read("jaad", root, cache=False, processes=1, **options)
    rows_add_up(scenes)
    return scenes


def change(root: Path, old: str, new: str, *, file: str = MAIN, count: int = 1) -> None:
    text = (root / file).read_text()
    changed = re.sub(old, new, text, count=count)
    assert changed != text
    (root / file).write_text(changed)


def reasons(scenes: Scenes, table: str) -> list[str]:
    return scenes.rejected.filter(pl.col("table") == table)["reason"].to_list()


def warnings(scenes: Scenes) -> dict[str, int]:
    return {each["what"]: each["count"] for each in scenes.meta.notes["warnings"]}
