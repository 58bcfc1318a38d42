"""What the metrics of scenes share, on a state of shares of hits: merging, slices, draws, files."""

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

from roadaware.errors import InputError, UsageError
from roadaware.metrics.metric_state import (
    Judged,
    Measured,
    as_json,
    build_result,
    compute_values,
    crowd_density,
    resample_metrics,
    split_slices,
)
from roadaware.statistics.intervals import PercentileResamples


@dataclass(frozen=True)
class Rule:
    least: float = 0.5


@dataclass(frozen=True, eq=False)
class Hits(Judged):
    """A share of hits, over all videos and of each word."""

    config_type: ClassVar[type] = Rule

    values: np.ndarray
    words: tuple[str, ...]
    config: Rule

    def merge(self, other):
        values = np.concatenate([self.values, other.values])
        return Hits(pl.concat([self.items, other.items]), values, self.words, self.config)

    def only(self, kept):
        return Hits(self.items.filter(pl.Series(kept)), self.values[kept], self.words, self.config)

    def measured(self, weights):
        place = {video: k for k, video in enumerate(self.videos)}
        each = weights[:, [place[video] for video in self.items["video"]]]
        for label in (None, *self.words):
            rows = (
                np.ones(len(self.values), bool) if label is None else (self.items["word"] == label).to_numpy()
            )
            n = each[:, rows].sum(axis=1)
            hits = (each[:, rows] * (self.values[rows] >= self.config.least)).sum(axis=1)
            share = np.divide(hits, n, out=np.full(len(n), np.nan), where=n > 0)
            yield Measured("share", share, int(rows.sum()), label)


def state(rows=((0.9, "v1", "a"), (0.2, "v1", "b"), (0.6, "v2", "a"), (0.1, "v3", "a"))):
    values, videos, words = zip(*rows, strict=True) if rows else ((), (), ())
    items = pl.DataFrame(
        {"video": list(videos), "word": list(words)}, schema={"video": pl.String, "word": pl.String}
    )
    return Hits(items, np.array(values, dtype=np.float64), ("a", "b", "c"), Rule())


def test_values_stand_with_those_of_each_class_and_the_undefined_is_told():
    found = build_result(state(), Rule())
    assert found.values() == {"share": 0.5, "share:a": pytest.approx(2 / 3), "share:b": 0.0, "share:c": None}
    assert found.row("share:c")["reason"] == "there is no truth"
    assert compute_values(state()) == {"share": 0.5}
    assert found.counts.rows() == [(None, 4, 3)]
    assert found.row("share")["low_video"] is None


def test_slices_are_sets_of_their_own():
    found = build_result(state(), Rule(), by=["word"])
    assert found.groups == ("word: a", "word: b")
    assert found.value("share", "word: b") == 0.0
    with pytest.raises(UsageError, match="nothing to slice by in 'colour'; there are word"):
        split_slices(state(), ["colour"])


def test_slices_stand_in_the_order_of_their_numbers_and_unknown_columns_are_told():
    words = ["10+", "flood", "2-4", None, "9"]
    items = pl.DataFrame({"video": ["v"] * 5, "word": words, "category": [None] * 5})
    found = build_result(Hits(items, np.zeros(5), (), Rule()), Rule(), by=["word", "category"])
    assert found.groups == ("word: 2-4", "word: 9", "word: 10+", "word: flood")
    assert found.notes == ("nothing is known of category: there are no slices by it",)


def test_density_names_how_many_boxes_a_picture_has():
    boxes = pl.Series("boxes", [0.0, 0.4, 0.5, 1.0, 1.4, 1.5, 4.4, 4.5, 9.4, 9.5, None])
    named = boxes.to_frame().select(crowd_density(pl.col("boxes"))).to_series()
    assert named.to_list() == ["0", "0", "1", "1", "1", "2-4", "2-4", "5-9", "5-9", "10+", None]


def test_intervals_are_over_videos_and_need_two():
    found = build_result(state(), Rule(), resamples=200, seed=1)
    row = found.row("share")
    assert row["low_video"] < row["value"] < row["high_video"]
    assert build_result(state(), Rule(), resamples=200, seed=1).row("share") == row
    alone = state().only(np.array([True, True, False, False]))
    assert build_result(alone, Rule(), resamples=50).row("share")["low_video"] is None
    with pytest.raises(UsageError, match="resamples should be 0 or more"):
        build_result(state(), Rule(), resamples=-1)


def test_resamples_are_those_of_the_same_videos_and_seed():
    one, two = (resample_metrics(state(), PercentileResamples(130), 3) for _ in range(2))
    assert {key: values.shape for key, values in one.items()} == {
        ("share", label): (130,) for label in (None, "a", "b", "c")
    }
    np.testing.assert_array_equal(one["share", None], two["share", None])
    assert np.isnan(one["share", "c"]).all()
    assert resample_metrics(state(), 130, 3)["share", None].shape == (3,)


def test_parts_merge_to_the_whole():
    whole = state()
    parts = [whole.only((whole.items["video"] == video).to_numpy()) for video in whole.videos]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    assert compute_values(merged) == compute_values(whole)


def test_a_packed_state_is_the_state():
    arrays, facts = state().packed()
    again = Hits.unpacked(arrays, facts)
    for each in fields(Hits):
        one, other = getattr(state(), each.name), getattr(again, each.name)
        assert one.equals(other) if isinstance(one, pl.DataFrame) else np.array_equal(one, other)
    del arrays["values"]
    with pytest.raises(InputError, match="Hits holds"):
        Hits.unpacked(arrays, facts)


def test_the_json_holds_fractions_by_metric_and_class():
    left = {"predictions on unknown videos": 2, "others": 0}
    found = build_result(
        state(),
        Rule(),
        by=["word"],
        resamples=100,
        left_out=left,
        baselines={"none": {"share": 0.0}},
        facts={"k": 1},
    )
    data = as_json(found)
    assert data["summary"] == {"share": 0.5}
    assert data["per_class"]["b"] == {"share": 0.0}
    assert data["per_class"]["c"] == {"share": None}
    assert data["groups"]["word: a"] == {"share": pytest.approx(2 / 3)}
    assert set(data["intervals"]) == {"share"}
    assert data["left_out"] == {"predictions on unknown videos": 2}
    assert data["baselines"] == {"none": {"share": 0.0}}
    assert data["facts"] == {"k": 1}
    assert data["config"] == {"type": "Rule", "least": 0.5}
    assert found.notes == ("2 predictions on unknown videos were left out",)
