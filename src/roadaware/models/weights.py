"""Weights of detectors: released checkpoints into a network, in three spellings of video ResNets, and files of our
own; imports torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as bytes_of
from torch import Tensor

from roadaware import __version__
from roadaware import config as configs
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.sources import to_printable
from roadaware.models.detector import FACTS
from roadaware.models.refine import BoxRefiner, RefineConfig, SecondLook
from roadaware.models.retinanet3d.config import DetectRule, RetinaNetConfig
from roadaware.models.retinanet3d.detector import StreamDetector, WindowDetector, check_label_counts
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.tensor_files import (
    ARITHMETIC,
    digest_tensors,
    limit_network_size,
    parse_facts,
    read_safetensors,
    read_tensors,
    undrawn_weights,
)

_FORMAT = 2
"""Files of format 1 held their kinds sorted by name, which are not the columns of the scores."""
_HEADS = ("reg_heads.", "cls_heads.", "ego_head.", "anchors.")
_PYRAMID = ("lateral_layer", "corr_layer", "conv6.", "conv7.", "ego_lateral.")
_RECURRENT = ("rcu.", "clstm.", "cgru.")
_COUNTERS = "num_batches_tracked"
_REFINER = "refiner."
"""Before the names of its tensors, where a file holds one beside the detector."""


@dataclass(frozen=True)
class KeyReport:
    """Report on each name when weights were loaded: taken, missing or unexpected.

    Args:
        matched: the network's names that were filled.
        missing: the network's names that the file does not have; they keep their values.
        unused: the file's names that the network has no place for.
        inflated: those of `matched` whose kernel was repeated over time and divided by how often.
        shortened: those of `matched` whose kernel was longer in time, and was summed to what the network has.
    """

    matched: tuple[str, ...]
    missing: tuple[str, ...]
    unused: tuple[str, ...]
    inflated: tuple[str, ...]
    shortened: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = (
            f"{len(self.matched)} matched ({len(self.inflated)} inflated over time), "
            f"{len(self.missing)} missing, {len(self.unused)} unused"
        )
        named = [("missing", self.missing), ("unused", self.unused), ("inflated", self.inflated)]
        named += [("shortened", self.shortened)]
        return "\n".join([counts, *(f"{what}: {name}" for what, names in named for name in names)])


def load_published(network: RetinaNet3D, path: Path | str, take: tuple[str, ...] = ()) -> KeyReport:
    """Fill a network from a released 3D-RetinaNet checkpoint, or its trunk from a Kinetics one.

    A file with heads must have all that the network uses, in its shapes; a file without is taken for a
    trunk, whose names have no `backbone.` before them, or are those of PySlowFast, PyTorchVideo or MMAction2
    (`trunk_names`). Its kernels are inflated over time where the network's are longer, and summed where they
    are shorter: what stands still is answered as before. Nothing is changed if the file does not fit.

    Args:
        network: is changed in place.
        path: of a `.pth` or `.safetensors` file.
        take: beginnings of the network's names that are filled, such as `backbone.`, where the others are of other
            labels or anchors; default: all.

    Raises:
        UsageError: if the file is for another number of classes or another architecture; says which.
        InputError: if the file cannot be read.
    """
    path = Path(path)
    held = read_tensors(path)
    spelt = trunk_names(held)
    named = {spelt.get(name, name): name for name in held}
    held = {ours: held[theirs] for ours, theirs in named.items()}
    own = network.state_dict()
    # For each of our names the file's name of the same thing
    whole = any(name.startswith(_HEADS[:2]) for name in held)
    found = {}
    for name in own:
        if take and not name.startswith(take):
            continue
        tries = [name]
        if not whole and name.startswith("backbone."):
            bare = name.removeprefix("backbone.")
            inner = bare.removeprefix("backbone.module.")
            tries = [bare, inner, f"backbone.{inner}"] if inner != bare else [bare, name]
        theirs = next((other for other in tries if other in held), None)
        if theirs is not None:
            found[name] = theirs
    source = found
    whole = any(name.startswith(_HEADS[:2]) for name in held)
    ready: dict[str, Tensor] = {}
    inflated, shortened, differ = [], [], []
    for name, theirs in source.items():
        tensor, grown = _fitting(held[theirs], own[name].shape, inflate=not whole)
        if tensor is None:
            differ.append(f"{name} {tuple(held[theirs].shape)} for {tuple(own[name].shape)}")
            continue
        ready[name] = tensor
        inflated += [name] * (grown > 0)
        shortened += [name] * (grown < 0)
    missing = tuple(name for name in own if name not in source)
    lacking = [
        name for name in missing if _is_required(name, whole, network) and (not take or name.startswith(take))
    ]
    if differ or lacking or not source:
        raise _unfit(path, held, network, differ, lacking)
    network.load_state_dict({**own, **ready})
    used = set(source.values())
    unused = tuple(named[name] for name in held if name not in used)
    return KeyReport(tuple(ready), missing, unused, tuple(inflated), tuple(shortened))


def save_detector(
    path: Path | str,
    network: RetinaNet3D,
    kinds: Mapping[str, tuple[str, ...]],
    av_labels: tuple[str, ...] = (),
    notes: Mapping[str, Any] | None = None,
    refiner: BoxRefiner | None = None,
) -> None:
    """Write a network with all that watching needs as one safetensors file.

    Args:
        path: of the file; `.safetensors` by custom.
        network: what is saved: its config and its weights as they are.
        kinds: the labels of its classes, kind after kind, without agentness.
        av_labels: the actions of the own vehicle.
        notes: JSON-ready, such as how it was trained.
        refiner: that looks at people again.

    Raises:
        UsageError: if the labels are not as many as the network has.
        DiskError: if the file cannot be written; what stood there before still stands.
    """
    check_label_counts(network.n_classes, network.n_av, kinds, av_labels)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
    if refiner is not None:
        held = refiner.state_dict().items()
        tensors |= {_REFINER + name: tensor.detach().cpu().contiguous() for name, tensor in held}
    facts = {
        "format": _FORMAT,
        "version": __version__,
        "config": configs.to_dict(network.config),
        "kinds": {kind: list(names) for kind, names in kinds.items()},
        "av_labels": list(av_labels),
        "digest": digest_tensors(tensors),
        "notes": dict(notes or {}),
        **({} if refiner is None else {"refiner": configs.to_dict(refiner.config)}),
    }
    write_atomically(Path(path), bytes_of(tensors, {FACTS: json.dumps(facts)}))


def open_detector(
    path: Path | str,
    rule: DetectRule | None = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
) -> StreamDetector | WindowDetector:
    """The detector that `save_detector` wrote: on a stream if its network is causal, else in windows.

    Args:
        path: of the file.
        rule: which boxes are reported.
        device: where it runs.
        dtype: what it computes with, such as bfloat16 (default: that of the file, float32 of a file in half
            precision). Boxes and scores are reported in float32.

    Raises:
        InputError: if there is no such file, it is none of ours, or of a later version.
        DamagedError: if it is not whole.
    """
    network, refiner, facts = open_parts(path)
    kinds = {kind: tuple(names) for kind, names in facts["kinds"].items()}
    network, av_labels = network.to(device=device, dtype=dtype), tuple(facts["av_labels"])
    if network.config.causal:
        return StreamDetector(network, kinds, av_labels, rule, refiner=refiner)
    return WindowDetector(network, kinds, av_labels, rule)


def open_network(path: Path | str) -> tuple[RetinaNet3D, dict[str, Any]]:
    """Open the network of a file, ready to infer, and its facts.

    Returns:
        The network, and `kinds`, `av_labels`, `version`, `notes` and the rest of what was saved.

    Raises:
        InputError: as `open_detector`.
    """
    network, _, facts = open_parts(path)
    return network, facts


def open_parts(path: Path | str) -> tuple[RetinaNet3D, BoxRefiner | None, dict[str, Any]]:
    """As `open_network`, with the network between them that looks at people again; None where the file has none.

    The second look always computes in float32, whatever the file holds it in.

    Args:
        path: of the file.

    Returns:
        The network, the second look, and facts as of `open_network`.

    Raises:
        InputError: if there is no such file, it is none of ours, of a later version, or of too large a network.
        DamagedError: if it is not whole, or what it says of either network is impossible or does not fit its weights.
    """
    path = Path(path)
    if not path.exists() or path.is_dir():
        raise InputError("expected the file of a detector and found none", where=str(path))
    tensors, facts = _open_checkpoint(path)
    if facts.get("format") != _FORMAT:
        raise InputError(
            f"a detector of format {to_printable(repr(facts.get('format')), 60)}, and this version reads {_FORMAT}",
            where=str(path),
            hint=f"open it with roadaware {to_printable(str(facts.get('version', 'of its time')), 60)}"
            if isinstance(facts.get("format"), int)
            else "it is another kind of model; `roadaware models list` names detectors",
        )
    try:
        config = configs.from_dict(RetinaNetConfig, facts["config"])
        labels = sum(len(names) for names in _words(facts))
        held = sum(tensor.numel() for tensor in tensors.values())
        # On the meta device nothing is allocated; `assign` takes the tensors of the file themselves.
        with torch.device("meta"), undrawn_weights(), limit_network_size(str(path), held):
            network = RetinaNet3D(config, labels + 1, len(facts["av_labels"]))
            refiner = (
                BoxRefiner(configs.from_dict(RefineConfig, asked))
                if (asked := facts.get("refiner"))
                else None
            )
        own = {
            name: tensor
            for name, tensor in tensors.items()
            if refiner is None or not name.startswith(_REFINER)
        }
        network.load_state_dict(own, assign=True)
        if refiner is not None:
            apart = {name.removeprefix(_REFINER): tensors[name] for name in tensors.keys() - own.keys()}
            refiner.load_state_dict(apart, assign=True)
            SecondLook(refiner, facts["kinds"])
        whole = facts["digest"] == digest_tensors(tensors)
    except InputError:
        raise
    except (*ARITHMETIC, UsageError) as error:
        message = f"what the file says does not fit: {to_printable(str(error), 400)}"
        raise DamagedError(message, where=str(path)) from error
    if not whole:
        raise DamagedError("the weights are not those that were saved", where=str(path), hint="copy it again")
    # Kept in half precision to be small: CPUs compute in 32 bits, and `dtype` of `open_detector` is for choosing otherwise
    if any(tensor.dtype == torch.float16 for tensor in tensors.values()):
        network.float()
    # It is asked with float32, in whatever the detector computes
    return network.eval(), None if refiner is None else refiner.float().eval(), facts


def read_checkpoint_facts(path: Path) -> dict[str, Any]:
    """Facts of a file of ours, as `open_network` returns them; empty for other files.

    Raises:
        DamagedError: if it is not whole.
    """
    if path.suffix != ".safetensors":
        return {}
    try:
        return _open_checkpoint(path)[1]
    except DamagedError:
        raise
    except InputError:
        return {}


def _open_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and facts of a file of ours."""
    tensors, about = read_safetensors(path)
    if FACTS not in about:
        raise InputError(
            "the file has weights but does not say of which network",
            where=str(path),
            hint="load a released checkpoint with load_published, and save it with save_detector",
        )
    return tensors, parse_facts(about, FACTS, str(path))


def _words(facts: Mapping[str, Any]) -> list[list[str]]:
    """The labels of each kind, once they were found to be texts.

    Raises:
        ValueError: if they are not, or a label stands in its kind twice, or notes are no fields.
    """
    found = list(facts["kinds"].values())
    for names in (*found, facts["av_labels"]):
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("labels are lists of texts")
        if len(set(names)) != len(names):
            raise ValueError("a label stands in its kind twice")
    if not isinstance(facts.get("notes", {}), dict):
        raise ValueError("notes are fields with values")
    return found


def _fitting(theirs: Tensor, shape: torch.Size, *, inflate: bool) -> tuple[Tensor | None, int]:
    """The tensor in our shape, and by how many frames it grew in time; None if it does not fit."""
    if theirs.shape == shape:
        return theirs, 0
    if len(shape) != 5 or not inflate:
        return None, 0
    flat = theirs.unsqueeze(2) if theirs.dim() == 4 else theirs
    if flat.dim() != 5 or flat.shape[:2] != shape[:2] or flat.shape[3:] != shape[3:]:
        return None, 0
    held, wanted = flat.shape[2], shape[2]
    if held == wanted:
        return flat, 0
    if held == 1:
        # The same kernel at each step, divided by their number: a still video gives what the image gave.
        return flat.repeat(1, 1, wanted, 1, 1) / wanted, wanted - held
    if held < wanted or (held - wanted) % 2:
        return None, 0
    outer = (held - wanted) // 2
    kept = flat[:, :, outer : held - outer].clone()
    kept[:, :, 0] += flat[:, :, :outer].sum(dim=2)  # frames beyond the kernel count as those at its ends
    kept[:, :, -1] += flat[:, :, held - outer :].sum(dim=2)
    return kept, wanted - held


def _is_required(name: str, whole: bool, network: RetinaNet3D) -> bool:
    """Whether a network cannot do without a name that a file lacks."""
    if name.endswith(_COUNTERS) or "ego_lateral" in name or name.startswith("anchors."):
        return False
    if network.config.backbone == "slowfast" and not name.startswith("backbone.backbone."):
        bare = name.removeprefix("backbone.")
        if bare.startswith(("conv1.", "bn1.", "layer")):
            return False  # the ResNet that nothing uses
    if whole:
        return True
    apart = name.startswith(_HEADS) or name.removeprefix("backbone.").startswith(_PYRAMID)
    return not apart and not any(unit in name for unit in _RECURRENT)


def _unfit(
    path: Path, held: Mapping[str, Tensor], network: RetinaNet3D, differ: list[str], lacking: list[str]
) -> UsageError:
    """Error for weights that do not fit, with the network that the file is for."""
    shown = [*differ, *(f"{name} is not in the file" for name in lacking)]
    kind, other = _describe_network(held), described(held)
    if other:
        return UsageError(
            f"{path} holds {other}, whose layers this trunk ({network.config.backbone}) does not have; it "
            "can begin with those of a ResNet-50 of PySlowFast, PyTorchVideo or MMAction2: C2D, I3D or Slow"
        )
    if not kind:
        return UsageError(
            f"{path} holds neither a 3D-RetinaNet nor a ResNet: "
            f"its names begin with {', '.join(list(held)[:3])}"
        )
    more = f" (and {len(shown) - 3} more)" if len(shown) > 3 else ""
    config = network.config
    ours = f"{config.backbone} of depth {config.depth}, {network.n_classes} classes, {network.n_av} actions"
    return UsageError(
        f"{path} does not fit this network ({ours}): {'; '.join(shown[:3])}{more}\n"
        f"  The file looks like {kind}; create that network, or take another file."
    )


def _describe_network(held: Mapping[str, Tensor]) -> str:
    """Which network a file is for, from its names and shapes; empty where it is for none."""
    names = " ".join(held)
    marks = {"fast_conv1": "slowfast", "rcu.": "rcn", "clstm.": "rclstm", "cgru.": "rcgru"}
    kind = next((backbone for mark, backbone in marks.items() if mark in names), "")
    first = next((tensor for name, tensor in held.items() if name.endswith("layer1.0.conv1.weight")), None)
    if not kind and first is not None:
        kind = "i3d" if first.dim() == 5 and first.shape[2] == 3 else "c2d"
    if not kind:
        return ""
    depth = 101 if "layer3.22." in names else 50
    said = [f"retinanet3d-{kind} with depth={depth}"]
    boxes, classes = _last_bias(held, "reg_heads."), _last_bias(held, "cls_heads.")
    # An anchor has 4 numbers of its box, and one for each class.
    if boxes and classes:
        said.append(f"n_classes={classes * 4 // boxes}")
        said.append(f"n_av={_last_bias(held, 'ego_head.')}")
    return ", ".join(said)


def _last_bias(held: Mapping[str, Tensor], head: str) -> int:
    """How many numbers the last layer of a head gives; 0 if there is no such head."""
    counts = [len(tensor) for name, tensor in held.items() if name.startswith(head) and name.endswith("bias")]
    return counts[-1] if counts else 0


_PARTS = {"a": "1", "b": "2", "c": "3"}
_TAIL = r"(weight|bias|running_mean|running_var|num_batches_tracked)"
_SLOWFAST_STEM = re.compile(rf"s1\.pathway0_stem\.(conv|bn)\.{_TAIL}")
_SLOWFAST_BLOCK = re.compile(rf"s([2-5])\.pathway0_res(\d+)\.(branch1|branch2\.[abc])(_bn)?\.{_TAIL}")
_VIDEO_STEM = re.compile(rf"blocks\.0\.(conv|norm)\.{_TAIL}")
_VIDEO_BLOCK = re.compile(
    rf"blocks\.(\d+)\.res_blocks\.(\d+)\.(?:branch1_(conv|norm)|branch2\.(conv|norm)_([abc]))\.{_TAIL}"
)
_MM_STEM = re.compile(rf"(?:backbone\.)?conv1\.(conv|bn)\.{_TAIL}")
_MM_BLOCK = re.compile(rf"(?:backbone\.)?layer([1-4])\.(\d+)\.(conv[123]|downsample)\.(conv|bn)\.{_TAIL}")
_OTHERS: Mapping[str, str] = {
    "a SlowFast of two ways": r"s1\.pathway1_stem\.|blocks\.0\.multipathway_blocks\.|backbone\.fast_path\.",
    "an X3D": r"s1\.pathway0_stem\.conv_xy\.|blocks\.0\.conv\.conv_(t|xy)\.|backbone\.conv1_s\.",
    "a VideoMAE": r"(videomae|encoder|backbone)?\.?(embeddings\.patch_embeddings|patch_embed)\.",
    "an I3D of Inception blocks": r"(Conv3d_1a_7x7|conv3d_1a_7x7|Mixed_3b)\.",
}


def trunk_names(names: Iterable[str]) -> dict[str, str]:
    """Name of a file to that of our trunk, without `backbone.`; empty where it is spelt in no known way.

    Names that no layer of the trunk stands for, such as those of the head for 400 actions, are left out.

    Source: PySlowFast (`s2.pathway0_res0.branch2.a.weight`), PyTorchVideo
        (`blocks.1.res_blocks.0.branch2.conv_a.weight`) and MMAction2 (`backbone.layer1.0.conv1.conv.weight`);
        layers of the same ResNet-50, a bottleneck whose first convolution looks over time.
    """
    held = list(names)
    stages = sorted({int(block[1]) for name in held if (block := _VIDEO_BLOCK.fullmatch(name))})
    found = {name: ours for name in held if (ours := _ours(name, stages))}
    return found if len(set(found.values())) == len(found) else {}


def described(names: Iterable[str]) -> str:
    """Which published video network of another build a file holds, in words; empty where none is known."""
    held = list(names)
    return next((what for what, mark in _OTHERS.items() if any(re.match(mark, name) for name in held)), "")


def _ours(name: str, stages: list[int]) -> str:
    """Our name of one tensor; empty where there is none."""
    for stem in (_SLOWFAST_STEM, _VIDEO_STEM, _MM_STEM):
        if found := stem.fullmatch(name):
            return f"{'conv1' if found[1] == 'conv' else 'bn1'}.{found[2]}"
    if found := _SLOWFAST_BLOCK.fullmatch(name):
        stage, block, branch, norm, tail = found.groups()
        return _layer(int(stage) - 1, block, branch.removeprefix("branch2.")[-1], bool(norm), tail)
    if found := _VIDEO_BLOCK.fullmatch(name):
        stage, block, beside, inner, part, tail = found.groups()
        return _layer(stages.index(int(stage)) + 1, block, part or "1", (beside or inner) == "norm", tail)
    if found := _MM_BLOCK.fullmatch(name):
        stage, block, part, what, tail = found.groups()
        letter = "1" if part == "downsample" else "abc"[int(part[-1]) - 1]
        return _layer(int(stage), block, letter, what == "bn", tail)
    return ""


def _layer(stage: int, block: str, part: str, norm: bool, tail: str) -> str:
    """Our name of a tensor of a block; `part` is a, b or c, or 1 for the shortcut."""
    if part == "1":
        return f"layer{stage}.{block}.downsample.{int(norm)}.{tail}"
    return f"layer{stage}.{block}.{'bn' if norm else 'conv'}{_PARTS[part]}.{tail}"
