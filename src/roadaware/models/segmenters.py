"""Semantic segmenters of transformers: the class of each pixel of an image; imports torch.

A network that scores classes says them for cells of a few pixels; one of masks says a class and a mask for
each query. Both are brought to the pixels of the image as it was given before the best class is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional

from roadaware.arrays import Pixels
from roadaware.errors import InputError
from roadaware.models.object_detectors import get_class_labels
from roadaware.models.pretrained import (
    Preparer,
    load_image_preparer,
    load_pretrained_model,
    move_to_model,
    read_model_type,
    refuse_odd,
    wrap_inference,
)

SCORING = ("segformer", "upernet")
"""Types of models that score classes of cells."""
FAMILIES = (*SCORING, "mask2former", "maskformer")
"""Types of models that are opened; the others say masks, each with its class."""
MOST_CLASSES = 1 << 16
_TOGETHER = 8
"""So many classes are brought to the pixels of the image at a time."""

Classes = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]


class Segmenter:
    """The class of each pixel.

    Args:
        model: of one of the families, with its weights.
        labels: of its classes, in order.
        prepare: images to what the model takes.

    Raises:
        InputError: if there are more classes than a mask of 16 bits can tell.

    Source: Xie et al., NeurIPS 2021 (SegFormer), section 3.2; Cheng et al., CVPR 2022 (Mask2Former), and
    NeurIPS 2021 (MaskFormer), section 3.4, semantic inference.
    """

    def __init__(self, model: nn.Module, labels: Sequence[str], prepare: Preparer) -> None:
        if not 0 < len(labels) <= MOST_CLASSES:
            raise InputError(f"a mask tells up to {MOST_CLASSES} classes apart, not {len(labels)}")
        self.model, self.labels, self.prepare = model.eval(), tuple(labels), prepare

    def segment(self, images: Sequence[Pixels]) -> list[Classes]:
        """(H, W) number of the class of each pixel, of each image; uint8, or uint16 beyond 256 classes.

        Args:
            images: of (H, W, 3) uint8, all of one size.
        """
        size = (int(images[0].shape[0]), int(images[0].shape[1]))
        with wrap_inference(self.model):
            given = move_to_model(self.prepare(images), self.model)
            kept = 1.0, 1.0
            if "pixel_mask" in given:
                shown = given["pixel_mask"][0].bool()
                kept = (float(shown.any(dim=1).float().mean()), float(shown.any(dim=0).float().mean()))
            said = self.model(**given)
            scores = said.logits if hasattr(said, "logits") else _of_masks(said)
            refuse_odd(scores)
            best = [compute_class_mask(each, size, kept).cpu().numpy() for each in scores.float()]
        if max(int(each.max()) for each in best) >= len(self.labels):
            raise InputError(f"the model scores more classes than the {len(self.labels)} that it names")
        if len(self.labels) <= 256:
            return [each.astype(np.uint8) for each in best]
        return [each.astype(np.uint16) for each in best]


def compute_class_mask(
    scores: Tensor, size: tuple[int, int], kept: tuple[float, float] = (1.0, 1.0)
) -> Tensor:
    """(H, W) which class scores best in each pixel, scores being interpolated between cells.

    Args:
        scores: (c, h, w) of cells.
        size: H and W.
        kept: share of the rows and of the columns of cells that show the image; the rest is padding.
    """
    whole = [max(round(side / share), side) for side, share in zip(size, kept, strict=True)]
    best = torch.full(size, -torch.inf, device=scores.device)
    place = torch.zeros(size, dtype=torch.int64, device=scores.device)
    for first in range(0, len(scores), _TOGETHER):
        some = scores[None, first : first + _TOGETHER]
        some = functional.interpolate(some, size=whole, mode="bilinear", align_corners=False)
        value, at = some[0, :, : size[0], : size[1]].max(dim=0)
        place = torch.where(value > best, at + first, place)
        best = torch.maximum(best, value)
    return place


def _of_masks(said: Any) -> Tensor:
    """(b, c, h, w) scores of classes, out of queries with a class and a mask each."""
    # The last class of a query says that it shows none.
    classes = said.class_queries_logits.float().softmax(dim=-1)[..., :-1]
    masks = said.masks_queries_logits.float().sigmoid()
    return torch.einsum("bqc,bqhw->bchw", classes, masks)


def open_segmenter(
    folder: Path, *, device: torch.device | str = "cpu", dtype: torch.dtype | None = None
) -> Segmenter:
    """The segmenter in a folder as transformers saves it.

    Args:
        folder: local, with config.json, safetensors and preprocessor_config.json; nothing is downloaded, and
            no code of it is run.
        device: where it runs.
        dtype: what it computes with (default: that of the file).

    Raises:
        InputError: if it is no such folder, of another kind of model, or lacks a file.
        DamagedError: if the weights do not fit.
    """
    makers: dict[str, Any] = {
        **dict.fromkeys(SCORING, transformers.AutoModelForSemanticSegmentation),
        "mask2former": transformers.Mask2FormerForUniversalSegmentation,
        "maskformer": transformers.MaskFormerForInstanceSegmentation,
    }
    model = load_pretrained_model(folder, FAMILIES, makers.get(read_model_type(folder)))
    return Segmenter(
        model.to(device=device, dtype=dtype), get_class_labels(model), load_image_preparer(folder)
    )
