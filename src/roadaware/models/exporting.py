"""A network as an ONNX file, checked against PyTorch before it is written; imports torch."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from roadaware import __version__
from roadaware import config as configs
from roadaware.errors import FindingsError, UsageError
from roadaware.io.files import write_atomically
from roadaware.models.offline import import_onnxruntime
from roadaware.models.retinanet3d.detector import Fit
from roadaware.models.retinanet3d.layers import (
    EverySecond,
    TimeLayer,
    TimePool,
    TimeRepeat,
    make_streaming_copy,
)
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.retinanet3d.trunks import RecurrentConv, RecurrentGru

Form = Literal["clip", "stream"]
FORMAT = "roadaware-onnx-1"
TOLERANCE = 1e-3
"""With a greater difference to PyTorch, relative to the largest value of an output, no file is written."""
# A protobuf message stays below 2 GiB; the last MiB is for the graph around the weights.
_MOST_BYTES = (1 << 31) - (1 << 20)
_CHECKED_FRAMES = 5
_NEEDED = ("onnx", "onnxscript", "onnxruntime")
_PICTURES, _OUTPUTS = "pictures", ("boxes", "scores", "av")


@dataclass(frozen=True)
class Exported:
    """Facts of an exported file.

    Args:
        form: of the file.
        inputs, outputs: name to shape; in the stream form memories are among both.
        difference: the worst one to PyTorch, relative to the largest value of its output.
        n_bytes: of the file.
    """

    form: Form
    inputs: dict[str, tuple[int, ...]]
    outputs: dict[str, tuple[int, ...]]
    difference: float
    n_bytes: int


def find_stream_obstacle(network: RetinaNet3D) -> str | None:
    """Why a network has no stream form; None if it has one."""
    if not network.config.causal:
        return "it looks ahead"
    layers = list(network.modules())
    if any(isinstance(layer, TimePool | TimeRepeat | EverySecond) for layer in layers):
        return "it does other work at every second frame, which one graph cannot"
    if any(isinstance(layer, RecurrentConv | RecurrentGru) for layer in layers):
        return "its recurrent units take the first frame in another way than those that follow"
    return None


def export(
    network: RetinaNet3D,
    facts: Mapping[str, Any],
    out: Path,
    *,
    form: Form,
    frames: int = 8,
    picture_px: tuple[int, int] = (1280, 960),
) -> Exported:
    """Write a network as ONNX; what it takes and gives stands in the metadata of the file.

    The clip form takes `pictures` (1, 3, T, h, w), normalised and padded. The stream form takes one frame
    and its memories, zeros at the beginning of a stream, and gives the memories for the next frame.
    `boxes` (1, T, N, 4) are in pixels of the network's image, `scores` (1, T, N, C) and `av` (1, T, V) in
    [0, 1], agentness first; nothing is suppressed.

    Args:
        network: in `eval` mode, on the CPU.
        facts: `kinds` and `av_labels`, as of `open_network`.
        out: where to.
        form: `clip` or `stream`.
        frames: of a clip.
        picture_px: (width, height) of the images that will be fitted to the network.

    Raises:
        UsageError: if there is no such form of this network, the file would be too large, or the libraries
            for it are not installed.
        FindingsError: if the exported network answers differently; nothing is written.
        DiskError: if the disk refuses.
    """
    _check(network, form)
    fit = Fit.of(network.config)
    height, width = fit.size(picture_px[1], picture_px[0])
    padded = tuple(-(-n // fit.multiple_px) * fit.multiple_px for n in (height, width))
    # The same input at every export, so that the comparison can be repeated.
    generator = torch.Generator().manual_seed(0)
    shown = torch.randn(1, 3, _CHECKED_FRAMES if form == "stream" else frames, *padded, generator=generator)
    first = shown[:, :, :1] if form == "stream" else shown
    with torch.no_grad():
        wrapped: nn.Module = _Stream(network, first) if form == "stream" else _Clip(network)
        memories = wrapped.zeros() if isinstance(wrapped, _Stream) else {}
        proto, names = _convert_to_onnx(wrapped, first, memories)
        sizes = {"fitted_px": (width, height), "padded_px": (padded[1], padded[0])}
        for key, value in _facts(network, facts, form, sizes, list(memories)).items():
            proto.metadata_props.add(key=key, value=value)
        # The bytes of the file.
        if proto.ByteSize() > _MOST_BYTES:
            raise UsageError("an ONNX file holds at most 2 GB, and this network has more weights")
        data: bytes = proto.SerializeToString()
        # Shapes of the outputs, and the worst relative difference to PyTorch, on a clip or a whole stream.
        onnxruntime = import_onnxruntime()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = torch.get_num_threads()
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        plain = _Clip(make_streaming_copy(network) if memories else network)
        held = {name: tensor.numpy() for name, tensor in memories.items()}
        difference, outputs = 0.0, {}
        for images in torch.split(shown, 1, dim=2) if memories else [shown]:
            found = dict(
                zip(names, session.run(list(names), {_PICTURES: images.numpy(), **held}), strict=True)
            )
            for name, wanted in zip(names, plain(images), strict=False):
                difference = max(difference, _difference(found[name], wanted.numpy()))
            outputs = {name: tuple(array.shape) for name, array in found.items()}
            held = {name: found[f"next_{name}"] for name in memories}
    if not difference <= TOLERANCE:
        raise FindingsError(
            f"the exported network differs from PyTorch by {difference:.2g} of the largest value, more than "
            f"{TOLERANCE:g}; nothing was written"
        )
    write_atomically(out, data)
    inputs = {_PICTURES: tuple(first.shape)}
    inputs |= {name: tuple(tensor.shape) for name, tensor in memories.items()}
    return Exported(form, inputs, outputs, difference, len(data))


def _check(network: RetinaNet3D, form: Form) -> None:
    """Nothing, where a network can be exported in a form.

    Raises:
        UsageError: if it cannot, or the libraries for it are not installed.
    """
    lacking = [name for name in _NEEDED if find_spec(name) is None]
    if lacking:
        raise UsageError(f"{', '.join(lacking)}: not installed; `pip install roadaware[export]` brings them")
    reason = find_stream_obstacle(network) if form == "stream" else None
    if reason:
        raise UsageError(f"this network has no stream form, since {reason}; export a clip")


class _Clip(nn.Module):
    """A network with its scores in [0, 1]."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        said = self.network(images)
        found = (said.boxes, said.class_logits.sigmoid(), said.av_logits.sigmoid())
        return found if said.av_logits.shape[-1] else found[:2]


@dataclass(frozen=True)
class _Slot:
    """Where a layer keeps tensors: an attribute that is one, a tuple, or a dictionary of tuples."""

    name: str
    layer: TimeLayer
    attribute: str
    key: int | None = None

    def read(self) -> tuple[Tensor, ...]:
        held = getattr(self.layer, self.attribute)
        held = held if self.key is None else held[self.key]
        return (held,) if isinstance(held, Tensor) else tuple(held or ())

    def write(self, tensors: tuple[Tensor, ...]) -> None:
        before = getattr(self.layer, self.attribute)
        if self.key is not None:
            setattr(self.layer, self.attribute, {**before, self.key: tensors})
        else:
            setattr(self.layer, self.attribute, tensors[0] if isinstance(before, Tensor) else tensors)


class _Stream(nn.Module):
    """A network on a stream whose memories come in and go out with each frame.

    Args:
        network: that has a stream form.
        picture: (1, 3, 1, h, w), to see how large the memories are.
    """

    def __init__(self, network: RetinaNet3D, image: Tensor) -> None:
        super().__init__()
        self.clip = _Clip(make_streaming_copy(network))
        for _ in range(8):  # longer than any kernel: all memories are full
            self.clip(image)
        self.slots = [slot for slot in _slots(self.clip.network) if slot.read()]
        self.shapes = [[tuple(tensor.shape) for tensor in slot.read()] for slot in self.slots]

    def zeros(self) -> dict[str, Tensor]:
        """The memories at the beginning of a stream."""
        return {
            f"{slot.name}_{place}": torch.zeros(shape)
            for slot, shapes in zip(self.slots, self.shapes, strict=True)
            for place, shape in enumerate(shapes)
        }

    def forward(self, images: Tensor, *memories: Tensor) -> tuple[Tensor, ...]:
        rest, before = list(memories), [slot.read() for slot in self.slots]
        for slot, shapes in zip(self.slots, self.shapes, strict=True):
            slot.write(tuple(rest[: len(shapes)]))
            rest = rest[len(shapes) :]
        found = self.clip(images)
        after = [tensor for slot in self.slots for tensor in slot.read()]
        for slot, tensors in zip(self.slots, before, strict=True):
            slot.write(tensors)
        return (*found, *after)


def _slots(model: nn.Module) -> Iterator[_Slot]:
    """Everywhere that a layer may remember something."""
    for path, layer in model.named_modules():
        if not isinstance(layer, TimeLayer):
            continue
        name = path.replace(".", "_")
        levels = getattr(layer, "kept_of", {})
        for level in sorted(levels):
            yield _Slot(f"{name}_level{level}", layer, "kept_of", level)
        for attribute in ("past", "state", *(() if levels else ("kept",))):
            if getattr(layer, attribute, None) is not None:
                yield _Slot(f"{name}_{attribute}", layer, attribute)


def _convert_to_onnx(
    wrapped: nn.Module, images: Tensor, memories: Mapping[str, Tensor]
) -> tuple[Any, list[str]]:
    """The ONNX model, and the names of its outputs."""
    arguments = (images, *memories.values())
    found = wrapped(*arguments)
    names = [*_OUTPUTS[: len(found) - len(memories)], *(f"next_{name}" for name in memories)]
    with _quiet():
        program = torch.onnx.export(
            wrapped.eval(),
            arguments,
            dynamo=True,
            verbose=False,
            input_names=[_PICTURES, *memories],
            output_names=names,
        )
    if program is None:
        raise FindingsError("PyTorch made no ONNX model of this network")
    return program.model_proto, names


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter's messages."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _facts(
    network: RetinaNet3D,
    facts: Mapping[str, Any],
    form: Form,
    sizes: Mapping[str, tuple[int, int]],
    memories: list[str],
) -> dict[str, str]:
    config = network.config
    record = {
        "form": form,
        "kinds": {kind: list(names) for kind, names in facts["kinds"].items()},
        "av_labels": list(facts["av_labels"]),
        "scores": "agentness, then all labels of all kinds in order",
        "normalisation": {"mean": config.mean, "std": config.std, "of": "images in [0, 1], red first"},
        **sizes,
        "memories": memories,
        "config": configs.to_dict(config),
        "version": __version__,
    }
    return {"format": FORMAT, "roadaware": json.dumps(record)}


def _difference(found: Any, wanted: Any) -> float:
    """Relative to the largest value; infinite where something is no number."""
    if not np.isfinite(found).all():
        return float("inf")
    return float(np.abs(found - wanted).max() / max(float(np.abs(wanted).max()), 1e-12))
