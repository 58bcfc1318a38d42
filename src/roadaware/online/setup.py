"""What watches a stream: the detector that suits it, as its file advises, with events and crossing behind it.

Torch is imported when something is opened, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.errors import UsageError
from roadaware.io.sources import to_printable
from roadaware.linking.config import LinkerConfig, build_linker, select_linker
from roadaware.models.catalogue.entries import (
    find_installed_path,
    read_catalogue,
    read_record,
    resolve_weights,
)
from roadaware.models.detector import read_advice, read_notes, read_training_data
from roadaware.models.event_head.anticipation import open_anticipation
from roadaware.models.event_head.head import has_installed_head, open_head
from roadaware.models.graphs.views import Views
from roadaware.models.object_labels import ROAD_AGENTS
from roadaware.online.config import WatchConfig
from roadaware.online.crossing import CrossingAnnotator
from roadaware.online.forecast_event import OutlookRule
from roadaware.online.tubes import LabelRule
from roadaware.scenes.advice import Advice
from roadaware.simulator.synthetic_films import is_synthetic_film
from roadaware.steps import log_step
from roadaware.tasks.events import EventDetector, warm_up_events

if TYPE_CHECKING:
    from roadaware.models.catalogue.entries import Entry
    from roadaware.models.crossing.hazard_trees import HazardTrees
    from roadaware.models.detector import Detector
    from roadaware.online.frames import Clock

WEIGHTS = Path(__file__).resolve().parent.parent / "weights"
"""Where the networks lie that came with roadaware."""
HEADS = ("events-simulated.safetensors", "anticipation-simulated.safetensors")
"""Those among them which are no detectors but heads on tubes: what they do now, and what they will do."""
WHEN = "crossing-time-jaad.npz"
"""The one that says when somebody begins to cross."""
PREDICTORS = ("crossing-jaad.safetensors", "risk-jaad.safetensors", WHEN)
"""Those among them that say who will cross, where, and when."""
CROWDS = "crowd.safetensors"
"""The one that answers questions about crowds, where it came along."""
PEOPLE_OF_CROWDS = "crowd-people.safetensors"
"""The detector that looks where a network of crowds is asked, since people fill more of such images than of roads."""
OBSTACLES = "obstacles-simulated.safetensors"
"""The one that looks for things and people on the road ahead, beside a detector."""
FIRST = "street-small"
"""The model of the catalogue that is offered where no detector of real streets is installed."""
LIVE_PX, FILM_PX = 640, 1024
_OBJECTS = ("objects",)
Timed = Callable[[str], AbstractContextManager[None]]
"""What a warm-up runs in, so that somebody may be told that it takes long."""


def _untimed(what: str) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True)
class Choice:
    """What looks.

    Args:
        files: of the detector.
        views: in which sizes; None where the detector has its own.
    """

    files: list[Path]
    views: Views | None


def find_bundled_weights(*, crowd: bool = False) -> Path:
    """The detector that came with roadaware.

    Args:
        crowd: whether a network of crowds is asked about what it finds: then that of people, where it came along.

    Raises:
        UsageError: if none came with it, or there are several.
    """
    if crowd and (WEIGHTS / PEOPLE_OF_CROWDS).is_file():
        return WEIGHTS / PEOPLE_OF_CROWDS
    others = (*PREDICTORS, *HEADS, CROWDS, PEOPLE_OF_CROWDS, OBSTACLES)
    found = sorted(path for path in WEIGHTS.glob("*.safetensors") if path.name not in others)
    if not found:
        raise UsageError(
            "no detector came with this installation; name one with --weights\n  "
            f"`roadaware models get {FIRST}` fetches one; `roadaware train configs/simulator.yaml` makes one "
            "from synthetic scenes"
        )
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise UsageError(
            f"several detectors came with this installation ({names}); choose one with --weights"
        )
    return found[0]


def find_installed_detector(*, live: bool) -> tuple[Entry, Path] | None:
    """The detector of the catalogue that suits a source, of those that are installed, with its path.

    Args:
        live: whether frames have to be kept up with: then the cheapest where there is no GPU, else the most accurate
            as published.

    Returns:
        None where none is installed.
    """
    there = [
        (entry, path)
        for entry in read_catalogue().values()
        if entry.task == "objects" and (path := find_installed_path(entry))
    ]
    if len(there) < 2:
        return there[0] if there else None
    from roadaware.models.devices import select_device

    if live and select_device("auto", "fp32")[0].type == "cpu":
        return min(there, key=lambda each: each[0].cost)
    return max(there, key=lambda each: each[0].coco_ap)


def select_detector(
    named: Sequence[Path],
    *,
    synthetic: bool,
    live: bool,
    crowd: bool = False,
    size: int | None = None,
    tiles: bool = False,
    find_real: Callable[[bool], Path | None],
) -> Choice:
    """The detector that was named, or the one that suits the source.

    Args:
        named: paths, or names of the catalogue.
        synthetic: whether the source is a video of the simulator, at which the bundled detector looks.
        live: whether it is a camera.
        crowd: whether a network of crowds is asked about what it finds.
        size: longer side in pixels, of a detector of any size; default: 640 of a camera, 1024 of a video.
        tiles: whether parts of each image are looked at besides the whole, by a detector of any size.
        find_real: finds a detector of real streets where none is named, given `live`.

    Raises:
        UsageError: if a name is not installed, or a size was asked of a detector that has its own.
    """
    from roadaware.models.graphs.runner import is_graph_file

    if named:
        files = [resolve_weights(path, _OBJECTS) for path in named]
    else:
        files = [(None if synthetic else find_real(live)) or find_bundled_weights(crowd=crowd)]
    if len(files) == 1 and is_graph_file(files[0]):
        usual = LIVE_PX if live else FILM_PX
        return Choice(files, Views(usual if size is None else size, tiles))
    return Choice(files, Views(size or LIVE_PX, tiles) if size is not None or tiles else None)


def build_watch_config(
    *,
    fps: float | None = None,
    recorded_fps: float | None = None,
    budget_ms: float | None = None,
    seconds: float | None = None,
    threshold: float | None = None,
    label_threshold: float | None = None,
    rescale: bool = False,
    spell: Callable[[str], str] = str,
) -> WatchConfig:
    """How a stream is watched, of what somebody asked for; the detector's advice is still to come.

    Args:
        fps, recorded_fps, seconds, rescale: as of `WatchConfig`.
        budget_ms: its `budget_s` in milliseconds.
        threshold: agentness that proves a tube, see `follow_advice`.
        label_threshold: score at which a label begins to be told; below two thirds of it, it no longer is.
        spell: how errors call an argument of this function.

    Raises:
        UsageError: if a number has no meaning.
    """
    for name, value in (("threshold", threshold), ("label_threshold", label_threshold)):
        if value is not None and not (is_number(value) and 0 <= value <= 1):
            raise UsageError(f"{spell(name)} is a score from 0 to 1, not {_format_number(value)}")
    for name, given in (("budget_ms", budget_ms), ("seconds", seconds)):
        if given is not None and not (is_number(given) and 0 < given < 1e9):
            raise UsageError(f"{spell(name)} is more than 0, not {_format_number(given)}")
    rule = LabelRule()
    return replace(
        WatchConfig(),
        fps=fps,
        recorded_fps=recorded_fps,
        budget_s=None if budget_ms is None else budget_ms / 1e3,
        seconds=seconds,
        labels=rule
        if label_threshold is None
        else replace(rule, on=label_threshold, off=label_threshold * 2 / 3),
        rescale=rescale,
    )


def is_number(given: object) -> bool:
    """Whether something is a number of Python's or numpy's."""
    return isinstance(given, Real) and not isinstance(given, bool)


def _format_number(given: object) -> str:
    return f"{float(given):g}" if isinstance(given, Real) else repr(given)


def follow_advice(
    config: WatchConfig,
    advice: Advice,
    iou: float | None = None,
    threshold: float | None = None,
) -> WatchConfig:
    """How a stream is watched with a detector.

    Args:
        config: where neither the detector nor anybody else says anything.
        advice: of the detector.
        iou: overlap that a link needs, whatever the detector advises.
        threshold: agentness that proves a tube, whatever the detector advises.

    Raises:
        DamagedError: if what is advised has no meaning.
    """
    linker = build_linker("default", advice=advice, min_iou=iou)
    score = config.begin_score
    if threshold is not None:
        score = threshold
    elif advice.min_score is not None:
        score = advice.min_score
    return replace(config, linker=linker, begin_score=score, advice=advice)


def lower_label_threshold(config: WatchConfig) -> WatchConfig:
    """The same with labels told of every tube that is: at the score that proves it, where that is less."""
    on = min(config.labels.on, config.begin_score)
    return replace(config, labels=replace(config.labels, on=on, off=min(config.labels.off, on * 2 / 3)))


def describe_training(files: Sequence[Path], source: str | None) -> str:
    """What to tell whoever watches something real with a detector that saw nothing real; empty otherwise.

    Args:
        files: of the detector.
        source: the file that is watched; None for a camera.

    Raises:
        DamagedError: if a file says what it was trained on in no words.
    """
    words = read_training_data(files)
    return f"detector trained on {words}" if words and not is_synthetic_film(source) else ""


# The event head, which gives tubes of a plain detector actions, locations and events.


def has_event_head(asked: bool | None, kinds: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a detector gets the event head.

    Args:
        asked: whether it is wanted; None where nothing is said: of detectors that tell agents alone.
        kinds: that the detector tells.

    Raises:
        UsageError: if it is asked for and the detector tells no agents of ROAD.
    """
    fits = bool(set(kinds.get("agent", ())) & set(ROAD_AGENTS))
    if asked and not fits:
        text = ", ".join(f"{len(names)} of {kind}" for kind, names in kinds.items())
        raise UsageError(
            f"--events needs a detector that tells agents of ROAD; this one tells {text or 'nothing'}"
        )
    if asked is None:
        return fits and not {"action", "location"} & set(kinds) and has_installed_head()
    return asked


def add_event_head(
    asked: bool | None,
    detector: Any,
    linker: LinkerConfig,
    fps: float | None = None,
    timed: Timed = _untimed,
    expect: bool | None = False,
) -> Any:
    """A detector with the event head behind it where that is wanted; itself otherwise.

    Args:
        asked: as of `has_event_head`.
        detector: any.
        linker: what its detections will be linked with.
        fps: of the source; None where it is not known.
        timed: what the warm-up runs in.
        expect: whether tubes are anticipated a second ahead, also of a detector that keeps its own labels; None: where the
            event head gives them.

    Raises:
        UsageError: if they should be, and the detector tells no agents of ROAD.
    """
    labels = has_event_head(asked, detector.kinds)
    if not labels and not expect:
        return detector
    if expect and not set(detector.kinds.get("agent", ())) & set(ROAD_AGENTS):
        text = ", ".join(f"{len(names)} of {kind}" for kind, names in detector.kinds.items())
        raise UsageError(
            f"--expect needs a detector that tells agents of ROAD; this one tells {text or 'nothing'}"
        )

    anticipation = open_anticipation() if expect is not False else None
    wrapped = EventDetector(detector, open_head(), linker, fps=fps, anticipation=anticipation, labels=labels)
    with timed("the event head"):
        warm_up_events(linker)
    return wrapped


# Pedestrians who may cross: which predictors are asked, and of which detectors.


def open_when(task: str, rate_fps: float) -> HazardTrees | None:
    """The bundled predictor that says when, beside one of who crosses; None beside others, and where it did not come along.

    Args:
        task: of the predictor that it stands beside.
        rate_fps: at which that is asked; None is also given where it is not that of the trees.
    """
    from roadaware.models.crossing.hazard_trees import HazardTrees

    if task != "action" or not (WEIGHTS / WHEN).is_file():
        return None
    trees = HazardTrees.open(WEIGHTS / WHEN)
    return trees if trees.facts["fps"] == rate_fps else None


def build_annotator(
    asked: Sequence[str], detector: Detector, clock: Clock, *, waits: bool = True, timed: Timed = _untimed
) -> CrossingAnnotator | None:
    """What gives pedestrians their outlook in one watch; None where nothing does.

    Args:
        asked: files or folders of predictors; or `auto`, also where nothing is said, for those that came with
            roadaware; or `none`.
        detector: that looks.
        clock: of the watch.
        waits: whether frames wait for what is done once. Then predictors are warmed up when somebody is first
            asked about, which may be never; otherwise before the first frame.
        timed: what the warm-up runs in.

    Raises:
        UsageError: if words and files are mixed, a predictor cannot be asked about a stream, or the detector
            tells no pedestrians.
        InputError: if a file cannot be read.
    """
    words = [each for each in asked if each in ("auto", "none")]
    if words and len(asked) > 1:
        raise UsageError(f"--crossing {words[0]} stands alone; name files, or say {words[0]}")
    files = [Path(each) for each in asked]
    if words or not asked:
        files = [path for name in PREDICTORS if (path := WEIGHTS / name).is_file()]
    if words == ["none"] or not files:
        return None
    rule, agents = OutlookRule(), detector.kinds.get("agent", ())
    if not set(rule.agents) & set(agents):
        if not asked or list(asked) == ["auto"]:
            return None
        raise UsageError(
            f"this detector tells no pedestrians ({', '.join(rule.agents)}) but "
            f"{', '.join(agents) or 'no agents'}; leave --crossing out"
        )
    from roadaware.online.crossing_forecaster import open_foresight

    foresight = open_foresight(files)
    if not waits:
        with timed("the predictors"):
            foresight.warm_up()
    return CrossingAnnotator(foresight, rule, clock)


# Which models a watch asked: what each tells, what it learnt from, and its licence.

_OURS = "Apache-2.0"
_UNSTATED = "not stated in its file"


def describe_models(
    files: Sequence[Path],
    annotator: CrossingAnnotator | None = None,
    views: object = None,
    detector: object = None,
) -> list[dict[str, str]]:
    """A row for each model: `task`, `name`, `trained_on`, `licence`, `digest` and `settings`, JSON-ready.

    Args:
        files: of the detector.
        annotator: with the predictors that are asked.
        views: how images are shown to the detector; None where it has its own way.
        detector: as it is asked, with the event head or without.
    """
    rows = []
    for path in files:
        notes = read_notes(path)
        row = _row("agents", path, notes, str(notes.get("trained_on") or ""))
        rows.append(row | _in_catalogue(path) | ({} if views is None else {"settings": str(views)}))
    if isinstance(detector, EventDetector):
        if detector.labels:
            rows.append(_row("events", WEIGHTS / HEADS[0], {}, "simulated tubes"))
        if detector.expects:
            rows.append(_row("what is expected", WEIGHTS / HEADS[1], {}, "simulated tubes"))
    for task, file, facts in annotator.foresight.members() if annotator is not None else ():
        rows.append(_row(task, file, facts, str(facts.get("data") or facts.get("protocol") or "")))
    return rows


def _in_catalogue(path: Path) -> dict[str, str]:
    """What the catalogue says of a model that it installed; nothing of others."""
    for entry in read_catalogue().values():
        if find_installed_path(entry) == path:
            record = read_record(path if path.is_dir() else path.parent) or {}
            licence = str(record.get("licence") or entry.licence)
            return {"name": entry.name, "trained_on": entry.about, "licence": licence}
    return {}


def _row(task: str, path: Path | None, facts: dict[str, Any], trained_on: str) -> dict[str, str]:
    from roadaware.models.loading import digest_model_files

    bundled = path is not None and path.resolve().parent == WEIGHTS
    licence = f"{_OURS}, comes with roadaware" if bundled else str(facts.get("licence") or _UNSTATED)
    return {
        "task": task,
        "name": "?" if path is None else path.name,
        "trained_on": trained_on or _UNSTATED,
        "licence": licence,
        "digest": "" if path is None or not path.is_file() else digest_model_files(path),
        "settings": "",
    }


def apply_detector_advice(
    config: WatchConfig, files: Sequence[Path], iou: float | None = None, threshold: float | None = None
) -> tuple[WatchConfig, list[str]]:
    """How a stream is watched with a detector, and what to say of its advice.

    Args:
        config: where neither the detector nor anybody else says anything.
        files: of the detector, as of `--weights`.
        iou: overlap that a link needs, whatever the detector advises.
        threshold: agentness that proves a tube, whatever the detector advises.

    Raises:
        DamagedError: if a file's advice is none.
    """
    advice = read_advice(files)
    _, said = select_linker("default", "road", advice, {"min_iou": iou})
    config = follow_advice(config, advice, iou, threshold)
    score = config.begin_score
    if threshold is None and advice.min_score is not None:
        said.append(
            f"boxes at or above {score:g} prove a tube, the detector's threshold; --threshold to change"
        )
    elif threshold is None and "min_score" in advice.disputed:
        said.append(f"the detectors' thresholds differ: {score:g} is taken; --threshold to change")
    return config, said


def load_detector(
    files: Sequence[Path],
    device: str = "cpu",
    precision: str = "fp32",
    threads: int = 0,
    views: Views | None = None,
) -> Detector:
    """What watches: a network, several, or an object detector.

    Args:
        files: as of `--weights`.
        device: as of `--device`.
        precision: as of `--precision`.
        threads: as of `--threads`.
        views: which parts of an image are looked at, by a detector of any size.

    Raises:
        UsageError: if they do not go together, or the device cannot be used.
        InputError: if one cannot be read, or is none of ours.
    """
    from roadaware.models.devices import select_device, set_threads
    from roadaware.models.loading import open_stream

    with log_step("opening the detector"):
        place, dtype = select_device(device, precision)
        detector = open_stream(files, views=views, device=place, dtype=dtype)
    set_threads(files, threads)
    return detector


def find_predictor(given: Path) -> Path:
    """A file or folder, or a predictor that comes along by its name."""
    if given.exists():
        return given
    bundled = {Path(name).stem: WEIGHTS / name for name in PREDICTORS}
    if str(given) in bundled:
        return bundled[str(given)]
    raise UsageError(
        f"there is no predictor {to_printable(str(given), 100)}; those that come along are {', '.join(bundled)}"
    )
