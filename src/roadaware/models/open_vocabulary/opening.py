"""Zero-shot detectors from folders as transformers keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
import transformers

from roadaware.models.folder_words import tokenizer_in
from roadaware.models.open_vocabulary.grounding import FAMILIES as GROUNDING
from roadaware.models.open_vocabulary.grounding import GroundingDetector
from roadaware.models.open_vocabulary.owl import FAMILIES as OWL
from roadaware.models.open_vocabulary.owl import OwlDetector
from roadaware.models.open_vocabulary.texts import checked_texts
from roadaware.models.open_vocabulary.zero_shot import ZeroShotDetector
from roadaware.models.pretrained import family_of, model_in, preparer_in
from roadaware.models.retinanet3d.rule import DetectRule

FAMILIES = (*GROUNDING, *OWL)
"""Types of models that are asked for texts."""


def open_zero_shot(
    folder: Path,
    texts: Sequence[str],
    rule: DetectRule | None = None,
    *,
    batch: int = 1,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
) -> ZeroShotDetector:
    """The zero-shot detector in a folder as transformers saves it.

    Args:
        folder: local, with config.json, safetensors, preprocessor_config.json and tokenizer.json; nothing is
            downloaded, and no code of it is run.
        texts: what is looked for.
        rule: which boxes are kept.
        batch: pictures that are looked at together.
        device: where it runs.
        dtype: what it computes with; that of the file unless told.

    Raises:
        UsageError: if the texts cannot be asked for.
        InputError: if it is no such folder, of another kind of model, or lacks a file.
        DamagedError: if the weights do not fit.
    """
    asked = checked_texts(texts)
    maker = GroundingDetector if family_of(folder) in GROUNDING else OwlDetector
    model = model_in(folder, FAMILIES, transformers.AutoModelForZeroShotObjectDetection)
    tokenizer, prepare = tokenizer_in(folder), preparer_in(folder)
    return maker(model.to(device=device, dtype=dtype), tokenizer, asked, prepare, rule, batch=batch)
