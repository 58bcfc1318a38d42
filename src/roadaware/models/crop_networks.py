"""Features of crops by image networks: VGG16, ResNet50, or an image model of transformers; imports torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import transformers
from torch import Tensor

from roadaware.arrays import Bytes, Floats32
from roadaware.errors import InputError, UsageError
from roadaware.io.sources import to_printable
from roadaware.models.crossing.networks.stills import CrossingNet, ResNet50Net, VGG16Net
from roadaware.models.crossing.published import load_image_weights
from roadaware.models.loading import digest_model_files
from roadaware.models.pretrained import (
    list_image_types,
    load_image_preparer,
    load_pretrained_model,
    move_to_model,
    read_model_type,
)
from roadaware.models.tensor_files import ARITHMETIC

Trunk = Literal["vgg16", "resnet50"]
SIDE_PX = 224
_BATCH = 16
_TRUNKS: Mapping[str, type[CrossingNet]] = {"vgg16": VGG16Net, "resnet50": ResNet50Net}


class CropNetwork:
    """Crops to features of unit length.

    Args:
        look: crops (B, 224, 224, 3), red first, to (B, d).
        name: of the network.
        digest: of its weights, or how they were drawn.
    """

    side = SIDE_PX

    def __init__(self, look: Callable[[Bytes], Tensor], name: str, digest: str) -> None:
        self.look, self.name, self.digest = look, name, digest

    def features(self, crops: Bytes) -> Floats32:
        """(n, d).

        Args:
            crops: (n, 224, 224, 3) red first.

        Raises:
            InputError: if a feature is not finite.
        """
        parts = []
        for first in range(0, len(crops), _BATCH):
            with torch.inference_mode():
                found = self.look(crops[first : first + _BATCH]).flatten(1).float()
            if not bool(torch.isfinite(found).all()):
                raise InputError(f"{self.name} gives features that are not finite: its weights are broken")
            # Features that are all 0 have no direction; they stay 0.
            parts.append((found / found.norm(dim=1, keepdim=True).clamp_min(1e-12)).numpy())
        return np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)


def open_trunk(name: str, weights: Path | None = None, *, seed: int = 0) -> CropNetwork:
    """The trunk of a network of pedestrians, as the mean of its last maps.

    Args:
        name: vgg16 or resnet50.
        weights: image weights, as `models.crossing.published` reads them; drawn where None.
        seed: of drawn weights.

    Raises:
        UsageError: if there is no such trunk, or the weights are for another one.
        InputError: if the weights cannot be read.
    """
    if name not in _TRUNKS:
        raise UsageError(f"trunks are {', '.join(_TRUNKS)}, not {name!r}")
    kind = _TRUNKS[name]
    # Drawing the weights leaves the random numbers of the caller as they were.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = kind(kind.entry.config_class(), {"crop": (1, SIDE_PX, SIDE_PX, 3)})
    if weights is not None:
        load_image_weights(network, weights)
    network.eval()

    def look(crops: Bytes) -> Tensor:
        held = torch.from_numpy(crops).permute(0, 3, 1, 2).float() / 255
        return network.looked({"crop": held[:, None]}).embedding

    return CropNetwork(
        look, name, f"drawn with seed {seed}" if weights is None else digest_model_files(weights)
    )


def open_image_model(folder: Path) -> CropNetwork:
    """An image model of transformers, such as a ResNet, ViT or DINO, from a folder on the disk.

    Its pooled output is taken where it has one, else the mean over its last positions; of a model of images
    and texts, the features of images.

    Args:
        folder: with config.json, preprocessor_config.json and model.safetensors.

    Raises:
        InputError: if it is no such folder, or a model of something else than images.
        DamagedError: if the weights do not fit.
    """
    name, opener = read_model_type(folder), transformers.AutoModel
    model, prepare = (
        load_pretrained_model(folder, list_image_types(), opener).eval(),
        load_image_preparer(folder),
    )

    def look(crops: Bytes) -> Tensor:
        try:
            return _extract_embeddings(model, move_to_model(prepare(list(crops)), model))
        except ARITHMETIC as error:
            text = to_printable(" ".join(str(error).split()))
            raise InputError(f"a model of type {name!r} gives no features of images: {text}") from error

    return CropNetwork(look, name, digest_model_files(folder))


def _extract_embeddings(model: Any, given: dict[str, Tensor]) -> Tensor:
    """(B, d) of prepared images."""
    if hasattr(model, "get_image_features"):
        said = model.get_image_features(**given)
        found: Tensor = said if isinstance(said, Tensor) else said.pooler_output
        return found
    said = model(**given)
    pooled: Tensor | None = getattr(said, "pooler_output", None)
    if pooled is not None:
        return pooled
    last: Tensor = said.last_hidden_state
    return last.mean(dim=(-2, -1)) if last.ndim == 4 else last.mean(dim=1)
