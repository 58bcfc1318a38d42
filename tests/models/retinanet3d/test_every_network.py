"""Laws that every registered network keeps; a network joins by being registered."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from roadaware import config as configs
from roadaware.errors import UsageError
from roadaware.models import CROSSING, MODELS, NETWORKS, create, list_model_cards
from roadaware.models.retinanet3d.anchors import Targets
from roadaware.models.retinanet3d.config import RetinaNetConfig, compact, default, reference
from roadaware.models.retinanet3d.loss import compute_losses
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.weights import open_network, save_detector

torch.set_num_threads(1)
TRUNK = (
    ("embedding_size", 8),
    ("hidden_sizes", (8, 8, 8, 16)),
    ("depths", (1, 1, 1, 1)),
    ("layer_type", "basic"),
)
SMALL = {
    "base_width": 8,
    "blocks": (1, 1, 1, 1),
    "stage_widths": (8, 8, 8, 16),
    "width": 8,
    "head_layers": 1,
    "trunk": "ResNetConfig",
    "trunk_fields": TRUNK,
}
KINDS = {"agent": ("car", "person"), "action": ("stop",)}
AV = ("go", "wait")


def made(name: str, **changed: object) -> RetinaNet3D:
    torch.manual_seed(0)
    network: RetinaNet3D = create(name, config=default(**{**SMALL, **changed}), n_classes=4, n_av=2)
    return network


def clip(frames: int = 4) -> Tensor:
    return torch.randn(1, 3, frames, 64, 96, generator=torch.Generator().manual_seed(1))


def truth(frames: int = 4) -> Targets:
    box, labels = torch.tensor([[10.0, 10.0, 50.0, 40.0]]), torch.tensor([[1.0, 0.0, 1.0, 1.0]])
    return Targets(
        [[box] * frames], [[labels] * frames], torch.ones(1, frames).long(), torch.ones(1, frames).bool()
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_the_card_of_the_network_is_complete(name: str) -> None:
    card = list_model_cards()[name]
    assert card.name == name
    assert (card.family, card.tasks) == ("network", ("road",))
    assert [f.name for f in fields(card) if not getattr(card, f.name) and f.name != "published"] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("training", [True, False])
def test_every_parameter_has_a_gradient(name: str, training: bool) -> None:
    # The fast way of SlowFast has an eighth of the channels. Were it one, the norm behind would take any scale of it
    # away, and only rounding would give the norm before a gradient.
    width = 16 if name == "retinanet3d-slowfast" else 8
    network = made(name, anchor_sizes_px=(16.0, 32.0, 64.0, 128.0, 256.0), base_width=width).train(training)
    compute_losses(network(clip()), truth(), network.config)["total"].backward()
    idle = [key for key, weight in network.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert idle == []


def test_dead_weights_are_those_that_nothing_uses() -> None:
    network = made("retinanet3d-slowfast", dead_weights=True)
    compute_losses(network(clip()), truth(), network.config)["total"].backward()
    idle = {key.split(".")[1] for key, weight in network.named_parameters() if weight.grad is None}
    assert idle == {"conv1", "bn1", "layer1", "layer2", "layer3", "layer4", "ego_lateral"}
    waiting = [
        key for key, weight in network.named_parameters() if weight.grad is None and weight.requires_grad
    ]
    assert waiting == []


@pytest.mark.parametrize("name", NETWORKS)
def test_the_same_seed_gives_the_same_network_and_answer(name: str) -> None:
    first, second = made(name).eval(), made(name).eval()
    with torch.no_grad():
        for one, other in zip(first(clip()), second(clip()), strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_survives_its_file(name: str, tmp_path: Path) -> None:
    network, path = made(name).eval(), tmp_path / "net.safetensors"
    save_detector(path, network, KINDS, AV, {"epochs": 3})
    again, facts = open_network(path)
    assert again.config == network.config
    assert (facts["kinds"], facts["av_labels"], facts["notes"]) == (
        {kind: list(names) for kind, names in KINDS.items()},
        list(AV),
        {"epochs": 3},
    )
    assert list(again.state_dict()) == list(network.state_dict())
    with torch.no_grad():
        for one, other in zip(network(clip()), again(clip()), strict=True):
            assert torch.equal(one, other)
    save_detector(tmp_path / "again.safetensors", again, KINDS, AV, {"epochs": 3})
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", NETWORKS)
def test_an_opened_network_can_be_trained_on(name: str, tmp_path: Path) -> None:
    save_detector(tmp_path / "net.safetensors", made(name), KINDS, AV)
    network = open_network(tmp_path / "net.safetensors")[0].train()
    compute_losses(network(clip()), truth(), network.config)["total"].backward()
    assert all(weight.requires_grad for weight in network.parameters())


@pytest.mark.parametrize("levels", [1, 2, 3, 4, 5])
def test_a_pyramid_has_as_many_levels_as_anchor_sizes(levels: int) -> None:
    network = made("retinanet3d-compact", anchor_sizes_px=(16.0, 32.0, 64.0, 128.0, 256.0)[:levels])
    compute_losses(network(clip()), truth(), network.config)["total"].backward()
    assert all(weight.grad is not None for weight in network.parameters())
    cells = [8 * 12, 4 * 6, 2 * 3, 1 * 2, 1 * 1][:levels]
    assert len(network(clip()).anchors) == 9 * sum(cells)


def test_head_forms_and_a_network_without_own_vehicle() -> None:
    network = made("retinanet3d-compact", head_width=12, head_layers=2, head_time=1, depthwise=True)
    assert network.cls_heads[4].weight.shape == (36, 12, 1, 3, 3)
    bare = RetinaNet3D(network.config, 4, 0)
    assert bare(clip()).av_logits.shape == (1, 4, 0)
    assert not [name for name in bare.state_dict() if name.startswith("ego_head")]


def test_the_recommended_compact_network_is_small() -> None:
    with torch.device("meta"):
        network = create("retinanet3d-compact", n_classes=150, n_av=7)
    assert network.config == compact()
    assert sum(weight.numel() for weight in network.parameters()) < 1_800_000


def test_scores_begin_at_the_prior() -> None:
    network = made("retinanet3d-c2d", prior=0.02).eval()
    for bias in (network.cls_heads[2].bias, network.ego_head.bias):
        torch.testing.assert_close(bias.sigmoid(), torch.full_like(bias, 0.02))


def test_the_config_survives_json() -> None:
    for config in (default(**SMALL), reference(), compact()):
        assert configs.from_dict(RetinaNetConfig, configs.to_dict(config)) == config


@pytest.mark.parametrize(
    ("fields_", "message"),
    [
        ({"backbone": "vgg"}, "no backbone is called 'vgg'"),
        ({"depth": 34}, "a ResNet of 34 layers"),
        ({"blocks": (1, 2)}, "one entry for each of four stages"),
        ({"base_width": 12}, "base_width must be a multiple of 8"),
        ({"backbone": "transformers", "trunk": ""}, "needs its configuration class"),
    ],
)
def test_impossible_configs_are_refused(fields_: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        default(**fields_)


def test_unknown_names_are_refused_with_those_that_exist() -> None:
    with pytest.raises(
        UsageError, match=r"no model is called 'yolo'; there are .*boosting.*retinanet3d-rcgru"
    ):
        create("yolo")


def test_names_and_cards_need_no_torch() -> None:
    code = (
        "import sys\n"
        "from roadaware.models import list_model_cards\n"
        "import roadaware.models.retinanet3d\n"
        "print(len(list_model_cards()), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(MODELS) + len(CROSSING) + len(NETWORKS)), "False"]


def test_batch_norm_learns_only_in_training() -> None:
    network = made("retinanet3d-i3d")
    norms = [layer for layer in network.modules() if isinstance(layer, nn.BatchNorm3d)]
    network.eval()(clip())
    assert all(int(norm.num_batches_tracked) == 0 for norm in norms)
    network.train()(clip())
    assert all(int(norm.num_batches_tracked) == 1 for norm in norms)


def test_a_name_says_the_backbone_whatever_the_config_says() -> None:
    network = create("retinanet3d-c2d", config=replace(default(**SMALL), backbone="rcn"), n_classes=2, n_av=1)
    assert network.config.backbone == "c2d"
