"""Truth of road events as arrays and back: perfect detections are perfect predictions."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from roadaware.errors import InputError, UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.models.detector import FrameDetections
from roadaware.scenes.dense_scores import get_score_layout
from roadaware.scenes.tables import Meta, Scenes
from roadaware.tasks.road_events import (
    Classes,
    VideoTruth,
    build_predictions,
    build_video_truth,
    collect_classes,
    evaluate_predictions,
)

WORDS = {
    "agentness": ("agent_ness",),
    "action": ("Go", "Stop", "Turn"),
    "agent": ("Ped", "Car"),
    "av_action": ("AV-Stop", "AV-Mov"),
}
LENGTH = 8


def scenes() -> Scenes:
    """A car that drives past somebody who stands, twice; in "b" nobody looked at the last frame."""
    boxes, labels, frame_labels = [], [], []
    for video in ("b", "a"):
        for frame in range(LENGTH):
            for tube, (x, agent, action) in enumerate(((5 * frame, 1, 0), (60, 0, 1))):
                number = len(boxes)
                boxes.append((number, video, frame, tube + 2 * (video == "a"), x, 10, x + 20, 40))
                labels += [(number, "agent", agent), (number, "action", action)]
            frame_labels.append((video, frame, "av_action", int(frame > 3)))
    names = ["box", "video", "frame", "tube", "x1_px", "y1_px", "x2_px", "y2_px"]
    table = pl.DataFrame(boxes, schema=names, orient="row").sample(fraction=1, shuffle=True, seed=0)
    frames = [
        (video, frame, (video, frame) != ("b", LENGTH - 1)) for video in "ba" for frame in range(LENGTH)
    ]
    tubes = [(4 + 2 * t + k, "ba"[t // 2], t, ("agent", "action")[k]) for t in range(4) for k in (0, 1)]
    of_kind = {"agent": (1, 0), "action": (0, 1)}
    return Scenes(
        videos=pl.DataFrame({"video": ["b", "a"], "width_px": [100] * 2, "height_px": [50] * 2}),
        frames=pl.DataFrame(frames, schema=["video", "frame", "annotated"], orient="row"),
        boxes=table.with_columns(pl.col(side).cast(pl.Float32) for side in names[4:]),
        labels=pl.DataFrame(labels, schema=["box", "kind", "label"], orient="row"),
        tubes=pl.concat(
            [
                pl.DataFrame({"tube": range(4), "video": list("bbaa")}),
                pl.DataFrame(tubes, schema=["tube", "video", "parent", "kind"], orient="row").with_columns(
                    spans=pl.lit([[0, LENGTH]], dtype=pl.List(pl.List(pl.Int64)))
                ),
            ],
            how="diagonal",
        ),
        tube_labels=pl.DataFrame(
            [(tube, kind, of_kind[kind][parent % 2]) for tube, _, parent, kind in tubes],
            schema=["tube", "kind", "label"],
            orient="row",
        ),
        frame_labels=pl.DataFrame(frame_labels, schema=["video", "frame", "kind", "label"], orient="row"),
        meta=Meta(dataset="two", vocabularies=WORDS),
    )


def perfect(truth: dict[str, VideoTruth], classes: Classes) -> dict[str, list[FrameDetections]]:
    found = {}
    for video, held in truth.items():
        found[video] = []
        for frame in range(len(held)):
            boxes, hot = held.frame(frame)
            av = np.eye(len(classes.av_labels), dtype=np.float32)[held.av[frame]]
            agentness = np.linspace(0.9, 0.8, len(boxes), dtype=np.float32)
            found[video].append(FrameDetections(frame, boxes, agentness, hot[:, 1:] * np.float32(0.7), av))
    return found


def test_classes_come_in_the_order_of_road_and_labels_in_their_own() -> None:
    classes = collect_classes(scenes())
    assert list(classes.kinds) == ["agent", "action"]
    assert classes.n_classes == 6
    assert [label for _, label in classes.names] == ["agentness", "Ped", "Car", "Go", "Stop", "Turn"]
    assert classes.av_labels == ("AV-Stop", "AV-Mov")
    assert collect_classes(scenes(), ["action"], av_action=False, only_used=True) == Classes(
        {"action": ("Go", "Stop")}
    )


@pytest.mark.parametrize("kinds", [["mood"], ["agent", "agent"], ["agentness"]])
def test_kinds_without_words_are_refused(kinds: list[str]) -> None:
    with pytest.raises(UsageError):
        collect_classes(scenes(), kinds)


def test_truth_is_by_video_and_frame_whatever_the_order_of_rows() -> None:
    classes = collect_classes(scenes())
    truth = build_video_truth(scenes(), classes)
    assert list(truth) == ["b", "a"]
    boxes, hot = truth["a"].frame(2)
    rows = sorted(zip(boxes.tolist(), hot.tolist(), strict=True))
    assert rows == [
        ([10, 10, 30, 40], [True, False, True, True, False, False]),
        ([60, 10, 80, 40], [True, True, False, False, True, False]),
    ]
    assert truth["a"].av.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert len(truth["a"]) == LENGTH


def test_labels_are_found_by_name() -> None:
    other = Classes({"agent": ("Bus", "Car"), "action": ("Stop",)}, ("AV-Fly", "AV-Mov"))
    truth = build_video_truth(scenes(), other)["a"]
    _, hot = truth.frame(2)
    assert sorted(hot.tolist()) == [[True, False, False, True], [True, False, True, False]]
    assert truth.av.tolist() == [-1] * 4 + [1] * 4


def test_frames_that_nobody_looked_at_and_boxes_to_ignore_are_left_out() -> None:
    whole = scenes()
    assert build_video_truth(whole, collect_classes(whole))["b"].labelled.tolist() == [True] * 7 + [False]
    assert len(build_video_truth(whole, collect_classes(whole))["b"].frame(LENGTH - 1)[0]) == 0
    ignoring = whole.with_tables(boxes=whole.boxes.with_columns(ignore=pl.col("x1_px") == 60))
    assert len(build_video_truth(ignoring, collect_classes(whole))["b"].frame(3)[0]) == 1
    silent = whole.with_tables(frames=whole.frames.drop("annotated"))
    assert build_video_truth(silent, collect_classes(whole))["b"].labelled.all()


def test_perfect_detections_are_perfect_predictions() -> None:
    whole = scenes()
    classes = collect_classes(whole)
    predictions = build_predictions(
        perfect(build_video_truth(whole, classes), classes), classes, videos=whole.videos, meta=whole.meta
    )
    assert get_score_layout(predictions.meta, "boxes").kinds == dict(classes.kinds)
    found = evaluate_predictions(predictions, whole, LinkerConfig.default("road"))
    assert {name: round(value, 6) for name, value in found.items()} == {
        "frame_map@0.5/agentness": 1.0,
        "frame_map@0.5/action": 1.0,
        "frame_map@0.5/agent": 1.0,
        "video_map@0.2/agentness": 1.0,
        "video_map@0.2/action": 1.0,
        "video_map@0.2/agent": 1.0,
        "av_action": 1.0,
    }


def test_videos_that_were_not_looked_at_are_not_judged() -> None:
    whole = scenes()
    classes = collect_classes(whole)
    found = perfect(build_video_truth(whole, classes), classes)
    some = build_predictions({"a": found["a"]}, classes, videos=whole.videos, meta=whole.meta)
    assert some.videos["video"].to_list() == ["a"]
    assert evaluate_predictions(some, whole, LinkerConfig.default("road"))[
        "frame_map@0.5/agent"
    ] == pytest.approx(1)


def test_silence_is_predicted_too_and_frames_keep_their_numbers() -> None:
    classes = Classes({"agent": ("Ped",)})
    none = [FrameDetections(t, *(np.zeros(s, np.float32) for s in ((0, 4), 0, (0, 1), 0))) for t in range(3)]
    predictions = build_predictions({"a": none}, classes, frame_step=4)
    assert predictions.boxes.is_empty()
    assert predictions.frames["frame"].to_list() == [0, 4, 8]
    with pytest.raises(InputError, match="expected 2 scores"):
        build_predictions({"a": none}, Classes({"agent": ("Ped", "Car")}))


def test_composites_go_along_only_where_the_words_are_the_same() -> None:
    meta = Meta(
        vocabularies={"agent": ("Ped",), "action": ("Go", "Stop"), "duplex": ("Ped-Go",)},
        composites={"duplex": ("agent", "action")},
        notes={"children": {"duplex": [[0, 0]]}, "made_up": True},
    )
    same = build_predictions({}, Classes(dict(meta.vocabularies)), meta=meta)
    assert same.meta.notes["children"] == {"duplex": [[0, 0]]}
    other = build_predictions({}, Classes({**meta.vocabularies, "action": ("Stop", "Go")}), meta=meta)
    assert "children" not in other.meta.notes
    assert other.meta.composites == {}
