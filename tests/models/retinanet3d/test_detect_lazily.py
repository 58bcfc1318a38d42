"""What is detected on the short way is what is detected on the plain one, on clips and on streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from roadaware.errors import InputError, UsageError
from roadaware.models.retinanet3d import default
from roadaware.models.retinanet3d import detector as detection
from roadaware.models.retinanet3d.config import Clip, DetectRule, split_into_clips
from roadaware.models.retinanet3d.detector import (
    Fit,
    LazyHeads,
    LazyNetwork,
    RawDetections,
    StreamDetector,
    WindowDetector,
    detect,
)
from roadaware.models.retinanet3d.fast_inference import PartMap, Tower
from roadaware.models.retinanet3d.network import RetinaNet3D

torch.set_num_threads(1)
KINDS = {"agent": ("car", "bus"), "action": ("stop", "go", "turn")}
AV = ("still", "moving")
SHARES = (0.0, 0.001, 0.01, 0.05, 0.5, 1.0)
CLIPS: tuple[dict[str, Any], ...] = (
    {},
    {"causal": True},
    {"backbone": "c2d", "head_time": 1},
    {"backbone": "slowfast"},
    {"backbone": "compact", "stage_widths": (8, 8, 16, 16), "depthwise": True, "head_layers": 0},
)
STREAMS: tuple[dict[str, Any], ...] = (
    {},
    {"head_time": 1},
    {"backbone": "c2d"},
    {"backbone": "slowfast"},
    {"backbone": "rcgru"},
    {"backbone": "compact", "stage_widths": (8, 8, 16, 16), "head_layers": 1},
)


def _network(seed: int = 0, **fields: Any) -> RetinaNet3D:
    """A tiny network in double precision, all of whose parameters and statistics are drawn."""
    torch.manual_seed(seed)
    tiny = {
        "base_width": 8,
        "blocks": (1, 1, 1, 1),
        "width": 12,
        "anchor_scales": (1.0,),
        "short_side_px": 64,
    }
    network = RetinaNet3D(default(**{**tiny, **fields}), 6, 2).double().eval()
    for head in (network.cls_heads, network.reg_heads):
        for parameter in head.parameters():
            torch.nn.init.normal_(parameter, std=0.15)
    for name, value in network.named_buffers():
        if name.endswith("running_mean"):
            value.normal_(std=0.3)
        elif name.endswith("running_var"):
            value.uniform_(0.5, 2.0)
    return network


def _passing(network: RetinaNet3D, x: torch.Tensor, share: float) -> RetinaNet3D:
    """The network with the bias of agentness set so that a share of all anchors of this clip passes 0.025."""
    with torch.inference_mode():
        logits = torch.unique(network(x).class_logits[..., 0])
    place = round(len(logits) * (1 - share))
    low = logits[place - 1] if place else logits[0] - 1
    high = logits[place] if place < len(logits) else logits[-1] + 1
    with torch.no_grad():
        network.cls_heads[-1].bias[:: network.n_classes] -= (low + high) / 2 + float(np.log(39.0))
    return network


def _all(found: list[list[RawDetections]]) -> list[RawDetections]:
    return [frame for clip in found for frame in clip]


def _same(one: RawDetections, other: RawDetections) -> None:
    for found, wanted in zip(one, other, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("fields", CLIPS, ids=str)
def test_the_short_way_detects_what_the_plain_one_does(
    fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever share of the anchors passes, borders and all levels included."""
    monkeypatch.setattr(detection, "_SMALL", 0)  # these maps are small; those that matter are not
    network = _network(**fields)
    x = torch.randn(2, 3, 4, 64, 96, dtype=torch.float64)
    rule = DetectRule(top=30)
    counts = []
    for share in SHARES:
        _passing(network, x, share)
        short, plain = (detect(network, x, rule, lazy=way) for way in (True, False))
        for one, other in zip(_all(short), _all(plain), strict=True):
            _same(one, other)
        counts.append(sum(len(frame.boxes) for frame in _all(plain)))
    assert counts[0] == 0
    assert counts[-1] == 8 * 30


def test_the_short_way_is_the_plain_one_in_single_precision_too() -> None:
    """There other kernels run, which add and rectify in one pass; maps agree up to rounding."""
    for fields in CLIPS[:3]:
        network = _network(**fields).float().requires_grad_(False)
        x = torch.randn(1, 3, 4, 64, 96)
        trunk = LazyNetwork(network).trunk
        assert trunk is not None
        found, wanted = trunk.read(x), network.features(x)
        every = 1 if network.backbone.repeats is None else 2
        for level, plain in zip(found.maps, wanted.maps, strict=True):
            plain = plain[0, :, ::every].transpose(0, 1)
            torch.testing.assert_close(level, plain, rtol=0, atol=1e-5 * float(plain.abs().max()))
        if network.config.causal:
            stream = LazyNetwork(network, streaming=True).trunk
            assert stream is not None
            for frame in range(4):
                shown = stream.read(x[:, :, frame : frame + 1])
                for level, whole in zip(shown.maps, found.maps, strict=True):
                    wanted = whole[frame // every :][: len(level)]
                    assert len(level) == (frame % every == 0)
                    torch.testing.assert_close(level, wanted, rtol=0, atol=1e-5 * float(whole.abs().max()))


def test_tiles_are_what_everything_is() -> None:
    """A tower computed on tiles, in several requests, equals the tower computed everywhere."""
    torch.manual_seed(0)
    layers = [
        layer
        for _ in range(3)
        for layer in (torch.nn.Conv3d(4, 4, (1, 3, 3), padding=(0, 1, 1)), torch.nn.ReLU())
    ]
    tower = Tower(torch.nn.Sequential(*layers).double())
    frames = torch.randn(2, 4, 21, 43, dtype=torch.float64).contiguous(memory_format=torch.channels_last)
    with torch.inference_mode():
        whole = tower(frames)
        part = PartMap.empty(tower, frames)
        for rows, columns in (((0, 20), (0, 42)), ((10, 11), (17, 16)), ((7, 8), (23, 24))):
            slots, y, x = torch.tensor([0, 1]), torch.tensor(rows), torch.tensor(columns)
            found = part.around(slots, y, x)
            for slot, row, column in zip(slots, y, x, strict=True):
                near = (
                    slot,
                    slice(None),
                    slice(max(row - 1, 0), row + 2),
                    slice(max(column - 1, 0), column + 2),
                )
                torch.testing.assert_close(found[near], whole[near], rtol=0, atol=1e-12)
        assert 0 < part.done.float().mean() < 1
        torch.testing.assert_close(part.everywhere(), whole, rtol=0, atol=1e-12)


def test_no_frame_and_no_box_is_looked_at_twice() -> None:
    """Frames that a pooled backbone shows twice go through the towers once, classes only at kept boxes."""
    network = _network()
    x = torch.randn(1, 3, 4, 64, 96, dtype=torch.float64)
    _passing(network, x, 0.05)
    heads = LazyHeads(network.cls_heads, network.reg_heads, 3, paired=True)
    read = heads.read(network.features(x).maps)
    assert [len(level.classes) for level in read.levels] == [2] * 5
    assert not any(level.boxes.done.any() for level in read.levels)
    frames = torch.tensor([0, 3])
    wanted = network(x).class_logits[0][frames, torch.tensor([5, 40]), 1:]
    torch.testing.assert_close(read.scores(frames, torch.tensor([5, 40])), wanted, rtol=0, atol=1e-12)


def test_the_rule_of_detection_worked_by_hand() -> None:
    network = _network()
    x = torch.randn(1, 3, 2, 64, 96, dtype=torch.float64)
    outputs = network(x)
    agentness = outputs.class_logits[0, 0, :, 0].sigmoid()
    found = detect(network, x, DetectRule(min_agentness=0.0, nms_iou=None, top=7))[0][0]
    best = torch.sort(agentness, descending=True, stable=True).indices[:7]
    torch.testing.assert_close(found.boxes, outputs.boxes[0, 0, best], rtol=0, atol=1e-9)
    torch.testing.assert_close(found.agentness, agentness[best], rtol=0, atol=1e-12)
    assert len(detect(network, x, DetectRule(min_agentness=1.0))[0][0].boxes) == 0
    with pytest.raises(UsageError, match="top"):
        DetectRule(top=0)


@pytest.mark.parametrize(("frames", "dropped"), [(1, 0), (8, 2), (9, 2), (20, 2), (20, 0), (31, 2)])
@pytest.mark.parametrize("backwards", [False, True])
def test_clips_answer_every_frame_once(frames: int, dropped: int, backwards: bool) -> None:
    laid = split_into_clips(frames, 8, DetectRule(dropped=dropped, backwards=backwards))
    assert [frame for clip in laid for frame in clip.answers] == list(range(frames))
    for clip in laid:
        assert 0 <= clip.start <= clip.answers.start
        assert clip.answers.stop <= clip.start + 8
        assert clip.start + 8 <= max(frames, 8)


def test_clips_as_released_are_laid_from_the_end() -> None:
    """22 frames: clips begin at 14, 8 and 2, then one at 0; each but the first drops its last two."""
    assert split_into_clips(22, 8, DetectRule.reference()) == [
        Clip(0, range(6)),
        Clip(2, range(6, 8)),
        Clip(8, range(8, 14)),
        Clip(14, range(14, 22)),
    ]


def _pictures(count: int, height: int = 64, width: int = 96) -> list[np.ndarray]:
    return list(np.random.default_rng(3).integers(0, 255, (count, height, width, 3), dtype=np.uint8))


@pytest.mark.slow
@pytest.mark.parametrize("fields", STREAMS, ids=str)
def test_a_stream_gives_what_the_causal_clip_gives(
    fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after a reset, and whatever comes later: the clip of all images is that of the first ones."""
    monkeypatch.setattr(detection, "_SMALL", 0)
    network = _network(seed=1, causal=True, **fields)
    pictures = _pictures(7)
    x = Fit.of(network.config).fit_all(pictures)[0][None].double()
    _passing(network, x, 0.05)
    rule = DetectRule(top=25)
    wanted = detect(network, x, rule, lazy=False)[0]
    stream = LazyNetwork(network, streaming=True)
    for _ in range(2):
        for frame in range(len(pictures)):
            _same(stream.detect(x[:, :, frame : frame + 1], rule)[0][0], wanted[frame])
        stream.forget()
    detector = StreamDetector(network, KINDS, AV, rule)
    later = pictures[:4] + [255 - picture for picture in pictures[4:]]
    given = []
    for film in (pictures, later):
        given.append([detector.step(picture)[0] for picture in film])
        assert detector.finish() == []
    for frame in range(4):
        for field in ("boxes", "agentness", "scores", "av"):
            assert np.array_equal(getattr(given[0][frame], field), getattr(given[1][frame], field))
    assert not np.array_equal(given[0][6].av, given[1][6].av)


def test_a_long_stream_keeps_no_more_than_a_short_one() -> None:
    network = _network(causal=True)
    stream = LazyNetwork(network, streaming=True)
    sizes = []
    for frame in range(12):
        stream.detect(torch.randn(1, 3, 1, 64, 96, dtype=torch.float64), DetectRule())
        if frame in (3, 11):
            sizes.append([tuple(level.classes.shape) for level in stream.heads.levels])
    assert sizes[0] == sizes[1]


def test_a_detector_speaks_of_the_picture_it_was_given() -> None:
    network = _network(causal=True)
    detector = StreamDetector(network, KINDS, AV, DetectRule(min_agentness=0.0, top=50))
    assert (detector.delay, detector.av_labels, dict(detector.kinds)) == (0, AV, KINDS)
    (found,) = detector.step(_pictures(1, 48, 100)[0])
    assert found.frame == 0
    assert found.scores.shape == (len(found), 5)
    assert found.boxes.dtype == np.float32
    assert found.boxes.min() >= 0
    assert (found.boxes <= [100, 48, 100, 48]).all()
    assert found.boxes[:, 2].max() == 100  # some anchor reaches over the border
    assert (np.diff(found.agentness) <= 0).all()
    with pytest.raises(InputError, match="100x48 are followed by one of 96x64"):
        detector.step(_pictures(1)[0])
    with pytest.raises(InputError, match="float64"):
        detector.step(np.zeros((48, 100, 3)))


def test_a_detector_refuses_what_cannot_be() -> None:
    with pytest.raises(UsageError, match="WindowDetector"):
        StreamDetector(_network(), KINDS, AV)
    with pytest.raises(UsageError, match="5 labels"):
        WindowDetector(_network(), {"agent": ("car",)}, AV)
    with pytest.raises(UsageError, match="positions"):
        WindowDetector(_network(), KINDS, AV, window=4, keep=range(2, 5))


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3, 4, 9])
@pytest.mark.parametrize("keep", [None, range(2), range(1, 3), range(3, 4)])
def test_a_window_answers_each_frame_once_and_in_time(count: int, keep: range | None) -> None:
    network = _network(backbone="c2d", base_width=8)
    detector = WindowDetector(network, KINDS, AV, window=4, keep=keep)
    found, late = [], []
    for number, picture in enumerate(_pictures(count)):
        for answer in detector.step(picture):
            found.append(answer.frame)
            late.append(number - answer.frame)
    found += [answer.frame for answer in detector.finish()]
    assert found == list(range(count))
    assert max(late, default=0) <= detector.delay == 3 - (keep or range(4)).start
    assert detector.finish() == []


def test_a_window_gives_what_its_clip_gives() -> None:
    """Nine images, clips of four: the last clip is the last four; three images get a copy of the last."""
    network = _network()
    pictures = _pictures(9)
    fit = Fit.of(network.config)
    for count, chosen in ((9, [range(4), range(4, 8), range(5, 9)]), (3, [[0, 1, 2, 2]])):
        detector = WindowDetector(network, KINDS, AV, window=4)
        found = [one for picture in pictures[:count] for one in detector.step(picture)] + detector.finish()
        answers = []
        for places in chosen:
            x = fit.fit_all([pictures[place] for place in places])[0][None].double()
            answers += detect(network, x, detector.rule)[0]
        wanted = answers[:8] + answers[11:] if count == 9 else answers[:3]
        for one, other in zip(found, wanted, strict=True):
            assert np.allclose(one.agentness, other.agentness, atol=1e-6)
            assert np.allclose(one.av, other.av, atol=1e-6)


def test_pictures_are_fitted_and_boxes_brought_back() -> None:
    fit = Fit(short_side_px=64, multiple_px=32, mean=(0.5, 0.25, 0.0), std=(0.5, 1.0, 2.0))
    picture = np.full((96, 128, 3), 255, np.uint8)
    fitted, scale_x, scale_y = fit.fit(picture)
    assert tuple(fitted.shape) == (3, 64, 96)
    assert (scale_x, scale_y) == (85 / 128, 64 / 96)
    assert fitted[:, 0, 84].tolist() == pytest.approx([1.0, 0.75, 0.5])
    assert fitted[:, :, 85:].abs().sum() == 0
    assert fit.size(960, 1280) == (64, 85)
    assert fit.size(1280, 960) == (85, 64)
    assert fit.size(80, 640) == (64, 512)
    assert fit.size(2, 1280) == (1, 512)  # not (64, 40960)
    assert fit.size(1280, 2) == (512, 1)
    back = fit.back(torch.tensor([[-5.0, 16, 42.5, 999]]), 96, 128)
    assert back.tolist() == [[0.0, 24.0, 64.0, 96.0]]
    flipped = picture[:, ::-1]
    flipped.flags.writeable = False
    assert torch.equal(fit.fit(flipped)[0], fitted)
    with pytest.raises(InputError, match="at least one"):
        fit.fit_all([])
