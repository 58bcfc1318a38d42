"""Linking a whole set: equal to the plain linker and to the streaming one, and true to the tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.trackers import FORMER
from detection_sets import frames, predictions
from plain_linker import PlainLinker, finished, tubes

from roadaware.config import from_dict
from roadaware.errors import InputError
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.linking.linker import Linker
from roadaware.scenes.tables import Predictions

REFERENCE, DEFAULT = LinkerConfig.reference(), LinkerConfig.default()
KINDS = {"agent": 3, "action": 4}
COLUMNS = {"agent": range(0, 3), "action": range(3, 7)}
CONFIGS = {
    "reference": REFERENCE,
    "default": DEFAULT,
    "ties by build": replace(REFERENCE, order_ties="build"),
    "hungarian": replace(DEFAULT, assignment="hungarian"),
    "ioul2": replace(REFERENCE, cost="ioul2"),
    "holes": replace(DEFAULT, gaps="keep"),
    "best quarter": replace(DEFAULT, class_score="quarter_of_length", max_labels=2),
    "indiv by class": replace(REFERENCE, trim="indiv", min_tube_len=2, trim_alpha=0.3),
    "indiv by agentness": replace(DEFAULT, trim="indiv", trim_alpha=1.0, min_tube_len=3),
    "dpscores": replace(DEFAULT, trim="dpscores", max_labels=2, trim_alpha=0.5),
    "dpscores, no cost": replace(REFERENCE, trim="dpscores", max_labels=3, min_tube_len=1),
    "dpscorestopn": replace(REFERENCE, trim="dpscorestopn", max_labels=3, trim_alpha=0.5),
}
_SIDES = ["x1_px", "y1_px", "x2_px", "y2_px"]


def _set(seed: int, **options: Any) -> tuple[dict[str, Any], Predictions]:
    videos = {f"v{i}": frames(10 * seed + i, n_agents=3 + 2 * seed, **options) for i in range(2)}
    return videos, predictions(videos, KINDS)


def _expected(videos: dict[str, Any], config: LinkerConfig) -> list[tuple[str, Any]]:
    found = []
    for name, video in videos.items():
        plain = PlainLinker(config, KINDS["agent"])
        for frame in video:
            plain.update(*frame)
        found += [(name, path) for path in finished(plain.finish(), config)]
    return found


def _derived(linked: Predictions) -> pl.DataFrame:
    labels = linked.tube_labels.select("tube", "kind", "label", pl.col("score").alias("label_score"))
    rows = linked.tubes.filter(pl.col("parent").is_not_null())
    return rows.join(labels, on=["tube", "kind"], how="left", maintain_order="left")


@pytest.mark.spread(3)
@pytest.mark.parametrize("seeds", [(1, 2), pytest.param((0, 3), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CONFIGS)
def test_paths_and_tubes_equal_the_plain_ones(name: str, seeds: tuple[int, ...]) -> None:
    config = CONFIGS[name]
    for seed in seeds:
        videos, predicted = _set(seed, tied=seed % 2 == 0)
        linked, expected = link(predicted, config), _expected(videos, config)
        paths = linked.tubes.filter(pl.col("parent").is_null())
        assert paths["video"].to_list() == [video for video, _ in expected]
        assert paths["tube"].to_list() == list(range(len(expected)))
        squeezed = config.gaps == "squeeze"
        for i, (_, plain) in enumerate(expected):
            boxes = linked.boxes.filter(pl.col("tube") == i).sort("frame")
            assert boxes["frame"].to_list() == plain.frames
            assert np.allclose(boxes.select(_SIDES).to_numpy(), np.array(plain.boxes), atol=1e-3)
            assert paths["score"][i] == pytest.approx(np.mean(np.float64(plain.agentness)), abs=1e-6)
            assert paths["start_frame"][i] == plain.frames[0]
            end = plain.frames[0] + len(plain.frames) if squeezed else plain.frames[-1] + 1
            assert paths["end_frame"][i] == end
        wanted = []
        for kind, columns in COLUMNS.items():
            for i, (_, plain) in enumerate(expected):
                for label, first, last, score in tubes(plain, columns, config):
                    at = [
                        plain.frames[0] + place if squeezed else plain.frames[place]
                        for place in (first, last)
                    ]
                    spans = [[plain.frames[first], plain.frames[last] + 1]]
                    wanted.append((i, kind, label, at[0], at[1] + 1, spans, score))
        columns = ["parent", "kind", "label", "start_frame", "end_frame", "spans", "score"]
        if wanted:
            found = _derived(linked)
            assert found["tube"].to_list() == list(range(len(expected), len(linked.tubes)))
            assert [row[:-1] for row in found.select(columns).rows()] == [row[:-1] for row in wanted]
            # In 32 bits the order of additions is numpy's, so that scores are the same to the last bit.
            close = 0.0 if config.single_precision else 1e-9
            assert found["score"].to_list() == pytest.approx([row[-1] for row in wanted], rel=0, abs=close)
            assert found["label_score"].equals(found["score"].alias("label_score"))


@pytest.mark.parametrize("name", ["reference", "default", "hungarian"])
def test_a_stream_gives_the_same_paths(name: str) -> None:
    config = replace(CONFIGS[name], drop_weak=False)
    videos, predicted = _set(2)
    linked = link(predicted, replace(config, gaps="keep"))
    streamed = []
    for video in videos.values():
        linker = Linker(replace(config, gaps="keep"), 7, l2_columns=3)
        for frame in video:
            streamed += linker.update(*frame).ended
        streamed += linker.finish()
    rows = linked.boxes.with_columns(row=pl.int_range(pl.len()).over("video", "frame"))
    for tube, path in enumerate(streamed):
        owned = rows.filter(pl.col("tube") == tube).sort("frame")
        assert owned["frame"].to_list() == path.frames.tolist()
        assert owned["row"].to_list() == path.rows.tolist()
    assert linked.boxes["tube"].max() == len(streamed) - 1


def test_reference_squeezes_gaps_out_and_default_fills_them() -> None:
    seen = [0, 1, 2, 3, 6, 7, 8]
    video = [
        (f, np.array([[10 * f, 0, 10 * f + 100, 50]]), np.array([0.5 + 0.05 * f]), np.array([[0.1 * f]]))
        for f in seen
    ]
    predicted = predictions({"v": video}, {"agent": 1})
    reference, default = link(predicted, REFERENCE), link(predicted, DEFAULT)
    path, tube = reference.tubes.rows(named=True)
    assert (path["start_frame"], path["end_frame"], path["consecutive"]) == (0, 7, True)
    assert (tube["start_frame"], tube["end_frame"], tube["spans"], tube["consecutive"]) == (
        0,
        7,
        [[0, 9]],
        True,
    )
    assert reference.boxes["frame"].to_list() == seen
    path, tube = default.tubes.rows(named=True)
    assert (path["start_frame"], path["end_frame"], path["consecutive"]) == (0, 9, False)
    assert (tube["start_frame"], tube["end_frame"], tube["spans"]) == (0, 9, [[0, 9]])
    made = default.boxes.filter("interpolated")
    assert made["frame"].to_list() == [4, 5]
    assert made["x1_px"].to_list() == [40, 50]
    assert made["score"].to_list() == pytest.approx([0.7, 0.75])
    assert made["scores"].to_list() == [pytest.approx([0.4]), pytest.approx([0.5])]
    assert made["box"].to_list() == [7, 8]
    assert default.boxes["interpolated"].to_list() == [False] * 7 + [True] * 2


def test_weak_paths_are_dropped_by_default_and_their_boxes_stay_unlinked() -> None:
    weak = [(f, np.array([[0, 0, 10, 10]]), np.array([0.09]), np.zeros((1, 1))) for f in range(6)]
    strong = [(f, np.array([[0, 0, 10, 10]]), np.array([0.2]), np.zeros((1, 1))) for f in range(2)]
    gappy = [(f, np.array([[0, 0, 10, 10]]), np.array([0.9]), np.zeros((1, 1))) for f in (0, 2, 3, 4, 5, 6)]
    predicted = predictions({"weak": weak[:5], "long": weak, "strong": strong, "gappy": gappy}, {"agent": 1})
    config = replace(FORMER, min_edge=0.05)
    assert link(predicted, config).tubes.filter(pl.col("parent").is_null())["video"].to_list() == [
        "long",
        "strong",
    ]
    kept = link(predicted, replace(config, drop_weak=False)).tubes.filter(pl.col("parent").is_null())
    assert kept["video"].to_list() == ["weak", "long", "strong", "gappy"]
    boxes = link(predicted, config).boxes
    assert boxes.filter(pl.col("video") == "weak")["tube"].null_count() == 5


def test_paths_of_fewer_than_three_boxes_are_dropped_by_default() -> None:
    box = np.array([[0, 0, 10, 10]]), np.array([0.9]), np.zeros((1, 1))
    at = {"one": [0], "two": [0, 1], "three": [0, 1, 2], "gappy": [0, 1, 3]}
    predicted = predictions({name: [(f, *box) for f in found] for name, found in at.items()}, {"agent": 1})
    assert link(predicted, DEFAULT).tubes["video"].to_list() == ["three"]


def test_short_paths_get_no_label_and_few_classes_fewer_labels() -> None:
    video = [(f, np.array([[0, 0, 9, 9]]), np.array([0.9]), np.array([[0.1, 0.3, 0.2]])) for f in range(6)]
    linked = link(predictions({"v": video, "w": video[:5]}, {"agent": 3}), REFERENCE)
    assert linked.tubes.filter(pl.col("parent").is_null())["video"].to_list() == ["v", "w"]
    assert linked.tube_labels["label"].to_list() == [1, 2, 0]
    assert set(linked.tubes.filter(pl.col("kind") == "agent")["parent"]) == {0}


def test_the_best_frames_count_as_many_as_a_quarter_of_the_classes() -> None:
    scores = np.zeros((8, 8))
    scores[:, 2] = [0.9, 0.1, 0.1, 0.1, 0.1, 0.1, 0.7, 0.1]
    scores[:, 5] = 0.4
    video = [(f, np.array([[0, 0, 9, 9]]), np.array([0.9]), scores[f : f + 1]) for f in range(8)]
    predicted = predictions({"v": video}, {"action": 8})
    best = {
        name: link(predicted, replace(DEFAULT, class_score=name, max_labels=1)).tube_labels.row(0)[2:]
        for name in ("quarter_of_classes", "quarter_of_length", "mean")
    }
    assert best["quarter_of_classes"] == (2, pytest.approx(0.8))
    assert best["quarter_of_length"] == (2, pytest.approx(0.8))
    assert best["mean"] == (5, pytest.approx(0.4))
    more = replace(DEFAULT, class_score="quarter_of_classes", max_labels=9)
    assert len(link(predicted, replace(more, min_label_score=None)).tube_labels) == 8
    assert link(predicted, more).tube_labels["label"].to_list() == [2, 5]


def test_agentness_among_the_dense_scores_is_no_label() -> None:
    video = [(f, np.array([[0, 0, 9, 9]]), np.array([0.9]), np.array([[0.9, 0.5]])) for f in range(6)]
    linked = link(predictions({"v": video}, {"agentness": 1, "action": 1}), REFERENCE)
    assert linked.tube_labels["kind"].to_list() == ["action"]


def test_detections_without_class_scores_become_paths_alone() -> None:
    video = [(f, np.array([[0, 0, 9, 9]]), np.array([0.9]), np.zeros((1, 0))) for f in range(6)]
    linked = link(predictions({"v": video}, {}), DEFAULT)
    assert (len(linked.tubes), len(linked.tube_labels)) == (1, 0)


@pytest.mark.parametrize("config", [REFERENCE, DEFAULT], ids=["reference", "default"])
def test_nothing_detected_gives_nothing(config: LinkerConfig) -> None:
    nothing = (np.zeros((0, 4)), np.zeros(0), np.zeros((0, 7)))
    for videos in ({}, {"v": [(0, *nothing), (1, *nothing)]}):
        linked = link(predictions(videos, KINDS), config)
        assert (len(linked.boxes), len(linked.tubes), len(linked.tube_labels)) == (0, 0, 0)
    bare = predictions({}, KINDS)
    bare = replace(bare, boxes=bare.boxes.drop("score", "scores"))  # as it is read where no box was written
    assert len(link(bare, config).tubes) == 0


def test_the_order_of_rows_within_a_frame_counts_and_that_of_frames_does_not() -> None:
    _, predicted = _set(1)
    mixed = predicted.boxes.sort("frame", maintain_order=True)
    moved = link(replace(predicted, boxes=mixed), DEFAULT)
    straight = link(predicted, DEFAULT)
    videos = replace(predicted, boxes=mixed).boxes["video"].unique(maintain_order=True).to_list()
    assert videos == ["v0", "v1"]
    assert moved.tubes.equals(straight.tubes)
    back = moved.boxes.filter(~pl.col("interpolated")).sort("box")
    assert back["tube"].equals(straight.boxes.filter(~pl.col("interpolated"))["tube"])


def test_videos_come_in_the_order_of_their_table() -> None:
    _, predicted = _set(1)
    videos = pl.DataFrame({"video": ["v1", "v0"]})
    linked = link(replace(predicted, videos=videos), REFERENCE)
    assert linked.tubes.filter(pl.col("parent").is_null())["video"].unique(maintain_order=True).to_list() == [
        "v1",
        "v0",
    ]


def test_times_are_used_where_all_are_known() -> None:
    # A clock that runs unevenly: 20 pixels a second, frames at 0, 1 and 3 seconds.
    places = [0.0, 20.0, 60.0]
    video = [
        (f, np.array([[x, 0, x + 60, 30]]), np.array([0.9]), np.zeros((1, 0))) for f, x in enumerate(places)
    ]
    predicted = predictions({"v": video}, {})
    timed = predicted.frames.with_columns(t_s=pl.Series([0.0, 1.0, 3.0]))
    strict = replace(FORMER, drop_weak=False)
    assert len(link(predicted, replace(strict, min_iou=0.6)).tubes) == 3
    apart = replace(strict, min_iou=0.5)
    with_times = link(replace(predicted, frames=timed), apart).boxes["tube"].to_list()
    assert with_times == [0, 0, 0]
    assert link(predicted, apart).boxes["tube"].to_list() == [0, 0, 0]
    tight = [
        (f, np.array([[x, 0, x + 45, 30]]), *rest)
        for (f, _, *rest), x in zip(video, [0, 15, 45], strict=True)
    ]
    predicted = predictions({"v": tight}, {})
    assert link(replace(predicted, frames=timed), apart).boxes["tube"].to_list() == [0, 0, 0]
    assert link(predicted, replace(apart, min_iou=0.5)).boxes["tube"].to_list() == [0, 0, 0]
    assert link(predicted, replace(apart, min_iou=0.51)).boxes["tube"].n_unique() == 3
    backwards = predicted.frames.with_columns(t_s=pl.Series([0.0, 1.0, 1.0]))
    with pytest.raises(InputError, match="t_s of frame 2 is not after"):
        link(replace(predicted, frames=backwards), apart)


def test_the_config_is_written_beside_the_result_and_progress_is_told() -> None:
    _, predicted = _set(0)
    told: list[tuple[int, int]] = []
    linked = link(predicted, REFERENCE, progress=lambda done, of: told.append((done, of)))
    assert told == [(1, 2), (2, 2)]
    assert from_dict(LinkerConfig, linked.meta.notes["linker"]) == REFERENCE


def test_scores_of_both_precisions_are_linked_alike() -> None:
    _, predicted = _set(3)
    wide = predicted.boxes.with_columns(pl.col("score").cast(pl.Float64))
    assert link(replace(predicted, boxes=wide), REFERENCE).tubes.equals(link(predicted, REFERENCE).tubes)
    lists = predicted.boxes.with_columns(pl.col("scores").arr.to_list())
    linked = link(replace(predicted, boxes=lists), DEFAULT)
    assert linked.tubes.equals(link(predicted, DEFAULT).tubes)
    assert linked.boxes.schema["scores"] == pl.List(pl.Float32)


def test_other_columns_are_kept_and_unknown_for_interpolated_boxes() -> None:
    _, predicted = _set(3)
    tagged = predicted.boxes.with_columns(ready_s=pl.col("frame") * 0.1, detector=pl.lit("a"))
    linked = link(replace(predicted, boxes=tagged), DEFAULT)
    made = linked.boxes.filter("interpolated")
    assert len(made)
    assert made["detector"].null_count() == len(made)
    assert (made["ready_s"] > 0.1 * made["frame"] + 0.05).all()  # known when the next one is seen
    assert (
        linked.boxes.head(len(tagged)).select(tagged.columns).equals(replace(predicted, boxes=tagged).boxes)
    )


def _without(predicted: Predictions, **columns: Any) -> Predictions:
    return replace(predicted, boxes=predicted.boxes.with_columns(**columns))


def test_what_cannot_be_linked_is_refused() -> None:
    _, predicted = _set(0)
    with pytest.raises(InputError, match="tubes already"):
        link(link(predicted, DEFAULT), DEFAULT)
    with pytest.raises(InputError, match="agentness"):
        link(_without(predicted, score=pl.lit(None, pl.Float32)), DEFAULT)
    with pytest.raises(InputError, match="no dense scores"):
        link(replace(predicted, boxes=predicted.boxes.drop("scores")), DEFAULT)
    with pytest.raises(InputError, match=r"lie in \[0, 1\]; found"):
        link(_without(predicted, scores=pl.col("scores") * 3), DEFAULT)
    short = _without(predicted, scores=pl.col("scores").arr.to_list().list.head(6))
    with pytest.raises(InputError, match="7 dense scores are expected"):
        link(short, DEFAULT)


def _overlap(a: pl.DataFrame, b: pl.DataFrame) -> float:
    """Mean IoU over the frames two tubes share, times their temporal IoU."""
    both = a.join(b, on="frame", suffix="_b")
    total = 0.0
    for row in both.rows(named=True):
        width = min(row["x2_px"], row["x2_px_b"]) - max(row["x1_px"], row["x1_px_b"])
        height = min(row["y2_px"], row["y2_px_b"]) - max(row["y1_px"], row["y1_px_b"])
        inter = max(width, 0) * max(height, 0)
        area = (row["x2_px"] - row["x1_px"]) * (row["y2_px"] - row["y1_px"])
        area += (row["x2_px_b"] - row["x1_px_b"]) * (row["y2_px_b"] - row["y1_px_b"])
        total += inter / (area - inter)
    return total / (len(a) + len(b) - len(both))


def test_tube_suppression_keeps_no_two_tubes_of_a_label_that_overlap() -> None:
    videos = {"v": frames(4, n_agents=5, tied=False)}
    doubled = [
        (
            f,
            np.repeat(b, 2, axis=0) + np.tile([[0.0], [2.0]], (len(b), 1)),
            np.repeat(a, 2) * np.tile([1, 0.9], len(a)),
            np.repeat(s, 2, axis=0),
        )
        for f, b, a, s in videos["v"]
    ]
    predicted = predictions({"v": doubled}, KINDS)
    every = _derived(link(predicted, FORMER))
    linked = link(predicted, replace(FORMER, tube_nms=0.5))
    kept = _derived(linked)
    assert 0 < len(kept) < len(every)
    owned = {
        (parent,): part
        for (parent,), part in linked.boxes.drop_nulls("tube")
        .select("tube", "frame", *_SIDES)
        .partition_by("tube", as_dict=True, include_key=False)
        .items()
    }
    left = set(kept.select("parent", "kind", "label").rows())
    for row in every.rows(named=True):
        group = every.filter((pl.col("kind") == row["kind"]) & (pl.col("label") == row["label"]))
        better = group.filter(pl.col("score") >= row["score"]).filter(pl.col("tube") != row["tube"])
        rivals = [
            p
            for p, kind, label in better.select("parent", "kind", "label").rows()
            if (p, kind, label) in left
        ]
        beaten = any(_overlap(owned[(row["parent"],)], owned[(p,)]) > 0.5 for p in rivals)
        assert beaten != ((row["parent"], row["kind"], row["label"]) in left)


def test_tube_suppression_in_the_reference_sees_squeezed_frames() -> None:
    # Two paths in the same place whose found frames differ and whose predicted frames agree.
    video = []
    for f in range(12):
        boxes = [[0, 0, 50, 50]] if f % 3 else []
        boxes += [[0, 0, 50, 50.5 + 100]] if f < 8 else []
        video.append(
            (
                f,
                np.array(boxes, float).reshape(-1, 4),
                np.full(len(boxes), 0.9),
                np.full((len(boxes), 1), 0.5),
            )
        )
    predicted = predictions({"v": video}, {"agent": 1})
    config = replace(REFERENCE, min_iou=0.6, tube_nms=0.2)
    assert len(_derived(link(predicted, replace(config, tube_nms=None)))) == 2
    assert len(_derived(link(predicted, config))) == 1
