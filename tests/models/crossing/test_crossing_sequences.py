"""What the layers of networks for pedestrians compute, against plain formulas and hand-worked cases."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from made_inputs import WIDTHS, batch, only
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models import create
from roadaware.models.crossing.entries import (
    BiPedConfig,
    PcpaConfig,
    PedFormerConfig,
    RecurrentConfig,
    SpiNetConfig,
    SteadyConfig,
    TransformerConfig,
    TrouSpiNetConfig,
)
from roadaware.models.crossing.networks.multitask import Steady
from roadaware.models.crossing.networks.recurrent import (
    UGRU,
    ChannelDropout,
    LastAttention,
    as_picture,
    compute_joint_distances,
    encode_positions,
)
from roadaware.models.crossing.networks.stills import Categories

torch.set_num_threads(1)


def sequences(*names: str, frames: int = 8) -> dict[str, tuple[int, int]]:
    return {
        name: (frames, WIDTHS[name.split(":")[0] if name.startswith("boxes") else name]) for name in names
    }


def network(name: str, config: object, *names: str, frames: int = 8, **rest: object) -> nn.Module:
    torch.manual_seed(0)
    made: nn.Module = create(name, config=config, shapes=sequences(*names, frames=frames), **rest)
    return made.eval()


def test_attention_to_the_last_follows_its_formula() -> None:
    torch.manual_seed(0)
    layer, h = LastAttention(5, 3), torch.randn(2, 4, 5)
    weights = layer.weights(h)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2))
    w, v = layer.score.weight.detach().numpy(), layer.answer.weight.detach().numpy()
    for b, sample in enumerate(h.numpy()):
        scores = np.array([(w @ step) @ sample[-1] for step in sample])
        shares = np.exp(scores) / np.exp(scores).sum()
        np.testing.assert_allclose(weights[b].detach().numpy(), shares, rtol=1e-4)
        context = sum(share * step for share, step in zip(shares, sample, strict=True))
        expected = np.tanh(v @ np.concatenate([context, sample[-1]]))
        np.testing.assert_allclose(layer(h)[b].detach().numpy(), expected, rtol=1e-4, atol=1e-6)


def test_frames_that_are_equal_share_the_attention() -> None:
    layer = LastAttention(5, 3)
    torch.testing.assert_close(layer.weights(torch.ones(2, 4, 5)), torch.full((2, 4), 0.25))


def test_places_are_sines_and_cosines() -> None:
    table = encode_positions(torch.zeros(3, 4))
    torch.testing.assert_close(table[0], torch.tensor([0.0, 1.0, 0.0, 1.0]))
    expected = torch.tensor([2.0]).sin(), torch.tensor([2.0]).cos(), torch.tensor([0.02]).sin()
    torch.testing.assert_close(table[2, :3], torch.cat(expected))
    assert encode_positions(torch.zeros(2, 3, 5)).shape == (3, 5)


def keras_gru(gru: nn.GRU, layer: int, x: Tensor) -> Tensor:
    """All states (B, T, width), in the form of Keras with reset_after: the reset gate scales U h + b."""
    w, u = getattr(gru, f"weight_ih_l{layer}"), getattr(gru, f"weight_hh_l{layer}")
    b, c = getattr(gru, f"bias_ih_l{layer}"), getattr(gru, f"bias_hh_l{layer}")
    h, states = x.new_zeros(len(x), gru.hidden_size), []
    for frame in x.unbind(1):
        (ir, iz, inew), (hr, hz, hnew) = (frame @ w.T + b).chunk(3, -1), (h @ u.T + c).chunk(3, -1)
        z = (iz + hz).sigmoid()
        h = z * h + (1 - z) * (inew + (ir + hr).sigmoid() * hnew).tanh()
        states.append(h)
    return torch.stack(states, 1)


TINY, CROP = RecurrentConfig.tiny(), (8, 32, 32, 3)


def test_stacked_rnn_is_a_loop_over_cells_on_top_of_each_other() -> None:
    made = network("stacked-rnn", TINY, "pose", "boxes:first", "ego:speed")
    x = batch(made.shapes)
    states = torch.cat(list(x.values()), -1)
    for layer in range(3):
        states = keras_gru(made.gru, layer, states)
    torch.testing.assert_close(made(x)["label"], made.last(states[:, -1]))


def test_sfgru_stacks_in_the_order_of_its_authors_and_sfrnn_as_given() -> None:
    given = ("ego:speed", "traffic", "boxes:first", "pose")
    for name, order in (("sfgru", ("pose", "boxes:first", "ego:speed", "traffic")), ("sfrnn", given)):
        made = network(name, TINY, *given)
        x = batch(made.shapes)
        states = keras_gru(made.grus[0], 0, x[order[0]])
        for gru, read in zip(made.grus[1:], order[1:], strict=True):
            assert gru.input_size == 8 + x[read].shape[-1]
            states = keras_gru(gru, 0, torch.cat([states, x[read]], -1))
        torch.testing.assert_close(made(x)["label"], made.last(states[:, -1]))


def test_sfgru_takes_crops_of_the_box_before_those_around_it() -> None:
    names = ("boxes:first", "crop:surround@32", "crop:box@32")
    shapes = {name: (2, 32, 32, 3) if "crop" in name else (2, 4) for name in names}
    assert create("sfgru", config=TINY, shapes=shapes).order() == [names[2], names[1], names[0]]


def test_hierarchical_and_multi_rnn_read_each_input_by_itself() -> None:
    hierarchical = network("hierarchical-rnn", TINY, "pose", "ego:speed")
    x = batch(hierarchical.shapes)
    below = [keras_gru(gru, 0, x[read]) for gru, read in zip(hierarchical.grus, x, strict=True)]
    top = keras_gru(hierarchical.upper, 0, torch.cat(below, -1))[:, -1]
    torch.testing.assert_close(hierarchical(x)["label"], hierarchical.last(top))
    multi = network("multi-rnn", TINY, "pose", "ego:speed")
    states = [keras_gru(gru, 0, x[read])[:, -1] for gru, read in zip(multi.grus, x, strict=True)]
    torch.testing.assert_close(multi(x)["label"], multi.last(torch.cat(states, -1)))


def test_pcpa_without_pictures_attends_to_its_sequences() -> None:
    made = network("pcpa", PcpaConfig.tiny(), "pose", "boxes", "ego:speed")
    x = batch(made.shapes)
    told = [
        attention(keras_gru(gru, 0, x[read]))
        for gru, attention, read in zip(made.grus, made.over_time, x, strict=True)
    ]
    torch.testing.assert_close(made(x)["label"], made.last(made.over_inputs(torch.stack(told, 1))))
    assert not hasattr(made, "c3d")
    alone = network("pcpa", PcpaConfig.tiny(), "boxes")
    assert not hasattr(alone, "over_inputs")
    assert alone(only(x, ["boxes"]))["label"].shape == (4, 1)


def test_a_ugru_knows_the_future_first() -> None:
    torch.manual_seed(0)
    layer, x = UGRU(2, 3), torch.randn(1, 5, 2)
    ahead = keras_gru(layer.backward_gru, 0, x.flip(1)).flip(1)
    expected = keras_gru(layer.forward_gru, 0, torch.cat([x, ahead], -1))
    torch.testing.assert_close(layer(x), expected)
    changed = x.clone()
    changed[:, -1] += 1
    assert not torch.isclose(layer(changed)[:, 0], layer(x)[:, 0]).any()
    before = keras_gru(layer.backward_gru, 0, x.flip(1)).flip(1)
    after = keras_gru(layer.backward_gru, 0, torch.cat([x[:, :1] + 1, x[:, 1:]], 1).flip(1)).flip(1)
    torch.testing.assert_close(before[:, 1:], after[:, 1:])


def test_no_question_of_the_decoder_sees_a_later_one() -> None:
    config = TransformerConfig.tiny()
    made = network("transformer-encoder-decoder", config, "boxes", tasks={"trajectory": 4})
    x = batch(made.shapes)
    plain = made(x)
    with torch.no_grad():
        made.questions[2] += 1.0
    asked = made(x)
    torch.testing.assert_close(asked["trajectory"][:, :2], plain["trajectory"][:, :2])
    for changed, before in (
        (asked["trajectory"][:, 2:], plain["trajectory"][:, 2:]),
        (asked["label"], plain["label"]),
    ):
        assert not torch.isclose(changed, before).any()


def test_a_transformer_tells_the_order_of_frames() -> None:
    made = network("transformer-encoder", TransformerConfig.tiny(), "boxes")
    x = batch(made.shapes)
    assert not torch.allclose(made({"boxes": x["boxes"].flip(1)})["label"], made(x)["label"])


def test_joints_and_their_distances() -> None:
    pose = torch.tensor([[[0.0, 0.0, 3.0, 4.0, 0.0, 4.0]]], requires_grad=True)
    torch.testing.assert_close(compute_joint_distances(pose), torch.tensor([[[5.0, 4.0, 3.0]]]))
    assert as_picture(pose)[0, :, 0].tolist() == [[0.0, 3.0, 0.0], [0.0, 4.0, 4.0]]
    compute_joint_distances(pose * 0).sum().backward()
    assert pose.grad is not None
    assert pose.grad.isfinite().all()


def test_a_pose_is_not_stretched() -> None:
    made = network("spi-net", SpiNetConfig.tiny(), "pose", "boxes")
    for name in made.shapes:
        width = made.shapes[name][1]
        made.standardise(name, torch.full((width,), 0.5), torch.full((width,), 2.0))
    x = batch(made.shapes)
    taken = {name: made._standard(name, values) for name, values in x.items()}
    torch.testing.assert_close(taken["pose"], x["pose"])
    torch.testing.assert_close(taken["boxes"], (x["boxes"] - 0.5) / 2)


def test_whole_channels_are_dropped_and_the_mean_stays() -> None:
    torch.manual_seed(0)
    dropped = ChannelDropout(0.5)(torch.ones(50, 20, 2, 3))
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert (dropped == dropped[..., :1, :1]).all()


def test_each_category_of_a_map_is_seen_by_itself() -> None:
    torch.manual_seed(0)
    layer, maps = Categories(3, (2, 4)), torch.rand(2, 5, 3, 8, 8)
    other = maps.clone()
    other[:, :, 1] = 0
    same = torch.isclose(layer(maps), layer(other)).all(-1)
    assert layer(maps).shape == (2, 5, 3, 4)
    assert same[:, :, [0, 2]].all()
    assert not same[:, :, 1].any()


def test_networks_with_one_sequence_and_no_maps_work() -> None:
    for name, config in (("biped", BiPedConfig.tiny()), ("pedformer", PedFormerConfig.tiny())):
        made = network(name, config, "boxes:last")
        assert made(batch(made.shapes))["label"].shape == (4, 1)


@pytest.mark.parametrize(
    ("name", "config", "shapes", "message"),
    [
        ("sfgru", TINY, {"maps@8": (8, 8, 8, 5)}, "reads sequences and crops, not maps@8"),
        ("sfgru", TINY, {"pose": (8, 36), "boxes": (7, 4)}, "the same frames"),
        ("pcpa", PcpaConfig.tiny(), {"crop:box@32": CROP, "crop:context@32": CROP}, "one kind"),
        ("transformer-encoder", TransformerConfig.tiny(), {"crop:box@32": CROP}, "reads sequences"),
        ("spi-net", SpiNetConfig.tiny(), {"boxes": (8, 4)}, "needs one pose"),
        ("spi-net", SpiNetConfig.tiny(), {"pose": (7, 36)}, "needs 8 of each"),
        ("trouspi-net", TrouSpiNetConfig.tiny(), {"pose": (8, 35)}, "x and y"),
        ("biped", BiPedConfig.tiny(), {"maps@8": (8, 8, 8, 5)}, "reads sequences"),
        ("pedformer", PedFormerConfig.tiny(), {"boxes": (8, 4), "crop:box@32": CROP}, "not boxes, crop"),
        ("steady", SteadyConfig.tiny(), {"boxes:last": (8, 4)}, "where the observation begins or ends"),
        ("steady", SteadyConfig.tiny(), {"crop:box@32": CROP}, "are no sequences"),
    ],
)
def test_inputs_that_a_network_cannot_work_with_are_refused(
    name: str, config: object, shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        create(name, config=config, shapes=shapes)


def steady(frames: int = 20, **changed: object) -> Steady:
    made = network("steady", SteadyConfig(width=8, **changed), "boxes", "centre", frames=frames)
    assert isinstance(made, Steady)
    for name in made.shapes:
        width = made.shapes[name][1]
        made.standardise(name, torch.full((width,), 0.1), torch.full((width,), 1.5))
    return made


def later(x: dict[str, Tensor], first: int) -> dict[str, Tensor]:
    return {name: values[:, first:] for name, values in x.items()}


def test_a_stream_gives_what_a_clip_gives() -> None:
    made = steady()
    x = batch(made.shapes, n=3)
    x["centre"][:, 0, 4:] = torch.nan
    state, answers = made.start(3), []
    for at in range(20):
        state, answer = made.step(state, {name: values[:, at] for name, values in x.items()})
        answers.append(answer)
    torch.testing.assert_close(torch.stack(answers, 1), made.every_frame(x))
    for frames in (3, 14, 15, 16, 20):
        clip = {name: values[:, :frames] for name, values in x.items()}
        torch.testing.assert_close(answers[frames - 1], made(clip)["label"])


@pytest.mark.parametrize(("kernel", "dilations"), [(2, (1,)), (3, (2, 3)), (2, (3, 1, 2))])
def test_any_spread_of_frames_gives_one_answer(kernel: int, dilations: tuple[int, ...]) -> None:
    made = steady(kernel=kernel, dilations=dilations)
    x = batch(made.shapes, n=2)
    torch.testing.assert_close(made(x)["label"], made.every_frame(x)[:, -1])


def test_an_answer_knows_this_frame_and_the_fourteen_before() -> None:
    made = steady()
    assert made.config.frames == 15
    x = batch(made.shapes, n=2)
    plain = made.every_frame(x)
    for at in (0, 7, 19):
        other = {name: values.clone() for name, values in x.items()}
        other["boxes"][:, at] += 1
        told = ~torch.isclose(made.every_frame(other), plain, atol=1e-7).all(-1).all(0)
        assert told.nonzero().flatten().tolist() == list(range(at, min(at + 15, 20)))
    torch.testing.assert_close(made.every_frame(later(x, 5))[:, -1], plain[:, -1])


def test_a_short_history_in_a_longer_clip_is_a_shorter_clip() -> None:
    made = steady()
    x = batch(made.shapes, n=2)
    valid = torch.ones(2, 20, dtype=torch.bool)
    valid[0, :13] = False
    answers = made.every_frame(x, valid)
    torch.testing.assert_close(answers[0, 13:], made.every_frame(later(x, 13))[0])
    torch.testing.assert_close(answers[1], made.every_frame(x)[1])
    torch.testing.assert_close(made.every_frame(x, torch.ones(2, 20)), made.every_frame(x))


def test_a_cell_is_a_name_and_not_a_measure() -> None:
    made = network("biped", BiPedConfig.tiny(), "boxes:last", "grid")
    made.standardise("grid", torch.tensor([300.0]), torch.tensor([100.0]))
    cells = torch.tensor([[[0.0], [575.0], [608.0], [9999.0]]])
    table = made.cells[0].table.weight
    torch.testing.assert_close(made.cells[0](made._standard("grid", cells))[0], table[[0, 575, 608, 608]])
