"""CLIP as a namer of crops: how well each of a list of texts fits; imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import transformers
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from roadaware.arrays import Pixels
from roadaware.errors import UsageError
from roadaware.models.folder_configs import encode_texts, load_tokenizer
from roadaware.models.open_vocabulary.crops import validate_texts
from roadaware.models.pretrained import (
    Preparer,
    load_image_preparer,
    load_pretrained_model,
    move_to_model,
    wrap_inference,
)

# Tokens of several texts as one array, for text towers that read each text up to its end mark.


def encode_padded_tokens(
    tokenizer: Tokenizer, texts: Sequence[str], most: int, *, length: int | None = None
) -> tuple[Tensor, Tensor]:
    """(t, n) tokens, zeros behind the end of a text, and (t, n) which of them count.

    Text towers of CLIP look back only and take what stands at the end mark, so that what fills up behind it
    means nothing.

    Args:
        tokenizer: adds the marks of begin and end.
        texts: t of them.
        most: tokens that the model reads.
        length: n (default: that of the longest text).

    Raises:
        UsageError: if a text has more tokens.
    """
    encoded = encode_texts(tokenizer, texts)
    for text, each in zip(texts, encoded, strict=True):
        if len(each.ids) > most:
            raise UsageError(f"{text!r} has {len(each.ids)} tokens; up to {most} are read")
    width = length or max(len(each.ids) for each in encoded)
    ids, mask = (
        torch.zeros(len(texts), width, dtype=torch.int64),
        torch.zeros(len(texts), width, dtype=torch.int64),
    )
    for row, each in enumerate(encoded):
        ids[row, : len(each.ids)] = torch.tensor(each.ids)
        mask[row, : len(each.ids)] = 1
    return ids, mask


FAMILIES = ("clip",)
TEMPLATES = ("a photo of a {}.", "a cropped photo of a {}.", "a photo of a {} on a road.")
"""What texts stand in; the mean of what they say is asked for."""


class CropNamer:
    """How well each text fits a crop.

    Args:
        model: CLIPModel.
        tokenizer: of its words.
        texts: the classes, in words.
        prepare: images to what the model takes.
        templates: what a text stands in, each with one {}.
        batch: crops that are processed together.

    Raises:
        UsageError: if the texts are none, one is too long, or a template has no place for it.

    Source: Radford et al., ICML 2021 (CLIP), section 3.1.4 (templates whose embeddings are averaged); CODA
    (ECCV 2022), section 4.3 (labels proposed by CLIP).
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer,
        texts: Sequence[str],
        prepare: Preparer,
        *,
        templates: Sequence[str] = TEMPLATES,
        batch: int = 16,
    ) -> None:
        self.texts = validate_texts(texts)
        if not templates or any(each.count("{}") != 1 for each in templates):
            raise UsageError("a template has one {} where the text stands, such as 'a photo of a {}.'")
        self.model, self.prepare, self.batch = model.eval(), prepare, max(batch, 1)
        self.meant = self._meant(tokenizer, list(templates))

    def scores(self, crops: Sequence[Pixels]) -> npt.NDArray[np.float32]:
        """(n, t) how probable each text is for each crop, given that one of them fits; rows sum to 1.

        Args:
            crops: of (h, w, 3) uint8, of any sizes.
        """
        found = [self._some(crops[first : first + self.batch]) for first in range(0, len(crops), self.batch)]
        return np.concatenate([np.zeros((0, len(self.texts)), np.float32), *found])

    def _some(self, crops: Sequence[Pixels]) -> npt.NDArray[np.float32]:
        with wrap_inference(self.model):
            given = move_to_model({"pixel_values": self.prepare(crops)["pixel_values"]}, self.model)
            seen = functional.normalize(self.model.get_image_features(**given).pooler_output.float(), dim=-1)
            # `logit_scale` is kept as a logarithm.
            likeness = self.model.logit_scale.float().exp() * seen @ self.meant.T
            found: npt.NDArray[np.float32] = likeness.softmax(dim=-1).cpu().numpy()
        return found

    def _meant(self, tokenizer: Tokenizer, templates: Sequence[str]) -> Tensor:
        """(t, d) what each text means: the mean over templates, of length 1."""
        most = int(self.model.config.text_config.max_position_embeddings)
        place = next(self.model.parameters()).device
        rows = []
        for text in self.texts:
            ids, mask = encode_padded_tokens(
                tokenizer, [each.replace("{}", text) for each in templates], most
            )
            with wrap_inference(self.model):
                said = self.model.get_text_features(input_ids=ids.to(place), attention_mask=mask.to(place))
            rows.append(functional.normalize(said.pooler_output.float(), dim=-1).mean(dim=0))
        return functional.normalize(torch.stack(rows), dim=-1)


def open_namer(
    folder: Path,
    texts: Sequence[str],
    *,
    templates: Sequence[str] = TEMPLATES,
    batch: int = 16,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
) -> CropNamer:
    """The CLIP in a folder as transformers saves it.

    Args:
        folder: local, with config.json, safetensors, preprocessor_config.json and tokenizer.json; nothing is
            downloaded, and no code of it is run.
        texts: the classes, in words.
        templates: what a text stands in.
        batch: crops that are processed together.
        device: where it runs.
        dtype: what it computes with (default: that of the file).

    Raises:
        UsageError: if the texts cannot be asked for.
        InputError: if it is no such folder, of another kind of model, or lacks a file.
        DamagedError: if the weights do not fit.
    """
    asked = validate_texts(texts)
    model = load_pretrained_model(folder, FAMILIES, transformers.CLIPModel)
    tokenizer, prepare = load_tokenizer(folder), load_image_preparer(folder)
    model = model.to(device=device, dtype=dtype)
    return CropNamer(model, tokenizer, asked, prepare, templates=templates, batch=batch)
