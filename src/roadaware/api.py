"""What `import roadaware as ra` offers: data in, tubes, numbers with intervals, pictures and pages out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware import datasets
from roadaware.errors import InputError, UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link as _link
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import DetectionResult
from roadaware.metrics.detection.evaluate import evaluate as _evaluate
from roadaware.scenes import tables
from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.tables import Meta, Scenes

Config = Literal["default", "reference"]
_CORNERS = ("x1_px", "y1_px", "x2_px", "y2_px")


class Predictions(tables.Predictions):
    """The output of a model under the keys of `Scenes`, with scores; `from_*` and `to_*` lead in and out."""

    @classmethod
    def from_numpy(
        cls,
        boxes: npt.ArrayLike,
        scores: npt.ArrayLike,
        frames: npt.ArrayLike,
        videos: str | Sequence[str],
        *,
        classes: Sequence[str],
        labels: npt.ArrayLike | None = None,
        kind: str = "agent",
    ) -> Predictions:
        """Detections in arrays as Predictions.

        Args:
            boxes: (n, 4) x1, y1, x2, y2 in pixels of the original image.
            scores: (n,) score of each box's label in [0, 1], with `labels`; or (n, k) score of each class.
            frames: (n,) frame of each box, from 0.
            videos: one name for all boxes, or (n,) the video of each.
            classes: (k,) names of the classes, as the ground truth has them.
            labels: (n,) place of each box's class in `classes`; not given with (n, k) scores.
            kind: which kind of label the classes are.

        Raises:
            InputError: if shapes differ, a score leaves [0, 1] or a label is no place in `classes`.

        >>> Predictions.from_numpy([[0, 0, 9, 9]], [0.8], [0], "drive", classes=("Ped", "Car"), labels=[1])
        Predictions(unnamed: 1 videos, 1 frames, 1 boxes)
        """
        corners = np.asarray(boxes, dtype=np.float32).reshape(-1, 4)
        n, k = len(corners), len(classes)
        given = np.asarray(scores, dtype=np.float32)
        if labels is not None:
            places = np.asarray(labels)
            if given.shape != (n,) or places.shape != (n,):
                raise InputError(f"expected ({n},) scores and labels, found {given.shape} and {places.shape}")
            if n and not (np.issubdtype(places.dtype, np.integer) and 0 <= places.min() <= places.max() < k):
                raise InputError(f"labels are whole numbers from 0 to {k - 1}, the places of {list(classes)}")
            dense = np.zeros((n, k), np.float32)
            dense[np.arange(n), places.astype(np.int64)] = given
        else:
            dense = given.reshape(n, -1) if given.size else np.zeros((n, k), np.float32)
            if dense.shape != (n, k):
                hint = "give `labels` with one score for each box"
                raise InputError(f"expected ({n}, {k}) scores, found {given.shape}", hint=hint)
        if n and not ((dense >= 0) & (dense <= 1)).all():
            raise InputError("scores lie in [0, 1]", hint="pass them through a sigmoid or softmax first")
        at = np.asarray(frames)
        if at.shape != (n,) or (n and not np.issubdtype(at.dtype, np.integer)):
            raise InputError(f"expected ({n},) whole frame numbers, found {at.dtype} of shape {at.shape}")
        named = [videos] * n if isinstance(videos, str) else [str(video) for video in videos]
        if len(named) != n:
            raise InputError(f"expected {n} names of videos, found {len(named)}")
        table = pl.DataFrame(
            {
                "box": np.arange(n),
                "video": pl.Series(named, dtype=pl.String),
                "frame": at.astype(np.int64),
                **{name: corners[:, j] for j, name in enumerate(_CORNERS)},
                "score": dense.max(axis=1, initial=0.0),
                "scores": pl.Series(dense, dtype=pl.Array(pl.Float32, k)),
            }
        )
        keys = table.select("video", "frame").unique(maintain_order=True).sort("video", "frame")
        found = table.sort("video", "frame", maintain_order=True).with_columns(box=pl.int_range(pl.len()))
        meta = set_score_layout(Meta(vocabularies={kind: tuple(classes)}), "boxes", (kind,))
        return cls(
            videos=keys.select("video").unique(maintain_order=True), frames=keys, boxes=found, meta=meta
        )

    @classmethod
    def from_pandas(cls, table: Any, *, kind: str = "agent") -> Predictions:
        """Detections in a data frame as Predictions.

        Args:
            table: pandas or polars; columns video, frame, x1_px, y1_px, x2_px, y2_px, score, label (a name).
            kind: which kind of label they are.

        Raises:
            InputError: if a column lacks, or as `from_numpy`.
        """
        lacking = [
            name
            for name in ("video", "frame", *_CORNERS, "score", "label")
            if name not in list(table.columns)
        ]
        if lacking:
            raise InputError(
                f"expected columns {', '.join(lacking)}, found {', '.join(map(str, table.columns))}"
            )
        names = [str(name) for name in table["label"].to_list()]
        classes = sorted(set(names))
        place = {name: n for n, name in enumerate(classes)}
        return cls.from_numpy(
            np.column_stack([np.asarray(table[name].to_list(), np.float64) for name in _CORNERS]),
            table["score"].to_list(),
            np.asarray(table["frame"].to_list(), dtype=np.int64),
            [str(name) for name in table["video"].to_list()],
            classes=classes,
            labels=np.array([place[name] for name in names], dtype=np.int64),
            kind=kind,
        )

    def to_pandas(self) -> Any:
        """The boxes as a pandas data frame: video, frame, corners, score, tube; without the dense scores.

        Raises:
            UsageError: if pandas is not installed.
        """
        try:
            import pandas as pd  # type: ignore[import-untyped, unused-ignore]
        except ImportError as error:
            raise UsageError("to_pandas needs pandas: pip install pandas") from error
        held = self.boxes.drop("scores", strict=False)
        return pd.DataFrame({name: held[name].to_list() for name in held.columns})

    @classmethod
    def from_coco(cls, results: Path | str, annotations: Path | str, *, kind: str = "agent") -> Predictions:
        """A list of COCO results as Predictions.

        Args:
            results: file with a list of image_id, category_id, bbox and score.
            annotations: the annotation file that names images and categories.
            kind: which kind of label the categories are.

        Raises:
            InputError: if a file is damaged, or no COCO JSON.
        """
        from roadaware.formats.coco import read_index, read_results

        found = read_results(Path(results), read_index(Path(annotations), kind=kind))
        return cls(**found.tables(), meta=found.meta)

    def to_coco(self, path: Path | str, scenes: Scenes, *, kind: str = "agent") -> int:
        """Write the boxes as a list of COCO results; the number of results.

        Args:
            path: where to; replaced in one step.
            scenes: the ground truth, whose frames are the images.
            kind: which kind of label becomes the category.
        """
        from roadaware.formats.coco import build_scenes_index, write_results

        return write_results(self, Path(path), build_scenes_index(scenes, kind=kind))


def read(name: str, path: Path | str, **options: Any) -> Scenes:
    """A dataset as `Scenes`; what was refused is in `.rejected`, with the reason.

    Args:
        name: of the dataset, such as jaad, pie, road, ucf24, kitti; all are in `ra.datasets.READERS`.
        path: the unpacked dataset, a folder that holds it, or its zip archive.
        options: as `roadaware.datasets.read` takes them.

    Raises:
        UsageError: if the dataset or an option is not known.
        InputError: if nothing of it can be read.
    """
    return datasets.read(name, Path(path), **options)


def link(predictions: tables.Predictions, config: Config | LinkerConfig = "default") -> Predictions:
    """Detections linked to paths and labelled tubes, as `roadaware.linking.link.link` does it.

    Args:
        predictions: detections with scores.
        config: `default` (what we recommend), `reference` (the published tube builder), or a LinkerConfig.
    """
    chosen = (
        config if isinstance(config, LinkerConfig) else getattr(LinkerConfig, _check_config(config))("road")
    )
    found = _link(predictions, chosen)
    return Predictions(**found.tables(), meta=found.meta)


@dataclass(frozen=True, eq=False)
class Result:
    """What an evaluation found: a table of numbers with intervals, and pictures and pages of it.

    Args:
        found: the metric's own result, with the rows behind the numbers (`found.instances()`).
        config: how it was evaluated.
        name: what the model is called on pages.
    """

    found: DetectionResult
    config: DetectionConfig
    name: str = "the model"

    @property
    def summary(self) -> pl.DataFrame:
        """A row for each metric: `metric`, `value` in [0, 1], `n`, and the ends of its 95 % interval."""
        return self.found.summary

    def value(self, metric: str) -> float | None:
        """One number by its name, such as `video_map@0.2:agent`; None where undefined."""
        return self.found.value(metric)

    def _means(self) -> pl.DataFrame:
        held = self.summary.filter(pl.col("group").is_null() & pl.col("label").is_null() & pl.col("valid"))
        return held.select(
            "metric", "value", "n", low="low_video", high="high_video", caution="caution_video"
        )

    def __repr__(self) -> str:
        return repr(self.found)

    def _repr_html_(self) -> str:
        return str(self._means()._repr_html_())

    def plot(self) -> Any:
        """The means with their intervals as a matplotlib figure."""
        from roadaware.reports.bars import Estimate, plot_estimates

        rows = [
            Estimate(str(row["metric"]), row["value"], row["low"], row["high"], row["n"], row["caution"])
            for row in self._means().iter_rows(named=True)
        ]
        return plot_estimates(rows, "average precision", title="Means over classes").figure

    def to_html(self, path: Path | str) -> Path:
        """Write one page that needs no network: means, classes, configuration; the path."""
        from roadaware.config import to_dict
        from roadaware.reports import page
        from roadaware.reports.events import build_event_section

        section = build_event_section(
            self.summary, model=self.name, config=to_dict(self.config), notes=self.found.notes
        )
        page.save(page.report([section]), Path(path))
        return Path(path)

    def compare(self, other: Result, *, resamples: int = 1000, seed: int = 0) -> pl.DataFrame:
        """The difference self - other in every metric, with paired intervals over videos.

        Args:
            other: of another model on the same ground truth.
            resamples: of videos.
            seed: of the resamples.

        Raises:
            InputError: if the two were not evaluated on the same ground truth.
        """
        from roadaware.analysis.compare import compare_detections

        return compare_detections(
            self.found.matches, other.found.matches, self.config, draws=resamples, seed=seed
        ).table


def evaluate(
    predictions: tables.Predictions,
    scenes: Scenes,
    task: str = "road",
    config: Config | DetectionConfig = "default",
    *,
    resamples: int = 1000,
    seed: int = 0,
    name: str = "the model",
    **options: Any,
) -> Result:
    """How good predicted boxes and tubes are: frame-mAP and video-mAP with 95 % intervals over videos.

    Args:
        predictions: boxes with scores; tubes too where video-mAP is wanted (see `link`).
        scenes: the ground truth.
        task: `road` or `ucf24`.
        config: `default` (what we recommend), `reference` (the published evaluator), or a DetectionConfig.
        resamples: of videos; 0 gives no intervals.
        seed: of the resamples.
        name: what the model is called on pages.
        options: as `roadaware.metrics.detection.evaluate.evaluate` takes them, such as `kinds`.

    Raises:
        UsageError: if task, config or an option is not known.
        InputError: if there is no ground truth, or the two do not fit each other.

    Source: Singh et al., TPAMI 2022, section 5.
    """
    if task not in ("road", "ucf24"):
        raise UsageError(f"task is road or ucf24, not {task!r}; `roadaware evaluate` has the other tasks")
    chosen = (
        config if isinstance(config, DetectionConfig) else getattr(DetectionConfig, _check_config(config))()
    )
    return Result(_evaluate(predictions, scenes, chosen, draws=resamples, seed=seed, **options), chosen, name)


def simulate(
    path: Path | str,
    *,
    preset: str = "road",
    scenes: int = 1,
    seed: int = 0,
    seconds: float | None = None,
    size: tuple[int, int] | None = None,
    fps: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Scenes:
    """Synthetic scenes with exact ground truth, rendered into a folder and read back.

    Args:
        path: where to: new, empty, or that of the same order, which goes on.
        preset: such as road, crossing, corner-cases, chaos, kerb, with or without version.
        scenes: how many.
        seed: of all of them.
        seconds: length of a scene; default: that of the preset.
        size: width and height in pixels; default: those of the preset.
        fps: frames a second; default: those of the preset.
        progress: called with how many are done, of how many.

    Raises:
        UsageError: if there is no such preset, or the folder holds something else.
    """
    from dataclasses import replace

    from roadaware.simulator.config import build_scene_config
    from roadaware.simulator.generate import Order, generate_scenes

    config = build_scene_config(preset)
    width, height = size or (config.camera.width_px, config.camera.height_px)
    camera = replace(config.camera, width_px=width, height_px=height, fps=fps or config.camera.fps)
    config = replace(config, camera=camera, seconds=seconds or config.seconds)
    generate_scenes(Order(config, seed, scenes), Path(path), progress=progress)
    return datasets.read("simulator", Path(path), cache=False)


def _check_config(name: str) -> str:
    if name not in ("default", "reference"):
        raise UsageError(f"config is 'default', 'reference' or a config of your own, not {name!r}")
    return name
