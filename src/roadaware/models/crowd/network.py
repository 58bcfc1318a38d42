"""IntelliCare: one trunk, a path through its last layers for each task, and a head for each; imports torch."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as bytes_of
from torch import Tensor, nn
from torch.nn import functional

from roadaware import __version__
from roadaware import config as configs
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.sources import to_printable
from roadaware.models.crowd.config import STRIDE_PX, CrowdConfig, Task, Vocabulary
from roadaware.models.crowd.grounding import (
    GroundingHead,
    Matched,
    PeopleGroundingHead,
    TextEncoder,
    list_partners,
)
from roadaware.models.crowd.pathfinder import Pathfinder, install
from roadaware.models.crowd.people import ActionHead, RelationHead
from roadaware.models.crowd.sound import SoundHead
from roadaware.models.detector import FACTS
from roadaware.models.retinanet3d.layers import (
    TimeConv,
    TimePool,
    TimeRepeat,
    initialize_trunk,
    spatial_max_pool,
)
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.retinanet3d.trunks import Compact, add_resnet
from roadaware.models.tensor_files import (
    ARITHMETIC,
    digest_tensors,
    limit_network_size,
    parse_facts,
    read_safetensors,
)
from roadaware.models.weights import load_published, open_network

BUNDLED = Path(__file__).resolve().parents[2] / "weights" / "compact-road.safetensors"
"""The bundled detector, whose trunk the compact one begins with."""
_PAIRS_AT_ONCE = 16_384
_FORMAT = "roadaware-crowd-5"

# Trunks: images to a map whose cells span 16 pixels.

Step = tuple[str, Callable[[Tensor], Tensor]]


class Trunk(nn.Module):
    """A row of steps from images to a map, cut in two before the first step that holds a dynamic layer.

    What comes before the cut is the same for all tasks, and can be kept; a subclass adds the layers.

    Args:
        channels: of the map.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.cut = 0

    def steps(self) -> list[Step]:
        """Name and function of each step, in order."""
        raise NotImplementedError

    def cut_before(self, layers: tuple[str, ...]) -> None:
        """Set the cut before the first step that holds one of some layers; behind all without any."""
        names = [name for name, _ in self.steps()]
        found = [
            n for n, name in enumerate(names) if any(f"{layer}.".startswith(f"{name}.") for layer in layers)
        ]
        self.cut = min(found, default=len(names))

    def stem(self, images: Tensor) -> Tensor:
        """(B, C, T', H', W') the map before the cut, of images (B, 3, T, H, W).

        Raises:
            UsageError: if images are none, or their sides are no multiples of 32 pixels.
        """
        sides = images.shape[-2:]
        if (
            images.ndim != 5
            or images.shape[1] != 3
            or not images.shape[2]
            or any(n % 32 or not n for n in sides)
        ):
            raise UsageError(
                f"images should be (B, 3, T, H, W) with sides that are multiples of 32 pixels, not {tuple(images.shape)}"
            )
        for _, step in self.steps()[: self.cut]:
            images = step(images)
        return images

    def tail(self, map: Tensor) -> Tensor:
        """(B, channels, T, H / 16, W / 16) of the map before the cut."""
        for _, step in self.steps()[self.cut :]:
            map = step(map)
        return map

    def forward(self, images: Tensor) -> Tensor:
        """(B, channels, T, H / 16, W / 16) of images (B, 3, T, H, W)."""
        return self.tail(self.stem(images))


def dilate(stage: nn.Module) -> None:
    """Let the convolutions of a stage lie two cells apart in place of its stride.

    Every second cell of every second row is then what the stage gave before, and the others lie between them.

    Args:
        stage: of a ResNet or of the compact trunk; it is changed in place.
    """
    for part in stage.modules():
        if not isinstance(part, TimeConv):
            continue
        if part.stride[1] > 1:
            part.stride = (part.stride[0], 1, 1)
        elif part.kernel_size[1] > 1:
            reach = part.kernel_size[1] // 2 * 2
            part.dilation = (1, 2, 2)
            part.padding = (int(part.padding[0]), reach, reach)
            # What pads over space, beside the padding that torch knows.
            part.space = (reach, reach)


class CompactTrunk(Trunk):
    """The trunk of the bundled detector, its last stage dilated; each frame sees those before it alone."""

    def __init__(self, config: CrowdConfig) -> None:
        super().__init__(config.stage_widths[-1])
        for name, part in Compact(config.trunk_config()).named_children():
            if name.startswith(("stem", "norm", "stage")):
                self.add_module(name, part)
        dilate(self.get_submodule("stage4"))

    def steps(self) -> list[Step]:
        """Stem, and the blocks of four stages."""
        stages = [f"stage{stage}" for stage in (1, 2, 3, 4)]
        return [("stem", self._stem), *_list_blocks(self, stages)]

    def _stem(self, images: Tensor) -> Tensor:
        layer = self.get_submodule
        map = functional.relu(layer("norm1")(layer("stem1")(images)), inplace=True)
        return functional.relu(layer("norm2")(layer("stem2")(map)), inplace=True)


class I3dTrunk(Trunk):
    """ResNet-50 with kernels over three frames in ten blocks, its last stage dilated.

    With `time_pool` frames are pooled by two behind the first stage and repeated behind the last; clips then have
    an even number of them. Parameters are named as in the paper: `layer4.1.conv2`.
    """

    def __init__(self, config: CrowdConfig) -> None:
        super().__init__(4 * 8 * config.base_width)
        add_resnet(self, config.trunk_config())
        initialize_trunk(self)
        dilate(self.get_submodule("layer4"))
        self.pool = TimePool() if config.time_pool else None
        self.repeat = TimeRepeat() if config.time_pool else None

    def steps(self) -> list[Step]:
        """Stem, the blocks of four stages, and what becomes of time."""
        first = [("stem", self._stem), *_list_blocks(self, ["layer1"])]
        rest = _list_blocks(self, ["layer2", "layer3", "layer4"])
        if self.pool is None or self.repeat is None:
            return [*first, *rest]
        repeat = self.repeat
        return [*first, ("pool", self._pool), *rest, ("repeat", lambda map: repeat(map, 2 * map.shape[2]))]

    def _stem(self, images: Tensor) -> Tensor:
        layer = self.get_submodule
        return spatial_max_pool(functional.relu(layer("bn1")(layer("conv1")(images)), inplace=True), 1)

    def _pool(self, map: Tensor) -> Tensor:
        if map.shape[2] % 2 or self.pool is None:
            raise UsageError(f"a clip of {map.shape[2]} frames: give an even number, since frames are pooled")
        pooled: Tensor = self.pool(map)
        return pooled


def _list_blocks(trunk: nn.Module, stages: list[str]) -> list[Step]:
    return [(f"{s}.{name}", part) for s in stages for name, part in trunk.get_submodule(s).named_children()]


def build_trunk(config: CrowdConfig) -> Trunk:
    """The trunk of a config, drawn at random and without dynamic layers."""
    return CompactTrunk(config) if config.trunk == "compact" else I3dTrunk(config)


# The whole.


class IntelliCare(nn.Module):
    """One trunk for all tasks, whose last layers take the path of the task that is asked; a head for each task.

    A task is a question to one map: `network(images, "actions", boxes=..., clip=...)`. With `blocks=0` and one
    task it is that head alone.

    Args:
        config: what it is.
        vocabulary: the labels that it scores and the words that it reads.
        text: reads sentences in place of a small RoBERTa (`grounding.open_text`), where they are looked for in cells.

    Raises:
        UsageError: if the vocabulary lacks what a task needs, there is no such dynamic layer, or `text` has no use.

    Source: supplement of Chaotic World, ICCV 2023, section 4.
    """

    def __init__(self, config: CrowdConfig, vocabulary: Vocabulary, text: TextEncoder | None = None) -> None:
        super().__init__()
        needed = {"actions": "actions", "relations": "predicates", "sound": "sounds", "grounding": "words"}
        for task in config.tasks:
            if not getattr(vocabulary, needed[task]) and not (task == "grounding" and text is not None):
                raise UsageError(
                    f"the task {task} needs {needed[task]} in the vocabulary, and there are none"
                )
        if text is not None and config.grounding == "people":
            raise UsageError(
                "a text encoder reads sentences that are looked for in cells: set grounding to cells"
            )
        self.config, self.vocabulary = config, vocabulary
        self.trunk = build_trunk(config)
        if config.dynamic_layers:
            install(
                self.trunk, config.dynamic_layers, config.blocks, tasks=config.tasks, width=config.task_width
            )
        # A network without dynamic layers is cut where one with them is, so that kept maps serve both.
        self.trunk.cut_before(config.dynamic_layers or replace(config, blocks=1).dynamic_layers)
        channels = self.trunk.channels
        # What tracks say is scored by the compact heads of actions and relations alone.
        scored = [
            len(labels) if task in config.tasks and config.form == "compact" else 0
            for task, labels in (("actions", vocabulary.actions), ("relations", vocabulary.predicates))
        ]
        makers: dict[str, Callable[[], nn.Module]] = {
            "actions": lambda: ActionHead(config, len(vocabulary.actions), channels),
            "relations": lambda: RelationHead(config, len(vocabulary.predicates), channels),
            "grounding": lambda: (
                PeopleGroundingHead(config, len(vocabulary.words), *scored)
                if self.compares_people
                else GroundingHead(config, vocabulary.words, channels, text)
            ),
            "sound": lambda: SoundHead(config, len(vocabulary.sounds), channels, len(vocabulary.actions)),
        }
        self.heads = nn.ModuleDict({task: makers[task]() for task in config.tasks})

    @property
    def compares_people(self) -> bool:
        """Whether sentences are compared with the tracks and colours of people (`match`), whatever the trunk sees."""
        return "grounding" in self.config.tasks and self.config.grounding == "people"

    @property
    def path_tasks(self) -> tuple[Task, ...]:
        """The tasks that see the map of the trunk, each by its path; sentences that are compared with people do not."""
        return tuple(task for task in self.config.tasks if not (task == "grounding" and self.compares_people))

    @property
    def pathfinder(self) -> Pathfinder:
        """The dynamic layers of the trunk.

        Raises:
            UsageError: if it has none.
        """
        return Pathfinder(self.trunk)

    def stem(self, images: Tensor) -> Tensor:
        """(B, C, T', H', W') the map that all tasks share, to be kept.

        Args:
            images: (B, 3, T, H, W) normalised, with sides that are multiples of 32 pixels.
        """
        return self.trunk.stem(images)

    def tail(self, map: Tensor, task: Task) -> Tensor:
        """(B, channels, T, H / 16, W / 16) the map as a task sees it, of what `stem` gave.

        Raises:
            UsageError: if the network has no such task.
        """
        self._check(task)
        if self.config.dynamic_layers:
            self.pathfinder.set_task(task)
        return self.trunk.tail(map)

    def score_deeds(self, tracks: Tensor, moment: Tensor, image: Tensor) -> Tensor | None:
        """(n, actions) scores in [0, 1] of actions by tracks alone, which the heads of sentences and sounds take as `doing`.

        Args:
            tracks, moment, image: as of `people.describe_motion`.

        Returns:
            None where the network has no compact head of actions.
        """
        head = dict(self.heads.items()).get("actions")
        if not isinstance(head, ActionHead) or head.motion is None:
            return None
        with torch.no_grad():
            # Without dropout, also while others learn: what sentences are compared with is not to flicker.
            was = head.motion.training
            head.motion.eval()
            found: Tensor = head.judge_motion(tracks, moment, image).sigmoid()
            head.motion.train(was)
        return found

    def score_bonds(self, tracks: Tensor, owner: Tensor, partners: Tensor, image: Tensor) -> Tensor | None:
        """(n, O, T, 2 * predicates) scores in [0, 1] of relations by tracks alone: to each partner, then from them.

        Args:
            tracks: (n, T, K, 4) as of `people.describe_motion`, around each frame.
            owner: (n,) int64, the clip of each.
            partners: (n, O) int64 as `grounding.list_partners` gives them; where there is none scores are 0.
            image: (2,) its width and height in pixels.

        Returns:
            None where the network has no compact head of relations.
        """
        head = dict(self.heads.items()).get("relations")
        if not isinstance(head, RelationHead) or head.motion is None:
            return None
        count, frames = tracks.shape[:2]
        one, place = (partners >= 0).nonzero(as_tuple=True)
        other = partners[one, place]
        both = torch.cat([one * count + other, other * count + one])
        known, row = torch.unique(both, return_inverse=True)
        pairs = torch.stack([known // count, known % count], dim=1) if len(known) else known.view(0, 2)
        bonds = tracks.new_zeros(*partners.shape, frames, 2 * head.prior.numel())
        step = max(1, _PAIRS_AT_ONCE // max(1, len(pairs)))
        with torch.no_grad():
            was = head.motion.training
            head.motion.eval()
            for low in range(0, frames if len(pairs) else 0, step):
                part = tracks[:, low : low + step].transpose(0, 1)
                slots = torch.arange(len(part), device=tracks.device)
                moment = (slots[:, None] * (int(owner.max()) + 1) + owner).flatten()
                asked = (slots[:, None, None] * count + pairs).flatten(0, 1)
                scores = (head.judge_motion(part.flatten(0, 1), moment, asked, image) + head.prior).sigmoid()
                found = scores.view(len(part), len(pairs), -1).transpose(0, 1)[row]
                bonds[one, place, low : low + step] = torch.cat(found.chunk(2), dim=2)
            head.motion.train(was)
        return bonds

    def match(
        self,
        colours: Tensor,
        ids: Tensor,
        mask: Tensor,
        boxes: Tensor,
        owner: Tensor,
        clip: Tensor | None = None,
        frames: Tensor | None = None,
        tracks: Tensor | None = None,
    ) -> Matched:
        """How well people go with sentences, by their colours and by what their tracks say.

        Args:
            colours, ids, mask, boxes, owner, clip, frames, tracks: as of `PeopleGroundingHead.forward`; what people do is not
                known without `tracks`.

        Raises:
            UsageError: as of `PeopleGroundingHead.forward`, or if sentences are looked for in cells.
        """
        if not self.compares_people:
            raise UsageError("the network does not compare sentences with people: ask about its map")
        partners, doing, bonds = list_partners(boxes, owner), None, None
        if tracks is not None:
            image = colours.new_tensor([colours.shape[4], colours.shape[3]]) * STRIDE_PX
            moment = owner[:, None] * tracks.shape[1] + torch.arange(tracks.shape[1], device=owner.device)
            doing = self.score_deeds(tracks.flatten(0, 1), moment.flatten(), image)
            doing = None if doing is None else doing.view(*tracks.shape[:2], -1)
            bonds = self.score_bonds(tracks, owner, partners, image)
        found: Matched = self.heads["grounding"](
            colours, ids, mask, boxes, owner, clip, frames, tracks, doing, partners, bonds
        )
        return found

    def answer(self, map: Tensor, task: Task, **question: Any) -> Any:
        """The answer of a task to a question, from the map that all tasks share.

        Sentences that are compared with people (`match`) see colours in place of the map.

        Args:
            map: as `stem` gave it.
            task: which head is asked.
            question: what its `forward` takes beside the map, or what `match` takes.

        Raises:
            UsageError: if the network has no such task, or the question is none.
        """
        if task == "grounding" and self.compares_people:
            return self.match(**question)
        return self.heads[task](self.tail(map, task), **question)

    def forward(self, images: Tensor, task: Task, **question: Any) -> Any:
        """The answer of a task to a question about images (B, 3, T, H, W); see `answer`."""
        return self.answer(self.stem(images), task, **question)

    def pruned(self, task: Task) -> IntelliCare:
        """A copy for one task: its path, now plain layers, and its head.

        Raises:
            UsageError: if the network has no such task, or compares sentences with what other heads score of people.
        """
        self._check(task)
        if task == "grounding" and self.compares_people and len(self.heads) > 1:
            raise UsageError(
                "sentences are compared with what the other heads score: they have no path of their own"
            )
        twin = copy.deepcopy(self)
        if self.config.dynamic_layers:
            trunk = Pathfinder(twin.trunk).pruned(task)
            if isinstance(trunk, Trunk):
                twin.trunk = trunk
        twin.heads = nn.ModuleDict({task: twin.heads[task]})
        twin.config = replace(self.config, tasks=(task,), blocks=0)
        return twin

    def _check(self, task: str) -> None:
        if task not in self.config.tasks:
            known = ", ".join(self.config.tasks)
            raise UsageError(f"the network has no task '{to_printable(task, 60)}'; it has {known}")


def begin_trunk(network: IntelliCare, path: Path | None = None) -> None:
    """Let the trunk begin with trained weights; all knowledge blocks of a layer begin with the same.

    Args:
        network: is changed in place.
        path: of a detector of ours for the compact trunk (default: the bundled one), or of a ResNet-50 of
            3D-RetinaNet, PySlowFast, PyTorchVideo or MMAction2 for `i3d`.

    Raises:
        UsageError: if there is no path for `i3d`, or the weights are of another network.
        InputError: if the file cannot be read.
    """
    if network.config.trunk == "compact":
        state = open_network(path or BUNDLED)[0].backbone.state_dict()
    elif path is None:
        raise UsageError("no weights come along for the trunk i3d: name a file")
    else:
        # The loader of checkpoints knows how other builds name the layers of a detector's trunk.
        made = RetinaNet3D(network.config.trunk_config(), 1, 0)
        load_published(made, path)
        state = made.backbone.state_dict()
    plain = build_trunk(network.config)
    wanted = {name: state[name] for name in plain.state_dict() if name in state}
    try:
        plain.load_state_dict(wanted)
    except RuntimeError as error:
        message = to_printable(" ".join(str(error).split()), 400)
        raise UsageError(f"the weights do not fit the trunk of this config: {message}") from error
    if network.config.dynamic_layers:
        network.pathfinder.load_plain(wanted)
    else:
        network.trunk.load_state_dict(wanted)


# Files: one of safetensors, with the config and the vocabulary beside the weights.


def save_crowd(
    path: Path | str, network: IntelliCare, notes: Mapping[str, Any] | None = None, *, half: bool = False
) -> None:
    """Write a network as one file that says what it is.

    Args:
        path: `.safetensors` by custom.
        network: with its weights.
        notes: JSON-ready, such as how it was trained.
        half: keep matrices and kernels as 16-bit floats, which takes half the room; what opens them computes with 32
            bits again. Norms keep theirs: a variance may be larger than 16 bits hold.

    Raises:
        DiskError: if it cannot be written; what stood there before still stands.
        UsageError: if its sentences are read by a text encoder of others, whose words no vocabulary has.
    """
    if "grounding" in network.config.tasks and not network.vocabulary.words:
        raise UsageError("a network whose sentences a published RoBERTa reads is not saved as one file")
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
    if half:
        tensors = {
            name: held.half() if held.ndim > 1 and held.is_floating_point() else held
            for name, held in tensors.items()
        }
    facts = {
        "format": _FORMAT,
        "version": __version__,
        "config": configs.to_dict(network.config),
        "vocabulary": configs.to_dict(network.vocabulary),
        "digest": digest_tensors(tensors),
        "notes": dict(notes or {}),
    }
    write_atomically(Path(path), bytes_of(tensors, {FACTS: json.dumps(facts)}))


def open_crowd(path: Path | str, vocabulary: Vocabulary | None = None) -> tuple[IntelliCare, dict[str, Any]]:
    """The network of a file, ready to infer, and what the file says of it.

    Args:
        path: of the file that `save_crowd` wrote.
        vocabulary: of the data at hand (default: whatever the file has).

    Raises:
        InputError: if there is no such file, it is none of ours, or of another vocabulary.
        DamagedError: if it is not whole.
    """
    path = Path(path)
    where = to_printable(str(path))
    if not path.exists() or path.is_dir():
        raise InputError("expected the file of a crowd network and found none", where=where)
    tensors, about = read_safetensors(path)
    facts = parse_facts(about, FACTS, where)
    if facts.get("format") != _FORMAT:
        said = to_printable(repr(facts.get("format")), 60)
        former = str(facts.get("format")).startswith(_FORMAT.rstrip("0123456789"))
        raise InputError(
            f"no crowd network of this version: its format is {said}, not '{_FORMAT}'", where=where,
            hint="networks of before read sentences in another way; train it again with this version"
            if former else "it is another kind of model; `train intellicare` makes one of crowds",
        )  # fmt: skip
    try:
        config = configs.from_dict(CrowdConfig, facts["config"])
        own = configs.from_dict(Vocabulary, facts["vocabulary"])
        held = sum(tensor.numel() for tensor in tensors.values())
        # Whoever trains beside it goes on with the random numbers that were due.
        with torch.random.fork_rng(devices=[]), limit_network_size(where, held):
            network = IntelliCare(config, own)
        network.load_state_dict(tensors)
        whole = facts["digest"] == digest_tensors(tensors)
    except InputError:
        raise
    except (*ARITHMETIC, UsageError) as error:
        message = f"what the file says does not fit: {to_printable(str(error), 400)}"
        raise DamagedError(message, where=where) from error
    if not whole:
        raise DamagedError("the weights are not those that were saved", where=where, hint="copy it again")
    if vocabulary is not None:
        own.check_same(vocabulary, where)
    return network.eval(), facts
