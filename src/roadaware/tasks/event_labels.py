"""Event labels: a linker and the event head together give detections of agents all the kinds of ROAD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Floats32, Ints
from roadaware.errors import UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.linking.linker import Linker
from roadaware.models.detector import FrameDetections
from roadaware.models.event_head.features import Motion, TubeFeatures
from roadaware.models.event_head.head import EventHead
from roadaware.models.event_head.lamps import LIGHTS
from roadaware.scenes.demo.road_terms import COMPOSITES, DUPLEXES, EVENTS
from roadaware.scenes.dense import Layout

Pair = tuple[Ints, Ints]
_LAMPS = ("Red", "Amber", "Green", "Black", "Brake", "IncatLft", "IncatRht", "HazLit", "PushObj")
"""Actions that boxes do not show: a detector that tells them keeps its own scores."""
_SIGNALS = ("TL", "OthTL")
_WHOLES = {"duplex": DUPLEXES, "event": EVENTS}


@dataclass(frozen=True, eq=False)
class Scene:
    """What is known of a frame besides its detections.

    Args:
        number: of the frame.
        t_s: its time.
        size_px: width and height of the picture.
        motion: of the camera since the frame before; None where it is not known.
        colours: (n, 4) shares of `lamps.LIGHTS` in each box; None without pictures.
    """

    number: int
    t_s: float
    size_px: tuple[int, int]
    motion: Motion | None = None
    colours: Floats32 | None = None


class EventLabeller:
    """Labels the detections of one stream, looking back only.

    Args:
        head: that scores.
        kinds: of the detector: agents, and what else it tells.
        linker: what detections are linked with; the same as later makes tubes of them.
        focal_px: focal length of the camera; of a usual one where None.

    Raises:
        UsageError: if the detector tells no agents of ROAD.
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
        self.kinds = widened_kinds(head, kinds)
        self.av_labels, self._focal_px = head.av_actions, focal_px
        self._layout = Layout(dict(self.kinds))
        self._features = TubeFeatures(kinds["agent"])
        self._parts = {kind: self._indices(kind) for kind in COMPOSITES if kind in self.kinds}
        labels = {"action": head.actions, "location": head.locations}
        self._into = {kind: self._columns(kind, names) for kind, names in labels.items()}
        self._linker = Linker(linker, self._given.width)

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
        self._features.end(path.number for path in update.ended)
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
        scores = np.zeros((len(found), self._layout.width), np.float32)
        for kind, names in self._given.kinds.items():
            if kind not in COMPOSITES:
                start = self._layout.columns(kind).start
                scores[:, start : start + len(names)] = found.scores[:, self._given.columns(kind)]
        if len(linked):
            for kind, told in zip(("action", "location"), self.head.scores(x), strict=True):
                self._write(scores, linked, kind, told)
        if scene.colours is not None and "action" not in self._given.kinds:
            self._colour(scores, scene.colours)
        for kind, parts in self._parts.items():
            whole = scores[:, self._layout.columns(kind)]
            whole[:] = scores[:, parts[0]]
            for index in parts[1:]:
                whole *= scores[:, index]
        # A detector that tells what the own vehicle does is left its word.
        av = found.av if len(found.av) else self.head.av_scores(drive)
        return FrameDetections(found.frame, found.boxes, found.agentness, scores, av)

    def _write(self, scores: Floats32, rows: Ints, kind: str, told: Floats32) -> None:
        """Scores of the head; where the detector tells a label too, the mean of both, of lamps its own."""
        new, shared = self._into[kind]
        scores[rows[:, None], new[1]] = told[:, new[0]]
        if len(shared[0]):
            at = (rows[:, None], shared[1])
            scores[at] = 0.5 * (scores[at] + told[:, shared[0]])

    def _columns(self, kind: str, labels: Sequence[str]) -> tuple[Pair, Pair]:
        """Columns of the head and of the scores: of labels that it alone tells, and of those told by both."""
        start, own = self._layout.columns(kind).start, self._given.kinds.get(kind, ())
        alone = [k for k, label in enumerate(labels) if label not in own]
        both = [k for k, label in enumerate(labels) if label in own and label not in _LAMPS]

        def pair(chosen: list[int]) -> Pair:
            into = [start + self.kinds[kind].index(labels[k]) for k in chosen]
            return np.array(chosen, np.int64), np.array(into, np.int64)

        return pair(alone), pair(both)

    def _colour(self, scores: Floats32, colours: Floats32) -> None:
        """Scores of what traffic lights show, by the picture."""
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


def widened_kinds(head: EventHead, kinds: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The kinds of a detector with those that the head adds; composites only of labels that there are.

    Args:
        head: that scores.
        kinds: of the detector.
    """
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
