"""What the images of tasks on scenes show: hand-made scenes whose confusion, lanes and frames are known."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from roadaware.analysis.behaviours import (
    Arc,
    BehaviourGraph,
    Confusion,
    build_behaviour_graph,
    compute_action_confusion,
)
from roadaware.analysis.scene_cases import (
    HeardMap,
    build_grounding_strips,
    build_sound_maps,
    compute_success_curves,
)
from roadaware.errors import InputError
from roadaware.metrics.sound import SoundConfig
from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.tables import Meta, Predictions, Scenes

VIDEOS = pl.DataFrame({"video": ["v"], "width_px": [100], "height_px": [50]})


def boxes(*rows: tuple[int, int, int | None, float]) -> pl.DataFrame:
    """Boxes of 10 x 10 pixels: number, frame, tube, left side."""
    return pl.DataFrame(
        {
            "box": [row[0] for row in rows],
            "video": ["v"] * len(rows),
            "frame": [row[1] for row in rows],
            "tube": pl.Series([row[2] for row in rows], dtype=pl.Int64),
            "x1_px": [row[3] for row in rows],
            "y1_px": [0.0] * len(rows),
            "x2_px": [row[3] + 10 for row in rows],
            "y2_px": [10.0] * len(rows),
        }
    )


def labels(*rows: tuple[int, int, float]) -> pl.DataFrame:
    """Labels of boxes: number of the box, action, score."""
    box, label, score = zip(*rows, strict=True)
    return pl.DataFrame({"box": box, "kind": ["action"] * len(rows), "label": label, "score": score})


def actions(vocabulary: tuple[str, ...] = ("walk", "run", "sit")) -> Meta:
    return Meta(vocabularies={"action": vocabulary})


def test_each_true_row_is_shared_out_over_the_best_predictions_on_its_box() -> None:
    scenes = Scenes(
        videos=VIDEOS,
        boxes=boxes((0, 0, None, 0.0), (1, 0, None, 50.0), (2, 1, None, 0.0)),
        labels=labels((0, 0, 0), (0, 1, 0), (1, 0, 0), (2, 2, 0)).drop("score"),
        meta=actions(),
    )
    predictions = Predictions(
        videos=VIDEOS.select("video"),
        boxes=boxes((0, 0, None, 1.0), (1, 0, None, 52.0), (2, 1, None, 40.0)),
        # Box 0: of walk and run, the two best are sit and walk. Box 1: run for walk. Box 2 meets nothing.
        labels=labels((0, 2, 0.9), (0, 0, 0.8), (0, 1, 0.1), (1, 1, 0.7), (1, 0, 0.2), (2, 2, 0.9)),
        meta=actions(),
    )
    found = compute_action_confusion(predictions, scenes)
    assert found.labels == ("walk", "run", "sit")
    assert found.n == (2, 1, 1)
    assert found.columns == ("walk", "run", "sit", "other actions", "nothing")
    expected = [[0.5, 0.5, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 1]]
    assert found.shares.tolist() == expected
    again = Confusion.from_dict(json.loads(json.dumps(found.as_dict())))
    assert again.shares.tolist() == expected
    with pytest.raises(InputError, match="incomplete"):
        Confusion.from_dict({"labels": ["walk"], "columns": [], "shares": [[1]], "n": [1]})


def test_predictions_are_joined_by_name_and_frames_nobody_annotated_are_left_out() -> None:
    frames = pl.DataFrame({"video": ["v", "v"], "frame": [0, 1], "annotated": [True, False]})
    both = boxes((0, 0, None, 0.0), (1, 1, None, 0.0))
    scenes = Scenes(
        videos=VIDEOS, frames=frames, boxes=both, labels=labels((0, 1, 0), (1, 0, 0)).drop("score"),
        meta=actions(),
    )  # fmt: skip
    predictions = Predictions(
        videos=VIDEOS.select("video"), boxes=both, labels=labels((0, 0, 0.5), (1, 0, 0.5)),
        meta=actions(("run", "walk")),
    )  # fmt: skip
    found = compute_action_confusion(predictions, scenes)
    assert found.labels == ("run",)
    assert found.shares.tolist() == [[1.0, 0.0, 0.0]]


def test_no_predictions_leave_everything_to_nothing() -> None:
    scenes = Scenes(
        videos=VIDEOS, boxes=boxes((0, 0, None, 0.0)), labels=labels((0, 0, 0)).drop("score"), meta=actions()
    )
    assert compute_action_confusion(Predictions(meta=actions()), scenes).shares.tolist() == [[0.0, 0.0, 1.0]]


def test_predictions_without_words_and_dense_predictions_mean_what_the_metric_takes_them_for() -> None:
    true = boxes((0, 0, None, 0.0), (1, 1, None, 0.0))
    scenes = Scenes(
        videos=VIDEOS, boxes=true, labels=labels((0, 1, 0), (1, 2, 0)).drop("score"), meta=actions()
    )
    wordless = Predictions(boxes=true, labels=labels((0, 1, 0.5), (1, 0, 0.5)), meta=Meta())
    scores = pl.Series("scores", [[0.1, 0.9, 0.2], [0.8, 0.1, 0.3]], dtype=pl.Array(pl.Float32, 3))
    dense = Predictions(
        boxes=true.with_columns(scores), meta=set_score_layout(actions(), "boxes", ["action"])
    )
    for predictions in (wordless, dense):
        found = compute_action_confusion(predictions, scenes)
        assert found.labels == ("run", "sit")
        assert found.shares.tolist() == [[1, 0, 0, 0], [0, 0, 1, 0]]


def related(cls: type, rows: pl.DataFrame, tracks: pl.DataFrame, names: list[str], videos: pl.DataFrame):
    tubes = tracks["tube"].unique(maintain_order=True).to_list()
    return cls(
        videos=videos,
        boxes=tracks,
        tubes=pl.DataFrame({"tube": tubes, "video": ["v"] * len(tubes), "name": names}),
        tube_labels=pl.DataFrame(
            {"tube": tubes, "kind": ["category"] * len(tubes), "label": [0] * len(tubes)}
        ),
        relations=rows,
        meta=Meta(vocabularies={"category": ("person",), "predicate": ("push", "hug")}),
    )


def relations(*rows: tuple[int, int, int, int, int, float]) -> pl.DataFrame:
    """Relations: subject, object, predicate, start, end, score."""
    columns = ("subject", "object", "predicate", "start_frame", "end_frame", "score")
    held = {name: [row[k] for row in rows] for k, name in enumerate(columns)}
    return pl.DataFrame({"relation": range(len(rows)), "video": ["v"] * len(rows), **held})


def test_bare_predictions_name_persons_and_predicates_of_the_truth_by_number() -> None:
    track = [(frame + 10 * k, frame, k, 40.0 * k) for k in range(2) for frame in range(4)]
    scenes = related(Scenes, relations((0, 1, 0, 0, 3, 0)).drop("score"), boxes(*track), ["a", "b"], VIDEOS)
    predictions = Predictions(relations=relations((1, 0, 1, 1, 4, 0.5), (7, 0, 2, 1, 4, 0.25)))
    graph = build_behaviour_graph(predictions, scenes, "v")
    assert graph.arcs[1:] == (
        Arc(1, 0, "hug", 1, 4, predicted=True, score=0.5),
        Arc(2, 0, "2", 1, 4, predicted=True, score=0.25),
    )


def test_predictions_stand_in_the_lanes_of_the_persons_they_overlap() -> None:
    track = [(frame + 10 * k, frame, k, 40.0 * k) for k in range(2) for frame in range(4)]
    scenes = related(Scenes, relations((0, 1, 0, 0, 3, 0)).drop("score"), boxes(*track), ["a", "b"], VIDEOS)
    moved = [(frame + 10 * k, frame, k, x) for k, x in enumerate((41.0, 2.0, 80.0)) for frame in range(4)]
    predicted = relations((1, 0, 1, 1, 4, 0.25), (2, 0, 0, 0, 2, 0.75))
    predictions = related(Predictions, predicted, boxes(*moved), ["x", "y", "z"], VIDEOS.select("video"))
    graph = build_behaviour_graph(predictions, scenes, "v", says="here", right={0: True}, seen={0: True})
    assert [lane.name for lane in graph.lanes] == ["person a", "person b", "elsewhere"]
    assert [(lane.start, lane.end) for lane in graph.lanes] == [(0, 4), (0, 4), (0, 4)]
    assert graph.arcs == (
        Arc(0, 1, "push", 0, 3, predicted=False, found=True),
        Arc(2, 1, "push", 0, 2, predicted=True, found=False, score=0.75),
        Arc(0, 1, "hug", 1, 4, predicted=True, found=True, score=0.25),
    )
    assert BehaviourGraph.from_dict(json.loads(json.dumps(graph.as_dict()))) == graph
    unjudged = build_behaviour_graph(predictions, scenes, "v")
    assert {arc.found for arc in unjudged.arcs} == {None}
    with pytest.raises(InputError, match="no lane"):
        BehaviourGraph.from_dict({**graph.as_dict(), "lanes": []})


def grounded(cls: type, tracks: pl.DataFrame, spans: list[tuple[int, int]]):
    tubes = tracks["tube"].unique(maintain_order=True).to_list()
    queries = pl.DataFrame(
        {
            "query": range(len(spans)),
            "video": ["v"] * len(spans),
            "tube": tubes,
            "start_frame": [span[0] for span in spans],
            "end_frame": [span[1] for span in spans],
        }
    )
    videos = VIDEOS if cls is Scenes else VIDEOS.select("video")
    owners = pl.DataFrame({"tube": tubes, "video": ["v"] * len(tubes)})
    return cls(videos=videos, boxes=tracks, tubes=owners, queries=queries)


def test_a_sentence_is_shown_at_frames_of_both_sides() -> None:
    true = boxes(*((k, k, 0, 0.0) for k in range(20)))
    prediction = boxes(*((k, k, 0, 5.0) for k in range(0, 30, 2)))
    found = build_grounding_strips(
        grounded(Predictions, prediction, [(10, 30)]), grounded(Scenes, true, [(4, 16)]), [0], ["sits"]
    )
    (strip,) = found
    assert strip.frames.tolist() == [4, 6, 8, 10, 12, 14]
    assert strip.truth_px[0].tolist() == [0, 0, 10, 10]
    assert strip.prediction_px[0].tolist() == [5, 0, 15, 10]
    assert (strip.truth_spans, strip.prediction_spans) == (((4, 16),), ((10, 30),))
    assert strip.size_px == (100.0, 50.0)


def test_a_sentence_without_a_prediction_shows_the_truth_alone() -> None:
    true = grounded(Scenes, boxes(*((k, k, 0, 0.0) for k in range(3))), [(0, 3)])
    (strip,) = build_grounding_strips(Predictions(), true, [0], ["sits"])
    assert strip.frames.tolist() == [0, 1, 2]
    assert np.isnan(strip.prediction_px).all()
    assert strip.prediction_spans == ()


def test_maps_are_thinned_scaled_and_kept_with_their_boxes() -> None:
    scenes = Scenes(
        videos=VIDEOS,
        boxes=boxes((0, 0, None, 20.0)).with_columns(sound=pl.lit(7, pl.Int64)),
        sounds=pl.DataFrame({"sound": [7, 8], "video": ["v", "v"], "frame": [0, 0]}),
    )
    predictions = Predictions(
        videos=VIDEOS.select("video"),
        sounds=pl.DataFrame(
            {
                "sound": [7],
                "video": ["v"],
                "map": [np.arange(64 * 64, dtype=np.float32).tolist()],
                "map_width": pl.Series([None], dtype=pl.Int64),
            }
        ),
    )
    heard, silent = build_sound_maps(predictions, scenes, [7, 8], ["a", "b"])
    assert heard.map.shape == (32, 32)
    assert (heard.map.min(), heard.map.max()) == (0.0, 1.0)
    assert (np.diff(heard.map, axis=1) > 0).all()
    assert heard.boxes.tolist() == [[20.0, 0.0, 30.0, 10.0]]
    assert heard.shaped
    assert silent.map.size == 0
    again = HeardMap.from_dict(json.loads(json.dumps(heard.as_dict())))
    assert np.abs(again.map - heard.map).max() < 1e-3
    with pytest.raises(InputError, match="incomplete"):
        HeardMap.from_dict({"says": "a", "size": [1], "map": [], "boxes": []})


def test_the_success_curve_is_the_share_at_each_threshold() -> None:
    rows = pl.DataFrame(
        {
            "ciou": [0.1, 0.6, None, 0.0],
            "whole_image": [0.5, 0.5, 0.5, 0.5],
            "centre": [0.0, 0.0, 1.0, 1.0],
            "predicted": [True, True, True, False],
            "true_cells": [4, 4, 0, 4],
        }
    )
    curves = compute_success_curves(rows, SoundConfig.vggss())
    assert curves["predictions"][0] == 0.5
    assert curves["predictions"][10] == 0.25
    assert curves["whole image"][10:12] == [1.0, 0.0]
    left = compute_success_curves(rows, SoundConfig.default())
    assert left["centre"][20] == pytest.approx(1 / 3)
    assert compute_success_curves(rows.head(0), SoundConfig.default()) == {}
