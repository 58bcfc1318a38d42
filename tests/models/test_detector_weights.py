"""Weights of detectors: what fits is loaded and reported, what does not is refused and changes nothing."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from roadaware.errors import DamagedError, InputError, RoadawareError, UsageError
from roadaware.models.detector import read_advice, read_training_data
from roadaware.models.retinanet3d import default, reference
from roadaware.models.retinanet3d.detector import StreamDetector, WindowDetector
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.weights import load_published, open_detector, open_network, save_detector
from roadaware.scenes.advice import Advice

torch.set_num_threads(1)
SMALL = {"base_width": 8, "blocks": (1, 2, 2, 1), "width": 8, "head_layers": 1}
KINDS = {"agent": ("car", "person"), "action": ("stop",)}  # not in the order of the alphabet
AV = ("go", "wait")
State = dict[str, Tensor]


def network_of(
    backbone: str = "i3d", *, seed: int = 0, classes: int = 4, actions: int = 2, **fields: object
) -> RetinaNet3D:
    torch.manual_seed(seed)
    return RetinaNet3D(reference(backbone=backbone, **{**SMALL, **fields}), classes, actions).eval()


def saved(state: object, path: Path) -> Path:
    torch.save(state, path)
    return path


def unchanged(network: RetinaNet3D, before: State) -> bool:
    return all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


def copied(network: RetinaNet3D) -> State:
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


@pytest.mark.parametrize("backbone", ["c2d", "i3d", "slowfast", "rcn", "rclstm", "rcgru"])
@pytest.mark.parametrize("prefix", ["", "module."])
def test_a_released_checkpoint_fills_every_key(backbone: str, prefix: str, tmp_path: Path) -> None:
    source, target = network_of(backbone, seed=1), network_of(backbone, seed=2)
    state = {prefix + name: tensor for name, tensor in source.state_dict().items()}
    report = load_published(target, saved(state, tmp_path / "model_000030.pth"))
    assert set(report.matched) == set(target.state_dict())
    assert (report.missing, report.unused, report.inflated) == ((), (), ())
    assert unchanged(target, source.state_dict())


def test_unused_and_dead_keys_are_reported(tmp_path: Path) -> None:
    source = network_of("slowfast", seed=1)
    target = RetinaNet3D(default(backbone="slowfast", slowfast_strides="dilated", **SMALL), 4, 2)
    state = {**source.state_dict(), "criterion.weight": torch.zeros(1)}
    report = load_published(target, saved(state, tmp_path / "model.pth"))
    assert report.missing == ()
    assert "backbone.ego_lateral.weight" in report.unused
    assert "backbone.layer4.0.conv1.weight" in report.unused
    assert "criterion.weight" in report.unused
    assert str(report).startswith(f"{len(report.matched)} matched (0 inflated over time), 0 missing, ")
    assert "unused: criterion.weight" in str(report)


def test_usual_wrappers_and_safetensors_are_read(tmp_path: Path) -> None:
    source = network_of(seed=1)
    wrapped = saved({"epoch": 3, "state_dict": source.state_dict()}, tmp_path / "wrapped.pth")
    save_file(
        {name: tensor.clone() for name, tensor in source.state_dict().items()}, tmp_path / "a.safetensors"
    )
    for path in (wrapped, tmp_path / "a.safetensors"):
        target = network_of(seed=2)
        load_published(target, path)
        assert unchanged(target, source.state_dict())


def test_parts_of_a_file_fill_a_network_of_other_labels_and_anchors(tmp_path: Path) -> None:
    source, target = (
        network_of(seed=1),
        network_of(seed=2, classes=9, actions=0, anchor_sizes_px=(3, 6, 9, 12, 15)),
    )
    path, before = saved(source.state_dict(), tmp_path / "model.pth"), copied(target)
    with pytest.raises(UsageError, match="classes"):
        load_published(target, path)
    assert unchanged(target, before)
    report = load_published(target, path, take=("backbone.", "reg_heads."))
    held = source.state_dict()
    for name, tensor in target.state_dict().items():
        taken = name.startswith(("backbone.", "reg_heads."))
        assert torch.equal(tensor, held[name] if taken else before[name])
    assert {name.split(".")[0] for name in report.unused} == {"anchors", "cls_heads", "ego_head"}


def test_a_file_in_half_precision_is_computed_in_single(tmp_path: Path) -> None:
    network = network_of(seed=1)
    save_detector(tmp_path / "whole.safetensors", network, KINDS, AV)
    for part in network.modules():
        if not isinstance(part, torch.nn.BatchNorm3d):
            part._apply(lambda tensor: tensor.half() if tensor.is_floating_point() else tensor, recurse=False)
    save_detector(tmp_path / "half.safetensors", network, KINDS, AV)
    half, whole = (open_network(tmp_path / f"{name}.safetensors")[0] for name in ("half", "whole"))
    held = whole.state_dict()
    for name, tensor in half.state_dict().items():
        assert tensor.dtype == held[name].dtype
        assert torch.equal(tensor, held[name]) or torch.allclose(tensor, held[name], rtol=1e-3, atol=1e-6)
    assert any(not torch.equal(tensor, held[name]) for name, tensor in half.state_dict().items())


def _trunk(network: RetinaNet3D, *, flat: bool) -> State:
    """What a file of Kinetics or ImageNet weights holds of a network: its ResNet and a classifier."""
    state = {}
    for name, tensor in network.state_dict().items():
        bare = name.removeprefix("backbone.")
        if bare.startswith(("conv1.", "bn1.", "layer")):
            state[bare] = tensor[:, :, 0].clone() if flat and tensor.dim() == 5 else tensor.clone()
    return {**state, "fc.weight": torch.zeros(3, 8)}


def test_kinetics_weights_fill_the_trunk_only(tmp_path: Path) -> None:
    source, target = network_of(seed=1), network_of(seed=2)
    before = copied(target)
    report = load_published(target, saved(_trunk(source, flat=False), tmp_path / "resnet50I3D.pth"))
    trunk = {f"backbone.{name}" for name in _trunk(source, flat=False)} - {"backbone.fc.weight"}
    assert set(report.matched) == trunk
    assert report.unused == ("fc.weight",)
    assert {name.split(".")[0] for name in report.missing} == {
        "anchors",
        "backbone",
        "reg_heads",
        "cls_heads",
        "ego_head",
    }
    for name, tensor in target.state_dict().items():
        assert torch.equal(tensor, source.state_dict()[name] if name in trunk else before[name])


def test_flat_weights_are_repeated_over_time_and_divided(tmp_path: Path) -> None:
    source, target = network_of("c2d", seed=1), network_of("i3d", seed=2)
    report = load_published(target, saved(_trunk(source, flat=True), tmp_path / "resnet50.pth"))
    assert set(report.inflated) == {
        f"backbone.layer{stage}.{block}.conv1.weight" for stage, block in ((1, 0), (2, 0), (3, 0), (4, 0))
    }
    flat = source.state_dict()["backbone.layer2.0.conv1.weight"]
    kernel = target.state_dict()["backbone.layer2.0.conv1.weight"]
    torch.testing.assert_close(kernel, (flat / 3).repeat(1, 1, 3, 1, 1))
    still = torch.rand(1, 3, 1, 32, 32).repeat(1, 1, 8, 1, 1)
    with torch.no_grad():
        maps = [net.backbone.conv1(still) for net in (source, target)]
    torch.testing.assert_close(*maps)


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["", "module.", "backbone.", "module.backbone."])
def test_kinetics_weights_of_slowfast_are_found_under_their_names(prefix: str, tmp_path: Path) -> None:
    source, target = network_of("slowfast", seed=1), network_of("slowfast", seed=2)
    inside = "backbone.backbone.module."
    ways = {name for name in source.state_dict() if name.startswith(inside)}
    state = {prefix + name.removeprefix(inside): source.state_dict()[name] for name in ways}
    report = load_published(target, saved(state, tmp_path / "SLOWFAST_R101_K700.pth.tar"))
    assert set(report.matched) == ways
    assert all(torch.equal(target.state_dict()[name], source.state_dict()[name]) for name in ways)


def test_recurrent_units_may_be_missing_from_a_trunk(tmp_path: Path) -> None:
    report = load_published(
        network_of("rcn"), saved(_trunk(network_of("c2d"), flat=True), tmp_path / "r.pth")
    )
    assert "backbone.layer1.0.rcu.conv_whh.weight" in report.missing


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"classes": 25},
            r"cls_heads.2.weight .* for [^$]*looks like retinanet3d-i3d with depth=50, n_classes=25, n_av=2;",
        ),
        ({"actions": 7}, r"ego_head.weight [^$]*n_classes=4, n_av=7; create that network"),
        ({"backbone": "c2d", "head_time": 1}, "looks like retinanet3d-c2d"),
        ({"backbone": "slowfast"}, "looks like retinanet3d-slowfast"),
        ({"backbone": "rclstm"}, "looks like retinanet3d-rclstm"),
        ({"blocks": (1, 1, 1, 1)}, r"layer2.1.conv1.weight is not in the file; .* \(and \d+ more\)"),
        ({"width": 16}, "does not fit this network"),
    ],
)
def test_another_network_is_refused_and_nothing_changes(
    other: dict[str, object], message: str, tmp_path: Path
) -> None:
    target = network_of()
    before = copied(target)
    path = saved(network_of(**{"seed": 1, **other}).state_dict(), tmp_path / "model.pth")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=message):
        load_published(target, path)
    assert unchanged(target, before)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither a 3D-RetinaNet nor a ResNet: its names begin with weight"):
        load_published(network_of(), saved({"weight": torch.zeros(2)}, tmp_path / "other.pth"))
    with pytest.raises(InputError, match="holds no tensors by name"):
        load_published(network_of(), saved({"epoch": 1}, tmp_path / "empty.pth"))
    with pytest.raises(InputError, match="found no file"):
        load_published(network_of(), tmp_path / "absent.pth")


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    state = copied(network_of())
    state["cls_heads.0.weight"][0] = torch.nan
    with pytest.raises(InputError, match=r"not finite in the checkpoint: cls_heads\.0\.weight"):
        load_published(network_of(), saved(state, tmp_path / "nan.pth"))


class Canary:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("name", ["model.pth", "model.pkl", "model.safetensors"])
@pytest.mark.parametrize("old", [True, False])
def test_no_code_in_a_checkpoint_is_run(name: str, old: bool, tmp_path: Path) -> None:
    path, canary = tmp_path / name, tmp_path / "canary"
    held = {**network_of().state_dict(), "extra": Canary(canary)}
    if old:
        path.write_bytes(pickle.dumps(held))
    else:
        torch.save(held, path)
    for reader in (lambda: load_published(network_of(), path), lambda: open_detector(path)):
        with pytest.raises(InputError):
            reader()
    assert not canary.exists()


def test_code_in_a_checkpoint_is_named(tmp_path: Path) -> None:
    path = saved({"extra": Canary(tmp_path / "canary")}, tmp_path / "model.pth")
    with pytest.raises(InputError, match="more than tensors, which is not loaded since it could run code"):
        load_published(network_of(), path)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.9999])
def test_a_file_cut_short_is_damaged(share: float, tmp_path: Path) -> None:
    released, ours = saved(network_of().state_dict(), tmp_path / "model.pth"), tmp_path / "net.safetensors"
    save_detector(ours, network_of(), KINDS, AV)
    for path in (released, ours):
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(DamagedError):
        load_published(network_of(), released)
    with pytest.raises(DamagedError):
        open_detector(ours)


def test_a_changed_byte_of_our_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    save_detector(path, network_of(), KINDS, AV)
    whole = path.read_bytes()
    for place in (5, 40, 400, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(RoadawareError):
            open_detector(path)


def test_a_causal_network_streams_and_another_needs_a_window(tmp_path: Path) -> None:
    for causal, kind in ((True, StreamDetector), (False, WindowDetector)):
        path = tmp_path / f"{causal}.safetensors"
        save_detector(path, network_of(causal=causal), KINDS, AV)
        detector = open_detector(path)
        assert isinstance(detector, kind)
        assert (detector.kinds, detector.av_labels) == (KINDS, AV)
        assert list(detector.kinds) == list(KINDS)  # the order of the columns


def test_labels_must_be_as_many_as_the_network_tells(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"tells 3 labels and 2 actions .* named are 2 and 2"):
        save_detector(tmp_path / "net.safetensors", network_of(), {"agent": ("car", "person")}, AV)
    assert not list(tmp_path.iterdir())


def test_files_that_are_not_ours_say_so(tmp_path: Path) -> None:
    plain, later = tmp_path / "plain.safetensors", tmp_path / "later.safetensors"
    save_file({"a": torch.zeros(1)}, plain)
    with pytest.raises(InputError, match="does not say of which network"):
        open_detector(plain)
    save_file({"a": torch.zeros(1)}, later, {"roadaware": json.dumps({"format": 9, "version": "7.0"})})
    with pytest.raises(
        InputError, match=r"format 9, and this version reads 2\n.*open it with roadaware 7\.0"
    ):
        open_network(later)
    save_file({"a": torch.zeros(1)}, later, {"roadaware": json.dumps({"format": "crowd-5", "version": "1"})})
    with pytest.raises(InputError, match="another kind of model"):
        open_network(later)
    with pytest.raises(InputError, match="found none"):
        open_network(tmp_path / "absent.safetensors")


@pytest.mark.parametrize("facts", ["[]", "{", '{"format": 2}', '{"format": 2, "config": {"width": -1}}'])
def test_facts_that_do_not_fit_are_damage(facts: str, tmp_path: Path) -> None:
    save_file({"a": torch.zeros(1)}, tmp_path / "a.safetensors", {"roadaware": facts})
    with pytest.raises(InputError):
        open_network(tmp_path / "a.safetensors")


def test_a_detector_says_how_its_boxes_are_used(tmp_path: Path) -> None:
    said, silent, other = (tmp_path / name for name in ("said.safetensors", "silent.safetensors", "other"))
    save_detector(said, network_of(), KINDS, AV, {"linking": {"min_iou": 0.1}, "min_score": 0.3})
    save_detector(silent, network_of(), KINDS, AV)
    other.write_bytes(b"no weights")

    whole = Advice({"min_iou": 0.1}, 0.3)
    assert read_advice([said]) == read_advice([said, said]) == whole
    for path in (silent, other, tmp_path, tmp_path / "absent"):
        assert read_advice([path]) == Advice()
    assert read_advice([said, silent]).disputed == {"linking.min_iou": (0.1, None), "min_score": (0.3, None)}


@pytest.mark.parametrize(
    "notes",
    [
        {"min_score": 1.5},
        {"min_score": "high"},
        {"min_score": True},
        {"linking": [0.1]},
        {"trained_on": 7},
        {"trained_on": "a\x1b[31m"},
        {"trained_on": "long " * 99},
    ],
)
def test_advice_that_is_none_is_damage(notes: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "odd.safetensors"
    save_detector(path, network_of(), KINDS, AV, notes)
    with pytest.raises(DamagedError) as caught:
        (read_training_data if "trained_on" in notes else read_advice)([path])
    assert str(path) in str(caught.value)


def test_a_detector_says_whether_it_saw_anything_real(tmp_path: Path) -> None:
    paths = {}
    for name, notes in (
        ("worded", {"data": "simulator", "trained_on": "synthetic scenes alone"}),
        ("simulated", {"data": "simulator"}),
        ("real", {"data": "ROAD"}),
        ("silent", {}),
    ):
        paths[name] = tmp_path / f"{name}.safetensors"
        save_detector(paths[name], network_of(), KINDS, AV, notes)
    assert read_training_data([paths["worded"]]) == "synthetic scenes alone"
    assert "synthetic" in read_training_data([paths["simulated"]])
    assert read_training_data([paths["real"]]) == read_training_data([paths["silent"]]) == ""
    assert read_training_data([paths["simulated"], paths["real"]]) == ""  # one has seen real roads
    assert read_training_data([paths["worded"]] * 2) == "synthetic scenes alone"
