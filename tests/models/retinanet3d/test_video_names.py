"""Published video ResNets fill our trunk: every tensor finds its place or is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import save_file
from torch import Tensor

from roadaware.errors import UsageError
from roadaware.models.retinanet3d.config import default
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.weights import load_published

BASE, BLOCKS = 8, (3, 4, 6, 3)
KERNELS = {
    "c2d": (1, ((1,) * 3, (1,) * 4, (1,) * 6, (1,) * 3)),
    "slow": (1, ((1,) * 3, (1,) * 4, (3,) * 6, (3,) * 3)),
    "i3d": (5, ((3,) * 3, (3, 1, 3, 1), (3, 1, 3, 1, 3, 1), (1, 3, 1))),
}
"""Frames that the stem and the first convolution of each block span, as published."""
NORM = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
Spelling = Callable[[str, int, int, str, bool], str]


def pyslowfast(what: str, stage: int, block: int, part: str, norm: bool) -> str:
    if what == "stem":
        return f"s1.pathway0_stem.{'bn' if norm else 'conv'}"
    branch = "branch1" if part == "beside" else f"branch2.{part}"
    return f"s{stage + 2}.pathway0_res{block}.{branch}{'_bn' if norm else ''}"


def pytorchvideo(what: str, stage: int, block: int, part: str, norm: bool) -> str:
    kind = "norm" if norm else "conv"
    if what == "stem":
        return f"blocks.0.{kind}"
    branch = f"branch1_{kind}" if part == "beside" else f"branch2.{kind}_{part}"
    return f"blocks.{stage + 1}.res_blocks.{block}.{branch}"


def pooled(what: str, stage: int, block: int, part: str, norm: bool) -> str:
    """PyTorchVideo puts a pooling without weights between the first two stages of C2D and I3D."""
    return pytorchvideo(what, stage + (stage > 0), block, part, norm)


def mmaction(what: str, stage: int, block: int, part: str, norm: bool) -> str:
    kind = "bn" if norm else "conv"
    if what == "stem":
        return f"backbone.conv1.{kind}"
    inner = "downsample" if part == "beside" else f"conv{'abc'.index(part) + 1}"
    return f"backbone.layer{stage + 1}.{block}.{inner}.{kind}"


SPELLINGS: dict[str, Spelling] = {f.__name__: f for f in (pyslowfast, pytorchvideo, pooled, mmaction)}
HEADS = {"pyslowfast": "head.projection", "mmaction": "cls_head.fc_cls"}


def published(spelling: str, kind: str) -> dict[str, Tensor]:
    """A checkpoint of a narrow ResNet-50 under published names, each tensor other than all others."""
    name, torch_rng = SPELLINGS[spelling], torch.Generator().manual_seed(1)
    held: dict[str, Tensor] = {}

    def layer(what: str, stage: int, block: int, part: str, shape: tuple[int, ...]) -> None:
        held[f"{name(what, stage, block, part, False)}.weight"] = torch.randn(shape, generator=torch_rng)
        for field in NORM:
            size = () if field == "num_batches_tracked" else (shape[0],)
            value = torch.rand(size, generator=torch_rng) + 0.5
            held[f"{name(what, stage, block, part, True)}.{field}"] = (
                torch.tensor(7) if field == "num_batches_tracked" else value
            )

    stem, taps = KERNELS[kind]
    layer("stem", 0, 0, "", (BASE, 3, stem, 7, 7))
    inputs = BASE
    for stage, count in enumerate(BLOCKS):
        width = BASE * 2**stage
        for block in range(count):
            layer("block", stage, block, "a", (width, inputs, taps[stage][block], 1, 1))
            layer("block", stage, block, "b", (width, width, 1, 3, 3))
            layer("block", stage, block, "c", (4 * width, width, 1, 1, 1))
            if not block:
                layer("block", stage, block, "beside", (4 * width, inputs, 1, 1, 1))
            inputs = 4 * width
    head = HEADS.get(spelling, "blocks.5.proj")
    held[f"{head}.weight"], held[f"{head}.bias"] = torch.zeros(400, inputs), torch.zeros(400)
    return held


def network(backbone: str = "i3d") -> RetinaNet3D:
    small = {"base_width": BASE, "width": 8, "head_layers": 1, "anchor_scales": (1.0,)}
    return RetinaNet3D(default(backbone=backbone, **small), 3, 0)


@pytest.mark.slow
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("kind", KERNELS)
def test_every_tensor_finds_its_place_and_still_pictures_their_answer(
    tmp_path: Path, spelling: str, kind: str
) -> None:
    held = published(spelling, kind)
    torch.save({"model_state": held, "epoch": 196}, tmp_path / "video.pyth")
    ours = network()
    report = load_published(ours, tmp_path / "video.pyth")
    assert set(report.unused) == {name for name in held if "head" in name or "proj" in name}
    assert len(report.matched) == len(held) - 2
    trunk = {name.removeprefix("backbone."): each for name, each in ours.state_dict().items()}
    name = SPELLINGS[spelling]
    beside = (held[f"{name('block', 2, 0, 'beside', n)}.weight"] for n in (False, True))
    assert [torch.equal(trunk[f"layer3.0.downsample.{n}.weight"], each) for n, each in enumerate(beside)] == [
        True,
        True,
    ]
    places = [("conv1", name("stem", 0, 0, "", False), name("stem", 0, 0, "", True))]
    for stage, count in enumerate(BLOCKS):
        for block in range(count):
            for part in "abc":
                mine = f"layer{stage + 1}.{block}.conv{'abc'.index(part) + 1}"
                theirs = (name("block", stage, block, part, norm) for norm in (False, True))
                places.append((mine, *theirs))
    for mine, conv, norm in places:
        # What stands still is seen by the sum of a kernel over time.
        torch.testing.assert_close(trunk[f"{mine}.weight"].sum(2), held[f"{conv}.weight"].sum(2))
        for field in NORM:
            assert torch.equal(trunk[f"{mine.replace('conv', 'bn')}.{field}"], held[f"{norm}.{field}"])
    same = [n for n in report.matched if n not in report.inflated + report.shortened and "conv" in n]
    assert bool(report.shortened) == (kind != "c2d")
    assert bool(report.inflated)
    assert same


def test_a_trunk_of_single_frames_takes_c2d_as_it_is(tmp_path: Path) -> None:
    save_file(published("pytorchvideo", "c2d"), tmp_path / "c2d.safetensors")
    report = load_published(network("c2d"), tmp_path / "c2d.safetensors")
    assert report.inflated == report.shortened == ()


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["s1.pathway0_stem.conv.weight", "s1.pathway1_stem.conv.weight"], "a SlowFast of two ways"),
        (["blocks.0.conv.conv_t.weight", "blocks.1.res_blocks.0.branch2.conv_a.weight"], "an X3D"),
        (["videomae.embeddings.patch_embeddings.projection.weight"], "a VideoMAE"),
        (["Conv3d_1a_7x7.conv3d.weight"], "an I3D of Inception"),
    ],
)
def test_networks_of_another_build_are_named(tmp_path: Path, names: list[str], says: str) -> None:
    save_file({name: torch.zeros(2, 2) for name in names}, tmp_path / "other.safetensors")
    with pytest.raises(UsageError, match=f"holds {says}.*ResNet-50 of PySlowFast"):
        load_published(network(), tmp_path / "other.safetensors")


def test_a_file_that_lacks_a_tensor_changes_nothing(tmp_path: Path) -> None:
    held = published("mmaction", "i3d")
    del held["backbone.layer3.4.conv2.conv.weight"]
    save_file(held, tmp_path / "cut.safetensors")
    ours = network()
    before = {name: each.clone() for name, each in ours.state_dict().items()}
    with pytest.raises(UsageError, match=r"layer3\.4\.conv2\.weight is not in the file"):
        load_published(ours, tmp_path / "cut.safetensors")
    assert all(torch.equal(before[name], each) for name, each in ours.state_dict().items())
