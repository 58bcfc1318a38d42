"""Paths closed as a stream ends them: tube for tube what linking the whole set gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from detection_sets import frames, predictions
from hypothesis import given
from hypothesis import strategies as st

from example_counts import tried
from roadaware.errors import UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import ClosedPath, build_closed_paths, link
from roadaware.linking.linker import Linker, Path
from roadaware.scenes.dense_scores import Layout
from roadaware.scenes.tables import Predictions

ROAD = {"agentness": 1, "agent": 3, "action": 4}
UCF24 = {"action": 24}
CONFIGS: dict[str, tuple[LinkerConfig, dict[str, int]]] = {
    "reference": (LinkerConfig.reference("road"), ROAD),
    "default": (LinkerConfig.default("road"), ROAD),
    "reference of ucf24": (LinkerConfig.reference("ucf24"), UCF24),
    "default of ucf24": (LinkerConfig.default("ucf24"), UCF24),
    "holes": (replace(LinkerConfig.default("road"), gaps="keep"), ROAD),
    "dpscores": (replace(LinkerConfig.default("road"), trim="dpscores", trim_alpha=0.5, max_labels=2), ROAD),
    "no class scores": (LinkerConfig.default("road"), {}),
}
SUPPRESSING = {
    "as published": replace(LinkerConfig.reference("road"), tube_nms=0.3),
    "by default": replace(LinkerConfig.default("road"), tube_nms=0.3, begin_iou=1.0),
}
_SIDES = ["x1_px", "y1_px", "x2_px", "y2_px"]


def _layout(kinds: dict[str, int]) -> Layout:
    return Layout({kind: tuple(f"{kind}-{i}" for i in range(n)) for kind, n in kinds.items()})


def _stream(video: list[Any], config: LinkerConfig, kinds: dict[str, int]) -> list[tuple[Path, ...]]:
    """What ended with each frame, and at the end."""
    linker = Linker(config, sum(kinds.values()), l2_columns=next(iter(kinds.values()), 0))
    return [*(linker.update(*frame).ended for frame in video), linker.finish()]


def _of_paths(linked: Predictions) -> list[Any]:
    """Each path as `link` wrote it, box for box, and its labelled tubes."""
    rows = linked.boxes.with_columns(row=pl.int_range(pl.len()).over("video", "frame"))
    if "interpolated" in rows.columns:
        rows = rows.with_columns(row=pl.when("interpolated").then(-1).otherwise("row"))
    labels = linked.tube_labels.select("tube", "label", label_score="score")
    tubes = linked.tubes.join(labels, on="tube", how="left", maintain_order="left")
    rows_of: dict[int, list[Any]] = {}
    for row in tubes.rows(named=True):
        rows_of.setdefault(row.get("parent", -1), []).append(row)
    found = []
    for path in tubes.rows(named=True):
        if path.get("parent") is not None:
            continue
        boxes = rows.filter(tube=path["tube"]).sort("frame")
        of_path = [
            (
                row["kind"],
                row["label"],
                row["start_frame"],
                row["end_frame"],
                row["spans"],
                row["label_score"],
            )
            for row in (
                tubes.filter(parent=path["tube"]) if "parent" in tubes.columns else tubes.clear()
            ).rows(named=True)
        ]
        facts = (path["start_frame"], path["end_frame"], path["score"])
        found.append((boxes["frame"].to_list(), boxes["row"].to_list(), *facts, of_path, boxes))
    return found


def _same(streamed: list[ClosedPath], linked: Predictions) -> int:
    """Hold paths against what `link` wrote; how many there are."""
    expected = _of_paths(linked)
    assert len(streamed) == len(expected)
    for path, (*facts, boxes) in zip(streamed, expected, strict=True):
        tubes = [
            (tube.kind, tube.label, tube.start_frame, tube.end_frame, [list(tube.span)], tube.score)
            for tube in path.tubes
        ]
        predicted = (path.start_frame, path.end_frame, path.score)
        assert [path.frames.tolist(), path.rows.tolist(), *predicted, tubes] == facts
        assert np.array_equal(path.boxes.astype(np.float32), boxes.select(_SIDES).to_numpy())
        assert np.array_equal(path.agentness.astype(np.float32), boxes["score"].to_numpy())
        if path.scores.shape[1]:
            assert path.scores.tolist() == boxes["scores"].to_list()
    return len(expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
@tried(8)
@given(seed=st.integers(0, 10**6), tied=st.booleans())
def test_a_stream_closed_path_by_path_is_the_whole_set_linked(name: str, seed: int, tied: bool) -> None:
    config, kinds = CONFIGS[name]
    columns = sum(kinds.values())
    videos = {f"v{i}": frames(seed + i, n_agents=4 + i, n_scores=columns, tied=tied) for i in range(2)}
    linked = link(predictions(videos, kinds), config)
    frame_by_frame: list[ClosedPath] = []
    for video in videos.values():
        ended = _stream(video, config, kinds)
        pieces = [build_closed_paths(paths, config, _layout(kinds)) for paths in ended]
        frame_by_frame += [path for piece in pieces for path in piece]
    _same(frame_by_frame, linked)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_law_is_not_about_nothing(name: str) -> None:
    config, kinds = CONFIGS[name]
    video = frames(5, n_frames=90, n_agents=6, n_scores=sum(kinds.values()))
    paths = [path for ended in _stream(video, config, kinds) for path in ended]
    found = build_closed_paths(paths, config, _layout(kinds))
    assert _same(list(found), link(predictions({"v": video}, kinds), config)) > 5
    assert (len(found) < len(paths)) == config.drop_weak
    assert any((path.rows < 0).any() for path in found) == (config.gaps == "interpolate")
    assert sum(len(path.tubes) for path in found) > 5 or not kinds
    assert {tube.kind for path in found for tube in path.tubes} == set(kinds) - {"agentness"}


@pytest.mark.parametrize("name", SUPPRESSING)
def test_tubes_suppress_each_other_where_a_video_is_closed_at_once(name: str) -> None:
    config = SUPPRESSING[name]
    kinds = {"agent": 2}
    twice = [np.array([[500, 0, 600, 100], [510, 0, 610, 100]]), np.array([0.95, 0.9]), np.full((2, 2), 0.6)]
    video: list[Any] = [
        (f, *(np.concatenate(pair).astype(np.float32) for pair in zip(twice, rest, strict=True)))
        for f, *rest in frames(5, n_agents=5, n_scores=2, tied=False)
    ]
    paths = [path for ended in _stream(video, config, kinds) for path in ended]
    linked = link(predictions({"v": video}, kinds), config)
    at_once = build_closed_paths(paths, config, _layout(kinds))
    assert _same(list(at_once), linked)
    alone = [path for each in paths for path in build_closed_paths([each], config, _layout(kinds))]
    assert sum(len(path.tubes) for path in alone) > sum(len(path.tubes) for path in at_once)


@pytest.mark.parametrize("make", [LinkerConfig.reference, LinkerConfig.default])
def test_scores_of_64_bits_close_as_they_are_linked(make: Any) -> None:
    config, kinds = replace(make("road"), min_tube_len=0), {"agent": 2}
    r = np.random.default_rng(0)
    video = [
        (f, np.array([[0.0, 0, 50, 50]]), r.random(1) / 2 + 0.3, r.random((1, 2)).astype(np.float32))
        for f in range(9)
    ]
    predicted = predictions({"v": video}, kinds)
    wide = np.concatenate([agentness for _, _, agentness, _ in video])
    predicted = predicted.with_tables(boxes=predicted.boxes.with_columns(score=pl.Series(wide)))
    (path,) = build_closed_paths(_stream(video, config, kinds)[-1], config, _layout(kinds))
    assert path.score == link(predicted, config).tubes["score"][0]


def test_nothing_ended_is_nothing_closed() -> None:
    assert build_closed_paths((), LinkerConfig.default(), Layout({"agent": ("Car",)})) == ()
    weak = Linker(LinkerConfig.default(), n_scores=1)
    weak.update(0, [[0, 0, 9, 9]], [0.05], [[0.5]])
    assert build_closed_paths(weak.finish(), weak.config, Layout({"agent": ("Car",)})) == ()


def test_scores_of_other_kinds_are_refused() -> None:
    linker = Linker(LinkerConfig.default(), n_scores=2)
    linker.update(0, [[0, 0, 9, 9]], [0.9], [[0.5, 0.4]])
    with pytest.raises(UsageError, match="2 class scores, and the kinds 1 labels"):
        build_closed_paths(linker.finish(), linker.config, Layout({"agent": ("Car",)}))
