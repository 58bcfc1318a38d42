"""Whatever a reader opens agrees with itself, and a box that is moved is found in it."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest

from roadaware.analysis.quality import Dictionary, QualityConfig, check

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

from sets import SETS, NativeSet

NAMES = (
    "ava",
    "chaotic_world",
    "flickr_soundnet",
    "hcstvg",
    "label_studio",
    "ucf24",
    "vggss",
    "vidstg",
    "vidvrd",
)


@pytest.fixture(params=NAMES)
def native(request: pytest.FixtureRequest) -> NativeSet:
    return SETS[request.param]


@pytest.mark.slow
def test_a_native_set_agrees_with_itself_and_one_moved_box_is_found(
    native: NativeSet, tmp_path: Path
) -> None:
    scenes = native.read(native.make(tmp_path / "set"))
    config, words = QualityConfig(reviewers_differ=False), Dictionary({})
    quality = check(scenes, scenes, scenes, config=config, dictionary=words)
    assert quality.findings.filter(pl.col("stage").str.contains(" to ")).is_empty()
    shares = (
        quality.agreement.select("mean_iou", "share_edges", "share_times").unpivot()["value"].drop_nulls()
    )
    assert shares.min() in (None, 1.0)
    assert not quality.items.filter(pl.col("what") != "refused row")["video"].null_count()

    width = scenes.videos["width_px"].drop_nulls().max() or 1280
    first = pl.int_range(pl.len()) == 0
    step = 9 / 1280 * float(str(width))
    boxes = scenes.boxes.with_columns(
        pl.when(first).then(pl.col("x2_px") + step).otherwise("x2_px").alias("x2_px")
    )
    moved = check(scenes, scenes.with_tables(boxes=boxes), config=config, dictionary=words)
    rules = moved.findings.filter(pl.col("stage").str.contains(" to "))["rule"].to_list()
    assert rules == ["box moved"]
