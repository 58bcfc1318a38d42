"""Event labels: linker and event head give detections all the kinds of ROAD, now or some seconds ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats32, Ints, Pixels
from roadaware.demo_data.road import COMPOSITES, DUPLEXES, EVENTS
from roadaware.errors import UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import label_paths
from roadaware.linking.linker import Linker
from roadaware.models.detector import Detector, Expected, FrameDetections, VideoDetector
from roadaware.models.event_head.anticipation import (
    AnticipationHead,
    ConstantVelocity,
    decode_boxes,
    extrapolate,
)
from roadaware.models.event_head.features import (
    LIGHTS,
    EgoMotion,
    Motion,
    TubeFeatures,
    compute_light_colours,
)
from roadaware.models.event_head.head import EventHead, open_head
from roadaware.scenes.advice import get_advice
from roadaware.scenes.dense_scores import Layout, convert_to_matrix, get_score_layout, set_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions
from roadaware.tasks.road_events import AV_ACTION, Classes, build_predictions

Pair = tuple[Ints, Ints]
_LAMPS = ("Red", "Amber", "Green", "Black", "Brake", "IncatLft", "IncatRht", "HazLit", "PushObj")
"""Actions that boxes do not show: a detector that predicts them keeps its own scores."""
_SIGNALS = ("TL", "OthTL")
_WHOLES = {"duplex": DUPLEXES, "event": EVENTS}


@dataclass(frozen=True, eq=False)
class Scene:
    """Context of a frame besides its detections.

    Args:
        number: of the frame.
        t_s: its time.
        size_px: width and height of the image.
        motion: of the camera since the frame before; None where it is not known.
        colours: (n, 4) shares of `lamps.LIGHTS` in each box; None without images.
    """

    number: int
    t_s: float
    size_px: tuple[int, int]
    motion: Motion | None = None
    colours: Floats32 | None = None


@dataclass(frozen=True, eq=False)
class LinkedTubes:
    """What a labeller knows of the tubes of the newest frame.

    Args:
        rows: (n,) of the frame's detections, which are linked.
        numbers: (n,) of their tubes.
        features: (n, features) of them.
        logits: (n, labels) what the head says of them now.
        ended: numbers of tubes that are over.
    """

    rows: Ints
    numbers: Ints
    features: npt.NDArray[np.float64]
    logits: Floats32
    ended: tuple[int, ...] = ()


class EventLabeller:
    """Labels the detections of one stream, looking back only.

    `linked` holds the tubes of the newest frame.

    Args:
        head: that scores.
        kinds: of the detector: agents, and its other kinds.
        linker: what detections are linked with; the same as later makes tubes of them.
        focal_px: focal length of the camera; of a usual one where None.

    Raises:
        UsageError: if the detector has no agents of ROAD.
    """

    def __init__(
        self,
        head: EventHead,
        kinds: Mapping[str, tuple[str, ...]],
        linker: LinkerConfig,
        focal_px: float | None = None,
    ) -> None:
        if "agent" not in kinds:
            raise UsageError(f"events need a detector that tells agents; this one tells {', '.join(kinds)}")
        self.head, self._given, self._linker_config = head, Layout(dict(kinds)), linker
        self.kinds = add_head_kinds(head, kinds)
        self.av_labels, self._focal_px = head.av_actions, focal_px
        self._layout = Layout(dict(self.kinds))
        self._features = TubeFeatures(kinds["agent"])
        self._parts = {kind: self._indices(kind) for kind in COMPOSITES if kind in self.kinds}
        labels = {"action": head.actions, "location": head.locations}
        self._into = {kind: self._columns(kind, names) for kind, names in labels.items()}
        self._linker = Linker(linker, self._given.width)
        self.linked: LinkedTubes | None = None

    def reset(self, linker: LinkerConfig | None = None) -> None:
        """Forget the stream.

        Args:
            linker: of the next one; the same where None.
        """
        self._linker_config = linker or self._linker_config
        self._linker = Linker(self._linker_config, self._given.width)
        self._features.reset()

    @property
    def horizon(self) -> float:
        """How far below the middle the horizon lies, in focal lengths."""
        return self._features.horizon[0]

    def step(self, found: FrameDetections, scene: Scene) -> FrameDetections:
        """The detections with scores of all kinds.

        A detection that the linker did not look at has scores of its agents alone.

        Args:
            found: of the detector, in its order.
            scene: what else is known of the frame.
        """
        boxes = np.asarray(found.boxes, np.float64)
        update = self._linker.update(scene.number, boxes, found.agentness, found.scores, t_s=scene.t_s)
        ended = tuple(path.number for path in update.ended)
        self._features.end(ended)
        linked = np.flatnonzero(update.numbers >= 0)
        agents = found.scores[:, self._given.columns("agent")]
        x, drive = self._features.step(
            scene.t_s,
            update.numbers[linked],
            boxes[linked],
            agents[linked],
            scene.size_px,
            scene.motion,
            self._focal_px,
        )
        logits = self.head.tubes.logits(x)
        self.linked = LinkedTubes(linked, update.numbers[linked], x, logits, ended)
        scores = np.zeros((len(found), self._layout.width), np.float32)
        for kind, names in self._given.kinds.items():
            if kind not in COMPOSITES:
                start = self._layout.columns(kind).start
                scores[:, start : start + len(names)] = found.scores[:, self._given.columns(kind)]
        if len(linked):
            for kind, kind_scores in zip(
                ("action", "location"), self.head.convert_logits(logits), strict=True
            ):
                self._write(scores, linked, kind, kind_scores)
        if scene.colours is not None and "action" not in self._given.kinds:
            self._colour(scores, scene.colours)
        for kind, parts in self._parts.items():
            whole = scores[:, self._layout.columns(kind)]
            whole[:] = scores[:, parts[0]]
            for index in parts[1:]:
                whole *= scores[:, index]
        # A detector that predicts the own vehicle's action keeps its own scores.
        av = found.av if len(found.av) else self.head.av_scores(drive)
        return FrameDetections(found.frame, found.boxes, found.agentness, scores, av)

    def _write(self, scores: Floats32, rows: Ints, kind: str, values: Floats32) -> None:
        """Scores of the head; where the detector predicts a label too, the mean of both, of lamps its own."""
        new, shared = self._into[kind]
        scores[rows[:, None], new[1]] = values[:, new[0]]
        if len(shared[0]):
            at = (rows[:, None], shared[1])
            scores[at] = 0.5 * (scores[at] + values[:, shared[0]])

    def _columns(self, kind: str, labels: Sequence[str]) -> tuple[Pair, Pair]:
        """Columns of the head and of the scores: of labels that it alone predicts, and of those that both predict."""
        start, own = self._layout.columns(kind).start, self._given.kinds.get(kind, ())
        alone = [k for k, label in enumerate(labels) if label not in own]
        both = [k for k, label in enumerate(labels) if label in own and label not in _LAMPS]

        def pair(chosen: list[int]) -> Pair:
            into = [start + self.kinds[kind].index(labels[k]) for k in chosen]
            return np.array(chosen, np.int64), np.array(into, np.int64)

        return pair(alone), pair(both)

    def _colour(self, scores: Floats32, colours: Floats32) -> None:
        """Scores of what traffic lights show, by the image."""
        agents, actions = self.kinds["agent"], self.kinds["action"]
        first = self._layout.columns("agent").start
        light = scores[:, [first + agents.index(name) for name in _SIGNALS if name in agents]].max(
            axis=1, initial=0
        )
        seen = colours.sum(axis=1) > 0
        for k, name in enumerate(LIGHTS):
            at = self._layout.columns("action").start + actions.index(name)
            scores[seen, at] = (light * colours[:, k])[seen]

    def _indices(self, kind: str) -> list[Ints]:
        """For each part of a composite kind the columns that its labels are made of."""
        found = []
        for place, part in enumerate(COMPOSITES[kind]):
            start, names = self._layout.columns(part).start, self.kinds[part]
            found.append(
                np.array(
                    [start + names.index(label.split("-")[place]) for label in self.kinds[kind]], np.int64
                )
            )
        return found


def add_head_kinds(head: EventHead, kinds: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The kinds of a detector with those that the head adds; composites only of labels that there are."""
    found = {kind: tuple(names) for kind, names in kinds.items()}
    for kind, names in (("action", head.actions), ("location", head.locations)):
        held = found.get(kind, ())
        found[kind] = (*held, *(name for name in names if name not in held))
    for kind, parts in COMPOSITES.items():
        known = [set(found[part]) for part in parts]
        fitting = [
            label
            for label in found.get(kind) or _WHOLES[kind]
            if all(word in names for word, names in zip(label.split("-"), known, strict=True))
        ]
        found.pop(kind, None)
        if fitting:
            found[kind] = tuple(fitting)
    return found


# What is expected of the tubes of a stream.

EXPECTED_S = 1.0
"""How far ahead a stream's tubes are anticipated."""


class Expectation:
    """Anticipates the tubes of one stream, looking back only; a frame costs the same however long it has lasted.

    Args:
        events: says what holds now.
        head: says what will hold.

    Raises:
        UsageError: if the head knows no horizon of `EXPECTED_S`.
    """

    def __init__(self, events: EventHead, head: AnticipationHead) -> None:
        if EXPECTED_S not in head.horizons_s:
            raise UsageError(
                f"the anticipation head should know {EXPECTED_S:g} s ahead, not {head.horizons_s}"
            )
        if (events.actions, events.locations) != (head.actions, head.locations):
            raise UsageError("the event head and the anticipation head should know the same labels")
        self._events, self._head = events, head.select_horizon(EXPECTED_S)
        self._velocity = ConstantVelocity()

    def reset(self) -> None:
        """Forget the stream."""
        self._velocity.reset()

    def step(self, t_s: float, found: FrameDetections, linked: LinkedTubes) -> Expected:
        """What is expected of the detections of a frame.

        Args:
            t_s: its time, later than that of the frame before.
            found: its detections.
            linked: what a labeller knows of their tubes.
        """
        self._velocity.end(linked.ended)
        rows, n = linked.rows, len(found)
        known = np.zeros(n, np.bool_)
        known[rows] = True
        sizes = {"action": self._head.actions, "location": self._head.locations}
        held = {kind: (names, np.zeros((n, len(names)), np.float32)) for kind, names in sizes.items()}
        current = {kind: np.zeros_like(scores) for kind, (_, scores) in held.items()}
        present, boxes, velocity = np.zeros(n, np.float32), np.full((n, 4), np.nan), np.full((n, 4), np.nan)
        if len(rows):
            now, speed = self._velocity.step(t_s, linked.numbers, np.asarray(found.boxes, np.float64)[rows])
            expected = self._head.anticipate(linked.features, linked.logits, now, speed)
            present[rows], boxes[rows] = expected.present[:, 0], expected.boxes[:, 0]
            velocity[rows] = decode_boxes(extrapolate(now, speed, (EXPECTED_S,)))[:, 0]
            held["action"][1][rows] = expected.actions[:, 0]
            held["location"][1][rows] = expected.locations[:, 0]
            current["action"][rows], current["location"][rows] = self._events.convert_logits(linked.logits)
        return Expected(EXPECTED_S, known, present, boxes, velocity, held, current)


# EventDetector: a detector of agents with the event head behind it, which answers as any detector does.

# The rate of ROAD's videos.
USUAL_FPS = 12.0


@dataclass(frozen=True, eq=False)
class _Held:
    """An image that the detector has not answered yet."""

    number: int
    t_s: float
    picture: Pixels


class EventDetector:
    """Detections of another detector with scores of actions, locations, duplexes and events.

    It links detections itself, as whoever follows it will, and it finds the own motion in the images.
    Numbers and times of frames are those that `tell_moment` gives, else those of `fps`.

    Args:
        detector: of agents.
        head: that scores.
        linker: what is linked with; the same as makes tubes later.
        fps: images a second where times are unknown.
        focal_px: focal length of the camera; of a usual one where None.
        anticipation: says what is expected `EXPECTED_S` seconds ahead; None where nobody asks.
        labels: whether detections get the head's scores; otherwise they keep their own, and are anticipated alone.

    Raises:
        UsageError: if the detector has no agents of ROAD.
    """

    def __init__(
        self,
        detector: Detector | VideoDetector,
        head: EventHead,
        linker: LinkerConfig,
        *,
        fps: float | None = None,
        focal_px: float | None = None,
        anticipation: AnticipationHead | None = None,
        labels: bool = True,
    ) -> None:
        self.detector, self.fps = detector, fps or USUAL_FPS
        self._labeller = EventLabeller(head, detector.kinds, linker, focal_px)
        self.expects = anticipation is not None
        self._expectation = None if anticipation is None else Expectation(head, anticipation)
        self._ego = EgoMotion(focal_px)
        self.labels = labels
        self.kinds: Mapping[str, tuple[str, ...]] = self._labeller.kinds if labels else detector.kinds
        own = tuple(detector.av_labels)
        self.av_labels: tuple[str, ...] = own or (self._labeller.av_labels if labels else ())
        self.delay = detector.delay
        self._moment: tuple[int, float] | None = None
        self._beside = ThreadPoolExecutor(1, "own motion")
        self._forget()

    single = False
    """How somebody moves is seen in images that follow each other."""

    def tell_moment(self, number: int, t_s: float) -> None:
        """Number and time of the image that comes next, where a stream knows them.

        Args:
            number: counts frames, also those that did not arrive.
            t_s: in seconds, later than that of the image before.
        """
        self._moment = (number, t_s)

    def set_rate(self, fps: float | None, linker: LinkerConfig | None = None) -> None:
        """Set the frame rate of the next video, which has no time stamps, and of its linker.

        Args:
            fps: 12 where None.
            linker: the same as before where None.
        """
        self.fps = fps or USUAL_FPS
        self._labeller.reset(linker)
        if self._expectation is not None:
            self._expectation.reset()

    def reset(self) -> None:
        """Forget the stream: the next image is frame 0 of another video."""
        self.detector.reset()
        self._forget()

    def step(self, image: Pixels) -> list[FrameDetections]:
        """The frames completed by one more image.

        Raises:
            InputError: as the detector.
        """
        self._hold(image)
        if self.detector.delay:
            return [self._labelled(found) for found in self.detector.step(image)]
        # The own motion asks nothing of the boxes of this image, so it is found while the network looks.
        motion = self._beside.submit(self._find_motion, self._held[-1])
        try:
            found = self.detector.step(image)
        finally:
            wait([motion])
        return [self._labelled(each, motion) for each in found]

    def finish(self) -> list[FrameDetections]:
        """The frames still owed; forgets the stream."""
        found = [self._labelled(each) for each in self.detector.finish()]
        self._forget()
        return found

    def detections(self, images: Iterable[Pixels], n_frames: int) -> Iterator[FrameDetections]:
        """Detections of all frames of a video, in order.

        Raises:
            InputError: as the detector.
        """
        self._forget()

        def passed() -> Iterator[Pixels]:
            for image in images:
                self._hold(image)
                yield image

        if not isinstance(self.detector, VideoDetector):
            raise UsageError("this detector looks at streams, not at whole videos")
        for found in self.detector.detections(passed(), n_frames):
            yield self._labelled(found)
        self._forget()

    def _forget(self) -> None:
        self._labeller.reset()
        if self._expectation is not None:
            self._expectation.reset()
        self._ego.reset()
        self._held: deque[_Held] = deque()
        self._moment = None
        self._count = 0

    def _hold(self, image: Pixels) -> None:
        number, t_s = self._moment or (self._count, self._count / self.fps)
        self._count, self._moment = number + 1, None
        self._held.append(_Held(number, t_s, image))

    def _find_motion(self, held: _Held) -> Motion | None:
        return self._ego.step(held.picture, held.t_s, self._labeller.horizon)

    def _labelled(
        self, found: FrameDetections, known: Future[Motion | None] | None = None
    ) -> FrameDetections:
        held = self._held.popleft()
        height, width = held.picture.shape[:2]
        motion = known.result() if known else self._find_motion(held)
        self._ego.leave_out(found.boxes[found.agentness >= 0.2])
        lights = self._lights(found, held.picture)
        labelled = self._labeller.step(found, Scene(held.number, held.t_s, (width, height), motion, lights))
        linked = self._labeller.linked
        labelled = labelled if self.labels else found
        if self._expectation is None or linked is None:
            return labelled
        return replace(labelled, expected=self._expectation.step(held.t_s, found, linked))

    def _lights(
        self, found: FrameDetections, image: Pixels
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        """(n, 4) colours of the boxes that may be traffic lights; zeros for all others."""
        agents: Sequence[str] = self.kinds["agent"]
        columns = [agents.index(name) for name in ("TL", "OthTL") if name in agents]
        colours = np.zeros((len(found), 4), np.float32)
        rows = np.flatnonzero(found.scores[:, columns].max(axis=1, initial=0) >= 0.1)
        colours[rows] = compute_light_colours(image, found.boxes[rows])
        return colours


def warm_up_events(linker: LinkerConfig) -> None:
    """Compile the kernels of the head and the own motion, or load them from the cache.

    Args:
        linker: as of `EventDetector`.
    """
    rng = np.random.default_rng(0)
    image = np.repeat(np.repeat(rng.integers(0, 255, (30, 40, 3), np.uint8), 8, axis=0), 8, axis=1)
    labeller, ego = EventLabeller(open_head(), {"agent": ("Car",)}, linker), EgoMotion()
    box, score = np.array([[9.0, 9.0, 60.0, 60.0]], np.float32), np.ones(1, np.float32)
    for frame in range(2):
        motion = ego.step(image, frame / 10, labeller.horizon)
        found = FrameDetections(frame, box, score, score[:, None], np.zeros(0, np.float32))
        labeller.step(found, Scene(frame, frame / 10, (320, 240), motion))


# Event labels of saved detections: the same head over tables, without images.


def add_events(predictions: Predictions, head: EventHead, linker: LinkerConfig) -> Predictions:
    """Detections of agents with scores of actions, locations, duplexes, events and the own vehicle's action.

    Tables hold no images, so the own motion is only what boxes tell of it, and lights have no colours.

    Args:
        predictions: detections with `score` and dense `scores`, not linked.
        head: that scores.
        linker: what they will be linked with.

    Raises:
        UsageError: if they have no agents, or the size of a video is not known.
    """
    kinds = dict(get_score_layout(predictions.meta, "boxes").kinds)
    labeller = EventLabeller(head, kinds, linker)
    found = {}
    for name, size, fps in list_sized_videos(predictions):
        labeller.reset()
        found[name] = [labelled for labelled, _ in iterate_labelled(predictions, name, labeller, size, fps)]
    own = get_score_layout(predictions.meta, "frames").kinds.get(AV_ACTION, ())
    classes = Classes(labeller.kinds, own or labeller.av_labels, get_advice(predictions.meta))
    return build_predictions(found, classes, videos=predictions.videos, meta=predictions.meta)


def list_sized_videos(predictions: Predictions) -> list[tuple[str, tuple[int, int], float | None]]:
    """Name, width and height, and frame rate (None where neither it nor times are known) of each video.

    Raises:
        UsageError: if the size of a video is not known.
    """
    facts = {str(row["video"]): row for row in predictions.videos.to_dicts()}
    names = [*facts, *predictions.boxes["video"].cast(pl.String).unique(maintain_order=True).to_list()]
    found = []
    for name in dict.fromkeys(names):
        row = facts.get(name, {})
        size = int(row.get("width_px") or 0), int(row.get("height_px") or 0)
        if not all(size):
            raise UsageError(
                f"the size of video {name} is not known, which events need; give --truth with its annotations"
            )
        found.append((name, size, row.get("fps") or _measure_rate(predictions.frames, name)))
    return found


def _measure_rate(frames: pl.DataFrame, video: str) -> float | None:
    """Frames a second, by the times of the frames of a video; None where fewer than two have one."""
    if "t_s" not in frames.columns:
        return None
    timed = frames.filter(pl.col("video").cast(pl.String) == video).drop_nulls("t_s").sort("frame")
    if len(timed) < 2 or timed["t_s"][-1] <= timed["t_s"][0]:
        return None
    return float((timed["frame"][-1] - timed["frame"][0]) / (timed["t_s"][-1] - timed["t_s"][0]))


def iterate_labelled(
    predictions: Predictions, video: str, labeller: EventLabeller, size_px: tuple[int, int], fps: float | None
) -> Iterator[tuple[FrameDetections, float]]:
    """The labelled detections of the frames of one video, and the time of each.

    Args:
        predictions: see `add_events`.
        video: its name.
        labeller: at the beginning of a stream.
        size_px: width and height of its images.
        fps: of the video; 12 where None.
    """
    chosen = pl.col("video").cast(pl.String) == video
    boxes = predictions.boxes.filter(chosen).sort("frame", maintain_order=True)
    frames = np.unique(boxes["frame"].to_numpy())
    times: dict[int, float] = {}
    width = get_score_layout(predictions.meta, "frames").width
    drive: dict[int, npt.NDArray[np.float32]] = {}
    if not predictions.frames.is_empty():
        held = predictions.frames.filter(chosen)
        if width:
            drive = dict(zip(held["frame"].to_list(), convert_to_matrix(held["scores"], width), strict=True))
        frames = np.union1d(frames, held["frame"].to_numpy())
        if "t_s" in held.columns and not held["t_s"].null_count():
            times = dict(zip(held["frame"].to_list(), held["t_s"].to_list(), strict=True))
    sides = boxes.select(CORNERS).to_numpy().astype(np.float32)
    score = boxes["score"].to_numpy().astype(np.float32)
    scores = convert_to_matrix(boxes["scores"], get_score_layout(predictions.meta, "boxes").width)
    bounds = np.searchsorted(boxes["frame"].to_numpy(), [*frames.tolist(), np.iinfo(np.int64).max])
    for k, frame in enumerate(frames.tolist()):
        part = slice(int(bounds[k]), int(bounds[k + 1]))
        said = drive.get(frame, np.zeros(width, np.float32))
        detections = FrameDetections(frame, sides[part], score[part], scores[part], said)
        scene = Scene(frame, times.get(frame, frame / (fps or USUAL_FPS)), size_px)
        yield replace(labeller.step(detections, scene), frame=frame), scene.t_s


KINDS = ("agentness", "action", "location")


def anticipate_events(
    predictions: Predictions,
    events: EventHead,
    head: AnticipationHead,
    linker: LinkerConfig,
    vocabularies: Mapping[str, Sequence[str]] | None = None,
) -> dict[float, Predictions]:
    """What is expected at each horizon: boxes at the frames that they are expected in, with labelled tubes.

    Detections are linked and looked at in their order, each with what came before it alone. A box that is expected
    for frame f at a horizon of h seconds was said h seconds before: `ready_s` holds that time. Its score is the
    detection's times the probability that the object is still seen, its dense scores are those of `KINDS`. Tables hold no
    images, so the own motion is only what boxes tell of it.

    Args:
        predictions: detections of agents with `score` and dense `scores`, not linked; `videos` with sizes, and frame rates
            (by the times of `frames` where they are not known, 12 without).
        events: says what holds now.
        head: says what is expected.
        linker: links the detections.
        vocabularies: the labels of `action` and `location` that are wanted, such as those of the ground truth; others of the
            head are left out (default: all of the head's).

    Returns:
        Seconds ahead to predictions, which `evaluate` judges as any others: frame-mAP and video-mAP of the future.

    Raises:
        UsageError: if the predictions are linked already, have no agents or scores, the size of a video is not known, or
            none of the labels that are wanted is known.

    Source: the task is announced by Singh et al., TPAMI 2022, section 6.
    """
    if not predictions.tubes.is_empty():
        raise UsageError(
            f"the predictions have {len(predictions.tubes)} tubes; events are anticipated of detections"
        )
    wanted = {
        kind: [
            k for k, name in enumerate(names) if vocabularies is None or name in vocabularies.get(kind, ())
        ]
        for kind, names in (("action", head.actions), ("location", head.locations))
    }
    for kind, places in wanted.items():
        if not places:
            raise UsageError(f"none of the labels of {kind} that are wanted is one of the head's")
    named = {
        "agentness": ("agentness",),
        "action": tuple(head.actions[k] for k in wanted["action"]),
        "location": tuple(head.locations[k] for k in wanted["location"]),
    }
    meta = set_score_layout(Meta(dataset=predictions.meta.dataset, vocabularies=named), "boxes", KINDS)
    # Where nothing is expected the tables say so with the same columns.
    none = pl.DataFrame(
        schema={
            "video": pl.String, "frame": pl.Int64, **dict.fromkeys(CORNERS, pl.Float64), "score": pl.Float32,
            "scores": pl.Array(pl.Float32, 1 + sum(map(len, wanted.values()))), "ready_s": pl.Float64, "path": pl.Int64,
        }
    )  # fmt: skip
    parts = {horizon_s: [none] for horizon_s in head.horizons_s}
    if predictions.boxes.is_empty():
        return {
            horizon_s: _build(held, predictions.videos, meta, linker) for horizon_s, held in parts.items()
        }
    if lacking := [name for name in ("score", "scores") if name not in predictions.boxes.columns]:
        raise UsageError(f"detections need {' and '.join(lacking)}: agentness and dense class scores")
    kinds = dict(get_score_layout(predictions.meta, "boxes").kinds)
    labeller, velocity = EventLabeller(events, kinds, linker), ConstantVelocity()
    lengths = {}
    if "n_frames" in predictions.videos.columns:
        lengths = dict(predictions.videos.select(pl.col("video").cast(pl.String), "n_frames").iter_rows())
    first_path = 0
    for video, size, fps in list_sized_videos(predictions):
        labeller.reset()
        velocity.reset()
        most = -1
        for found, t_s in iterate_labelled(predictions, video, labeller, size, fps):
            linked = labeller.linked
            if linked is None:
                continue
            velocity.end(linked.ended)
            if not len(linked.rows):
                continue
            boxes = np.asarray(found.boxes, np.float64)[linked.rows]
            now, speed = velocity.step(t_s, linked.numbers, boxes)
            expected = head.anticipate(linked.features, linked.logits, now, speed)
            most = max(most, int(linked.numbers.max()))
            for k, horizon_s in enumerate(head.horizons_s):
                frame = found.frame + max(1, round(horizon_s * (fps or USUAL_FPS)))
                end = lengths.get(video)
                if end is not None and frame >= end:
                    continue
                # What leaves the image is expected at its edge, as it is annotated; what has left is not expected.
                x1, y1, x2, y2 = np.clip(expected.boxes[:, k], 0, np.tile(size, 2)).T
                inside = np.flatnonzero((x2 > x1) & (y2 > y1))
                score = (found.agentness[linked.rows] * expected.present[:, k])[inside]
                labels = np.hstack(
                    [
                        expected.actions[:, k, wanted["action"]],
                        expected.locations[:, k, wanted["location"]],
                    ]
                )[inside]
                scores = np.hstack([score[:, None], labels * score[:, None]]).astype(np.float32)
                parts[horizon_s].append(
                    pl.DataFrame(
                        {
                            "video": [video] * len(score),
                            "frame": [frame] * len(score),
                            "x1_px": x1[inside], "y1_px": y1[inside], "x2_px": x2[inside], "y2_px": y2[inside],
                            "score": score,
                            "scores": pl.Series(scores, dtype=pl.Array(pl.Float32, scores.shape[1])),
                            "ready_s": [t_s] * len(score),
                            "path": first_path + linked.numbers[inside],
                        }
                    )
                )  # fmt: skip
        first_path += most + 1
    return {horizon_s: _build(held, predictions.videos, meta, linker) for horizon_s, held in parts.items()}


def _build(parts: list[pl.DataFrame], videos: pl.DataFrame, meta: Meta, linker: LinkerConfig) -> Predictions:
    """The tables of one horizon."""
    rows = pl.concat(parts)
    _, path = np.unique(rows["path"].to_numpy(), return_inverse=True)
    boxes = rows.drop("path").with_columns(box=pl.int_range(pl.len()))
    # A gap that is filled between two boxes would know of the later one before it was said.
    linker = replace(linker, gaps="keep")
    return label_paths(Predictions(videos=videos, boxes=boxes, meta=meta), path.astype(np.int64), linker)
