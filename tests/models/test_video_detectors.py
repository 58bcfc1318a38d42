"""Detectors of whole videos answer each frame once, as the same network does alone; networks average."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from roadaware.errors import InputError, UsageError
from roadaware.models.detector import FrameDetections, Stepwise, VideoDetector
from roadaware.models.detector_fusion import Ensemble, MeanNetwork
from roadaware.models.loading import digest_model_files, open_stream, open_videos
from roadaware.models.retinanet3d import default
from roadaware.models.retinanet3d.config import DetectRule
from roadaware.models.retinanet3d.detector import NetworkVideos, StreamDetector, WindowDetector
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.weights import save_detector

torch.set_num_threads(1)
KINDS = {"agent": ("car", "bus"), "action": ("stop", "go", "turn")}
AV = ("still", "moving")
RULE = DetectRule(min_agentness=0.1, top=6)


def _network(seed: int = 0, **fields: Any) -> RetinaNet3D:
    """A tiny network in double precision whose scores differ from frame to frame."""
    torch.manual_seed(seed)
    tiny = {
        "base_width": 8,
        "blocks": (1, 1, 1, 1),
        "width": 12,
        "head_layers": 1,
        "anchor_scales": (1.0,),
        "anchor_sizes_px": (16.0, 32.0, 64.0),
        "short_side_px": 64,
    }
    network = RetinaNet3D(default(**{**tiny, **fields}), 6, 2).double().eval()
    for head in (network.cls_heads, network.reg_heads):
        for parameter in head.parameters():
            torch.nn.init.normal_(parameter, std=0.15)
    return network


def _video(frames: int) -> list[np.ndarray]:
    return list(np.random.default_rng(0).integers(0, 255, (frames, 48, 64, 3), dtype=np.uint8))


def _same(found: Sequence[FrameDetections], wanted: Sequence[FrameDetections]) -> None:
    assert [each.frame for each in found] == [each.frame for each in wanted]
    for one, other in zip(found, wanted, strict=True):
        for part in ("boxes", "agentness", "scores", "av"):
            np.testing.assert_allclose(getattr(one, part), getattr(other, part), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3, 8])
@pytest.mark.parametrize("backbone", ["i3d", "c2d"])
def test_a_stream_of_many_frames_at_a_time_is_the_stream_of_single_ones(backbone: str, batch: int) -> None:
    network, video = _network(causal=True, backbone=backbone), _video(7)
    wanted = list(Stepwise(StreamDetector(network, KINDS, AV, RULE)).detections(video, 7))
    assert sum(map(len, wanted)) > 7
    many = NetworkVideos(network, KINDS, AV, RULE, batch=batch)
    for _ in range(2):
        _same(list(many.detections(iter(video), 7)), wanted)
    _same(list(Stepwise(many).detections(video, 7)), wanted)


@pytest.mark.parametrize("frames", [0, 1, 3, 4, 7, 9])
def test_clips_in_batches_are_the_windows_of_a_stream(frames: int) -> None:
    network, video = _network(), _video(frames)
    window = WindowDetector(network, KINDS, AV, RULE, window=4)
    wanted = list(Stepwise(window).detections(video, frames))
    for batch in (1, 2, 5):
        many = NetworkVideos(network, KINDS, AV, RULE, window=4, batch=batch)
        _same(list(many.detections(iter(video), frames)), wanted)
    _same(list(Stepwise(many).detections(video, frames)), wanted)


class _Placed(VideoDetector):
    """Says of each frame at which place of which clip it was seen."""

    def look(self, pictures: Sequence[Sequence[np.ndarray]]) -> list[list[FrameDetections]]:
        none = np.zeros((0, 4), np.float32)
        return [
            [
                FrameDetections(0, none, none[:, 0], none, np.array([clip[0][0, 0, 0], place], np.float32))
                for place in range(len(clip))
            ]
            for clip in pictures
        ]


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_released_clips_end_with_the_video_and_leave_their_last_frames_to_the_next(batch: int) -> None:
    video = [np.full((1, 1, 3), frame, np.uint8) for frame in range(11)]
    detector = _Placed(KINDS, AV, DetectRule.reference(), causal=False, window=5, batch=batch)
    found = list(detector.detections(video, 11))
    assert [each.frame for each in found] == list(range(11))
    starts = [int(each.av[0]) for each in found]
    # 11 frames, clips of 5 that begin 3 apart, from the end: 6, 3, 0
    assert starts == [0, 0, 0, 3, 3, 3, 6, 6, 6, 6, 6]
    assert [start + int(each.av[1]) for start, each in zip(starts, found, strict=True)] == list(range(11))


@pytest.mark.parametrize("frames", [2, 5, 8, 11])
def test_a_stream_leaves_the_last_frames_of_a_clip_to_the_next_one(frames: int) -> None:
    """As whole videos do whose clips are laid from the start."""
    video = [np.full((1, 1, 3), frame, np.uint8) for frame in range(frames)]
    detector = _Placed(KINDS, AV, DetectRule(dropped=2), causal=False, window=5)
    wanted = list(detector.detections(video, frames))
    found = list(Stepwise(detector).detections(video, frames))
    assert [each.frame for each in found] == list(range(frames))
    assert [each.av.tolist() for each in found] == [each.av.tolist() for each in wanted]


def test_a_video_that_ends_early_or_changes_its_size_is_refused() -> None:
    network, video = _network(causal=True), _video(3)
    detector = NetworkVideos(network, KINDS, AV, RULE, batch=2)
    with pytest.raises(InputError, match="early"):
        list(detector.detections(video, 5))
    with pytest.raises(InputError, match="one size"):
        list(Stepwise(detector).detections([video[0], video[0][:, :-2]], 2))
    for batch in (1, 2):
        detector = NetworkVideos(network, KINDS, AV, RULE, batch=batch)
        with pytest.raises(InputError, match="followed by one of"):
            list(detector.detections([video[0], video[0][:, :-2]], 2))
    for wrong in ({"window": 0}, {"batch": 0}):
        with pytest.raises(UsageError, match="1 or more"):
            NetworkVideos(network, KINDS, AV, **wrong)
    with pytest.raises(UsageError, match="5 labels"):
        NetworkVideos(network, {"agent": ("car",)}, AV)


@pytest.mark.parametrize("causal", [True, False])
def test_one_network_twice_is_the_network(causal: bool) -> None:
    network, video = _network(causal=causal), _video(6)
    wanted = list(NetworkVideos(network, KINDS, AV, RULE, window=4).detections(video, 6))
    for mean in ("logits", "probabilities"):
        twice = Ensemble(MeanNetwork([network, network], mean), KINDS, AV, RULE, window=4, batch=2)
        _same(list(twice.detections(video, 6)), wanted)


def test_the_mean_of_two_networks_is_worked_out_for_each_anchor() -> None:
    one, other = _network(1), _network(2, backbone="c2d")
    x = torch.randn(1, 3, 2, 64, 96, dtype=torch.float64)
    with torch.inference_mode():
        a, b = one(x), other(x)
        logits, shares = (MeanNetwork([one, other], mean)(x) for mean in ("logits", "probabilities"))
    torch.testing.assert_close(logits.class_logits, (a.class_logits + b.class_logits) / 2)
    torch.testing.assert_close(logits.offsets, (a.offsets + b.offsets) / 2)
    wanted = (a.class_logits.sigmoid() + b.class_logits.sigmoid()) / 2
    torch.testing.assert_close(shares.class_logits.sigmoid(), wanted)
    torch.testing.assert_close(
        shares.av_logits.sigmoid(), (a.av_logits.sigmoid() + b.av_logits.sigmoid()) / 2
    )


def test_networks_that_share_no_anchors_are_not_averaged() -> None:
    with pytest.raises(UsageError, match="differ in anchor_scales"):
        MeanNetwork([_network(), _network(anchor_scales=(1.0, 2.0))])
    with pytest.raises(UsageError, match="at least one"):
        MeanNetwork([])


def test_files_are_opened_as_what_they_are(tmp_path: Path) -> None:
    paths = []
    for name, causal in (("a", True), ("b", True), ("c", False)):
        paths.append(tmp_path / f"{name}.safetensors")
        save_detector(paths[-1], _network(causal=causal).float(), KINDS, AV)
    assert isinstance(open_videos(paths[:1], RULE), NetworkVideos)
    assert open_videos(paths[:2], RULE).causal
    both = open_videos(paths, RULE, window=4)
    assert isinstance(both, Ensemble)
    assert (both.causal, both.kinds, both.av_labels) == (False, KINDS, AV)
    assert digest_model_files(paths[0]) == digest_model_files(paths[1]) != digest_model_files(paths[2])
    save_detector(tmp_path / "d", _network(), {"agent": ("car", "van"), "action": KINDS["action"]}, AV)
    with pytest.raises(UsageError, match="other labels"):
        open_videos([paths[0], tmp_path / "d"])
    turned = {kind: KINDS[kind] for kind in ("action", "agent")}
    save_detector(tmp_path / "e", _network(), turned, AV)
    with pytest.raises(UsageError, match="another order"):
        open_videos([paths[0], tmp_path / "e"])
    with pytest.raises(InputError, match="could not read"):
        digest_model_files(tmp_path / "absent")


@pytest.mark.parametrize("name", ["roadaware.json", "tokenizer_config.json"])
def test_all_files_that_change_an_answer_are_in_the_digest_of_a_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    before = digest_model_files(tmp_path)
    (tmp_path / name).write_text('{"kind": "agent"}')
    assert digest_model_files(tmp_path) != before


def test_a_stream_is_opened_in_its_fastest_form_and_of_several_files_as_their_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = []
    for seed, causal in ((0, True), (1, True), (2, False)):
        paths.append(tmp_path / f"{seed}.safetensors")
        save_detector(paths[-1], _network(seed, causal=causal).float(), KINDS, AV)
    assert isinstance(open_stream(paths[:1], RULE), StreamDetector)
    assert isinstance(open_stream(paths[2:], RULE), WindowDetector)
    half, whole = (open_stream(paths[:1], RULE, dtype=dtype) for dtype in (torch.bfloat16, None))
    for picture in _video(3):
        one, other = half.step(picture)[0], whole.step(picture)[0]
        assert one.boxes.dtype == one.scores.dtype == np.float32
        assert one.agentness[:1] == pytest.approx(other.agentness[:1], abs=0.03)
    video, two = _video(4), open_stream(paths[:2], RULE)
    assert two.delay == 0
    wanted = list(open_videos(paths[:2], RULE).detections(video, 4))
    two.reset()
    _same([found for picture in video for found in two.step(picture)], wanted)
    assert sum(map(len, wanted)) > 4
    placed = _Placed(KINDS, AV, causal=False)
    monkeypatch.setattr("roadaware.models.object_detectors.open_objects", lambda folder, *_, **__: placed)
    assert open_stream([tmp_path]) is placed
    with pytest.raises(InputError, match="found none"):
        open_stream([tmp_path / "absent"])
    with pytest.raises(InputError, match="found none"):
        open_stream([paths[0], tmp_path])
