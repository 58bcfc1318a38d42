"""Open a detector from disk: one network, several, an object detector or a zero-shot one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch

from roadaware.errors import InputError, UsageError
from roadaware.io.sources import open_file
from roadaware.models.detector import Detector, VideoDetector
from roadaware.models.detector_fusion import Ensemble, Mean, MeanNetwork, Union
from roadaware.models.graphs.runner import is_graph_file
from roadaware.models.graphs.street import open_street
from roadaware.models.graphs.views import Views
from roadaware.models.retinanet3d.config import DetectRule
from roadaware.models.retinanet3d.detector import NetworkVideos
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.tensor_files import get_file_size_limit
from roadaware.models.weights import open_detector, open_parts

_CHUNK = 1 << 22
_CONFIG = "config.json"
_BESIDE = (
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "tokenizer_config.json",
    "roadaware.json",
)


def open_stream(
    weights: Sequence[Path],
    rule: DetectRule | None = None,
    *,
    views: Views | None = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
) -> Detector:
    """The detector that some files make, for images that come one by one.

    One causal network answers each image at once, in the least time; so do an object detector, and
    several networks that all are causal. Others answer in clips, late by all but one of their frames.

    Args:
        weights: files of ours; the logits of several are averaged. Or one folder of an object detector.
        rule: which boxes are reported.
        views: as of `open_videos`.
        device: where it runs.
        dtype: what it computes with, such as bfloat16 (default: that of the file).

    Raises:
        UsageError, InputError: as `open_videos`.
    """
    if len(weights) == 1 and not weights[0].is_dir() and not is_graph_file(weights[0]):
        _refuse_views(views, weights)
        return cast("Detector", open_detector(weights[0], rule, device, dtype))
    return cast("Detector", open_videos(weights, rule, views=views, device=device, dtype=dtype))


def open_videos(
    weights: Sequence[Path],
    rule: DetectRule | None = None,
    *,
    objects: Path | None = None,
    mean: Mean = "logits",
    window: int = 8,
    batch: int = 1,
    texts: Sequence[str] = (),
    views: Views | None = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
) -> VideoDetector:
    """The detector that some files make.

    Args:
        weights: files of ours; several of them are averaged. Or one folder of an object detector, or of a
            zero-shot detector, which is asked for texts.
        rule: which boxes are kept, and how clips are laid.
        objects: folder or file of an object detector whose boxes the network scores.
        mean: of several networks.
        window: frames of a clip where the network is not causal.
        batch: clips or frames that are processed together.
        texts: what a zero-shot detector looks for.
        views: which parts of an image are considered, and in which size, by a detector that takes any.
        device: where it runs.
        dtype: what it computes with, such as bfloat16 (default: that of the file).

    Raises:
        UsageError: if what is given does not go together.
        InputError: if a file cannot be read, or is none of ours.
    """
    more: dict[str, Any] = {"window": window, "batch": batch}
    if len(weights) == 1 and is_graph_file(weights[0]):
        if objects is not None or texts:
            raise UsageError(f"{weights[0]} is an object detector: it takes no texts and no boxes of another")
        return open_street(weights[0], views, rule, device=device, dtype=dtype, batch=batch)
    _refuse_views(views, weights)
    if len(weights) == 1 and weights[0].is_dir():
        if objects is not None:
            raise UsageError(
                f"{weights[0]} is an object detector itself; the boxes of another need a network"
            )
        # The detector in a folder of transformers
        folder = weights[0]
        # With transformers, which takes a second that weights of other kinds need not wait for.
        from roadaware.models.open_vocabulary import ZERO_SHOT_FAMILIES, open_zero_shot
        from roadaware.models.pretrained import read_model_type

        family = read_model_type(folder) if (folder / _CONFIG).is_file() else ""
        if family in ZERO_SHOT_FAMILIES:
            if not texts:
                raise UsageError(
                    f"{folder} is a zero-shot detector ({family}): say what it looks for, as `predict --texts "
                    "tyre,dog` does"
                )
            return open_zero_shot(folder, texts, rule, batch=batch, device=device, dtype=dtype)
        if texts:
            known = ", ".join(ZERO_SHOT_FAMILIES)
            raise UsageError(f"{folder} ({family}) takes no texts; zero-shot detectors do: {known}")
        return _objects(folder, rule, batch, device, dtype)
    if texts:
        raise UsageError("texts are for the folder of one zero-shot detector")
    opened = [open_parts(path) for path in weights]
    kinds, av_labels = _words(weights, [facts for *_, facts in opened])
    networks: list[RetinaNet3D] = [network.to(device=device, dtype=dtype) for network, *_ in opened]
    if objects is not None:
        if len(networks) > 1:
            raise UsageError("boxes of an object detector are scored by one network, not by several")
        found = _objects(objects, rule, batch, device, dtype)
        return Union(networks[0], found, kinds, av_labels, rule, **more)
    if len(networks) == 1:
        return NetworkVideos(networks[0], kinds, av_labels, rule, refiner=opened[0][1], **more)
    return Ensemble(MeanNetwork(networks, mean), kinds, av_labels, rule, **more)


def _refuse_views(views: Views | None, weights: Sequence[Path]) -> None:
    """Refuse a size of images for a detector that has its own.

    Raises:
        UsageError: if one was asked for.
    """
    if views is not None:
        name = str(weights[0]) if weights else "this detector"
        raise UsageError(
            f"--size and --tiles are for detectors of any size, such as street-small; {name} has its own"
        )


def _objects(
    folder: Path,
    rule: DetectRule | None,
    batch: int,
    device: torch.device | str,
    dtype: torch.dtype | None,
) -> VideoDetector:
    if is_graph_file(folder):
        return open_street(folder, None, rule, device=device, dtype=dtype, batch=batch)
    from roadaware.models.object_detectors import open_objects

    return open_objects(folder, rule, batch=batch, device=device, dtype=dtype)


def _words(
    paths: Sequence[Path], facts: Sequence[dict[str, Any]]
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """The labels, which all files must share.

    Raises:
        UsageError: if they do not.
    """
    if not facts:
        raise UsageError("name at least one file of weights")
    for path, said in zip(paths[1:], facts[1:], strict=True):
        for what in ("kinds", "av_labels"):
            if said[what] != facts[0][what]:
                raise UsageError(f"{path} and {paths[0]} tell other labels apart ({what})")
        if list(said["kinds"]) != list(facts[0]["kinds"]):
            raise UsageError(f"{path} and {paths[0]} tell their kinds in another order")
    kinds = {kind: tuple(names) for kind, names in facts[0]["kinds"].items()}
    return kinds, tuple(facts[0]["av_labels"])


def digest_model_files(path: Path) -> str:
    """Of a file, or of what an object detector is read from: 24 hexadecimal digits.

    Raises:
        InputError: if it cannot be read.
    """
    files = [path]
    if path.is_dir():
        beside = [each for each in (path / name for name in _BESIDE) if each.is_file()]
        files = sorted([path / _CONFIG, *beside, *path.glob("*.safetensors")])
    whole = hashlib.blake2b(digest_size=12)
    for each in files:
        try:
            with open_file(each, most=get_file_size_limit()) as file:
                while chunk := file.read(_CHUNK):
                    whole.update(chunk)
        except (OSError, InputError) as error:
            what = error.message if isinstance(error, InputError) else error.strerror or str(error)
            raise InputError(f"expected weights and could not read them: {what}", where=str(each)) from error
    return whole.hexdigest()
