"""IntelliCare as a whole: trunks, paths, files, and that all heads learn together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.models.crowd import losses
from roadaware.models.crowd.config import TASKS, CrowdConfig, Task, Vocabulary
from roadaware.models.crowd.grounding import Matched, TextEncoder, WordReader, build_words, list_partners
from roadaware.models.crowd.network import IntelliCare, begin_trunk, build_trunk, open_crowd, save_crowd
from roadaware.models.crowd.people import choose_pairs
from roadaware.models.crowd.sound import hear
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.weights import open_network

torch.set_num_threads(1)
SENTENCES = ("a man throws stones", "a woman runs away")
WORDS = Vocabulary(
    ("walking", "running", "hugging"), ("watching", "pushing"), ("siren", "shouting"), build_words(SENTENCES)
)


def _network(config: CrowdConfig | None = None, seed: int = 0) -> IntelliCare:
    torch.manual_seed(seed)
    return IntelliCare(config or CrowdConfig.tiny(), WORDS)


def _questions(
    frames: int = 6, side: int = 64, *, people: bool = True
) -> tuple[Tensor, dict[Task, dict[str, Any]]]:
    """Two clips, and a question of each task about both; sentences are looked for among people or in cells."""
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.normal(size=(2, 3, frames, side, side))).float()
    corner = rng.uniform(0, side / 2, (6, 1, 2)).repeat(frames, axis=1)
    boxes = torch.from_numpy(np.concatenate([corner, corner + side / 4], axis=2)).float()
    clip = torch.tensor([0, 0, 0, 1, 1, 1])
    colours = torch.from_numpy(rng.uniform(-1, 1, (2, 12, frames, side // 16, side // 16))).float()
    tracks = boxes[:, :, None] + torch.from_numpy(rng.normal(size=(6, 1, 9, 1))).float()
    read = WordReader(WORDS.words, 64).encode(SENTENCES)
    heard = torch.stack([hear(rng.normal(0, 0.2, (48_000, 2)), 16_000) for _ in range(2)])
    return images, {
        "actions": {"boxes": boxes[:, frames // 2], "clip": clip},
        "relations": {
            "boxes": boxes,
            "clip": clip,
            "pairs": choose_pairs(boxes[:, 0], clip, heights=9, most=99).index,
        },
        "grounding": {"ids": read.ids, "mask": read.mask}
        | ({"boxes": boxes, "owner": clip, "colours": colours, "tracks": tracks} if people else {}),
        "sound": {"examples": heard, "asked": torch.tensor([0, 1])},
    }


def _targets(frames: int = 6, cells: int = 14) -> dict[Task, Callable[[Any], Tensor]]:
    """What each head should say of `_questions`, as a loss."""
    rng = np.random.default_rng(1)
    actions = torch.from_numpy(np.eye(3)[rng.integers(0, 3, 6)]).float()
    pairs = torch.from_numpy(rng.integers(0, 2, (12, 2))).float()
    box = torch.tensor([[0.3, 0.4, 0.2, 0.5], [0.7, 0.5, 0.3, 0.3]])[:, None].expand(-1, frames, -1)
    span, mask = torch.tensor([[0, 2], [3, frames - 1]]), torch.ones(2, frames, dtype=torch.bool)
    source = torch.zeros(2, cells, cells)
    source[0, 2:6, 2:6] = 1
    source[1, 8:12, 8:12] = 1
    return {
        "actions": lambda found: losses.actions(found, actions),
        "relations": lambda found: losses.relations(found, pairs),
        "grounding": lambda found: (
            losses.matching(found, torch.tensor([1, 2]), span, mask).total
            if isinstance(found, Matched)
            else losses.grounding(found, box, span, mask).total
        ),
        "sound": lambda found: losses.sound_map(found.logits, source),
    }


@pytest.mark.parametrize("frames", [1, 4])
def test_the_dilated_trunk_has_the_cells_of_the_detector(frames: int) -> None:
    """Every second cell of the dilated stage is what the stage with a stride gave."""
    torch.manual_seed(0)
    for config in (CrowdConfig.tiny(), CrowdConfig.tiny(trunk="i3d", base_width=8, time_pool=False)):
        detector = RetinaNet3D(config.trunk_config(), 1, 0)
        trunk = build_trunk(config)
        state = detector.backbone.state_dict()
        trunk.load_state_dict({name: state[name] for name in trunk.state_dict()})
        for network in (detector, trunk):
            for norm in network.modules():
                if isinstance(norm, torch.nn.BatchNorm3d):
                    norm.running_mean = torch.linspace(-1, 1, norm.num_features)
        images = torch.randn(1, 3, frames, 96, 64)
        with torch.no_grad():
            coarse = detector.eval().backbone.stages(images)[2]
            fine = trunk.eval()(images)
        assert fine.shape == (1, trunk.channels, frames, 6, 4)
        assert torch.allclose(fine[..., ::2, ::2], coarse, atol=1e-4)


@pytest.mark.parametrize(
    ("config", "before"),
    [
        (CrowdConfig.tiny(), "stage4.0"),
        (CrowdConfig.tiny(blocks=0), "stage4.0"),
        (CrowdConfig.tiny(layers=("stage3.0.first",)), "stage3.0"),
        (CrowdConfig.tiny(trunk="i3d", base_width=8, stage_blocks=(1, 1, 1, 3)), "layer4.1"),
    ],
)
def test_kept_maps_lie_before_the_first_dynamic_layer(config: CrowdConfig, before: str) -> None:
    network = _network(config).eval()
    assert network.trunk.steps()[network.trunk.cut][0] == before
    images, _ = _questions()
    with torch.no_grad():
        kept = network.stem(images)
        whole = network.tail(kept, "sound")
        assert whole.shape == (2, network.trunk.channels, 6, 4, 4)
        assert torch.equal(network.trunk(images), whole)


def test_the_trunk_begins_with_the_bundled_weights() -> None:
    torch.manual_seed(0)
    network = IntelliCare(CrowdConfig.compact(tasks=("actions", "sound")), WORDS)
    begin_trunk(network)
    network.pathfinder.fix({"actions": (0,) * 5, "sound": (1,) * 5})
    detector = open_network(Path(__file__).parents[3] / "src/roadaware/weights/compact-road.safetensors")[0]
    images = torch.randn(1, 3, 3, 96, 128)
    with torch.no_grad():
        coarse = detector.backbone.stages(images)[2]
        network.eval()
        first = network.tail(network.stem(images), "actions")
        other = network.tail(network.stem(images), "sound")
    assert torch.allclose(first[..., ::2, ::2], coarse, atol=1e-4)
    # The second block begins beside the first, not on it.
    assert not torch.equal(first, other)
    assert float((first - other).abs().mean()) < 0.2 * float(first.abs().mean())
    with pytest.raises(UsageError, match="do not fit"):
        begin_trunk(_network())
    with pytest.raises(UsageError, match="name a file"):
        begin_trunk(_network(CrowdConfig.tiny(trunk="i3d", base_width=8, stage_blocks=(1, 1, 1, 3))))


def test_the_compact_network_has_the_size_that_its_page_says() -> None:
    labels = [tuple(f"{kind}{n}" for n in range(count)) for kind, count in (("a", 50), ("p", 18), ("s", 28))]
    words = build_words(("a man in a red coat throws stones", "a woman runs away"))
    network = IntelliCare(CrowdConfig.compact(), Vocabulary(*labels, words))
    page = (Path(__file__).parents[3] / "docs" / "crowd_models.md").read_text("utf-8")
    count = sum(p.numel() for p in network.parameters())
    trunk = sum(p.numel() for p in network.trunk.parameters())
    assert f"{count:,} parameters" in page
    assert f"{trunk:,} of them" in page


def test_every_task_is_answered_and_pruned_bit_by_bit() -> None:
    network = _network()
    for layer in network.pathfinder.layers.values():
        torch.nn.init.normal_(layer.score.weight)
    images, questions = _questions()
    network.eval()
    assert len(set(network.pathfinder.paths().values())) > 1
    for task in TASKS:
        if task == "grounding":
            # What people do is scored by the other heads.
            with pytest.raises(UsageError, match="no path of their own"):
                network.pruned(task)
            continue
        with torch.no_grad():
            wanted = network(images, task, **questions[task])
            pruned = network.pruned(task)
            found = pruned(images, task, **questions[task])
        ours, theirs = ((each,) if isinstance(each, Tensor) else tuple(each) for each in (found, wanted))
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
        assert pruned.config.tasks == (task,)
        assert sum(p.numel() for p in pruned.parameters()) < sum(p.numel() for p in network.parameters())
        with pytest.raises(UsageError, match="no dynamic layers"):
            _ = pruned.pathfinder
        others = [other for other in TASKS if other != task]
        with pytest.raises(UsageError, match="has no task"):
            pruned.tail(images, others[0])


def _overfit(
    network: IntelliCare, steps: int, lr: float, frames: int, side: int
) -> dict[str, tuple[float, float]]:
    """Losses in evaluation before and after training all tasks in turn on two clips."""
    images, questions = _questions(frames, side, people=network.config.grounding == "people")
    targets = _targets(frames, network.config.map_size)
    optimizer = torch.optim.AdamW(network.parameters(), lr=lr)

    def judge() -> dict[str, float]:
        network.eval()
        with torch.no_grad():
            kept = network.stem(images)
            return {
                task: float(targets[task](network.answer(kept, task, **questions[task]))) for task in TASKS
            }

    before = judge()
    for _ in range(steps):
        network.train()
        for task in TASKS:
            targets[task](network(images, task, **questions[task])).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
            optimizer.zero_grad()
    after = judge()
    return {task: (before[task], after[task]) for task in TASKS}


@pytest.mark.slow
def test_all_heads_learn_two_clips_together() -> None:
    network = _network(CrowdConfig.tiny(dropout=0.0), seed=1)
    network.pathfinder.set_temperature(0.5)
    for task, (before, after) in _overfit(network, 30, 5e-3, 6, 64).items():
        assert after < 0.75 * before, (task, before, after)


def test_one_head_alone_is_a_network_without_dynamic_layers() -> None:
    images, questions = _questions()
    for task in TASKS:
        alone = _network(CrowdConfig.tiny(blocks=0, tasks=(task,))).eval()
        with torch.no_grad():
            alone(images, task, **questions[task])
        assert list(alone.heads) == [task]


def test_a_network_and_its_file_say_the_same(tmp_path: Path) -> None:
    network, path = _network().eval(), tmp_path / "crowd.safetensors"
    images, questions = _questions()
    network.pathfinder.fix({"actions": (1, 0, 1, 0, 1)})
    save_crowd(path, network, {"steps": 3})
    torch.manual_seed(4)
    state = torch.get_rng_state()
    opened, facts = open_crowd(path, WORDS)
    assert torch.equal(torch.get_rng_state(), state)
    assert facts["notes"] == {"steps": 3}
    assert opened.config == network.config
    assert opened.vocabulary == WORDS
    assert opened.pathfinder.paths() == network.pathfinder.paths()
    with torch.no_grad():
        for task in TASKS:
            one = network(images, task, **questions[task])
            other = opened(images, task, **questions[task])
            pairs = zip(
                *(((each,) if isinstance(each, Tensor) else tuple(each)) for each in (one, other)),
                strict=True,
            )
            assert all(torch.equal(a, b) for a, b in pairs)
    pruned = tmp_path / "pruned.safetensors"
    save_crowd(pruned, network.pruned("actions"))
    assert open_crowd(pruned)[0].config.tasks == ("actions",)


def test_a_file_of_half_the_size_says_nearly_the_same(tmp_path: Path) -> None:
    network, whole, half = _network().eval(), tmp_path / "crowd.safetensors", tmp_path / "half.safetensors"
    # A variance that 16 bits cannot hold.
    network.trunk.get_submodule("norm1").running_var.fill_(1e6)
    save_crowd(whole, network)
    save_crowd(half, network, half=True)
    assert half.stat().st_size < 0.65 * whole.stat().st_size
    opened, _ = open_crowd(half, WORDS)
    assert all(parameter.dtype == torch.float32 for parameter in opened.parameters())
    images, questions = _questions()
    with torch.no_grad():
        one = network(images, "actions", **questions["actions"])
        other = opened(images, "actions", **questions["actions"])
    assert torch.isfinite(other).all()
    assert 0 < (one - other).abs().max() < 0.05


def test_a_file_of_another_vocabulary_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "crowd.safetensors"
    save_crowd(path, _network())
    other = Vocabulary(
        ("walking", "running", "kneeling"), *(getattr(WORDS, k) for k in ("predicates", "sounds", "words"))
    )
    with pytest.raises(InputError, match=r"another vocabulary: .*it lacks kneeling; it alone has hugging"):
        open_crowd(path, other)
    turned = Vocabulary(WORDS.actions[::-1], WORDS.predicates, WORDS.sounds, WORDS.words)
    with pytest.raises(InputError, match="their order differs"):
        open_crowd(path, turned)


def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "crowd.safetensors"
    save_crowd(path, _network())
    raw = path.read_bytes()
    path.write_bytes(raw[:-8] + bytes(b ^ 64 for b in raw[-8:]))
    with pytest.raises(DamagedError):
        open_crowd(path)
    path.write_bytes(raw.replace(b'\\"blocks\\": 2', b'\\"blocks\\": 3'))
    with pytest.raises(DamagedError, match="does not fit"):
        open_crowd(path)
    for other in (b"roadaware-crowd-3", b"roadaware-crowd-4", b"roadaware-crowd-9"):
        path.write_bytes(raw.replace(b"roadaware-crowd-5", other))
        with pytest.raises(InputError, match="no crowd network of this version") as refused:
            open_crowd(path)
        assert "train it again" in str(refused.value.hint)
    with pytest.raises(InputError, match="found none"):
        open_crowd(tmp_path / "nothing.safetensors")
    bundled = Path(__file__).parents[3] / "src/roadaware/weights/compact-road.safetensors"
    with pytest.raises(InputError, match="no crowd network"):
        open_crowd(bundled)


@pytest.mark.parametrize(
    "shape", [(1, 3, 2, 60, 64), (1, 1, 2, 64, 64), (1, 3, 0, 64, 64), (3, 2, 64, 64), (1, 3, 2, 0, 64)]
)
def test_images_that_are_none_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="multiples of 32"):
        _network().stem(torch.zeros(shape))


def test_odd_clips_are_refused_where_frames_are_pooled() -> None:
    network = _network(CrowdConfig.tiny(trunk="i3d", base_width=8, stage_blocks=(1, 1, 1, 3)))
    with pytest.raises(UsageError, match="even number"):
        network.stem(torch.zeros(1, 3, 5, 64, 64))


def test_labels_outside_of_the_vocabulary_are_named() -> None:
    assert WORDS.find("actions", ["hugging", "walking"]) == [2, 0]
    with pytest.raises(UsageError, match="'runing' is none of the actions; did you mean 'running'"):
        WORDS.find("actions", ["runing"])
    with pytest.raises(UsageError, match="there are siren, shouting"):
        WORDS.find("sounds", ["\u65e5\u672c"])
    for bad in (("a", "a"), ("",), (1,)):
        with pytest.raises(UsageError, match="actions"):
            Vocabulary(actions=bad)
    with pytest.raises(UsageError, match="the task sound needs sounds"):
        IntelliCare(CrowdConfig.tiny(), Vocabulary(("a",), ("b",), (), WORDS.words))


@pytest.mark.parametrize(
    "fields",
    [
        {"tasks": ()},
        {"tasks": ("actions", "actions")},
        {"tasks": ("dancing",)},
        {"trunk": "vit"},
        {"blocks": -1},
        {"width": 1e9},
        {"grounding_width": 18},
        {"tree_width": 17},
        {"stage_widths": (8, 8)},
        {"time_pool": 1},
        {"layers": (3,)},
        {"dropout": 1.0},
    ],
)
def test_configs_that_no_network_has_are_refused(fields: dict) -> None:
    with pytest.raises(UsageError):
        CrowdConfig.tiny(**fields)
    with pytest.raises(UsageError, match="is no convolution"):
        _network(CrowdConfig.tiny(layers=("stage9.first",)))


@pytest.mark.slow
def test_the_paper_s_size_builds_answers_and_learns_two_clips() -> None:
    """I3D of ResNet-50 with the five dynamic layers that the paper names, and the four published heads."""
    torch.manual_seed(0)
    network = _network(CrowdConfig.paper(dropout=0.0))
    finder = network.pathfinder
    assert tuple(finder.layers) == (
        "layer4.1.conv2", "layer4.1.conv3", "layer4.2.conv1", "layer4.2.conv2", "layer4.2.conv3",
    )  # fmt: skip
    shapes = [tuple(layer.convs[0].weight.shape) for layer in finder.layers.values()]
    assert shapes == [
        (512, 512, 1, 3, 3), (2048, 512, 1, 1, 1), (512, 2048, 1, 1, 1), (512, 512, 1, 3, 3), (2048, 512, 1, 1, 1),
    ]  # fmt: skip
    finder.set_temperature(0.5)
    for task, (before, after) in _overfit(network, 20, 1e-4, 6, 64).items():
        assert after < 0.9 * before, (task, before, after)
    images, questions = _questions(6, 64, people=False)
    network.eval()
    with torch.no_grad():
        wanted = network(images, "actions", **questions["actions"])
        assert torch.equal(network.pruned("actions")(images, "actions", **questions["actions"]), wanted)


def test_bonds_of_partners_are_those_of_pairs() -> None:
    """Frame by frame and clip by clip the head of relations alone says the same, to each partner and from them."""
    network = _network().eval()
    _, questions = _questions()
    asked = questions["grounding"]
    partners = list_partners(asked["boxes"], asked["owner"])
    assert partners.shape == (6, 2)
    image = torch.tensor([64.0, 64.0])
    bonds = network.score_bonds(asked["tracks"], asked["owner"], partners, image)
    assert bonds is not None
    assert bonds.shape == (6, 2, 6, 4)
    head: Any = network.heads["relations"]
    for row, place, frame in ((0, 0, 0), (4, 1, 3)):
        own = asked["owner"] == asked["owner"][row]
        first = int(own.nonzero()[0])
        pair = torch.tensor([[row, int(partners[row, place])]]) - first
        tracks = asked["tracks"][own, frame]
        with torch.no_grad():
            said = [
                (head.judge_motion(tracks, torch.zeros(3), each, image) + head.prior).sigmoid()[0]
                for each in (pair, pair.flip(1))
            ]
        assert torch.allclose(bonds[row, place, frame], torch.cat(said), atol=1e-6)
    with pytest.raises(UsageError, match="does not compare"):
        _network(CrowdConfig.tiny(grounding="cells")).match(asked["colours"], *[asked["boxes"]] * 4)


def test_a_text_encoder_of_others_reads_for_cells_alone() -> None:
    with pytest.raises(UsageError, match="set grounding to cells"):
        IntelliCare(CrowdConfig.tiny(), WORDS, TextEncoder(CrowdConfig.tiny(), len(WORDS.words)))


def test_the_bundled_network_tells_clothes_apart_and_knows_what_it_has_not_learnt() -> None:
    """Of two people who stand side by side a sentence speaks of the one in its colour."""
    path = Path(__file__).parents[3] / "src/roadaware/weights/crowd.safetensors"
    assert path.stat().st_size <= 10_000_000
    network, facts = open_crowd(path)
    assert facts["format"] == "roadaware-crowd-5"
    words = WordReader(network.vocabulary.words, network.config.max_tokens)
    read = words.encode(["the man in a red jacket walks away", "the man in a blue jacket walks away"])
    assert not bool(read.unknown.any())
    colours = torch.full((1, 12, 12, 24, 40), 0.1)
    # Red, green and blue of the quarters of cells, below the heads.
    for left, colour in ((8, (0.5, -0.8, -0.8)), (28, (-0.8, -0.6, 0.5))):
        colours[:, :, :, 9:14, left : left + 4] = torch.tensor(colour).repeat_interleave(4)[
            :, None, None, None
        ]
    corners = torch.tensor([[128.0, 112, 192, 304], [448, 112, 512, 304]])[:, None].expand(-1, 12, -1)
    around = corners[:, :, None].expand(-1, -1, 41, -1)
    with torch.no_grad():
        found = network.match(
            colours, read.ids, read.mask, corners, torch.zeros(2, dtype=torch.int64),
            torch.zeros(2, dtype=torch.int64), tracks=around,
        )  # fmt: skip
    assert found.who.argmax(dim=1).tolist() == [0, 1]
    assert float(words.encode(["zebras 🦓 quarrel quietly"]).unknown[0]) > 0.5
