"""The last layers of a detector's heads as linear models: what they see of a stream, how that is labelled, and the
detector's file with what was learnt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from roadaware.arrays import Bools, Floats, Floats32, Ints, Pixels
from roadaware.config import is_count
from roadaware.errors import DamagedError, UsageError
from roadaware.geometry.boxes import iou
from roadaware.io.npz import open_arrays, save_arrays
from roadaware.linking.config import LinkerConfig, apply_advice
from roadaware.linking.linker import Linker
from roadaware.models.detector import FrameDetections
from roadaware.models.retinanet3d.config import DetectRule
from roadaware.scenes.advice import parse_advice
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes
from roadaware.simulator.episode import Episode
from roadaware.simulator.mesh import build_camera
from roadaware.simulator.render import Stage, render
from roadaware.simulator.truth import SeenCollector, build_scene_tables
from roadaware.training.events.online import ContinualLearner, Start
from roadaware.training.events.rows import AV_LABELS, MOST_TUBES, TubeRows

BUNDLED = Path(__file__).resolve().parents[2] / "weights" / "compact-road.safetensors"
LEAST_AGENTNESS = 0.1
"""Of boxes that are learnt from and judged: those with which a path may begin. Of the hundred boxes of a frame some fifteen
have it."""
MATCH_IOU = 0.5
"""Overlap with a ground-truth box from which its labels are those of a detection."""
SPREAD = 8.0
"""Of features and logits alike: six of it, where inputs are clipped, lie beyond all of them (45 at most was measured), so
that what is learnt is a layer of the detector; a power of two, so that nothing is rounded."""
_COMPOSITE = ("agent", "action", "location")
"""Kinds of the words of a duplex or an event, such as Car-MovAway-VehLane."""


def list_annotated(labels: Sequence[str], hidden: Sequence[str]) -> tuple[str, ...]:
    """Labels without those that are hidden, and without duplexes and events that have one of these as a word.

    >>> list_annotated(["action/Stop", "duplex/Car-Stop", "duplex/Car-Mov"], ["action/Stop"])
    ('duplex/Car-Mov',)
    """
    gone = set(hidden)

    def is_known(label: str) -> bool:
        kind, _, name = label.partition("/")
        words = [f"{part}/{word}" for part, word in zip(_COMPOSITE, name.split("-"), strict=False)]
        return label not in gone and not (kind in ("duplex", "event") and gone & set(words))

    return tuple(label for label in labels if is_known(label))


@dataclass(frozen=True, eq=False)
class SeenFrame:
    """What the last layers of the heads saw of a frame, and the detections in it.

    Args:
        found: boxes and scores, as the detector gives them.
        x: (n, inputs + labels) features of each box under the last layer, then the detector's logits.
        vehicle: (inputs + actions,) the same of the own vehicle.
    """

    found: FrameDetections
    x: Floats32
    vehicle: Floats32


class DetectorHeads:
    """A causal detector on a stream, whose last layers of labels and of the own vehicle's actions can be learnt.

    Trunk, pyramid, boxes and agentness stay as they are. What learns is a linear model over the features of a box under
    the last layer and the detector's logits; logits are linear in these features, with weights of their own for each
    anchor of a cell, so that what comes out is again a last layer (`write`).

    Args:
        path: of its file; the bundled one where None.
        rule: which boxes are learnt from (default: those of `LEAST_AGENTNESS`).

    Raises:
        InputError: if it cannot be read.
        UsageError: if it looks ahead, or knows nothing of the own vehicle.
    """

    def __init__(self, path: Path | None = None, rule: DetectRule | None = None) -> None:
        from roadaware.models.retinanet3d.detector import StreamDetector
        from roadaware.models.weights import open_network

        self.path = path or BUNDLED
        self.network, self.facts = open_network(self.path)
        self.kinds = {kind: tuple(names) for kind, names in self.facts["kinds"].items()}
        names = tuple(self.facts["av_labels"])
        if not names:
            raise UsageError("the detector knows no actions of the own vehicle")
        self.labels = tuple(f"{kind}/{name}" for kind, held in self.kinds.items() for name in held)
        self.av_labels = tuple(f"av_action/{name}" for name in names)
        rule = rule or DetectRule(min_agentness=LEAST_AGENTNESS)
        self.detector = StreamDetector(self.network, self.kinds, names, rule)
        self._end = f"cls_heads.{len(self.network.cls_heads) - 1}"
        self.linking = apply_advice(LinkerConfig.default(), parse_advice(self.facts.get("notes")))
        self.reset()

    @property
    def digest(self) -> str:
        """Of the weights."""
        return str(self.facts["digest"])

    def reset(self) -> None:
        """Begin a new stream."""
        self.detector.reset()
        self.linker = Linker(self.linking, len(self.labels))
        _, width, taps = self.network.state_dict()["ego_head.weight"].shape[:3]
        self._ego: deque[Floats32] = deque([np.zeros(width, np.float32)] * taps, taps)

    def step(self, image: Pixels) -> SeenFrame:
        """The next frame of the stream.

        Args:
            image: (H, W, 3) uint8, red first.

        Raises:
            InputError: if it is no image, or of another size than the one before.
        """
        found, seen = self.detector.step_with_inputs(image)
        self._ego.append(seen.ego.numpy())
        vehicle = np.concatenate([np.stack(self._ego, axis=1).ravel(), seen.av_logits.numpy()])
        return SeenFrame(found, np.hstack([seen.classes.numpy(), seen.logits.numpy()]), vehicle)

    def link(self, found: FrameDetections, t_s: float) -> Ints:
        """(n,) numbers of the tubes of the boxes of the next frame, -1 of what is on none."""
        return self.linker.update(found.frame, found.boxes, found.agentness, found.scores, t_s=t_s).numbers

    def build_starts(self, known: Sequence[str]) -> tuple[Start, Start]:
        """The layers of boxes and of the own vehicle to begin as, over `choose_columns`: they say what the detector says.

        Args:
            known: labels that the detector is taken to know; of the others neither output nor logit is used.
        """
        boxes, vehicle = (
            Start(
                tuple(labels),
                np.vstack([np.zeros((count, len(labels))), SPREAD * np.eye(len(labels))]).astype(np.float32),
                np.zeros(len(labels), np.float32),
                (self.digest, *labels),
            )
            for count, labels in (
                (self._read_layer(self._end)[0].shape[2], known),
                (self._read_layer("ego_head")[0].shape[2], self.av_labels),
            )
        )
        return boxes, vehicle

    def _read_layer(self, name: str) -> tuple[Floats32, Floats32]:
        """(anchors, rows, inputs) and (anchors, rows) of a last layer; the own vehicle's is one anchor."""
        state, anchors = self.network.state_dict(), 1 if name == "ego_head" else self.network.config.n_anchors
        weight, bias = (state[f"{name}.{part}"].numpy() for part in ("weight", "bias"))
        return weight.reshape(anchors, len(weight) // anchors, -1), bias.reshape(anchors, -1)

    def choose_columns(self, known: Sequence[str]) -> Ints:
        """Columns of `SeenFrame.x` that are read where some labels are known: all features, and their logits."""
        count = self._read_layer(self._end)[0].shape[2]
        return np.array([*range(count), *(count + self.labels.index(name) for name in known)], np.int64)

    def write(self, path: Path, boxes: ContinualLearner, vehicle: ContinualLearner | None = None) -> None:
        """Write the detector with what was learnt, as `watch` and `predict` open it; new labels come last of their kind.

        Args:
            path: of the file.
            boxes: learner of the labels of boxes, begun at `build_starts`.
            vehicle: learner of the own vehicle's actions; they stay as they are where None.

        Raises:
            UsageError: if a learner began as the heads of another detector.
            DiskError: if the file cannot be written.
        """
        import torch

        from roadaware.models.retinanet3d.network import RetinaNet3D
        from roadaware.models.weights import save_detector

        kinds = {kind: list(names) for kind, names in self.kinds.items()}
        for label in boxes.labels:
            kind, _, name = label.partition("/")
            if name not in kinds.setdefault(kind, []):
                kinds[kind].append(name)
        labels = [f"{kind}/{name}" for kind, names in kinds.items() for name in names]
        state = dict(self.network.state_dict())
        weight, bias = self._read_layer(self._end)
        learnt = self._fold(boxes, self.labels, weight[:, 1:], bias[:, 1:], labels)
        # Agentness, the first row of each anchor, stays.
        layers = {
            self._end: [
                np.concatenate(p, axis=1) for p in zip((weight[:, :1], bias[:, :1]), learnt, strict=True)
            ]
        }
        if vehicle is not None:
            own = self._read_layer("ego_head")
            layers["ego_head"] = list(self._fold(vehicle, self.av_labels, *own, self.av_labels))
        for name, held in layers.items():
            for part, values in zip(("weight", "bias"), held, strict=True):
                shape = (-1, *state[f"{name}.{part}"].shape[1:])
                state[f"{name}.{part}"] = torch.from_numpy(values.astype(np.float32).reshape(shape))
        network = RetinaNet3D(self.network.config, len(labels) + 1, len(self.av_labels))
        network.load_state_dict(state)
        notes = {
            **self.facts.get("notes", {}), "learnt_on": {"from": self.digest, "tubes": boxes.tubes_seen},
        }  # fmt: skip
        named = {kind: tuple(names) for kind, names in kinds.items()}
        save_detector(path, network, named, tuple(self.facts["av_labels"]), notes)

    def _fold(
        self,
        learner: ContinualLearner,
        own: Sequence[str],
        weight: Floats32,
        bias: Floats32,
        labels: Sequence[str],
    ) -> tuple[Floats, Floats]:
        """The layer of some labels: as learnt, or as it was where a label was not learnt.

        Args:
            learner: of a linear layer over features and logits of the labels that it knew at first.
            own: labels of the layer as it was.
            weight, bias: (anchors, own, inputs) and (anchors, own) of it.
            labels: what is asked for.

        Returns:
            (anchors, labels, inputs) and (anchors, labels).
        """
        digest, *known = learner.features
        if digest != self.digest:
            raise UsageError("the learner began as the heads of another detector")
        matrix, offset = learner.get_linear_layer()
        inputs = weight.shape[2]
        places = [own.index(name) for name in known]
        # What is learnt of the logits acts through the layer as it was, which differs from anchor to anchor.
        through = np.einsum("kl,aki->ali", matrix[inputs:], weight[:, places].astype(np.float64))
        shift = bias[:, places].astype(np.float64) @ matrix[inputs:]
        found = np.zeros((len(weight), len(labels), inputs)), np.zeros((len(weight), len(labels)))
        for row, label in enumerate(labels):
            if label in learner.labels:
                k = learner.labels.index(label)
                layer = through[:, k] + matrix[:inputs, k], shift[:, k] + offset[k]
            else:
                layer = weight[:, own.index(label)], bias[:, own.index(label)]
            found[0][:, row], found[1][:, row] = layer
        return found


@dataclass(frozen=True, eq=False)
class SeenScene:
    """What the last layers of a detector's heads saw of a rendered scene, with its labels, every so many-th frame.

    Args:
        n_frames: of the scene.
        fps: frames per second.
        frame, tube: (n,) of each box.
        x: (n, columns) as of `SeenFrame`.
        truth: (n, labels) of the detector's labels which are true; none of a false detection.
        moment: (m,) frames of the own vehicle's rows.
        vehicle: (m, columns) as of `SeenFrame`.
        av: (m,) what it does, index in `AV_LABELS`.
        digest: of the detector's weights.
    """

    n_frames: int
    fps: float
    frame: Ints
    tube: Ints
    x: Floats32
    truth: Bools
    moment: Ints
    vehicle: Floats32
    av: Ints
    digest: str

    def make_rows(
        self, number: int, every: int, labels: Sequence[str], columns: Ints, heads: Sequence[str]
    ) -> tuple[TubeRows, TubeRows]:
        """Rows of boxes and of the own vehicle, as `training.events.rows.make_tube_rows` has them.

        Args:
            number: of the scene in the stream.
            every: every so many-th frame.
            labels: that are annotated.
            columns: of `x` that are read.
            heads: labels of the detector, in the order of `truth`.
        """
        kept, shown = self.frame % every == 0, self.moment % every == 0
        places = [list(heads).index(name) for name in labels]
        count, frames = int(kept.sum()), self.moment[shown]
        boxes = TubeRows(
            tuple(labels), self.x[kept][:, columns], self.truth[kept][:, places], np.ones(count, np.float32),
            np.ones(count, bool), number * MOST_TUBES + self.tube[kept], np.full(count, number),
        )  # fmt: skip
        vehicle = TubeRows(
            AV_LABELS, self.vehicle[shown], self.av[shown, None] == np.arange(len(AV_LABELS)),
            np.ones(len(frames), np.float32), np.ones(len(frames), bool),
            number * MOST_TUBES + (frames / self.fps).astype(np.int64), np.full(len(frames), number),
        )  # fmt: skip
        return boxes, vehicle

    def save(self, path: Path) -> None:
        """Write it as one file.

        Raises:
            DiskError: if it cannot be written.
        """
        held = {each.name: getattr(self, each.name) for each in fields(self)}
        facts = {name: held.pop(name) for name in _FACTS}
        save_arrays(path, held, facts)

    @classmethod
    def load(cls, path: Path) -> SeenScene:
        """Read a file of `save`.

        Raises:
            InputError: if it cannot be read.
            DamagedError: if it is no such file, or its parts do not belong together.
        """
        hint = "remove it, and give the command again"
        arrays, facts = open_arrays(path, "what a detector saw of a scene", hint)
        try:
            held: dict[str, Any] = {
                each.name: arrays[each.name] for each in fields(cls) if each.name not in _FACTS
            }
            found = cls(**held, **{name: facts[name] for name in _FACTS})
        except KeyError as error:
            raise DamagedError(
                f"expected what a detector saw of a scene, lacks {error}", where=str(path), hint=hint
            ) from error
        if wrong := found._find_fault():
            raise DamagedError(
                f"expected what a detector saw of a scene, but {wrong}", where=str(path), hint=hint
            )
        return found

    def _find_fault(self) -> str:
        """What of it, as it was read, cannot be; empty where all can."""
        if not is_count(self.n_frames):
            return "`n_frames` is no number of frames"
        rate = isinstance(self.fps, int | float) and not isinstance(self.fps, bool)
        # Compared, as a whole number may be too large for a float.
        if not (rate and 0 < self.fps < float("inf")):
            return "`fps` is no finite number above 0"
        if self.n_frames >= MOST_TUBES * self.fps:
            return f"`n_frames` at `fps` last {MOST_TUBES:,} s or longer"
        digest: Any = self.digest
        if not isinstance(digest, str):
            return "`digest` is no text"
        for names, kinds, dimensions in (
            (("frame", "tube", "moment", "av"), "iu", 1), (("x", "vehicle"), "f", 2), (("truth",), "b", 2),
        ):  # fmt: skip
            for name in names:
                part = getattr(self, name)
                if part.dtype.kind not in kinds or part.ndim != dimensions:
                    return f"`{name}` is of another kind: {part.dtype} of {part.ndim} dimensions"
        for first, *others in (("frame", "tube", "x", "truth"), ("moment", "vehicle", "av")):
            for name in others:
                if len(getattr(self, name)) != len(getattr(self, first)):
                    return f"`{name}` is not as long as `{first}`"
        for name, end in (
            ("frame", self.n_frames), ("moment", self.n_frames), ("tube", MOST_TUBES), ("av", len(AV_LABELS)),
        ):  # fmt: skip
            part = getattr(self, name)
            if len(part) and not 0 <= int(part.min()) <= int(part.max()) < end:
                return f"`{name}` has numbers beyond 0 to {end - 1:,}"
        return ""


_FACTS = ("n_frames", "fps", "digest")


def render_images(episode: Episode) -> tuple[list[Pixels], Scenes]:
    """The images of an episode, (H, W, 3) each, and its ground truth."""
    stage, collector = Stage(episode), SeenCollector(episode, joints=False)
    images = []
    for frame in range(episode.n_frames):
        soup = stage.soup(frame)
        camera = build_camera(episode.ego, episode.config, frame, episode.seed)
        image = render(soup, camera, episode.conditions, seed=episode.seed, frame=frame)
        collector.add(frame, camera, image, soup)
        images.append(image.rgb)
    return images, build_scene_tables(episode, collector.seen())


def match_labels(boxes: Floats32, truth: Floats, labels: Bools) -> Bools:
    """(n, labels) labels of the ground-truth box that each box overlaps most, from `MATCH_IOU` on; none of the others.

    Args:
        boxes: (n, 4) detections.
        truth: (m, 4) ground-truth boxes.
        labels: (m, labels) of these.
    """
    if not len(truth):
        return np.zeros((len(boxes), labels.shape[1]), np.bool_)
    overlap = iou(boxes, truth)
    found: Bools = labels[overlap.argmax(axis=1)] & (overlap.max(axis=1) >= MATCH_IOU)[:, None]
    return found


def collect_truth(scenes: Scenes, labels: Sequence[str], frames: int) -> list[tuple[Floats, Bools]]:
    """Of each frame (m, 4) ground-truth boxes, and (m, labels) which labels they have.

    Args:
        scenes: of one video alone.
        labels: as `kind/label`, by name.
        frames: of the video.
    """
    boxes = scenes.boxes
    rows = {box: row for row, box in enumerate(boxes["box"].to_list())}
    columns = {label: k for k, label in enumerate(labels)}
    hot = np.zeros((len(boxes), len(labels)), np.bool_)
    for box, kind, label in scenes.labels.select("box", "kind", "label").iter_rows():
        column = columns.get(f"{kind}/{scenes.meta.vocabularies[kind][label]}")
        if column is not None:
            hot[rows[box], column] = True
    frame, corners = boxes["frame"].to_numpy(), boxes.select(CORNERS).to_numpy().astype(np.float64)
    return [(corners[frame == k], hot[frame == k]) for k in range(frames)]


def see_scene(
    heads: DetectorHeads, images: Sequence[Pixels], scenes: Scenes, av: Ints, every: int
) -> SeenScene:
    """What the last layers of a detector's heads see of a scene; the detector sees every frame.

    Args:
        heads: of the detector; begin a new stream.
        images: of all frames.
        scenes: ground truth, of this video alone.
        av: (frames,) what the own vehicle does, index in `AV_LABELS`.
        every: every so many-th frame is kept.
    """
    fps = float(scenes.videos["fps"][0])
    truth = collect_truth(scenes, heads.labels, len(images))
    held: list[tuple[int, Ints, SeenFrame, Bools]] = []
    heads.reset()
    for frame, image in enumerate(images):
        seen = heads.step(image)
        tubes = heads.link(seen.found, frame / fps)
        if frame % every == 0:
            held.append((frame, tubes, seen, match_labels(seen.found.boxes, *truth[frame])))
    moments = np.array([frame for frame, *_ in held], np.int64)
    tube = np.concatenate([tubes for _, tubes, _, _ in held])
    on = tube >= 0
    return SeenScene(
        n_frames=len(images),
        fps=fps,
        frame=np.repeat(moments, [len(tubes) for _, tubes, _, _ in held])[on],
        tube=tube[on],
        x=np.concatenate([seen.x for _, _, seen, _ in held])[on],
        truth=np.concatenate([known for *_, known in held])[on],
        moment=moments,
        vehicle=np.stack([seen.vehicle for _, _, seen, _ in held]),
        av=av[moments],
        digest=heads.digest,
    )
