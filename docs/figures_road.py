"""Draw the image of the page on linking again: `python docs/figures_road.py` (synthetic detections)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.io.files import write_atomically
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.matches import build_tube_table
from roadaware.reports.page import FULL, GREY, INK, MARKERS, PALE, SERIES, Picture, set_style
from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.tables import Meta, Predictions, Scenes

FRAMES, SIDES = 40, ("x1_px", "y1_px", "x2_px", "y2_px")
META = Meta(vocabularies={"agent": ("Car",)})
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Agent:
    """A box of 90 x 60 px that moves along a road, and the frames in which no detector finds it."""

    begin: int
    end: int
    x: float
    y: float
    speed: float
    missed: tuple[int, ...]

    @property
    def frames(self) -> range:
        """Where it is."""
        return range(self.begin, self.end)

    def box(self, frame: int) -> list[float]:
        """Where it is then."""
        x = self.x + self.speed * (frame - self.begin)
        return [x, self.y, x + 90, self.y + 60]


AGENTS = (
    Agent(0, 40, 20, 300, 8, (8, 9, 10, 22, 23, 24)),
    Agent(0, 40, 330, 200, 2.5, (*range(14, 22), 31, 32)),
    Agent(8, 34, 480, 100, 13, (16, 17, 18, 27)),
)


def truth() -> Scenes:
    """The agents as they were."""
    rows = [(k, frame, *agent.box(frame)) for k, agent in enumerate(AGENTS) for frame in agent.frames]
    boxes = pl.DataFrame(rows, schema=["tube", "frame", *SIDES], orient="row").with_row_index("box")
    tracks = [(k, agent.begin, agent.end, None, None, None) for k, agent in enumerate(AGENTS)]
    tubes = [(len(AGENTS) + k, a.begin, a.end, k, "agent", [[a.begin, a.end]]) for k, a in enumerate(AGENTS)]
    schema = ["tube", "start_frame", "end_frame", "parent", "kind", "spans"]
    derived = [tube for tube, *_ in tubes]
    return Scenes(
        videos=pl.DataFrame({"video": ["v"], "width_px": [1280], "height_px": [512]}),
        frames=pl.DataFrame({"video": "v", "frame": range(FRAMES), "annotated": True}),
        boxes=boxes.with_columns(pl.col("box").cast(pl.Int64), video=pl.lit("v")),
        labels=pl.DataFrame({"box": range(len(boxes)), "kind": "agent", "label": 0}),
        tubes=pl.DataFrame(
            tracks + tubes, schema=schema, orient="row", infer_schema_length=None
        ).with_columns(video=pl.lit("v")),
        tube_labels=pl.DataFrame({"tube": derived, "kind": "agent", "label": 0}),
        meta=META,
    )


def detections(seed: int = 0) -> Predictions:
    """What a synthetic detector finds: the agents, a little off, and now and then what is not there."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    for frame in range(FRAMES):
        here = [a.box(frame) for a in AGENTS if frame in a.frames and frame not in a.missed]
        found = [(np.add(box, rng.normal(0, 1.5, 4)), rng.uniform(0.6, 0.95)) for box in here]
        for _ in range(rng.poisson(0.15)):
            x, y = rng.uniform(0, 800), rng.uniform(0, 400)
            found.append((np.array([x, y, x + 40, y + 40]), rng.uniform(0.03, 0.1)))
        found.sort(key=lambda one: -one[1])
        rows += [("v", frame, *box.tolist(), score, [score]) for box, score in found]
    schema: dict[str, Any] = {"video": pl.String, "frame": pl.Int64}
    schema |= dict.fromkeys((*SIDES, "score"), pl.Float32) | {"scores": pl.Array(pl.Float32, 1)}
    return Predictions(
        videos=pl.DataFrame({"video": ["v"], "width_px": [1280], "height_px": [512]}),
        frames=pl.DataFrame({"video": "v", "frame": range(FRAMES)}),
        boxes=pl.DataFrame(rows, schema=schema, orient="row").with_row_index("box").cast({"box": pl.Int64}),
        meta=set_score_layout(META, "boxes", ["agent"]),
    )


@dataclass(frozen=True)
class Predicted:
    """A path as it is predicted: frames, places (px), and which boxes were interpolated."""

    frames: npt.NDArray[np.int64]
    x: Floats
    made: npt.NDArray[np.bool_]


def predicted(linked: Predictions) -> list[Predicted]:
    """The paths, box by box."""
    boxes = linked.boxes
    if "interpolated" not in boxes.columns:
        boxes = boxes.with_columns(interpolated=pl.lit(False))
    found = []
    for row in linked.tubes.filter(pl.col("parent").is_null()).iter_rows(named=True):
        part = boxes.filter(pl.col("tube") == row["tube"]).sort("frame")
        frames = part["frame"].to_numpy()
        if row["consecutive"]:
            frames = row["start_frame"] + np.arange(len(part))
        x = part.select((pl.col("x1_px") + pl.col("x2_px")) / 2).to_series().to_numpy()
        found.append(Predicted(frames, x, part["interpolated"].to_numpy()))
    return found


def overlap(linked: Predictions, scenes: Scenes) -> float:
    """The mean over true tubes of the best overlap in space and time with a predicted one."""
    table = build_tube_table(linked, scenes, DetectionConfig.default(), kinds=["agent"])
    best = table.drop_nulls("truth").group_by("truth").agg(pl.col("overlap").max())
    return float(best["overlap"].sum() / len(AGENTS))


def linking() -> Picture:
    """The same detections linked as published, with one quirk mended, and as we recommend."""
    from matplotlib.figure import Figure

    scenes, predictions, reference = truth(), detections(), LinkerConfig.reference("road")
    configs = {
        "reference()": reference,
        "reference() but clamped_iou": replace(reference, clamped_iou=True),
        "default()": LinkerConfig.default("road"),
    }
    said = []
    with set_style():
        figure = Figure(figsize=(FULL, 3.9), layout="constrained")
        panels = figure.subplots(1, len(configs), sharey=True)
        for axes, (name, config) in zip(panels, configs.items(), strict=True):
            linked = link(predictions, config)
            paths = predicted(linked)
            _panel(axes, paths, predictions)
            counts = f"{len(paths)} paths, mean overlap {overlap(linked, scenes):.2f}"
            said.append(f"{name}: {counts}")
            axes.set_title(f"{name}\n{counts}", loc="left")
            axes.set(xlabel="frame", xlim=(-1, FRAMES), ylim=(0, 900))
        panels[0].set_ylabel("middle of the box (px)")
        _legend(figure)
    caption = (
        "Three agents on a road (pale bands), detections (grey crosses) and the tubes that are predicted "
        f"(lines, one marker per path). {'; '.join(said)}. Left, paths jump between agents that are apart in "
        "both directions. Middle, boxes after missed frames are predicted for earlier frames, so tubes leave "
        "their agent and end early. Left and middle, weak detections of nothing are paths. Right, missed "
        "frames are interpolated (hollow markers) and weak paths are dropped."
    )
    return Picture("The same detections, linked three times", caption, figure)


def _panel(axes: Any, paths: list[Predicted], predictions: Predictions) -> None:
    for agent in AGENTS:
        x = [np.mean(agent.box(frame)[::2]) for frame in agent.frames]
        axes.plot(agent.frames, x, color=PALE, linewidth=9, solid_capstyle="butt", zorder=1)
    middle = predictions.boxes.select((pl.col("x1_px") + pl.col("x2_px")) / 2).to_series()
    axes.plot(
        predictions.boxes["frame"], middle, "x", color=GREY, markersize=4, markeredgewidth=0.9, zorder=2
    )
    long = 0
    for path in paths:
        if len(path.x) == 1:
            axes.plot(path.frames, path.x, "s", color=INK, markersize=6, fillstyle="none", zorder=3)
            continue
        tone, marker = SERIES[long % len(SERIES)], MARKERS[long % len(MARKERS)]
        long += 1
        axes.plot(path.frames, path.x, "-", color=tone, linewidth=1.2, zorder=3)
        for rows, face in ((~path.made, tone), (path.made, "white")):
            axes.plot(
                path.frames[rows],
                path.x[rows],
                marker,
                color=tone,
                markerfacecolor=face,
                markersize=3.6,
                zorder=4,
            )


def _legend(figure: Any) -> None:
    from matplotlib.lines import Line2D

    tone, marker = SERIES[0], MARKERS[0]
    shown = {
        "true agent": Line2D([], [], color=PALE, linewidth=9),
        "detection": Line2D([], [], color=GREY, marker="x", linestyle="", markersize=4),
        "predicted tube": Line2D([], [], color=tone, marker=marker, markersize=3.6, linewidth=1.2),
        "interpolated": Line2D([], [], color=tone, marker=marker, markerfacecolor="white", markersize=3.6),
        "path of one weak detection": Line2D([], [], color=INK, marker="s", fillstyle="none", linestyle=""),
    }
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=len(shown))


def main() -> None:
    """Draw."""
    picture = linking()
    path = Path(__file__).parent / "images" / "linking.svg"
    write_atomically(path, picture.svg("linking").encode())
    print(f"{path.name}: {picture.caption}")


if __name__ == "__main__":
    main()
