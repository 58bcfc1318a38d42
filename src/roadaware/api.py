"""What `import roadaware as ra` offers: data in, models, tubes, numbers with intervals, images and pages out."""

from __future__ import annotations

import difflib
import html
import io
import logging
import operator
import os
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode

import polars as pl

from roadaware import datasets
from roadaware.analysis import compare as paired
from roadaware.analysis import scene_tasks
from roadaware.analysis.evaluation.event_inputs import add_dense_scores
from roadaware.analysis.evaluation.scenes import digest_truth
from roadaware.analysis.evaluation.tables import TASKS, Evaluation, TaskName, evaluate_tables
from roadaware.analysis.scene_cases import collect_figure_data
from roadaware.config import ConfigName, check_config_name, check_options, to_dict
from roadaware.corner_cases import runner
from roadaware.corner_cases.config import PRESETS, CopgConfig
from roadaware.datasets.detect_format import SWEEP_READERS
from roadaware.errors import InputError, UsageError
from roadaware.formats.track_tables import TrackSource, is_annotated, open_tracks
from roadaware.interchange import Predictions as Predictions
from roadaware.interchange import Scenes as Scenes
from roadaware.interchange import parse_path
from roadaware.io.parallel import Workers
from roadaware.linking.config import LinkerConfig, build_linker
from roadaware.linking.enforcement import EnforcementConfig, enforce_requirements
from roadaware.linking.link import link as _link
from roadaware.metrics.detection.evaluate import DetectionResult
from roadaware.metrics.metric_state import SceneResult
from roadaware.metrics.tracking import list_values
from roadaware.models.catalogue.entries import read_catalogue, resolve_weights
from roadaware.models.detector import read_advice, read_notes
from roadaware.online import setup
from roadaware.online.frames import SystemClock
from roadaware.online.setup import CROWDS, FIRST, HEADS, WEIGHTS, WHEN, find_installed_detector, open_when
from roadaware.online.sources import Realtime, open_source
from roadaware.online.watch import Watch
from roadaware.online.watcher import warm_up_detector
from roadaware.scenes import tables
from roadaware.scenes.advice import get_advice
from roadaware.scenes.requirements import open_requirements
from roadaware.scenes.sampling import get_protocol, split_samples
from roadaware.scenes.sampling import sample as cut
from roadaware.scenes.store import save
from roadaware.simulator.config import adapt_scene_config, build_scene_config
from roadaware.simulator.generate import Order, generate_scenes
from roadaware.simulator.synthetic_films import is_synthetic_film
from roadaware.statistics.adaptation import AdaptivePredictor as AdaptivePredictor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from roadaware.corner_cases.proposal_tables import Stage
    from roadaware.online.watch import Watch
    from roadaware.viewer.opening import Opened
    from roadaware.viewer.serve import Shown

_LOG = logging.getLogger("roadaware")


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
    return Scenes.from_tables(datasets.read(name, parse_path("path", path), **options))


def link(
    predictions: tables.Predictions,
    config: ConfigName | LinkerConfig = "default",
    *,
    dataset: Literal["road", "ucf24"] = "road",
) -> Predictions:
    """Detections linked to paths and labelled tubes, as `roadaware link` does it.

    Args:
        predictions: detections with scores.
        config: `default` (what we recommend, with what the detector itself advises), `reference` (the
            published tube builder), or a LinkerConfig.
        dataset: whose published parameters.

    Raises:
        UsageError: if config or dataset is not known.
        InputError: if the boxes have no scores to link by.

    Source: Singh et al., TPAMI 2022, section 4.3; Singh et al., ICCV 2017, for UCF101-24.

    Examples:
        >>> boxes, frames = [[x, 0, x + 20, 40] for x in range(9)], list(range(9))
        >>> found = Predictions.from_numpy(boxes, [0.9] * 9, frames, "drive", classes=("Ped",), labels=[0] * 9)
        >>> len(link(found).tubes.filter(pl.col("parent").is_null()))
        1
    """
    _check_kind(predictions, tables.Predictions, "link takes predictions")
    if dataset not in ("road", "ucf24"):
        raise UsageError(f"dataset is 'road' or 'ucf24', not {dataset!r}")
    if not isinstance(config, LinkerConfig):
        config = build_linker(check_config_name(config), dataset, get_advice(predictions.meta))
    found = _link(predictions, config) if len(predictions.boxes) else predictions  # nothing makes no tubes
    return Predictions(**found.tables(), meta=found.meta)


def enforce(
    predictions: tables.Predictions,
    requirements: Path | str | Sequence[Path | str],
    *,
    threshold: float = 0.5,
    method: Literal["nearest", "propagation", "maxsat"] = "nearest",
) -> Predictions:
    """Detections whose labels satisfy logical requirements, by the least change, as `roadaware enforce` makes them.

    Args:
        predictions: detections with scores of labels, not linked.
        requirements: a file of them, as ROAD-R's; several have to say the same.
        threshold: a label is there where its score is at least this; requirements hold there, of boxes whose own
            score is at least this.
        method: `nearest`, `propagation` (faster, changes more) or `maxsat` (needs python-sat).

    Raises:
        UsageError: if an option is out of range, or python-sat is asked for and not installed.
        InputError: if the file cannot be read, contradicts itself or is over other labels, or there are no such scores.

    Source: Giunchiglia et al., Machine Learning 112, 2023.
    """
    _check_kind(predictions, tables.Predictions, "enforce takes predictions")
    config = EnforcementConfig(threshold, method)
    given = (requirements,) if isinstance(requirements, str | Path) else requirements
    rules = open_requirements([parse_path("requirements", each) for each in given])
    found, _ = enforce_requirements(add_dense_scores(predictions), rules, config)
    return Predictions(**found.tables(), meta=found.meta)


def sample(scenes: tables.Scenes, protocol: str, config: ConfigName = "default") -> Scenes:
    """Scenes with the `samples` of pedestrians that a protocol asks about: who, when, which split, which answer.

    Args:
        scenes: of JAAD, PIE or the simulator.
        protocol: such as `jaad-action@iv2024`; an unknown name is answered by all of them.
        config: `reference` cuts as published, `default` as we recommend.

    Raises:
        UsageError: if there is no such protocol.
        InputError: if a split has no samples.

    Source: Rasouli and Kotseruba, IV 2024, for `iv2024`; `roadaware.protocols` names the others.
    """
    _check_kind(scenes, tables.Scenes, "sample takes scenes")
    return Scenes.from_tables(cut(scenes, get_protocol(protocol, config)))


# Evaluation: one result for every task.


@dataclass(frozen=True, eq=False)
class Result(Evaluation):
    """What an evaluation found: a table of numbers with intervals, with figures and pages.

    Args:
        found: the metric's own result, with the rows behind the numbers (`found.instances()`).
        task: what was asked.
        config: how it was evaluated.
        predictions: that were evaluated.
        scenes: the ground truth.
        state: of pedestrians, scores beside the truth; None of the other tasks.
        name: what the model is called on pages.
    """

    name: str = "the model"

    @property
    def summary(self) -> pl.DataFrame:
        """A row for each metric: `metric`, `value` (a fraction), `n`, `reason` where undefined, interval ends.

        `low_video` and `high_video` are the ends of the 95 % interval over videos; of pedestrians there are
        `low_pedestrian` and `high_pedestrian` too.
        """
        return self.found.summary

    @property
    def notes(self) -> tuple[str, ...]:
        """What else happened, in words: what was left out, what could not be judged."""
        return self.found.notes

    def value(self, metric: str) -> float | None:
        """One number by its name, such as `video_map@0.2:agent`; None where it is undefined.

        Args:
            metric: as the column `metric` of `summary` has it.

        Raises:
            UsageError: if there is no such metric; names the nearest.
        """
        known = self.found.of_group()["metric"].to_list()
        if metric not in known:
            near = difflib.get_close_matches(metric, known, n=3, cutoff=0.3) or known[:8]
            raise UsageError(f"no metric {metric!r}; there are {', '.join(near)}, ... (see `.summary`)")
        return self.found.value(metric)

    def _select_means(self) -> pl.DataFrame:
        """The defined metrics of the whole set and of no class, with the interval over videos or pedestrians."""
        held = self.summary.filter(pl.col("group").is_null() & pl.col("valid"))
        if "label" in held.columns:
            held = held.filter(pl.col("label").is_null())
        unit = "video" if held["low_video"].count() or not held["low_pedestrian"].count() else "pedestrian"
        ends = {end: f"{end}_{unit}" for end in ("low", "high", "caution")}
        return held.select("metric", "value", "n", **ends)

    def __repr__(self) -> str:
        return repr(self.found)

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"{self._select_means()._repr_html_()}{notes}"

    def plot(self) -> Any:
        """The metrics of the whole set with their 95 % intervals, as a matplotlib figure, in fractions."""
        from roadaware.reports.bars import Estimate, plot_estimates

        rows = [
            Estimate(
                str(row["metric"]), row["value"], row["low"], row["high"], row["n"], caution=row["caution"]
            )
            for row in self._select_means().iter_rows(named=True)
            if 0 <= row["value"] <= 1
        ]
        figure = plot_estimates(rows, "value", title=f"{self.name}: {self.task}", percent=False).figure
        figure._repr_png_ = partial(_render_png, figure)  # type: ignore[attr-defined]
        return figure

    def show(
        self,
        video: str | None = None,
        frame: int | None = None,
        *,
        media: Path | str | Sequence[Path | str] = (),
    ) -> Shown:
        """What was evaluated on a page of this machine, with the errors by what they cost; see `ra.show`.

        Args:
            video: that is shown first; default: the first.
            frame: of it, from 0.
            media: videos, or folders in which they lie.

        Raises:
            UsageError: if the predictions have no boxes, or as `ra.show`.
        """
        if self.predictions.boxes.is_empty() and self.scenes.boxes.is_empty():
            raise UsageError(
                f"results of {self.task} have no boxes to look at: `.plot()` draws their numbers"
            )
        return show(self.scenes, self.predictions, video, frame, media=media)

    def to_html(self, path: Path | str) -> Path:
        """Write one page that needs no network: metrics, classes, images, configuration; the path.

        Args:
            path: of the file, which is replaced.

        Raises:
            DiskError: if it cannot be written.
        """
        from roadaware.reports import page

        target = parse_path("path", path)
        page.save(page.report([self._build_section()]), target)
        return target

    def _build_section(self) -> Any:
        from roadaware.reports import page

        if isinstance(self.found, DetectionResult):
            from roadaware.reports.events import build_event_section

            config = to_dict(self.config)
            return build_event_section(self.summary, model=self.name, config=config, notes=self.notes)
        if self.task == "tracking":
            from roadaware.reports.configs import build_config_table
            from roadaware.reports.event_tables import build_tracking_table

            rows = build_tracking_table(list_values(self.found))
            notes = [page.Note(note, "doubt") for note in self.notes]
            settings = build_config_table(to_dict(self.config), "Metric configuration")
            return page.Section(f"{self.name}: tracking", (), (rows, *notes, settings))
        if not isinstance(self.found, SceneResult):
            from roadaware.reports.evaluation import build_evaluation_section

            return build_evaluation_section(self.found, title=f"{self.name}: {self.task}", model=self.name)
        from roadaware.reports.corner_section import build_corner_section
        from roadaware.reports.scene_section import build_scene_section, plot_scene_cases

        task = scene_tasks.get_task(self.task)
        title = f"{self.name}: {task.title}"
        if task is scene_tasks.CORNER_CASES:
            return build_corner_section(self.found, title=title, model=self.name)
        shown = collect_figure_data(task.name, self.predictions, self.scenes, self.found)
        return build_scene_section(
            self.found,
            title=title,
            model=self.name,
            items=task.items,
            labelled=task.labelled,
            pictures=list(plot_scene_cases(shown, self.name)),
        )

    def compare(self, other: Result, *, resamples: int = 1000, seed: int = 0) -> pl.DataFrame:
        """The difference self - other in every metric, with paired 95 % intervals.

        Args:
            other: of another model on the same ground truth, evaluated in the same way.
            resamples: of videos, and of pedestrians where the task is about them; at least 1.
            seed: of the resamples.

        Returns:
            A row for each metric: `metric`, `a`, `b`, `difference`, `low_video`, `high_video`, `verdict` of
            self (`better`, `worse`, `not different`, `undefined`, `no interval`), and others.

        Raises:
            UsageError: if the two are of different tasks or configs.
            InputError: if the two were not evaluated on the same ground truth.
        """
        if not isinstance(other, Result):
            raise UsageError(f"compare takes a Result as ra.evaluate gives it, not {type(other).__name__}")
        if self.task != other.task:
            raise UsageError(f"one result is of the task {self.task}, the other of {other.task}")
        if self.task == "tracking":
            raise UsageError(
                "there is no comparison of tracking; .found.instances('video') has every metric of each video"
            )
        how: dict[str, Any] = {"resamples": resamples, "seed": seed, "names": (self.name, other.name)}
        if isinstance(self.found, DetectionResult) and isinstance(other.found, DetectionResult):
            if self.scenes is not other.scenes and digest_truth(self.scenes) != digest_truth(other.scenes):
                raise InputError(
                    "the two were evaluated on different ground truth",
                    hint="evaluate both with the same scenes",
                )
            return paired.compare_detections(
                self.found.matches, other.found.matches, self.config, config_b=other.config, **how
            ).table
        mine, theirs = to_dict(self.config), to_dict(other.config)
        if mine != theirs:
            differ = ", ".join(f"{k} ({mine[k]} and {theirs[k]})" for k in mine if mine[k] != theirs[k])
            raise UsageError(f"evaluated by different configs, {differ}; evaluate both with the same")
        if self.state is not None and other.state is not None:
            return paired.compare(self.state, other.state, self.config, **how).table
        if self.scenes is not other.scenes and self.scenes != other.scenes:
            raise InputError(
                "the two were evaluated on different ground truth",
                hint="evaluate both with the same scenes",
            )
        if not isinstance(self.found, SceneResult) or not isinstance(other.found, SceneResult):
            raise TypeError("a result of a task on scenes needs the state behind its numbers")
        if self.found.state is None or other.found.state is None:
            raise TypeError("a result of a task on scenes needs the state behind its numbers")
        return paired.compare_scenes(self.found.state, other.found.state, mine, **how).table


def evaluate(
    predictions: tables.Predictions,
    scenes: tables.Scenes,
    task: TaskName = "road",
    config: Any = "default",
    *,
    resamples: int = 1000,
    seed: int = 0,
    name: str = "the model",
    **options: Any,
) -> Result:
    """How good predictions are, with 95 % intervals over videos: the numbers that `roadaware evaluate` gives.

    | task | what is judged | predictions hold |
    |---|---|---|
    | `road`, `ucf24` | frame-mAP and video-mAP of boxes and tubes | boxes with scores; tubes, see `link` |
    | `tracking` | HOTA, identity and CLEAR metrics of tracks, whatever their labels | tracks, see `link` |
    | `pedestrians` | crossing, intention or risk, as the samples ask | a score for each sample, see `sample` |
    | `actions` | actions of persons | boxes with scored labels of the kind `action` |
    | `relations` | who does what to whom | relations |
    | `grounding` | when and where a sentence happens | answers to queries |
    | `sound` | where a sound comes from | maps of sounds |
    | `corner_cases` | unknown objects found | boxes with scores, with or without classes |

    Args:
        predictions: what a model says. Empty ones are fine and score 0.
        scenes: the ground truth, whose videos, frames and labels the predictions name.
        task: see above.
        config: a name, or a config of the task. `default` is what we recommend; the other names are published
            evaluators: `reference` (road, ucf24, tracking, pedestrians, corner_cases), `ava-official` (actions), `vidvrd`
            (relations), `tubedetr-hcstvg` (grounding), `vggss` (sound), ... An unknown name is answered by
            those of the task.
        resamples: of videos; 0 gives no intervals.
        seed: of the resamples.
        name: what the model is called on pages.
        options: of `road` and `ucf24`: `kinds`, `frame_thresholds`, `video_thresholds`, `overlaps`, `groups`;
            of `tracking`: `min_score`, below which boxes do not count (default: the detector's threshold, where
            it is known); of `pedestrians`: `split` (default: `test` where the samples have one); of the others: `by`, names
            of slices. Of `corner_cases` also `trained_on`, what the detector's classes are (`soda10m`,
            `bdd100k`, `waymo`, `coda` for those of the ground truth, or a csv), `agnostic=True` for
            predictions without classes (default where they have none), and `classes`, whether those of `base`
            or of `2022` are common.

    Raises:
        UsageError: if task, config or an option is not known.
        InputError: if there is no ground truth, predictions are of other videos, frames, classes or of another
            task, or every score is 0 for a reason other than the model.

    Source: Singh et al., TPAMI 2022, section 5, for `road`; the page of each task names its own.
    """
    asked = str(task).replace("-", "_")
    if asked not in TASKS:
        near = difflib.get_close_matches(str(task), TASKS, n=1)
        guess = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"task is one of {', '.join(TASKS)}, not {task!r}{guess}")
    if isinstance(predictions, tables.Scenes) and isinstance(scenes, tables.Predictions):
        raise UsageError("evaluate takes the predictions first, then the scenes: swap the two")
    _check_kind(predictions, tables.Predictions, "evaluate takes predictions first")
    _check_kind(scenes, tables.Scenes, "evaluate takes the ground truth second")
    resamples, seed = _as_count("resamples", resamples), _as_count("seed", seed)
    found = evaluate_tables(asked, predictions, scenes, config, options, resamples=resamples, seed=seed)
    return Result(**{**vars(found), "task": asked}, name=name)


def compare(a: Result, b: Result, *, resamples: int = 1000, seed: int = 0) -> pl.DataFrame:
    """The difference a - b in every metric, with paired 95 % intervals; see `Result.compare`.

    Args:
        a, b: two models evaluated on the same ground truth in the same way.
        resamples: at least 1.
        seed: of the resamples.

    Raises:
        UsageError: if the two are of different tasks or configs, or one is no Result.
        InputError: if the two were not evaluated on the same ground truth.
    """
    if not isinstance(a, Result):
        raise UsageError(f"compare takes two Results as ra.evaluate gives them, not {type(a).__name__}")
    return a.compare(b, resamples=resamples, seed=seed)


def show(
    scenes: tables.Scenes | tables.Predictions | Path | str,
    predictions: tables.Predictions | Path | str | Sequence[tables.Predictions | Path | str] | None = None,
    video: str | None = None,
    frame: int | None = None,
    *,
    media: Path | str | Sequence[Path | str] = (),
    height: int = 720,
) -> Shown:
    """Scenes and predictions on a page of this machine, as `roadaware view` shows them.

    In a notebook the cell shows the page; elsewhere the browser is opened. The page is served to this machine
    alone, until Python ends or `.close()` is called. Nothing is written of tables in memory; verdicts are kept
    where folders are given.

    Args:
        scenes: the ground truth, or predictions alone, or a path that `roadaware view` takes.
        predictions: Predictions, the path of some, or several of them side by side.
        video: that is shown first, by its name; default: the first.
        frame: of it, from 0.
        media: videos, or folders in which they lie; default: where the tables of a path say.
        height: of the page in a notebook, in pixels.

    Returns:
        The page: `.address`, `.close()`, and `.wait()` for scripts that have nothing else to do.

    Raises:
        UsageError: if starlette and uvicorn are not installed, or there is no such video.
        InputError: if a path cannot be read.

    Examples:
        >>> ra.show(scenes, predictions, "drive", 40)  # doctest: +SKIP
    """
    lacking = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if lacking:
        raise UsageError(f"show needs {' and '.join(lacking)}: pip install 'roadaware[viewer]'")
    from roadaware.viewer.opening import open_paths, open_sets

    several = isinstance(predictions, list | tuple)
    more = list(predictions) if several else [] if predictions is None else [predictions]  # type: ignore[arg-type]
    given: list[Any] = [scenes, *more]
    for each in given:
        if not isinstance(each, str | os.PathLike | tables.TableSet):
            raise UsageError(f"show takes Scenes, Predictions and paths, not {type(each).__name__}")
    films = [
        parse_path("media", each) for each in ([media] if isinstance(media, str | os.PathLike) else media)
    ]
    paths = [Path(each) for each in given if isinstance(each, str | os.PathLike)]
    held = [each for each in given if isinstance(each, tables.TableSet)]
    if paths and held:
        raise UsageError("show takes tables in memory or paths, not both: save the tables, or open the paths")
    opened = open_paths(paths, films) if paths else open_sets(held, films)
    return _serve(opened, video, frame, _as_count("height", height, 100))


def _serve(opened: Opened, video: str | None, frame: int | None, height: int) -> Shown:
    """The page, opened in a browser where no notebook shows it."""
    from roadaware.viewer.serve import Shown, is_notebook, open_browser

    names = opened.list_videos()
    if video is not None and names and video not in names:
        near = difflib.get_close_matches(str(video), names, n=3, cutoff=0.3) or names[:5]
        raise UsageError(f"there is no video {video!r}; there are {', '.join(near)}")
    at = 0 if frame is None else _as_count("frame", frame)
    place = {} if video is None and frame is None else {"v": video or next(iter(names), ""), "f": at}
    shown = Shown(opened, urlencode(place), height)
    if not is_notebook():
        open_browser(shown.address)
    return shown


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
    if size is not None:
        try:
            width, height = map(operator.index, size)
        except (TypeError, ValueError):
            raise UsageError(f"size is (width, height) in whole pixels, not {size!r}") from None
        size = (width, height)
    config = adapt_scene_config(build_scene_config(preset), seconds=seconds, size=size, fps=fps)
    place = parse_path("path", path)
    order = Order(config, _as_count("seed", seed), _as_count("scenes", scenes))
    generate_scenes(order, place, progress=progress)
    return Scenes.from_tables(datasets.read("simulator", place, cache=False))


# Corner cases: boxes around what no detector knows.


def propose(
    path: Path | str,
    out: Path | str | None = None,
    *,
    reader: Literal["kitti", "nuscenes", "once", "simulator"] | None = None,
    split: str | None = None,
    semantics: str | Path | None = None,
    detections: str | Path | tables.Predictions | None = None,
    stage: Stage = "final",
    config: Literal["default", "angle", "reference"] = "default",
    processes: int = 1,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
    **knobs: Any,
) -> Predictions:
    """Proposals of corner cases, as `roadaware propose` makes them: boxes around what stands on the road.

    Ground is removed from each LiDAR sweep, its returns are clustered in several ways, clusters become boxes in the
    image and cuboids in space, and the best of each image are kept.

    Args:
        path: folder of a dataset with sweeps and calibration.
        out: folder of the work, which is continued where it was interrupted; default: a temporary one.
        reader: which dataset it is; default: seen from its files.
        split: only the videos of this split; default: all.
        semantics: what pixels show: `truth` or `erring` of synthetic scenes, or a folder of masks.
        detections: common objects to suppress: `truth` or `erring` of synthetic scenes, Predictions, or a
            folder of saved ones.
        stage: after which step: `initial` (geometry alone), `intermediate` (background removed), `final`.
        config: what the parameters are of: the default, one way to cluster by the angle (`angle`, the default up to
            0.9), or the steps as published (`reference`).
        processes: images at a time.
        overwrite: do the work in `out` again, whatever was there.
        progress: called with how many images are done, of how many.
        knobs: fields of the configuration, such as `theta_deg=4`, in degrees, or `max_distance_m=30`.

    Returns:
        Boxes by falling score in each frame: corners in pixels, `score`, `distance_m`, `n_returns`,
        `background_share`, `common_iou`, and the cuboid in the LiDAR's frame (`x_m`, ..., `yaw_rad`).
        `.meta.notes["proposals"]` says which images were left out, and why.

    Raises:
        UsageError: if a parameter or an option is not known, or `out` holds something else.
        InputError: if the dataset cannot be read, or no image of it has a usable sweep.

    Source: Li et al., ECCV 2022 (CODA), section 4.2.
    """
    _check_word("config", config, tuple(PRESETS))
    names = [each.name for each in fields(CopgConfig)]
    check_options(knobs, names)
    _check_word("reader", reader, (*SWEEP_READERS, None))
    _check_word("stage", stage, ("initial", "intermediate", "final"))
    processes = _as_count("processes", processes, 1)
    changes: dict[str, Any] = {
        n: tuple(value) if isinstance(value, list) else value for n, value in knobs.items()
    }
    place = parse_path("path", path)
    kept = None if out is None else parse_path("out", out)
    with TemporaryDirectory(prefix="roadaware-") as spare:
        if isinstance(detections, tables.Predictions):
            folder = Path(spare) / "objects" if kept is None else kept.with_name(f"{kept.name}-objects")
            save(detections, folder, overwrite=True)
            detections = folder
        order = runner.build_order(
            place,
            reader=reader,
            split=split,
            semantics=None if semantics is None else str(semantics),
            detections=None if detections is None else str(detections),
            stage=stage,
            config=replace(PRESETS[config](), **changes),
        )
        work = kept or Path(spare) / "work"
        found, tally = runner.propose_set(
            order, work, workers=Workers(processes=processes), progress=progress, overwrite=overwrite
        )
    if tally.skipped:
        reason, count = next(iter(tally.skipped.items()))
        left = f"{sum(tally.skipped.values()):,} images were left out, {count:,} of them because: {reason}"
        _LOG.warning("%s", left)
    return Predictions(**found.tables(), meta=found.meta)


# Models, and a source watched by them.


@dataclass(frozen=True, eq=False)
class Model:
    """A model that is ready to be asked.

    Args:
        name: of its file.
        task: `detection` for `ra.watch`; `action`, `intention` or `risk` for `predict`.
        labels: kind to the labels that it tells.
        files: that it was read from.
        network: a `roadaware.models.detector.Detector` or a predictor of pedestrians.
        trained_on: in words, as far as its file says it.
    """

    name: str
    task: str
    labels: dict[str, tuple[str, ...]]
    files: tuple[Path, ...]
    network: Any = field(repr=False)
    trained_on: str = ""

    def __repr__(self) -> str:
        text = ", ".join(f"{len(labels)} {kind}" for kind, labels in self.labels.items())
        return f"Model({self.name}, {self.task}: {text})"

    def predict(self, scenes: tables.Scenes, split: str = "test") -> Predictions:
        """Scores of the samples of pedestrians, from their boxes; their answers are not looked at.

        Args:
            scenes: with samples, see `ra.sample`.
            split: train, val or test.

        Returns:
            A row for each sample: `sample`, and `scores` with one probability (action) or one for each label.

        Raises:
            UsageError: if it is a detector, or there are no samples.
            InputError: if it reads what the scenes lack.
        """
        if self.task == "detection":
            raise UsageError(f"{self.name} is a detector: ra.watch(source, {self.name!r}) looks with it")
        from roadaware.tasks.crossing_inputs import build_inputs

        _check_kind(scenes, tables.Scenes, "predict takes scenes")
        if scenes.samples.is_empty():
            raise UsageError('the scenes have no samples: ra.sample(scenes, "jaad-action@iv2024") cuts them')
        held = split_samples(scenes, split)
        scores = self.network.probabilities(build_inputs(scenes, split, self.network.inputs))
        meta = tables.Meta(dataset=scenes.meta.dataset, notes={"model": self.name})
        found = tables.build_sample_predictions(held.samples, scores, meta)
        return Predictions(**found.tables(), meta=meta)


def load_model(
    name_or_path: str | Path = "compact-road",
    *,
    size: int | None = None,
    tiles: bool = False,
    device: str = "auto",
    precision: Literal["fp32", "bf16"] = "fp32",
) -> Model:
    """A model by its name or path: a detector, or a predictor of pedestrians.

    Args:
        name_or_path: `compact-road` (the bundled detector), `crowd-people` (that of people in crowds), `crossing-jaad`,
            `risk-jaad` or `crossing-time-jaad` (the bundled predictors), an installed name of `roadaware models list`,
            a file that `roadaware train` wrote, or the folder of an object detector of transformers.
        size: of a detector of any size, longer side that images are brought to, in pixels, a multiple of 32;
            default: 1024.
        tiles: of such a detector, look at three parts of each image besides the whole.
        device: auto, cpu, cuda or cuda:N; of detectors.
        precision: of detectors.

    Raises:
        UsageError: if there is no such model, it is not installed, or the device cannot be used.
        InputError: if the file is damaged, or no model of ours.
    """
    _require_torch("load_model")
    from roadaware.models.crossing.ensemble import EnsemblePredictor
    from roadaware.models.crossing.predictor import is_predictor
    from roadaware.models.devices import select_device
    from roadaware.models.loading import open_stream

    path = _find_model(name_or_path)
    if (
        path.suffix == ".npz"
        or is_predictor(path)
        or (path.is_dir() and not (path / "config.json").is_file())
    ):
        found = EnsemblePredictor.open([path])
        facts = getattr(found.members[0], "facts", {})  # an ensemble of several runs has none
        text = str(facts.get("data") or facts.get("protocol") or "")
        return Model(path.stem, found.task, {found.task: tuple(found.labels)}, (path,), found, text)
    choice = setup.select_detector(
        [path], synthetic=False, live=False, size=size, tiles=tiles, find_real=lambda live: None
    )
    place, dtype = select_device(device, precision)
    detector = open_stream(choice.files, views=choice.views, device=place, dtype=dtype)
    kinds = {kind: tuple(labels) for kind, labels in detector.kinds.items()}
    text = str(read_notes(path).get("trained_on") or "")
    return Model(path.stem, "detection", kinds, tuple(choice.files), detector, text)


def _find_model(given: str | Path) -> Path:
    """The file or folder of a model that is named, or lies there."""
    # The event head and the network of crowds are asked by `watch`, beside a detector.
    beside = (*HEADS, CROWDS)
    files = sorted([*WEIGHTS.glob("*.safetensors"), WEIGHTS / WHEN])
    bundled = {path.stem: path for path in files if path.name not in beside}
    if str(given) in bundled and not Path(given).exists():
        return bundled[str(given)]
    path = resolve_weights(parse_path("a model", given))
    if not path.exists():
        known = ", ".join((*bundled, *read_catalogue()))
        raise UsageError(f"there is no model or file {str(given)!r}; models by name: {known}")
    return path


def predict_crossing(
    tracks: tables.Scenes | tables.Predictions | Path | str,
    model: str | Path | Model = "crossing-jaad",
    *,
    fps: float | None = None,
    size: tuple[int, int] | None = None,
    every_s: float | None = None,
    steady_s: float | None = None,
    when: bool = True,
) -> pl.DataFrame:
    """How likely each person is to cross, at every moment of its track; as `roadaware crossing` says it.

    Args:
        tracks: scenes or predictions with tubes, or a path: the csv of a tracker, MOT text, COCO annotations with
            track_id, the folder of a `watch`, or saved tables.
        model: a predictor of pedestrians, as `load_model` takes it.
        fps: frames a second, where the tracks do not say it (default: 30 for JAAD and PIE).
        size: width and height of the image in pixels, where a file does not say it.
        every_s: seconds from one question about somebody to the next (default: every frame of the predictor).
        steady_s: seconds over which trembling boxes are smoothed, looking back only (default: 0.5 for what was detected, 0
            for ground truth).
        when: also say when, by the bundled `crossing-time-jaad`, beside a predictor of who crosses.

    Returns:
        A row for each moment: `video`, `name`, `frame`, `t_s`, the box in pixels, `probability` with `low` and `high` (of
        risk `region` and its probability), and `within_limits`, false for boxes smaller than any that it learnt from.
        With `when` the probability `within_1s`, ... of beginning to cross within so many seconds, and `seconds`, the median
        time until then, null beyond six.
        Where the tracks say who crosses, `crossing` and `seconds_to_event`.

    Raises:
        UsageError: if the model is a detector, or something has to be said that the tracks do not say.
        InputError: if tracks cannot be read, or nobody is in them.
    """
    from roadaware.tasks.crossing_tracks import (
        DETECTED_STEADY_S,
        add_times,
        add_truth,
        cut_moments,
        predict_tracks,
        read_moments,
    )

    held = model if isinstance(model, Model) else load_model(model)
    if held.task == "detection":
        raise UsageError(f"{held.name} is a detector: ra.watch(source, {held.name!r}) looks with it")
    if isinstance(tracks, str | os.PathLike):
        tracks = open_tracks(Path(tracks), TrackSource(fps, size))
    if not isinstance(tracks, tables.Scenes | tables.Predictions):
        raise UsageError(f"tracks are scenes, predictions or a path, not {type(tracks).__name__}")
    if steady_s is None:
        steady_s = 0.0 if is_annotated(tracks) else DETECTED_STEADY_S
    moments = read_moments(held.network, every_s, steady_s=steady_s)
    asked = cut_moments(tracks, moments, fps)
    table = predict_tracks(held.network, asked)
    if when and len(table) and (trees := open_when(held.task, moments.rate_fps)):
        table = add_times(table, trees, asked)
    return add_truth(table, tracks, fps)


def watch(
    source: str | Path | int,
    model: str | Path | Model | None = None,
    *,
    fps: float | None = None,
    recorded_fps: float | None = None,
    budget_ms: float | None = None,
    realtime: bool = False,
    seconds: float | None = None,
    threshold: float | None = None,
    label_threshold: float | None = None,
    iou: float | None = None,
    crossing: str | Path | Sequence[str | Path] = "auto",
    events: bool | None = None,
    expect: bool | None = None,
    size: int | None = None,
    tiles: bool = False,
    threads: int = 0,
    device: str = "auto",
    precision: Literal["fp32", "bf16"] = "fp32",
    rescale: bool = False,
    follow: bool = False,
) -> Watch:
    """The frames of a video or a camera with their tubes and events, as `roadaware watch` finds them.

    Source and models are opened at once, so that what is wrong with them is said here; frames are looked at as
    they are asked for. The source is let go of after the last frame, by `close()`, at the end of a `with`
    block, and when a loop over it is left.

    Args:
        source: a video or GIF, a folder of images, a glob, the number of a camera, or an address (rtsp://,
            http://).
        model: a detector as of `load_model`; default: the bundled one for synthetic videos, else an installed
            detector of real streets, else the bundled one.
        fps: images a second of a folder (default: 12); of others, look at no more frames a second.
        recorded_fps: frames a second at which a video was recorded, where it plays at another rate.
        budget_ms: of a camera, pass over frames that would be answered later, in milliseconds; default: the
            newest is always looked at.
        realtime: treat a video as if a camera filmed it now.
        seconds: of the stream, after which it ends; default: all of it.
        threshold: score of the boxes that prove a tube, in [0, 1]; default: as the detector advises, or 0.2.
        label_threshold: score at which a label begins to be told; default: 0.3, or `threshold` where less.
        iou: overlap that a link needs, in [0, 1); default: as the detector advises, or 0.5.
        crossing: predictors of crossing or risk; `auto` for the bundled ones, `none` for none.
        events: whether tubes get actions, locations and events by the event head; default: of detectors that
            tell agents alone.
        expect: whether tubes are anticipated a second ahead; default: where there is an event head.
        size: of a detector of any size, longer side in pixels; default: 1024 of a video, 640 of a camera.
        tiles: of such a detector, look at parts of each image too.
        threads: of torch; default: what suits the detector. What it was before comes back at the end.
        device: auto, cpu, cuda or cuda:N.
        precision: of the detector.
        rescale: scale images to the size of the first where a source changes it, instead of ending.
        follow: go where an http address redirects to.

    Returns:
        An iterator of `roadaware.online.watch.WatchedFrame`: `number`, `t_s` in seconds, `image`
        (H, W, 3) uint8, `tubes` with `box` (4,) in pixels, `score` and `labels`, `events`, `vehicle`. The
        last frame of a video carries the events that end its tubes.

    Raises:
        UsageError: if an option has no meaning, or a model is not there.
        InputError: if the source cannot be opened; while it is watched, if it fails before its end.

    Examples:
        >>> for frame in ra.watch("drive.mp4"):  # doctest: +SKIP
        ...     print(frame.t_s, [(tube.agent, tube.box.round()) for tube in frame.tubes])
    """
    _require_torch("watch")
    import torch

    from roadaware.models.devices import select_device, set_threads
    from roadaware.models.loading import open_stream

    if iou is not None and not (setup.is_number(iou) and 0 <= iou < 1):
        raise UsageError(f"iou is an overlap from 0 up to 1, not {iou!r}")
    threads = _as_count("threads", threads)
    if isinstance(source, bool) or not isinstance(source, str | Path | int) or not str(source).strip():
        raise UsageError(
            f"watch takes a video, a folder, a glob, an address or the number of a camera, not {source!r}"
        )
    if isinstance(model, Model):
        _check_free(model, sized=size is not None or tiles)
    config = setup.build_watch_config(
        fps=fps,
        recorded_fps=recorded_fps,
        budget_ms=budget_ms,
        seconds=seconds,
        threshold=threshold,
        label_threshold=label_threshold,
        rescale=rescale,
    )
    clock, before = SystemClock(), torch.get_num_threads()
    opened = open_source(str(source), fps, clock=clock, follow=follow, recorded_fps=recorded_fps)
    try:
        if isinstance(model, Model):
            files, detector = list(model.files), model.network
        else:
            choice = setup.select_detector(
                [] if model is None else [_find_model(model)],
                synthetic=model is None and is_synthetic_film(opened.path),
                live=opened.live,
                size=size,
                tiles=tiles,
                find_real=_find_real_detector,
            )
            place, dtype = select_device(device, precision)
            files = choice.files
            detector = open_stream(files, views=choice.views, device=place, dtype=dtype)
        set_threads(files, threads)
        config = setup.follow_advice(config, read_advice(files), iou, threshold)
        if label_threshold is None:
            config = setup.lower_label_threshold(config)
        if words := setup.describe_training(files, opened.path):
            _LOG.warning("%s", words)
        detector = setup.add_event_head(
            events, detector, config.linker_at(opened.fps), opened.fps, expect=expect
        )
        asked = [crossing] if isinstance(crossing, str | Path) else list(crossing)
        annotator = setup.build_annotator(
            [_find_predictor(each) for each in asked], detector, clock, waits=not (opened.live or realtime)
        )
        warm_up_detector(detector)
        shown = Realtime(opened, clock) if realtime and not opened.live else opened
        watched = Watch(
            shown,
            detector,
            config,
            clock,
            [] if annotator is None else [annotator],
            partial(torch.set_num_threads, before),
        )
        if isinstance(model, Model):
            _BUSY[model] = weakref.ref(watched)
        return watched
    except BaseException:
        opened.close()
        torch.set_num_threads(before)
        raise


_BUSY: weakref.WeakKeyDictionary[Model, weakref.ref[Watch]] = weakref.WeakKeyDictionary()
"""Which watch a model is busy with: a detector remembers its stream, and has one at a time."""


def _check_free(model: Model, *, sized: bool) -> None:
    """Refuse a model that is no detector or watches something else."""
    if model.task != "detection":
        raise UsageError(f"{model.name} is a predictor of {model.task}: give it as crossing={model.name!r}")
    if sized:
        raise UsageError("size and tiles are of a model that is named; load_model takes them for this one")
    other = _BUSY[model]() if model in _BUSY else None
    if other is not None and not other.closed:
        raise UsageError(
            f"{model.name} is watching {other.name}: close that watch first, or load the model a second time"
        )


def _find_real_detector(live: bool) -> Path | None:
    """The installed detector of real streets, and a word on it or on where there is one."""
    found = find_installed_detector(live=live)
    if found is None:
        _LOG.info("no detector of real streets is installed: `roadaware models get %s` fetches one", FIRST)
        return None
    _LOG.info("looking with %s (%s)", found[0].name, found[0].licence)
    return found[1]


def _find_predictor(given: str | Path) -> str:
    return str(given) if str(given) in ("auto", "none") else str(_find_model(given))


# What several of these ask of what they are given.


def _as_count(what: str, given: Any, least: int = 0) -> int:
    try:
        count = operator.index(given)
    except TypeError:
        count = least - 1
    # operator.index takes True for 1.
    if isinstance(given, bool) or count < least:
        raise UsageError(f"{what} is a whole number from {least}, not {given!r}")
    return count


def _render_png(figure: Figure) -> bytes:
    """A figure as a notebook shows it, which knows figures only once pyplot was imported."""
    held = io.BytesIO()
    figure.savefig(held, format="png", dpi=110, bbox_inches="tight")
    return held.getvalue()


def _check_word(what: str, given: Any, known: Sequence[Any]) -> None:
    if given not in known:
        raise UsageError(f"{what} is one of {', '.join(str(each) for each in known)}, not {given!r}")


def _check_kind(given: Any, kind: type, expected: str) -> None:
    """Refuse what is no table set of ours, and say how to make one."""
    if isinstance(given, kind):
        return
    ways: dict[type, str] = {
        tables.Scenes: "ra.read(name, path) or ra.simulate(path) gives Scenes",
        tables.Predictions: "ra.Predictions.from_numpy, from_pandas and from_coco make them",
    }
    raise UsageError(f"{expected}, and was given {type(given).__name__}: {ways[kind]}")


def _require_torch(who: str) -> None:
    lacking = [name for name in ("torch", "safetensors") if find_spec(name) is None]
    if lacking:
        raise UsageError(f"{who} needs {' and '.join(lacking)}: pip install 'roadaware[models]'")
