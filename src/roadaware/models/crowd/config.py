"""CrowdConfig: what the networks of crowds compute; Vocabulary: the labels and words they know; torch-free."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from roadaware.config import check_flags, check_words
from roadaware.errors import InputError, UsageError
from roadaware.io.sources import to_printable
from roadaware.models.retinanet3d.config import RetinaNetConfig, compact, default

Task = Literal["actions", "relations", "grounding", "sound"]
TASKS: tuple[Task, ...] = get_args(Task)
"""The questions; in the paper STAL, BGA, STEG and ESSL."""
STRIDE_PX = 16
"""What a cell of the trunk's map spans: the last stage is dilated in place of its stride."""
DYNAMIC_LAYERS: dict[str, tuple[str, ...]] = {
    "i3d": ("layer4.1.conv2", "layer4.1.conv3", "layer4.2.conv1", "layer4.2.conv2", "layer4.2.conv3"),
    "compact": ("stage4.0.first", "stage4.0.time", "stage4.0.second", "stage4.1.first", "stage4.1.second"),
}
"""The last five convolutions of each trunk; those of I3D are named in the paper (supplement, section 4.1)."""

_LIMITS: dict[str, tuple[float, float]] = {
    "base_width": (8, 1024), "stage_widths": (1, 4096), "stage_blocks": (1, 100), "blocks": (0, 64),
    "task_width": (1, 4096), "width": (4, 8192), "motion_width": (0, 8192), "roi": (1, 32), "window": (0, 4096),
    "dropout": (0, 0.99), "cells_share": (0, 1), "crop_width": (0, 256), "crops_share": (0, 10),
    "relation_width": (4, 8192), "tree_width": (1, 8192), "attention_width": (1, 8192), "tree_groups": (1, 64),
    "tree_height": (1, 64), "pair_heights": (1e-3, 1e6), "max_pairs": (1, 1_000_000),
    "grounding_width": (4, 8192), "attention_heads": (1, 64), "encoder_layers": (0, 64),
    "decoder_layers": (1, 64), "feed_forward": (1, 65536), "slow_stride": (1, 1000), "max_frames": (1, 100_000),
    "sentence_width": (4, 8192), "text_width": (4, 8192), "text_layers": (1, 64), "text_heads": (1, 64),
    "max_tokens": (3, 510),
    "sound_width": (4, 8192), "map_size": (4, 256), "cycles": (0, 64), "head_width": (0, 8192),
}  # fmt: skip
"""What numbers of a config can be; a file of weights is read by it before anything is made."""


@dataclass(frozen=True)
class CrowdConfig:
    """Config of IntelliCare and of each head alone; the defaults are the compact form.

    Trunk:
        trunk: `compact` (the trunk of the bundled detector) or `i3d` (ResNet-50 with kernels over time).
        base_width: channels of the stem of `i3d`; stages are multiples.
        stage_widths: channels of the four stages of `compact`.
        stage_blocks: blocks of the four stages of either.
        time_pool: `i3d` halves the frames behind its first stage and repeats them behind its last.

    Pathfinder:
        blocks: knowledge blocks in each dynamic layer; 0 for none, so that all tasks share every layer.
        layers: names of the dynamic layers (default: those of `DYNAMIC_LAYERS`).
        task_width: numbers of the embedding of a task, which the score of blocks is made of.

    Heads:
        tasks: which heads there are.
        form: `published` (the shapes of the four published systems) or `compact` (for two cores).
        width: channels inside the compact head of actions.
        motion_width: numbers inside its layers of what tracks say; 0 for `width`.
        roi: cells of RoIAlign in each direction; 8 for the published head of actions, whatever this says.
        window: frames around that of a box whose mean is the scene of an action; 0 for the whole clip.
        dropout: inside transformers; where sentences are compared with people twice as much.
        cells_share: of the compact heads of actions and relations, what the scores of the map's cells count beside those of
            tracks (docs/crowd_models.md says what other shares gave).
        crop_width: of the compact head of actions, channels at stride 2 of the layers that see each person in a crop of the
            image (`people.CropLayers`); those at strides 4, 8 and 16 are 2, 4 and 6 times as many; 0 for no such layers.
        crops_share: what their scores count beside those of tracks.

    Relations:
        relation_width: numbers of a person and of a region.
        tree_width: numbers of a node of the tree; a multiple of `tree_groups`.
        attention_width: numbers of queries and keys.
        tree_groups: Tree-GRUs side by side.
        tree_height: layers of the tree before whatever is left is joined in one.
        tree_units: corners of boxes for the tree in pixels, as published, where the exponential underflows
            and people are ordered by their numbers, or in parts of the image (`image`).
        pair_heights: pairs whose centres are further apart than so many of their mean heights are not asked.
        max_pairs: of a clip; the nearest are asked.

    Grounding:
        grounding: `people` compares a sentence with the track of every person, which detections give; `cells` looks for
            it in the cells of the map, as published, and needs no tracks.
        sentence_width: of `people`: numbers of a piece of a word, and of how a person looks.
        grounding_width: of `cells`: numbers of a token; a multiple of 4 and of `attention_heads`.
        attention_heads, feed_forward, encoder_layers, decoder_layers: of `cells`: of the transformer, as published.
        slow_stride: of `cells`: every so many frames one is read with the sentence.
        max_frames: of a clip.
        text_width, text_layers, text_heads: of `cells`: of the RoBERTa that reads sentences.
        max_tokens: of a sentence with its marks; the rest is cut off, and counted.

    Sound:
        sound_width: channels of the map and of the sound that are compared.
        map_size: cells of the localisation map in each direction.
        cycles: predictions of the sound by the image, each corrected by its error, after the first.
        audio: `vggish` (mono, the published layers) or `small` (two channels).
        head_width: numbers of the projections that the self-supervised loss compares; 0 for none, where sounds are
            learnt from boxes.

    Raises:
        UsageError: if a value is impossible.

    Source: supplement of Chaotic World, ICCV 2023, section 4; Sun et al., ECCV 2018 (ACRN); Teng et al.,
        ICCV 2021 (TRACE); Yang et al., CVPR 2022 (TubeDETR); Song et al., CVPR 2022 (SSPL).
    """

    trunk: Literal["compact", "i3d"] = "compact"
    base_width: int = 64
    stage_widths: tuple[int, int, int, int] = (32, 48, 96, 128)
    stage_blocks: tuple[int, int, int, int] = (1, 2, 2, 2)
    time_pool: bool = True
    blocks: int = 2
    layers: tuple[str, ...] = ()
    task_width: int = 64
    tasks: tuple[Task, ...] = TASKS
    form: Literal["compact", "published"] = "compact"
    width: int = 128
    motion_width: int = 0
    roi: int = 7
    window: int = 5
    dropout: float = 0.1
    cells_share: float = 0.2
    crop_width: int = 0
    crops_share: float = 0.7
    relation_width: int = 128
    tree_width: int = 128
    attention_width: int = 32
    tree_groups: int = 4
    tree_height: int = 7
    tree_units: Literal["pixels", "image"] = "image"
    pair_heights: float = 3.0
    max_pairs: int = 1024
    grounding: Literal["people", "cells"] = "people"
    grounding_width: int = 128
    attention_heads: int = 8
    encoder_layers: int = 1
    decoder_layers: int = 2
    feed_forward: int = 256
    slow_stride: int = 4
    max_frames: int = 400
    sentence_width: int = 64
    text_width: int = 128
    text_layers: int = 2
    text_heads: int = 4
    max_tokens: int = 64
    sound_width: int = 96
    map_size: int = 28
    cycles: int = 2
    audio: Literal["small", "vggish"] = "small"
    head_width: int = 0

    def __post_init__(self) -> None:
        """Refuse what no network can be made of."""
        check_words(self)
        check_flags(self)
        for name, (low, high) in _LIMITS.items():
            value = getattr(self, name)
            for each in value if isinstance(value, tuple) else (value,):
                if isinstance(each, bool) or not isinstance(each, int | float) or not low <= each <= high:
                    raise UsageError(f"{name} holds numbers from {low:g} to {high:g}, not {each!r}")
        if not self.tasks or set(self.tasks) - set(TASKS) or len(set(self.tasks)) != len(self.tasks):
            raise UsageError(f"tasks are some of {', '.join(TASKS)}, each once; got {self.tasks!r}")
        if len(self.stage_widths) != 4 or len(self.stage_blocks) != 4:
            raise UsageError("stage_widths and stage_blocks have one entry for each of four stages")
        if not all(isinstance(name, str) for name in self.layers):
            raise UsageError(f"layers are names of convolutions; got {self.layers!r}")
        for name, of in (
            ("tree_width", self.tree_groups),
            ("grounding_width", self.attention_heads),
            ("grounding_width", 4),  # sines and cosines of two axes
            ("text_width", self.text_heads),
            ("base_width", 8),
        ):
            if getattr(self, name) % of:
                raise UsageError(f"{name} should be a multiple of {of}, not {getattr(self, name)}")

    @property
    def dynamic_layers(self) -> tuple[str, ...]:
        """Names of the layers that the pathfinder takes; empty where it takes none."""
        return (self.layers or DYNAMIC_LAYERS[self.trunk]) if self.blocks else ()

    def trunk_config(self) -> RetinaNetConfig:
        """The trunk as that of a detector, whose weights it can begin with."""
        if self.trunk == "compact":
            return compact(stage_widths=self.stage_widths, stage_blocks=self.stage_blocks)
        return default(
            backbone="i3d", base_width=self.base_width, blocks=self.stage_blocks, time_pool=self.time_pool
        )

    @classmethod
    def compact(cls, **fields: Any) -> CrowdConfig:
        """For two cores; `fields` replace others."""
        return cls(**fields)

    @classmethod
    def paper(cls, **fields: Any) -> CrowdConfig:
        """The sizes of the paper and of the four published systems; `fields` replace others.

        RoBERTa is small here too: published weights of it come as a folder (`grounding.open_text`).
        """
        published: dict[str, Any] = {
            "trunk": "i3d", "stage_blocks": (3, 4, 6, 3), "form": "published", "window": 0,
            "relation_width": 1024, "tree_width": 256, "attention_width": 256, "tree_units": "pixels",
            "grounding": "cells", "grounding_width": 256, "encoder_layers": 6, "decoder_layers": 6, "feed_forward": 2048,
            "slow_stride": 5, "max_frames": 200, "sound_width": 512, "map_size": 14, "cycles": 4,
            "audio": "vggish", "head_width": 2048,
        }  # fmt: skip
        return cls(**{**published, **fields})

    @classmethod
    def tiny(cls, **fields: Any) -> CrowdConfig:
        """For tests: the compact form with a few channels; `fields` replace others."""
        small: dict[str, Any] = {
            "stage_widths": (8, 8, 8, 16), "stage_blocks": (1, 1, 1, 2), "width": 16, "relation_width": 16,
            "tree_width": 16, "attention_width": 8, "grounding_width": 16, "attention_heads": 2,
            "feed_forward": 32, "sentence_width": 16, "text_width": 16, "text_heads": 2, "sound_width": 16, "map_size": 14,
            "head_width": 32, "task_width": 8, "roi": 4,
        }  # fmt: skip
        return cls(**{**small, **fields})


def has_word(sentence: str) -> bool:
    """Whether a sentence holds more than spaces, marks and punctuation; an emoji counts as a word.

    >>> has_word("a man runs"), has_word("?!")
    (True, False)
    """
    return any(unicodedata.category(letter)[0] not in "PZCM" for letter in sentence)


@dataclass(frozen=True)
class Vocabulary:
    """The labels that heads score, in the order of their scores, and the pieces of words they read.

    Args:
        actions: what people do.
        predicates: what one does to another.
        sounds: classes of sounds that can be asked for.
        words: pieces of words, as `grounding.build_words` makes them.

    Raises:
        UsageError: if a label is no text, empty, or stands in its list twice.
    """

    actions: tuple[str, ...] = ()
    predicates: tuple[str, ...] = ()
    sounds: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            held = getattr(self, field.name)
            if not isinstance(held, tuple) or not all(isinstance(label, str) and label for label in held):
                raise UsageError(f"{field.name} should be texts that are not empty")
            if len(set(held)) != len(held):
                twice = next(label for place, label in enumerate(held) if label in held[:place])
                raise UsageError(f"{field.name} holds '{to_printable(twice, 60)}' twice")

    def find(self, kind: str, labels: Iterable[str]) -> list[int]:
        """Places of labels among the scores.

        Args:
            kind: `actions`, `predicates` or `sounds`.
            labels: in any order.

        Raises:
            UsageError: if a label is not known; names the nearest.

        >>> Vocabulary(actions=("walking", "running")).find("actions", ["running"])
        [1]
        """
        known: tuple[str, ...] = getattr(self, kind)
        places = {label: place for place, label in enumerate(known)}
        found = []
        for label in labels:
            if label not in places:
                # The first word alone, and small letters, come close, too: of 'Sirenn' to 'siren (police)'.
                spelt = {each.split(" (")[0].lower(): each for each in reversed(known)}
                spelt |= {each.lower(): each for each in known}
                near = difflib.get_close_matches(label.lower(), spelt, n=1)
                guess = (
                    f"did you mean '{spelt[near[0]]}'?" if near else f"there are {', '.join(known) or 'none'}"
                )
                raise UsageError(f"'{to_printable(label, 60)}' is none of the {kind}; {guess}")
            found.append(places[label])
        return found

    def check_same(self, other: Vocabulary, where: str) -> None:
        """Refuse weights of another vocabulary.

        Raises:
            InputError: names the kind, and some labels that only one of the two has.
        """
        for field in fields(self):
            ours, theirs = getattr(self, field.name), getattr(other, field.name)
            if ours == theirs:
                continue
            missing = [label for label in theirs if label not in ours][:4]
            extra = [label for label in ours if label not in theirs][:4]
            lines = [f"it lacks {', '.join(missing)}"] if missing else []
            lines += [f"it alone has {', '.join(extra)}"] if extra else []
            raise InputError(
                f"weights of another vocabulary: {len(ours)} {field.name} where the data has {len(theirs)}; "
                f"{to_printable('; '.join(lines) or 'their order differs', 300)}",
                where=where,
                hint="take weights that were trained on these labels, or leave their own labels as they are",
            )
