"""Foresight: predictors of crossing and of risk that follow many pedestrians at once; imports torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.errors import UsageError
from roadaware.models.crossing.ensemble import EnsemblePredictor
from roadaware.models.crossing.features import convert_to_probabilities
from roadaware.models.crossing.hazard_trees import HazardTrees
from roadaware.models.crossing.inputs import Held, InputSet, parse_input_name
from roadaware.models.crossing.networks.multitask import Steady
from roadaware.models.crossing.predictor import Predictor, sample_last_weights
from roadaware.models.crossing.streaming_inference import Stepper
from roadaware.models.crossing.tabular import TabularPredictor
from roadaware.models.loading import digest_model_files
from roadaware.online.camera_motion import find_strictest_limits
from roadaware.online.forecast_event import Answers
from roadaware.statistics.conformal import compute_quantile_interval
from roadaware.tasks.crossing_inputs.boxes import FORMS, GivenBoxes
from roadaware.tasks.crossing_inputs.history import Tracks, count_history_frames, describe_newest
from roadaware.tasks.crossing_tracks import estimate_median_time, survive

# Recurrent state of predictors for the pedestrians that they follow; imports torch.


class Memory(Protocol):
    """Follows pedestrians for some predictors; each pedestrian has a row, which is used again."""

    members: tuple[Predictor, ...]

    def grow(self, rows: int) -> None:
        """Make room for so many pedestrians; those that are there stay."""

    def begin(self, rows: Ints) -> None:
        """Reset some rows."""

    def follow(self, rows: Ints, before: Floats, frames: Floats, known: Bools, size_px: Floats) -> None:
        """Take some more frames of some pedestrians.

        Args:
            rows: (n,) theirs, each once.
            before: (n, 4) the box before these; anything where there is none.
            frames: (n, k, 4) corners in pixels, oldest first.
            known: (n,) whether there is a box before.
            size_px: (2,) width and height of the image.
        """

    def passes(self, rows: Ints, size_px: Floats) -> list[Floats]:
        """Of each member (p, n, k) the probabilities of all its passes for some pedestrians.

        Args:
            rows: (n,) theirs.
            size_px: (2,) width and height of the image.
        """


@dataclass(eq=False)
class Stepping:
    """Networks that remember: a frame costs the same however long a pedestrian has been followed.

    What is remembered makes the answer depend on exactly the newest T frames, T being what the network looks
    back, and, where the change of a box is an input, on the box before these too. It is `Steady.every_frame`
    of the whole past. A window that is cut out of it differs in one thing: the change of its first box is
    unknown there, and stands at the mean of training.

    Args:
        members: of the same sizes, that read the same.
    """

    members: tuple[Predictor, ...]

    def __post_init__(self) -> None:
        """Take the weights."""
        networks = [cast("Steady", member.network) for member in self.members]
        self._steps = Stepper(networks)
        self._state = self._steps.start(0)
        self._last = [_extract_last_layer(member) for member in self.members]

    def grow(self, rows: int) -> None:
        """Make room."""
        self._state = self._state.and_more(self._steps.start(rows - len(self._state.place)))

    def begin(self, rows: Ints) -> None:
        """Forget."""
        self._state.forget(rows)

    def follow(self, rows: Ints, before: Floats, frames: Floats, known: Bools, size_px: Floats) -> None:
        """Go on."""
        corners = np.concatenate([before[:, None], frames], axis=1)
        steps = np.ones(corners.shape[:2])
        steps[:, 0] = np.nan
        steps[~known, 1] = np.nan
        seen = GivenBoxes(corners, size_px[None], steps)
        read = [FORMS[name][0](seen)[:, 1:] for name in self._steps.names]
        self._steps.follow(self._state, rows, np.concatenate(read, axis=2, dtype=np.float32))

    def passes(self, rows: Ints, size_px: Floats) -> list[Floats]:
        """Forward passes of the last layers on the recurrent state."""
        seen = self._steps.embeddings(self._state, rows)
        return [last.passes(each) for last, each in zip(self._last, seen, strict=True)]


@dataclass(eq=False)
class Windows:
    """A network that is shown the newest T frames anew each time, as in training.

    Args:
        member: the predictor.
    """

    member: Predictor

    def __post_init__(self) -> None:
        """Nothing is remembered yet."""
        self.members: tuple[Predictor, ...] = (self.member,)
        self._frames = next(iter(self.member.network.shapes.values()))[0]
        self._held: Floats = np.zeros((0, self._frames, 4))

    def grow(self, rows: int) -> None:
        """Make room."""
        more = np.zeros((rows - len(self._held), self._frames, 4))
        self._held = np.concatenate([self._held, more])

    def begin(self, rows: Ints) -> None:
        """Start rows; frames before the first are never read."""

    def follow(self, rows: Ints, before: Floats, frames: Floats, known: Bools, size_px: Floats) -> None:
        """Keep the newest."""
        self._held[rows] = np.concatenate([self._held[rows], frames], axis=1)[:, -self._frames :]

    def passes(self, rows: Ints, size_px: Floats) -> list[Floats]:
        """The network's."""
        given = build_window_inputs(self._held[rows], size_px, self.member.inputs)
        return [self.member.passes(given, count_passes(self.member))]


def build_window_inputs(corners_px: Floats, size_px: Floats, names: Sequence[str]) -> InputSet:
    """Inputs of predictors from windows of boxes, frame after frame, equal to those of samples in tables.

    Args:
        corners_px: (n, t, 4).
        size_px: (2,) width and height of the image.
        names: of inputs, as `crossing_inputs.boxes.FORMS` has them.
    """
    n, frames = corners_px.shape[:2]
    steps = np.ones((n, frames))
    steps[:, 0] = np.nan
    seen = GivenBoxes(corners_px, size_px[None], steps)
    columns = {name: Held(FORMS[name][0](seen).astype(np.float32)) for name in names}
    return InputSet(columns, n)


def count_passes(member: Predictor) -> int:
    """Number of forward passes of a predictor for one forecast."""
    return member.doubt.passes if member.doubt.draws else 1


def build_memories(members: Sequence[Predictor], *, window: bool = False) -> list[Memory]:
    """Build the state of some predictors: recurrent where the network allows it, else windows of frames.

    Args:
        members: that read boxes alone.
        window: show all of them windows.
    """
    together: dict[object, list[Predictor]] = {}
    apart: list[Memory] = []
    for member in members:
        network = member.network
        if (
            not window
            and isinstance(network, Steady)
            and (
                member.doubt.kind != "dropout"
                and network.config.frames <= network.frames_of(member.inputs[0])
            )
        ):
            sizes = network.config.width, network.config.kernel, network.config.dilations
            together.setdefault((sizes, tuple(network.shapes.items())), []).append(member)
        else:
            apart.append(Windows(member))
    return [*(Stepping(tuple(held)) for held in together.values()), *apart]


@dataclass(frozen=True, eq=False)
class _Last:
    """The last layer of a predictor in all its passes, over its temperature.

    Args:
        weight: (width, p k).
        bias: (k,).
    """

    weight: Floats32
    bias: Floats

    def passes(self, seen: Floats32) -> Floats:
        """(p, n, k) probabilities of (n, width) embeddings."""
        n, k = len(seen), len(self.bias)
        logits = (seen @ self.weight).reshape(-1, k) + self.bias
        return convert_to_probabilities(logits, k).reshape(n, -1, k).transpose(1, 0, 2)


def _extract_last_layer(member: Predictor) -> _Last:
    drawn = (
        sample_last_weights(member.network, member.doubt, count_passes(member)).double() / member.temperature
    )
    bias = member.network.last.bias.detach().double().numpy() / member.temperature
    weight = np.ascontiguousarray(drawn.flatten(0, 1).T.numpy())
    return _Last(weight.astype(np.float32), bias)


Model = Predictor | EnsemblePredictor
USUAL_FPS = 30.0
"""The rate of JAAD and PIE, taken where a predictor does not say what it learnt from."""
# From the 5th to the 95th percentile.
_WITHIN = 0.9
_SOON_S = 2.0
_NOBODY_PX, _SIZE_PX = (300.0, 200.0, 330.0, 290.0), (640, 480)
"""The box and the image that predictors are warmed up with."""
_TASKS = {"action": "crossing", "risk": "risk"}
_UNKNOWN = {
    "ego": "a video does not tell how the own vehicle moves",
    "traffic": "nobody annotates the traffic of a stream",
    "appearance": "nobody annotates a stream",
    "behaviour": "nobody annotates a stream",
    "pose": "nothing looks for joints in a stream",
    "crop": "images of pedestrians are not cut out of a stream",
    "maps": "there are no class masks of a stream",
}


class Foresight:
    """Predictors that follow pedestrians online, one row of state for each pedestrian.

    Args:
        crossing: predicts the probability of crossing (task `action`); None to leave it out.
        risk: predicts the region of the image where the pedestrian will be (task `risk`); None to leave it out.
        when: trees that say when somebody begins to cross (task `time`), of the pedestrian's newest two seconds and of those
            who are followed beside it; None to leave it out.
        window: show every predictor windows, even those that can remember.
        files: what they were read from, for the record.

    Raises:
        UsageError: if there is none, or one does not answer that question, or reads what a stream lacks, or
            they learnt from different rates.
    """

    def __init__(
        self,
        crossing: Model | None = None,
        risk: Model | None = None,
        *,
        when: HazardTrees | None = None,
        window: bool = False,
        files: Sequence[Path] = (),
    ) -> None:
        asked = {"action": crossing, "risk": risk}
        self._members = {task: _members(model) if model else [] for task, model in asked.items()}
        every: list[Any] = [one.predictor for held in self._members.values() for one in held]
        if not every:
            raise UsageError("nobody is asked: name a predictor of crossing, of risk, or both")
        for task, model in asked.items():
            _check(task, model)
        if when is not None and when.inputs != ("history",):
            raise UsageError(
                f"trees of the time are asked of a stream by history alone; these read {', '.join(when.inputs)}"
            )
        self._when = when
        rates = {float(each.facts.get("fps") or USUAL_FPS) for each in (*every, *([when] if when else []))}
        if len(rates) > 1:
            raise UsageError(
                f"these predictors learnt from different rates ({sorted(rates)} frames a second)"
            )
        self.rate_fps = rates.pop()
        self.frames = max(shape[0] for each in every for shape in each.network.shapes.values())
        self.asks_crossing, self.asks_when = crossing is not None, when is not None
        self.regions: tuple[str, ...] = risk.labels if risk is not None else ()
        self._memories = build_memories(every, window=window)
        self._weight = {task: _weights(held) for task, held in self._members.items()}
        self._files = tuple(files)
        self.limits = find_strictest_limits(every)
        # The newest boxes of each, which a camera that turns moves: as many as an answer depends on.
        # One more than an answer sees: steps between frames need the box before the first.
        self._kept = max(self.frames + 1, count_history_frames(self.rate_fps) if when else 0)
        self._past: Floats = np.zeros((0, self._kept, 4))
        # Own heights by which each has moved across the image since it was first seen, to the right.
        self._way: Floats = np.zeros(0)
        # Those of the newest frame: somebody who is not asked about yet moves beside the others all the same.
        self._present: Ints = np.zeros(0, np.int64)
        self._moved: Bools = np.zeros(0, np.bool_)
        self._count: Ints = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._count)

    def grow(self, rows: int) -> None:
        """Make room for so many pedestrians; those that are there stay."""
        more = rows - len(self)
        for memory in self._memories:
            memory.grow(rows)
        self._past = np.concatenate([self._past, np.zeros((more, self._kept, 4))])
        self._way = np.concatenate([self._way, np.zeros(more)])
        self._moved = np.concatenate([self._moved, np.zeros(more, np.bool_)])
        self._count = np.concatenate([self._count, np.zeros(more, np.int64)])

    def warm_up(self) -> None:
        """Run the predictors once on a dummy pedestrian, so that the first real one need not wait for compilation.

        Kernels are compiled, or loaded where an earlier process kept them, and networks run for the first
        time. Nobody may be followed yet, and nobody is afterwards.
        """
        self.grow(max(1, len(self)))
        rows = np.zeros(1, np.int64)
        self.follow(rows, [np.tile(_NOBODY_PX, (self.frames, 1))], _SIZE_PX)
        self.ask(rows, _SIZE_PX)
        self.begin(rows)

    def begin(self, rows: Ints) -> None:
        """Reset some rows."""
        if len(rows):
            self._count[rows], self._moved[rows], self._way[rows] = 0, False, 0.0
            for memory in self._memories:
                memory.begin(rows)

    def follow(self, rows: Ints, frames: Sequence[Floats], size_px: tuple[int, int]) -> None:
        """Take some more frames of some pedestrians; those that are given equally many are taken together.

        Args:
            rows: (n,) theirs, each once.
            frames: of each (k, 4) corners in pixels at the rate of the predictors, oldest first.
            size_px: width and height of the image.
        """
        size = np.array(size_px, np.float64)
        counts = self._count[rows] + [len(each) for each in frames]
        anew = self._moved[rows] & (self._count[rows] > 0)
        new = {place: frames[place] for place in np.flatnonzero(~anew).tolist()}
        self._take(rows, new, size, self._past[rows, -1], self._count[rows] > 0)
        for place, row in enumerate(rows.tolist()):
            some = np.concatenate([self._past[row], frames[place]])
            if self._when is not None and len(frames[place]):
                seen = some[-min(len(frames[place]) + 1, int(counts[place])) :]
                moved, height = (
                    np.diff((seen[:, 0] + seen[:, 2]) / 2),
                    np.maximum(seen[1:, 3] - seen[1:, 1], 1.0),
                )
                self._way[row] += float((moved / height).sum())
            self._past[row] = some[-self._kept :]
        self._count[rows], self._moved[rows], self._present = counts, False, rows
        if anew.any():
            self._look_again(rows[anew], size)

    def shift(self, rows: Ints, by_px: tuple[float, float]) -> None:
        """Move the past of some pedestrians, as a camera that turns moves it against the newest image.

        Args:
            rows: theirs.
            by_px: to the right and down.
        """
        self._past[rows] += np.array([*by_px, *by_px])
        self._moved[rows] = True

    def _take(
        self, rows: Ints, frames: Mapping[int, Floats], size: Floats, before: Floats, known: Bools
    ) -> None:
        """Give the memories more frames.

        Args:
            rows: (n,) of pedestrians.
            frames: place among them to (k, 4).
            size: (2,).
            before: (n, 4) the box before.
            known: (n,) whether there is one.
        """
        # Equally many frames make one array, and one call of each network.
        for k in sorted({len(each) for each in frames.values()} - {0}):
            places = [place for place, each in frames.items() if len(each) == k]
            boxes = np.array([frames[place] for place in places])
            for memory in self._memories:
                memory.follow(rows[places], before[places], boxes, known[places], size)

    def _look_again(self, rows: Ints, size: Floats) -> None:
        """Show the memories the past of some pedestrians once more: it lies elsewhere than it did."""
        for memory in self._memories:
            memory.begin(rows)
        held = np.minimum(self._count[rows], self.frames + 1)
        known = held > self.frames
        past = {
            place: self._past[rows[place], -min(n, self.frames) :] for place, n in enumerate(held.tolist())
        }
        self._take(rows, past, size, self._past[rows, -(self.frames + 1)], known)

    def ready(self, rows: Ints) -> Bools:
        """(n,) whether enough frames of a pedestrian were seen for a forecast.

        Args:
            rows: (n,) theirs.
        """
        return np.asarray(self._count[rows] >= self.frames)

    def ask(self, rows: Ints, size_px: tuple[int, int]) -> Answers:
        """Forecasts for some pedestrians.

        Args:
            rows: (n,) theirs.
            size_px: width and height of the image.
        """
        size = np.array(size_px, np.float64)
        said = {
            id(member): found
            for memory in self._memories
            for member, found in zip(memory.members, memory.passes(rows, size), strict=True)
        }
        crossing, regions = self._joined("action", said), self._joined("risk", said)
        mean = (
            None
            if regions is None
            else np.asarray(
                (self._weight["risk"] @ regions.reshape(len(regions), -1)).reshape(regions.shape[1:])
            )
        )
        within, seconds = self._ask_when(rows, size)
        if crossing is None:
            return Answers(regions=mean, within_2s=within, seconds=seconds)
        weight, passes = self._weight["action"], crossing[..., 0]
        likely = np.asarray(weight @ passes)
        if len(weight) == 1:
            return Answers(likely, regions=mean, within_2s=within, seconds=seconds)
        low, high = compute_quantile_interval(passes, weight, _WITHIN)
        # Quantiles of few passes need not hold their weighted mean.
        return Answers(likely, np.minimum(low, likely), np.maximum(high, likely), mean, within, seconds)

    def _ask_when(self, rows: Ints, size: Floats) -> tuple[Floats | None, Floats | None]:
        """(n,) probability of an event within two seconds and median time until then, of the trees; None without them."""
        if self._when is None:
            return None, None
        asked, rows = rows, np.union1d(rows, self._present)
        counts = np.minimum(self._count[rows], self._kept)
        corners = np.concatenate(
            [self._past[row, -n:] for row, n in zip(rows.tolist(), counts.tolist(), strict=True)]
        )
        first = np.concatenate([[0], np.cumsum(counts)])
        # Everybody's newest box counts as of one frame: that of the stream.
        frame = np.concatenate([np.arange(self._kept - n, self._kept) for n in counts.tolist()])
        newest = first[1:][np.searchsorted(rows, asked)] - 1
        sizes = np.broadcast_to(size, (len(corners), 2))
        heights = np.maximum(corners[:, 3] - corners[:, 1], 1.0)
        step = np.diff((corners[:, 0] + corners[:, 2]) / 2, prepend=0.0) / heights
        step[first[:-1]] = 0.0
        within = np.add.reduceat(step, first[:-1])
        tracks = Tracks(
            corners, frame, first, np.zeros(len(corners), np.int64), sizes,
            (self._count[rows] - counts) / self.rate_fps, self._way[rows] - within,
        )  # fmt: skip
        history = describe_newest(tracks, newest, self.rate_fps)[:, None].astype(np.float32)
        edges = [float(edge) for edge in self._when.facts["edges_s"]]
        came = 1 - survive(self._when.probabilities(InputSet({"history": Held(history)}, len(asked))))
        return came[:, edges.index(_SOON_S)], estimate_median_time(came, edges)

    def about(self) -> dict[str, Any]:
        """JSON-ready facts of the predictors."""
        said: dict[str, Any] = {"rate_fps": self.rate_fps, "frames": self.frames, "limits": self.limits}
        for task, held in self._members.items():
            if held:
                first = held[0].predictor
                said[_TASKS[task]] = {
                    "networks": [one.predictor.name for one in held],
                    "inputs": sorted({name for one in held for name in one.predictor.inputs}),
                    "passes": sum(count_passes(one.predictor) for one in held),
                    "labels": list(first.labels),
                    "facts": first.facts,
                }
        if self._when is not None:
            said["when"] = {
                "model": "hazard-trees",
                "inputs": list(self._when.inputs),
                "facts": self._when.facts,
            }
        return {
            **said,
            "files": {path.name: digest_model_files(path) for path in self._files if path.is_file()},
        }

    def members(self) -> list[tuple[str, Path | None, dict[str, Any]]]:
        """The ensemble members of each task: its name, a file, and the facts of the predictor in it."""
        held: list[tuple[str, Any]] = [
            (_TASKS[task], one.predictor) for task, some in self._members.items() for one in some
        ]
        held += [("when", self._when)] if self._when is not None else []
        paths: list[Path | None] = [*self._files]
        paths += [None] * (len(held) - len(paths))
        return [(task, path, each.facts) for (task, each), path in zip(held, paths, strict=False)]

    def _joined(self, task: str, said: dict[int, Floats]) -> Floats | None:
        """(p, n, k) passes of all members of a task."""
        found = [said[id(one.predictor)] for one in self._members[task]]
        return np.concatenate(found) if found else None


def open_foresight(paths: Sequence[Path], *, window: bool = False) -> Foresight:
    """Open the predictors of some files; each file states its task.

    Several of one question are averaged, each file or folder counting the same.

    Args:
        paths: files of predictors, or folders that `roadaware train` wrote.
        window: as of `Foresight`.

    Raises:
        UsageError: if they predict neither crossing nor risk, or read what a stream lacks.
        InputError: if one cannot be read, or is no predictor.
    """
    held: dict[str, list[Model]] = {}
    trees: list[HazardTrees] = []
    for path in paths:
        model = EnsemblePredictor.open([path])
        if isinstance(model.members[0], HazardTrees) and len(model.members) == 1:
            trees.append(model.members[0])
        else:
            held.setdefault(model.task, []).append(model)
    if len(trees) > 1:
        raise UsageError("a stream asks one predictor of when; several are named")
    other = [task for task in held if task not in _TASKS]
    if other:
        raise UsageError(
            f"a predictor of {', '.join(other)} does not tell who crosses; a stream asks predictors of "
            "action and of risk"
        )
    joined = {task: EnsemblePredictor(tuple(models)) for task, models in held.items()}
    return Foresight(
        joined.get("action"), joined.get("risk"), when=trees[0] if trees else None, window=window, files=paths
    )


@dataclass(frozen=True, eq=False)
class _Member:
    """One predictor of a question, and what it counts; all of them together count 1."""

    predictor: Predictor
    share: float


def _members(model: Model | HazardTrees | TabularPredictor, share: float = 1.0) -> list[_Member]:
    if isinstance(model, EnsemblePredictor):
        each = share / len(model.members)
        return [found for one in model.members for found in _members(one, each)]
    if isinstance(model, HazardTrees):
        raise UsageError(
            "trees of the time say when, beside a predictor of who crosses; they are none themselves"
        )
    if isinstance(model, TabularPredictor):
        raise UsageError("models on hand features are not asked of a stream: roadaware crossing takes them")
    return [_Member(model, share)]


def _weights(members: Sequence[_Member]) -> Floats:
    """(p,) what each pass of all members counts."""
    counts = [(count_passes(one.predictor), one.share) for one in members]
    return np.array([share / n for n, share in counts for _ in range(n)])


def _check(task: str, model: Model | None) -> None:
    """Refuse what cannot be asked about a stream."""
    if model is None:
        return
    if model.task != task:
        raise UsageError(f"{_TASKS[task]} is told by a predictor of {task}, and this one tells {model.task}")
    if task == "action" and len(model.labels) != 2:
        raise UsageError(f"crossing has two labels, and this predictor tells {', '.join(model.labels)}")
    lacking = [name for name in model.inputs if name not in FORMS]
    if lacking:
        why = _UNKNOWN.get(parse_input_name(lacking[0]).kind, "a stream has no such input")
        raise UsageError(
            f"this predictor of {_TASKS[task]} reads {', '.join(lacking)}: {why}\n"
            "  train one on boxes alone: roadaware train RECIPE --set network.inputs=[boxes,centre]"
        )
