"""Scores of whole frames against plain loops and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from plain_frame import average_precision
from random_events import AV, event_set

from roadaware.errors import InputError
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import prepare_labels
from roadaware.metrics.detection.matches import compute_average_precisions
from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.tables import Meta, Predictions, Scenes

CONFIGS = [DetectionConfig.reference(), DetectionConfig.default()]


def plain(predictions: Predictions, scenes: Scenes, label: int, config: DetectionConfig) -> float:
    """AP of a label over all annotated frames."""
    labels: dict[tuple[str, int], list[int]] = {}
    for row in scenes.frame_labels.iter_rows(named=True):
        labels.setdefault((row["video"], row["frame"]), []).append(row["label"])
    judged = [(r["video"], r["frame"]) for r in scenes.frames.iter_rows(named=True) if r["annotated"]]
    scores = {(r["video"], r["frame"]): r["scores"][label] for r in predictions.frames.iter_rows(named=True)}
    held = labels if config.av_label == "all" else {key: found[:1] for key, found in labels.items()}
    right = {key: label in held.get(key, []) for key in judged}
    floor = -1.0 if config.min_av_score is None else config.min_av_score
    ranked = sorted((key for key in judged if scores.get(key, -1.0) > floor), key=lambda key: -scores[key])
    n = sum(right.values())
    if not n and config.empty_classes == "skip":
        return float("nan")
    return average_precision([right[key] for key in ranked], n, config.av_ap)


@pytest.mark.parametrize("config", CONFIGS, ids=["reference", "default"])
@pytest.mark.parametrize("tied", [False, True])
def test_the_fast_path_equals_plain_loops(config: DetectionConfig, tied: bool) -> None:
    scenes, predictions = event_set(1, frames=30, tied=tied)
    predictions = predictions.with_tables(frames=predictions.frames.filter(pl.col("frame") % 7 != 3))
    table = compute_average_precisions(
        prepare_labels(predictions, scenes, config).matches(), config, rule=config.av_ap
    )[:, 0]
    expected = [plain(predictions, scenes, label, config) for label in range(len(AV))]
    np.testing.assert_allclose(table, expected, atol=1e-9)


def frames(labels: list[list[int]], scores: list[list[float]]) -> tuple[Scenes, Predictions]:
    meta = Meta(vocabularies={"av_action": ("Stop", "Move")})
    video = pl.DataFrame({"video": ["v"] * len(labels), "frame": range(len(labels))})
    rows = [("v", frame, "av_action", label) for frame, held in enumerate(labels) for label in held]
    columns = ["video", "frame", "kind", "label"]
    scenes = Scenes(
        videos=pl.DataFrame({"video": ["v"]}),
        frames=video.with_columns(annotated=True),
        frame_labels=pl.DataFrame(rows, schema=columns, orient="row"),
        meta=meta,
    )
    dense = pl.Series("scores", scores, dtype=pl.Array(pl.Float32, 2))
    return scenes, Predictions(
        frames=video.with_columns(dense), meta=set_score_layout(meta, "frames", ["av_action"])
    )


def test_the_first_of_several_labels_or_all() -> None:
    scenes, predictions = frames([[0, 1], [1]], [[0.9, 0.8], [0.1, 0.2]])
    first, every = (
        compute_average_precisions(
            prepare_labels(predictions, scenes, config).matches(), config, rule="envelope"
        )
        for config in CONFIGS
    )
    assert first[:, 0].tolist() == [1.0, 0.5]  # Move ranks the frame of Stop above its only one
    assert every[:, 0].tolist() == [1.0, 1.0]


def test_a_label_that_no_frame_has() -> None:
    scenes, predictions = frames([[0], [0]], [[0.9, 0.8], [0.1, 0.2]])
    zero, none = (
        compute_average_precisions(
            prepare_labels(predictions, scenes, config).matches(), config, rule="envelope"
        )
        for config in CONFIGS
    )
    assert zero[:, 0].tolist() == [1.0, 0.0]
    assert np.isnan(none[1, 0])


def test_scores_of_frames_that_are_not_judged_are_counted_by_reason() -> None:
    scenes, predictions = frames([[0], [1], [1]], [[0.9, 0.8], [0.1, 0.2], [0.3, 0.4]])
    scenes = scenes.with_tables(frames=scenes.frames.with_columns(annotated=pl.col("frame") < 2))
    rows = [predictions.frames] * 4
    moved = pl.concat(
        [
            rows[0],  # the last of these is not annotated
            rows[1].head(2).with_columns(frame=pl.col("frame") + 90),
            rows[2].with_columns(video=pl.lit("w")),
        ]
    )
    judged = prepare_labels(predictions.with_tables(frames=moved), scenes, CONFIGS[1])
    assert judged.left_out == {
        "scores of frames in videos that the truth does not have": 3,
        "scores of frames that the truth does not have": 2,
        "scores of frames that were not annotated": 1,
    }
    assert judged.notes() == ()
    rest = moved.filter(pl.col("frame") != 1)
    fewer = prepare_labels(predictions.with_tables(frames=rest), scenes, CONFIGS[1])
    (note,) = fewer.notes()
    assert note.startswith("1 annotated frames have no scores of their own")
    assert judged.matches().thresholds == (0.5,)
    # Stop ranks frame 0, which has it, above frame 1; Move ranks it above frame 1 as well.
    assert judged.matches().hit[:, 0].tolist() == [True, False, False, True]


def test_a_vocabulary_may_have_one_label() -> None:
    scenes, predictions = frames([[0], [0]], [[0.9, 0.8], [0.1, 0.2]])
    alone = replace(scenes.meta, vocabularies={"av_action": ("Stop",)})
    single = predictions.frames.with_columns(
        pl.Series("scores", [[0.9], [0.1]], dtype=pl.Array(pl.Float32, 1))
    )
    detections = Predictions(frames=single, meta=set_score_layout(alone, "frames", ["av_action"]))
    found = prepare_labels(detections, replace(scenes, meta=alone), CONFIGS[1]).matches()
    assert found.hit[:, 0].tolist() == [True, True]


def test_labels_go_by_name() -> None:
    scenes, predictions = frames([[0], [1]], [[0.9, 0.1], [0.2, 0.8]])
    turned = Meta(vocabularies={"av_action": ("Move", "Stop")})
    swapped = pl.Series("scores", [[0.1, 0.9], [0.8, 0.2]], dtype=pl.Array(pl.Float32, 2))
    other = Predictions(
        frames=predictions.frames.with_columns(swapped),
        meta=set_score_layout(turned, "frames", ["av_action"]),
    )
    one, two = (prepare_labels(p, scenes, CONFIGS[1]).matches() for p in (predictions, other))
    np.testing.assert_array_equal(one.score, two.score)
    np.testing.assert_array_equal(one.hit, two.hit)


def test_a_frame_without_scores_is_an_error_that_names_the_lengths() -> None:
    scenes, predictions = frames([[0], [1]], [[0.9, 0.1], [0.2, 0.8]])
    short = predictions.frames.with_columns(
        pl.Series("scores", [[0.9, 0.1], None], dtype=pl.Array(pl.Float32, 2))
    )
    with pytest.raises(InputError, match="2 dense scores"):
        prepare_labels(predictions.with_tables(frames=short), scenes, CONFIGS[0]).matches()
