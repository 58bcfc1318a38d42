"""`python -m benchmarks.anticipation PART SETS`: the anticipation head from its training set to its tables.

The sets are those of the event head (`python -m benchmarks.events make SETS`). Nothing of `test` is seen in training.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.events.judging import common_labels, judge
from benchmarks.events.scene_sets import read_rows
from roadaware.analysis.compare import compare_detections
from roadaware.arrays import Floats, Ints
from roadaware.linking.link import label_paths
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import DetectionResult, evaluate
from roadaware.models.event_head.anticipation import (
    HORIZONS_S,
    Anticipated,
    decode_boxes,
    extrapolate,
    open_anticipation,
    save_anticipation,
)
from roadaware.models.event_head.head import open_head
from roadaware.models.object_labels import ROAD_AGENTS
from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.factors import split_tubes_by_label
from roadaware.scenes.tables import Meta, Predictions, Scenes
from roadaware.simulator.truth.terms import ACTIONS, LOCATIONS
from roadaware.statistics.comparison import build_units, estimate, weigh_ranking
from roadaware.training.events.fit import FutureRows, fit_anticipation, join_future_rows, make_future_rows
from roadaware.training.events.rows import build_linker_config, flip_scene
from roadaware.training.events.scenes import SceneTruth, load_minded_scene, load_truth

_EVERY = 4
_KINDS = ("agentness", "action", "location")
_VOCABULARIES = {"agentness": ("agentness",), "action": tuple(ACTIONS), "location": tuple(LOCATIONS)}
_RESAMPLES = 1000


def read_future_rows(folder: Path, name: str, *, seed: int, every: int, rounds: int = 1) -> FutureRows:
    """The rows of a set; every second round mirrored."""
    parts = []
    for number, path in enumerate(sorted((folder / name).glob("*.npz"))):
        truth = load_truth(path)
        parts += [
            make_future_rows(flip_scene(truth) if each % 2 else truth, number, seed + each, every=every)
            for each in range(rounds)
        ]
    return join_future_rows(parts)


def _train(folder: Path, out: Path, epochs: int, networks: int, rounds: int) -> None:
    started_s = time.process_time()
    rows = read_future_rows(folder, "train", seed=0, every=_EVERY, rounds=rounds)
    facts = {
        "data": "simulated scenes (python -m benchmarks.events make)",
        "scenes": int(rows.scene.max()) + 1,
        "rows": len(rows.x),
        "networks": networks,
        "epochs": epochs,
    }
    kept_back = read_future_rows(folder, "val", seed=40, every=_EVERY, rounds=2)
    head = fit_anticipation(rows, kept_back, open_head(), networks=networks, epochs=epochs, facts=facts)
    save_anticipation(head, out)
    spent_s = time.process_time() - started_s
    print(f"{out}: {out.stat().st_size / 1e3:.0f} kB of {len(rows.x):,} rows in {spent_s:.0f} CPU s")


class Transitions:
    """How often a label holds some seconds later, where it holds now and where it does not, by agent.

    Args:
        rows: to count in.
    """

    def __init__(self, rows: FutureRows) -> None:
        self.kept = {
            kind: _count_transitions(rows, getattr(rows, f"{kind}_now"), getattr(rows, kind))
            for kind in ("action", "location")
        }

    def apply(self, kind: str, now: Floats, agent: Ints) -> Floats:
        """(n, horizons, labels) probabilities, of (n, labels) present ones and (n,) agents."""
        table = self.kept[kind][:, agent]  # held or not, n, horizons, labels
        return np.asarray(now[:, None] * table[1] + (1 - now[:, None]) * table[0])


def _count_transitions(rows: FutureRows, now: np.ndarray, later: np.ndarray) -> Floats:
    """(2, agents, horizons, labels): of agents without and with the label now, how many have it later."""
    n_agents, horizons, labels = len(ROAD_AGENTS), later.shape[1], later.shape[2]
    found = np.zeros((2, n_agents, horizons, labels))
    seen = (rows.present & rows.known)[..., None]
    for held in (0, 1):
        which = (now == bool(held))[:, None, :] & seen
        overall = ((which & later).sum(axis=0) + 0.5) / (which.sum(axis=0) + 1.0)
        for agent in range(n_agents):
            of = rows.agent == agent
            # A few counts of the mean over agents stand in where an agent is rare.
            hits, counts = (which & later)[of].sum(axis=0), which[of].sum(axis=0)
            found[held, agent] = (hits + 5 * overall) / (counts + 5)
    return found


def build_baselines(rows: FutureRows, transitions: Transitions) -> dict[str, Anticipated]:
    """What goes on: constant velocity with constant labels, and with the transition table."""
    action, location = open_head().scores(rows.x)
    boxes = decode_boxes(extrapolate(rows.now, rows.speed))
    one = np.ones((len(rows.x), len(HORIZONS_S)), np.float32)
    many = len(HORIZONS_S)
    return {
        "what is goes on": Anticipated(
            one, np.repeat(action[:, None], many, axis=1), np.repeat(location[:, None], many, axis=1), boxes
        ),
        "transition table": Anticipated(
            one,
            transitions.apply("action", action.astype(np.float64), rows.agent).astype(np.float32),
            transitions.apply("location", location.astype(np.float64), rows.agent).astype(np.float32),
            boxes,
        ),
    }


def build_truth(scenes: Mapping[int, SceneTruth], horizon_s: float) -> Scenes:
    """Tables of what was there, from the first frame on that anybody could have anticipated."""
    parts, labels, first = [], [], 0
    for number, truth in scenes.items():
        kept = np.flatnonzero(truth.frame >= max(1, round(horizon_s * truth.fps)))
        ids = first + np.arange(len(kept))
        first += len(kept)
        x1, y1, x2, y2 = truth.box[kept].T
        parts.append(
            pl.DataFrame(
                {
                    "box": ids, "video": [f"s{number:03d}"] * len(kept), "frame": truth.frame[kept],
                    "tube": number * 100_000 + truth.tube[kept], "x1_px": x1, "y1_px": y1, "x2_px": x2, "y2_px": y2,
                }
            )
        )  # fmt: skip
        rows, columns = np.nonzero(truth.action[kept])
        labels.append(pl.DataFrame({"box": ids[rows], "kind": ["action"] * len(rows), "label": columns}))
        placed = np.flatnonzero(truth.location[kept] >= 0)
        labels.append(
            pl.DataFrame(
                {
                    "box": ids[placed],
                    "kind": ["location"] * len(placed),
                    "label": truth.location[kept][placed],
                }
            )
        )
        labels.append(
            pl.DataFrame(
                {"box": ids, "kind": ["agentness"] * len(ids), "label": np.zeros(len(ids), np.int64)}
            )
        )
    boxes = pl.concat(parts)
    tracks = boxes.group_by("tube", maintain_order=True).agg(
        pl.col("video").first(), start_frame=pl.col("frame").min(), end_frame=pl.col("frame").max() + 1
    )
    videos = pl.DataFrame(
        [
            {"video": f"s{n:03d}", "width_px": t.size_px[0], "height_px": t.size_px[1], "fps": t.fps, "n_frames": t.n_frames}
            for n, t in scenes.items()
        ]
    )  # fmt: skip
    frames = pl.concat(
        [
            pl.DataFrame({"video": [f"s{n:03d}"] * (t.n_frames - k), "frame": np.arange(k, t.n_frames)})
            for n, t in scenes.items()
            if (k := max(1, round(horizon_s * t.fps))) < t.n_frames
        ]
    ).with_columns(annotated=True)
    meta = Meta(dataset="simulated", vocabularies=_VOCABULARIES)
    tables = Scenes(
        videos=videos, frames=frames, boxes=boxes, labels=pl.concat(labels), tubes=tracks, meta=meta
    )
    return split_tubes_by_label(tables, ["action", "location"])


def build_future(
    rows: FutureRows, expected: Anticipated, horizon: int, scenes: Mapping[int, SceneTruth]
) -> Predictions:
    """The tubes that are expected at a horizon, each box at the frame that it is expected in."""
    fps = {n: t.fps for n, t in scenes.items()}
    steps = np.array([max(1, round(HORIZONS_S[horizon] * fps[int(n)])) for n in rows.scene])
    frame = rows.frame + steps
    size_px = np.array([scenes[int(n)].size_px for n in rows.scene])
    clipped = np.clip(expected.boxes[:, horizon], 0, np.tile(size_px, 2))
    inside = (clipped[:, 2] > clipped[:, 0]) & (clipped[:, 3] > clipped[:, 1])
    kept = np.flatnonzero(rows.known[:, horizon] & inside)
    present = (rows.score * expected.present[:, horizon])[kept]
    scores = np.hstack(
        [
            present[:, None],
            *(present[:, None] * part[kept, horizon] for part in (expected.actions, expected.locations)),
        ]
    ).astype(np.float32)
    meta = set_score_layout(Meta(dataset="simulated", vocabularies=_VOCABULARIES), "boxes", _KINDS)
    x1, y1, x2, y2 = clipped[kept].T
    boxes = pl.DataFrame(
        {
            "box": np.arange(len(kept)),
            "video": [f"s{n:03d}" for n in rows.scene[kept].tolist()],
            "frame": frame[kept],
            "x1_px": x1, "y1_px": y1, "x2_px": x2, "y2_px": y2,
            "score": present,
            "scores": pl.Series(scores, dtype=pl.Array(pl.Float32, scores.shape[1])),
        }
    )  # fmt: skip
    path = rows.scene[kept] * 1_000_000 + rows.tube[kept]
    _, numbers = np.unique(path, return_inverse=True)
    # A gap that is filled between two boxes would know of the later one before it was said.
    linker = replace(build_linker_config(12.0), gaps="keep")
    predictions = Predictions(boxes=boxes, meta=meta)
    return label_paths(predictions, numbers.astype(np.int64), linker)


def _test(folder: Path, weights: Path | None, only: int | None, towns: Path | None = None) -> None:
    paths = sorted((towns or folder / "test").glob("*.npz"))[:only]
    scenes = {n: load_minded_scene(path).truth if towns else load_truth(path) for n, path in enumerate(paths)}
    rows = join_future_rows([make_future_rows(t, n, 50, pixels=True) for n, t in scenes.items()])
    learnt = read_future_rows(folder, "train", seed=0, every=8)
    head = open_anticipation(weights)
    methods = build_baselines(rows, Transitions(learnt))
    started_s = time.process_time()
    methods["anticipation head"] = head.anticipate(
        rows.x.astype(np.float64), open_head().tubes.logits(rows.x), rows.now, rows.speed
    )
    spent_ms = 1e3 * (time.process_time() - started_s) / len(rows.x)
    print(
        f"{len(scenes)} scenes, {len(rows.x):,} boxes of linked tubes; {1e3 * spent_ms:.0f} us a tube in one call\n"
    )
    actions, locations = common_labels(read_rows(folder, "val", seed=40, every=8))
    print(
        "| s ahead | | labels alone: 8 actions, AP | 10 locations, AP | still seen, AP | mean IoU of boxes |"
    )
    print("|---|---|---|---|---|---|")
    for k, horizon_s in enumerate(HORIZONS_S):
        for name, expected in methods.items():
            print(
                f"| {horizon_s:g} | {name} | {' | '.join(_judge_rows(rows, expected, k, actions, locations))} |",
                flush=True,
            )
    print("\n| s ahead | | labels alone: 8 actions | 10 locations | still seen |\n|---|---|---|---|---|")
    for k, horizon_s in enumerate(HORIZONS_S):
        for other in ("what is goes on", "transition table"):
            cells = _compare_rows(rows, methods["anticipation head"], methods[other], k, actions, locations)
            print(f"| {horizon_s:g} | head less {other} | {' | '.join(cells)} |", flush=True)
    print(
        "\n| s ahead | | frame-mAP 0.5: boxes | actions | locations | video-mAP 0.2: boxes | actions | locations |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for k, horizon_s in enumerate(HORIZONS_S):
        truth = build_truth(scenes, horizon_s)
        found: dict[str, DetectionResult] = {}
        for name, expected in methods.items():
            found[name] = evaluate(
                build_future(rows, expected, k, scenes),
                truth,
                DetectionConfig.default(),
                frame_thresholds=(0.5,),
                video_thresholds=(0.2,),
                kinds=_KINDS,
                resamples=_RESAMPLES,
            )
            print(f"| {horizon_s:g} | {name} | {' | '.join(_list_values(found[name]))} |", flush=True)
        for other in ("what is goes on", "transition table"):
            cells = _list_differences(found["anticipation head"], found[other])
            print(f"| {horizon_s:g} | head less {other} | {' | '.join(cells)} |", flush=True)


def _judge_rows(
    rows: FutureRows, expected: Anticipated, k: int, actions: list[int], locations: list[int]
) -> list[str]:
    """Labels of objects that are still seen, whether they are, and the overlap of their boxes."""
    seen = rows.present[:, k] & rows.known[:, k]
    cells = [
        str(
            judge(
                truth[seen, k],
                scores[seen, k].astype(np.float64),
                rows.scene[seen],
                {str(n): n for n in chosen},
            )
        )
        for truth, scores, chosen in (
            (rows.action, expected.actions, actions),
            (rows.location, expected.locations, locations),
        )
    ]
    known = rows.known[:, k]
    still = rows.score[known] * expected.present[known, k]
    cells.append(
        str(
            judge(
                rows.present[known, k][:, None],
                still[:, None].astype(np.float64),
                rows.scene[known],
                {"seen": 0},
            )
        )
    )
    a, b = expected.boxes[seen, k], decode_boxes(rows.box[seen, k])
    inner = np.clip(np.minimum(a[:, 2:], b[:, 2:]) - np.maximum(a[:, :2], b[:, :2]), 0, None).prod(axis=1)
    areas = [np.clip(c[:, 2:] - c[:, :2], 0, None).prod(axis=1) for c in (a, b)]
    cells.append(f"{float((inner / np.maximum(areas[0] + areas[1] - inner, 1e-9)).mean()):.3f}")
    return cells


def _compare_rows(
    rows: FutureRows, one: Anticipated, other: Anticipated, k: int, actions: list[int], locations: list[int]
) -> list[str]:
    """Average precision of labels alone and of presence, one less the other, on the same boxes, paired over scenes."""
    seen, known = rows.present[:, k] & rows.known[:, k], rows.known[:, k]
    cells = []
    for kept, truth, columns, scores in (
        (seen, rows.action[:, k], actions, [each.actions[:, k] for each in (one, other)]),
        (seen, rows.location[:, k], locations, [each.locations[:, k] for each in (one, other)]),
        (
            known,
            rows.present[:, [k]],
            [0],
            [rows.score[:, None] * each.present[:, [k]] for each in (one, other)],
        ),
    ):
        unit = rows.scene[kept]
        units = build_units(unit, _RESAMPLES)
        judged = {str(c): truth[kept, c] for c in columns if truth[kept, c].any()}
        drawn = [
            weigh_ranking(judged, {c: said[kept, int(c)] for c in judged}, unit, units) for said in scores
        ]
        found = estimate(drawn[0] - drawn[1], units, "difference")
        cells.append(f"{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]")
    return cells


_CELLS = [("frame", kind) for kind in _KINDS] + [("video", kind) for kind in _KINDS]


def _list_values(found: DetectionResult) -> list[str]:
    cells = []
    for level, kind in _CELLS:
        row = found.summary.filter(
            pl.col("metric").str.starts_with(f"{level}_map@"),
            pl.col("kind") == kind,
            pl.col("group").is_null(),
        )
        if row.is_empty():
            cells.append("")
            continue
        value, low, high = (row[c][0] for c in ("value", "low_video", "high_video"))
        cells.append(f"{100 * value:.1f}" + ("" if low is None else f" [{100 * low:.1f}, {100 * high:.1f}]"))
    return cells


def _list_differences(one: DetectionResult, other: DetectionResult) -> list[str]:
    table = compare_detections(
        one.matches, other.matches, DetectionConfig.default(), resamples=_RESAMPLES
    ).table
    cells = []
    for level, kind in _CELLS:
        row = table.filter(
            pl.col("metric").str.starts_with(f"{level}_map@"), pl.col("metric").str.ends_with(f":{kind}")
        )
        if row.is_empty():
            cells.append("")
            continue
        value, low, high = (row[c][0] for c in ("difference", "low_video", "high_video"))
        cells.append(
            f"{100 * value:+.1f}" + ("" if low is None else f" [{100 * low:+.1f}, {100 * high:+.1f}]")
        )
    return cells


def main() -> None:
    """Run one of the parts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.anticipation", description=__doc__)
    parser.add_argument("part", choices=("train", "test"))
    parser.add_argument("folder", type=Path, help="of the sets of `python -m benchmarks.events make`")
    parser.add_argument("--weights", type=Path, help="of the head; the one that comes along by default")
    parser.add_argument("--out", type=Path, default=Path("anticipation.safetensors"))
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--networks", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--only", type=int, help="judge so many scenes alone")
    parser.add_argument(
        "--towns", type=Path, help="judge on these scenes, as `reproduce decisions` keeps them (scenes/test)"
    )
    asked = parser.parse_args()
    if asked.part == "train":
        _train(asked.folder, asked.out, asked.epochs, asked.networks, asked.rounds)
    else:
        _test(asked.folder, asked.weights, asked.only, asked.towns)


if __name__ == "__main__":
    main()
