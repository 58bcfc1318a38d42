"""3D-RetinaNet: the short way against the plain one, streams, memory, share of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

from benchmarks.measure import python
from roadaware.models.retinanet3d import RetinaNetConfig, reference
from roadaware.models.retinanet3d.config import compact

if TYPE_CHECKING:
    import torch

    from roadaware.models.retinanet3d.detector import LazyNetwork
    from roadaware.models.retinanet3d.network import RetinaNet3D

_Row = tuple[str, str, str]
_SIZE = (512, 704)
_SHARES = (0.001, 0.01, 0.05, 0.5)
_N_CLASSES, _N_AV = 150, 7
_TIES = 2
"""Boxes by which two ways may differ, where agentness meets its threshold but for rounding."""
_MEMORY = """
import sys
from benchmarks.retinanet import clip, published, raised
from roadaware.models.retinanet3d.detector import detect
network, x = published(), clip()
raised(network, float(sys.argv[2]))
if sys.argv[1] != "nothing":
    detect(network, x, lazy=sys.argv[1] == "fast")
"""


@dataclass(frozen=True)
class _Took:
    """Wall-clock and CPU seconds of a call, and what it gave; CPU time says more where others are at work."""

    wall: float
    cpu: float
    gave: Any

    def __str__(self) -> str:
        return f"{self.wall:.2f} s ({self.cpu:.2f} CPU s)"


def retinanet_lazy() -> _Row:
    """I3D-50, one clip of 8 frames, with a share of the cells passing; as many boxes are found both ways."""
    import torch

    network, x, told = published(), clip(), []
    torch.set_num_threads(2)
    for share in _SHARES:
        passing(network, share)
        fast = _best(partial(_boxes, network, x, lazy=True))
        plain = _best(partial(_boxes, network, x, lazy=False), times=1)
        assert abs(fast.gave - plain.gave) <= _TIES
        told.append(f"{share:.1%}: {fast} against {plain}, {plain.wall / fast.wall:.1f}x")
    return "retinanet: I3D 8x512x704, cells that pass", "2x at 1%, 1x at 50%", "; ".join(told)


def retinanet_memory() -> _Row:
    """The peak of the whole process at 1%, and without the network, its weights and the clip."""
    by = str(passing(published(), 0.01))
    peaks = {way: python(_MEMORY, way, by).peak_mb or 0.0 for way in ("nothing", "fast", "plain")}
    base = peaks["nothing"]
    fast, plain = peaks["fast"] - base, peaks["plain"] - base
    return (
        "retinanet: peak memory at 1%",
        "half of plain",
        f"{peaks['fast']:.0f} of {peaks['plain']:.0f} MB; beside {base:.0f} MB of weights and libraries "
        f"{fast:.0f} of {plain:.0f} MB",
    )


def retinanet_share() -> _Row:
    """The arithmetic of the fast path over its time, beside the best of one convolution in the same run."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from roadaware.models.retinanet3d.detector import detect

    network, x = published(), clip()
    passing(network, 0.01)
    fused = torch.ops.mkldnn
    known = {fused._convolution_pointwise: _work, fused._convolution_pointwise_: _work_added}
    with FlopCounterMode(display=False, custom_mapping=known) as counter:
        detect(network, x)
    work = counter.get_total_flops() / 1e9
    told = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        peaks, times = [], []
        for _ in range(3):
            peaks.append(_convolution())
            times.append(_best(lambda: detect(network, x), times=1))
        peak = max(rate for rate, _ in peaks), max(rate for _, rate in peaks)
        wall, cpu = (work / min(took) for took in zip(*((t.wall, t.cpu) for t in times), strict=True))
        told.append(
            f"{threads} threads {wall:.0f} of {peak[0]:.0f} GFLOP/s, {wall / peak[0]:.0%} "
            f"(by CPU time {cpu:.0f} of {peak[1]:.0f}, {cpu / peak[1]:.0%})"
        )
    return f"retinanet: share of the machine, {work:.0f} GFLOP needed", "70%", "; ".join(told)


def retinanet_stream() -> _Row:
    """One new frame of a causal network beside the whole window of 8 again, both on the short way."""
    import torch

    from roadaware.models.retinanet3d.detector import LazyNetwork, detect

    torch.set_num_threads(1)
    told = []
    for name, config, size, frames in (
        ("compact 256x320", compact(), (256, 320), 40),
        ("I3D 128x192", reference(causal=True, dead_weights=False), (128, 192), 16),
        ("I3D 512x704", reference(causal=True, dead_weights=False), _SIZE, 4),
    ):
        network, x = _network(config), clip(size)
        passing(network, 0.01, x)
        window = _best(partial(detect, network, x))
        stream = LazyNetwork(network, streaming=True)
        _streamed(stream, x, 4)
        whole = _best(partial(_streamed, stream, x, frames), times=1)
        each = whole.cpu / frames
        told.append(f"{name} {each * 1e3:.1f} of {window.cpu * 1e3:.0f} CPU ms, 1/{window.cpu / each:.1f}")
    return "retinanet: a new frame beside its window of 8, one thread", "1/6", "; ".join(told)


def retinanet_long_stream() -> _Row:
    """10,000 images of 160x120 through the compact network: time and memory at the end as at the start."""
    import torch

    from roadaware.models.retinanet3d.detector import StreamDetector

    torch.set_num_threads(1)
    network = _network(compact(short_side_px=120))
    passing(network, 0.01, clip((128, 160)))
    kinds = {"agent": tuple(f"label {n}" for n in range(_N_CLASSES - 1))}
    detector = StreamDetector(network, kinds, tuple(f"action {n}" for n in range(_N_AV)))
    pictures = np.random.default_rng(0).integers(0, 255, (16, 120, 160, 3), dtype=np.uint8)
    times, sizes = [], []
    for tenth in range(10):
        started = time.process_time()
        for frame in range(1000):
            detector.step(pictures[frame % 16])
        times.append(time.process_time() - started)
        if tenth in (0, 9):
            sizes.append(psutil.Process().memory_info().rss / 1e6)
    return (
        "retinanet: 10,000 frames of a stream",
        "flat",
        f"{times[0]:.2f} then {times[-1]:.2f} CPU ms a frame, {sizes[0]:.0f} then {sizes[1]:.0f} MB",
    )


def retinanet_half_precision() -> _Row:
    """The fast path in bf16 beside fp32; its detections are others, since so few digits move boxes."""
    import torch

    from roadaware.models.retinanet3d.detector import detect

    network, x = published(), clip()
    passing(network, 0.01)
    torch.set_num_threads(2)
    single = _best(lambda: detect(network, x))
    half = network.bfloat16()
    took = _best(lambda: detect(half, x.bfloat16()))
    return "retinanet: fast path in bf16", "-", f"{took}, fp32 {single}"


def published() -> RetinaNet3D:
    """I3D-50 as published, random weights."""
    return _network(reference(dead_weights=False))


def clip(size: tuple[int, int] = _SIZE) -> torch.Tensor:
    """(1, 3, 8, H, W), smooth in space and time as images are."""
    import torch

    generator = torch.Generator().manual_seed(1)
    coarse = torch.randn(1, 3, 4, size[0] // 16, size[1] // 16, generator=generator)
    return torch.nn.functional.interpolate(coarse, (8, *size), mode="trilinear")


def passing(network: RetinaNet3D, share: float, x: torch.Tensor | None = None) -> float:
    """Set the bias of agentness so that an anchor passes in this share of a clip's cells; by how much."""
    import torch

    from roadaware.models.retinanet3d.detector import DetectRule, LazyNetwork

    least = DetectRule().min_agentness
    with torch.inference_mode():
        lazy = LazyNetwork(network)
        assert lazy.trunk is not None
        frames = clip() if x is None else x
        logits = lazy.heads.read_distinct(lazy.trunk.read(frames).maps, 1, frames.shape[2]).agentness
        best = logits.unflatten(1, (-1, network.config.n_anchors)).amax(dim=2).flatten().sort().values
    by = float(np.log(least / (1 - least))) + 1e-6 - float(best[int(len(best) * (1 - share))])
    raised(network, by)
    return by


def raised(network: RetinaNet3D, by: float) -> None:
    """Raise the bias of agentness."""
    import torch

    last: Any = network.cls_heads[-1]
    with torch.no_grad():
        last.bias[:: network.n_classes] += by


def _network(config: RetinaNetConfig) -> RetinaNet3D:
    import torch

    from roadaware.models.retinanet3d.network import RetinaNet3D

    torch.manual_seed(0)
    network = RetinaNet3D(config, _N_CLASSES, _N_AV)
    for head in (network.cls_heads, network.reg_heads):
        for layer in head:
            if isinstance(layer, torch.nn.Conv3d):  # outputs that differ from cell to cell as trained ones do
                torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    return network.eval()


def _work(frames: Sequence[int], weight: Sequence[int], *_: Any, out_shape: Sequence[int], **__: Any) -> int:
    """Operations of a convolution, from shapes."""
    return 2 * int(np.prod(out_shape)) * int(np.prod(weight[1:]))


def _work_added(into: Sequence[int], frames: Sequence[int], weight: Sequence[int], *_: Any, **__: Any) -> int:
    return _work(frames, weight, out_shape=into)


def _streamed(stream: LazyNetwork, x: torch.Tensor, frames: int) -> None:
    from roadaware.models.retinanet3d.detector import DetectRule

    rule = DetectRule()
    for frame in range(frames):
        stream.detect(x[:, :, frame % 8 : frame % 8 + 1], rule)


def _boxes(network: RetinaNet3D, x: torch.Tensor, *, lazy: bool) -> int:
    from roadaware.models.retinanet3d.detector import detect

    return sum(len(frame.boxes) for frame in detect(network, x, lazy=lazy)[0])


def _convolution() -> tuple[float, float]:
    """GFLOP in a second of the wall clock and of the CPU: 256 to 256 channels, 3x3, 4 maps of stride 8."""
    import torch

    last = torch.channels_last
    x = torch.randn(4, 256, 64, 88).contiguous(memory_format=last)
    weight = torch.randn(256, 256, 3, 3).contiguous(memory_format=last)
    took = _best(lambda: torch.conv2d(x, weight, padding=1), times=5)
    work = 2 * 4 * 64 * 88 * 256 * 256 * 9 / 1e9
    return work / took.wall, work / took.cpu


def _best(function: Callable[[], object], times: int = 2) -> _Took:
    """The least of several calls, of either clock."""
    import torch

    walls, cpus, gave = [], [], None
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        with torch.inference_mode():
            gave = function()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return _Took(min(walls), min(cpus), gave)


BENCHMARKS = (
    retinanet_lazy,
    retinanet_memory,
    retinanet_share,
    retinanet_stream,
    retinanet_long_stream,
    retinanet_half_precision,
)
