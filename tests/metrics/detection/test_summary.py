"""Names, means, weights and intervals of the summary of detection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_events import event_set

from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import (
    AV_ACTION,
    FRAME,
    VIDEO,
    Asked,
    build_summary_rows,
    build_video_weights,
    compute_metrics,
    defined_mean,
    resample_videos,
)
from roadaware.metrics.detection.matches import compute_average_precisions, match_frames
from roadaware.statistics import intervals
from roadaware.statistics.intervals import PercentileResamples, Units

NAN = float("nan")
DEFAULT = DetectionConfig.default()
ASKED = Asked(FRAME, {"0.3": (0,), "both": (0, 1)})


def test_metrics_are_named_by_level_threshold_overlap_and_label() -> None:
    assert Asked(FRAME, {}).metric("ap", "0.5", "agent", "Ped") == "frame_ap@0.5:agent:Ped"
    assert Asked(VIDEO, {}, "stiou").metric("map", "0.2", "agent") == "video_map@0.2:agent"
    assert Asked(VIDEO, {}, "siou").metric("map", "0.2", "agent") == "video_map@0.2(siou):agent"
    assert Asked(AV_ACTION, {}).metric("ap", "0.5", "av_action", "Stop") == "av_ap:Stop"


def test_the_mean_is_over_what_is_defined() -> None:
    found = defined_mean(np.array([[1.0, NAN, 3.0], [NAN, NAN, NAN], [0.0, 0.0, NAN]]))
    np.testing.assert_array_equal(found, [2.0, NAN, 0.0])


def test_videos_that_do_not_count_have_no_weight() -> None:
    assert build_video_weights(["a", "b", "c"], None).tolist() == [1, 1, 1]
    weights = build_video_weights(["a", "b", "c"], ["c", "a", "z"])
    assert weights.tolist() == [1, 0, 1]
    units = Units(2, 10, 0)
    drawn = np.concatenate(list(resample_videos(weights, units)))
    assert drawn[:, 1].tolist() == [0] * len(drawn)
    np.testing.assert_array_equal(drawn[:, [0, 2]], np.concatenate(list(units.weights())))


def test_weightings_that_come_some_at_a_time_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    matches = match_frames(*reversed(event_set(3)), DEFAULT, (0.3, 0.5), ["agent", "action"])
    resamples, n = PercentileResamples(20), len(matches.videos)
    at_once = list(compute_metrics(matches, ASKED, DEFAULT, resamples=resamples))
    monkeypatch.setattr(intervals, "_BLOCK", 3 * n)
    assert [len(some) for some in Units(n, resamples, 0).weights()] == [3] * 6 + [2]
    in_parts = list(compute_metrics(matches, ASKED, DEFAULT, resamples=resamples))
    assert len(at_once) > 10
    for one, other in zip(at_once, in_parts, strict=True):
        assert one.drawn is not None
        np.testing.assert_array_equal(one.drawn, other.drawn)


def test_every_metric_is_read_off_the_table_of_average_precision() -> None:
    matches = match_frames(*reversed(event_set(3)), DEFAULT, (0.3, 0.5), ["agent", "action"])
    found = list(compute_metrics(matches, ASKED, DEFAULT))
    table = compute_average_precisions(matches, DEFAULT)
    names = [each.metric for each in found]
    labels = {"agent": ("Ped", "Car", "Bus"), "action": ("Stop", "Mov", "Xing", "Never")}
    assert names == [
        f"frame_{what}"
        for kind, held in labels.items()
        for at in ("0.3", "both")
        for what in (f"map@{at}:{kind}", *(f"ap@{at}:{kind}:{label}" for label in held))
    ]
    values = {each.metric: each.value for each in found}
    n = {each.metric: each.n for each in found}
    assert values["frame_ap@0.3:agent:Car"] == table[1, 0]
    assert values["frame_ap@both:action:Mov"] == pytest.approx(table[4].mean())
    assert values["frame_map@0.3:action"] == pytest.approx(table[3:6, 0].mean())
    assert np.isnan(values["frame_ap@0.3:action:Never"])
    assert (n["frame_map@0.3:action"], n["frame_map@0.3:agent"]) == (3, 3)
    assert n["frame_ap@0.3:agent:Car"] == matches.n_truth[:, 1].sum()
    assert all(each.interval is None for each in found)
    rows = {row["metric"]: row for row in build_summary_rows("night", ASKED, iter(found))}
    assert rows["frame_ap@0.3:action:Never"]["reason"] == "there is no truth of this label"
    assert (rows["frame_map@both:agent"]["valid"], rows["frame_map@both:agent"]["reason"]) == (True, None)
    assert {row["group"] for row in rows.values()} == {"night"}
    assert rows["frame_map@both:agent"]["threshold"] == "both"


def test_intervals_need_two_videos_and_a_value() -> None:
    matches = match_frames(*reversed(event_set(3, videos=4)), DEFAULT, (0.3, 0.5), ["agent", "action"])
    for videos, there in ((["v0"], False), (["v0", "v1"], True), (None, True)):
        found = list(compute_metrics(matches, ASKED, DEFAULT, videos=videos, resamples=20))
        assert (found[0].interval is not None) == there
        assert found[-1].label == "Never"
        assert found[-1].interval is None
    drawn = PercentileResamples(20)
    plain, zero, one = (
        next(compute_metrics(matches, ASKED, DEFAULT, resamples=drawn, **seed)).interval
        for seed in ({}, {"seed": 0}, {"seed": 1})
    )
    assert plain == zero != one


def test_labels_of_frames_have_a_rule_of_their_own() -> None:
    config = replace(DEFAULT, ap="envelope", av_ap="raw")
    matches = match_frames(*reversed(event_set(3)), config, (0.5,), ["agent"])
    columns = {"0.5": (0,)}
    for level, rule in ((FRAME, "envelope"), (AV_ACTION, "raw")):
        (_, *classes) = compute_metrics(matches, Asked(level, columns), config)
        expected = compute_average_precisions(matches, config, rule=rule)[:, 0]
        assert [each.value for each in classes] == expected.tolist()
        rows = list(build_summary_rows(None, Asked(level, columns), iter(classes)))
        assert {row["threshold"] for row in rows} == {"0.5" if level == FRAME else None}
