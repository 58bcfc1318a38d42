"""Names of published video ResNets, in three spellings, as those of our trunk; and others, in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

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

    Args:
        names: of the tensors of a file.

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
