"""Boxes and names for whatever a list of texts names: CLIP on crops, and zero-shot detectors; imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import transformers
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from roadaware.arrays import Pixels
from roadaware.errors import UsageError
from roadaware.models.crops import validate_texts
from roadaware.models.detector import FrameDetections, VideoDetector
from roadaware.models.object_detectors import convert_to_xyxy
from roadaware.models.pretrained import (
    Preparer,
    encode_texts,
    load_image_preparer,
    load_pretrained_model,
    load_tokenizer,
    move_to_model,
    read_model_type,
    refuse_odd,
    wrap_inference,
)
from roadaware.models.retinanet3d.config import DetectRule
from roadaware.models.retinanet3d.detector import check_frame
from roadaware.models.roi import suppress_sorted_boxes

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


CLIP_FAMILIES = ("clip",)
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
    model = load_pretrained_model(folder, CLIP_FAMILIES, transformers.CLIPModel)
    tokenizer, prepare = load_tokenizer(folder), load_image_preparer(folder)
    model = model.to(device=device, dtype=dtype)
    return CropNamer(model, tokenizer, asked, prepare, templates=templates, batch=batch)


KIND = "corner"
"""The kind of label of what these detectors predict, as the evaluation of corner cases knows it."""


class ZeroShotDetector(VideoDetector):
    """Base of detectors that are asked for texts; `agentness` of a box is the score of its best text.

    A subclass answers in numbers (`scored`).

    Args:
        model: with its weights.
        texts: what is looked for; they are the labels.
        prepare: images to what the model takes.
        rule: which boxes are kept.
        batch: images that are processed together.

    Raises:
        UsageError: if the texts are none.
    """

    single = True

    def __init__(
        self,
        model: nn.Module,
        texts: Sequence[str],
        prepare: Preparer,
        rule: DetectRule | None = None,
        *,
        batch: int = 1,
    ) -> None:
        self.texts = validate_texts(texts)
        super().__init__({KIND: self.texts}, (), rule, causal=True, batch=batch)
        self.model, self.prepare = model.eval(), prepare

    def scored(self, given: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """(b, q, 4) boxes and (b, q, t) scores of all texts in [0, 1].

        Boxes are centre, width and height as shares of what `sides` says.

        Args:
            given: what the preparation made of b images.
        """
        raise NotImplementedError

    def sides(self, height: int, width: int) -> tuple[int, int]:
        """Height and width in pixels that boxes are shares of."""
        return height, width

    def follow(self, images: Sequence[Pixels]) -> list[FrameDetections]:
        """As of `VideoDetector`."""
        for image in images:
            check_frame(image, images[0].shape)
        with wrap_inference(self.model):
            boxes, scores = self.scored(move_to_model(self.prepare(images), self.model))
            refuse_odd(boxes, scores)
        height, width = images[0].shape[:2]
        down, across = self.sides(height, width)
        edges = convert_to_xyxy(boxes.float()) * boxes.new_tensor(
            [across, down, across, down], dtype=torch.float32
        )
        return [
            self._kept(each.cpu().numpy(), score.float().cpu().numpy(), width, height)
            for each, score in zip(edges, scores, strict=True)
        ]

    def _kept(self, boxes: Any, scores: Any, width: int, height: int) -> FrameDetections:
        """The boxes of an image that pass the rule, by falling score of the best text."""
        boxes = np.clip(boxes, 0, [width, height, width, height]).astype(np.float32)
        best = scores.max(axis=1)
        inside = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
        places = np.argsort(-best, kind="stable")
        places = places[(best > self.rule.min_agentness)[places] & inside[places]]
        if self.rule.nms_iou is not None:
            held = suppress_sorted_boxes(
                torch.from_numpy(boxes[places]), self.rule.nms_iou, top=self.rule.top
            )
            places = places[held.numpy()]
        places = places[: self.rule.top]
        none = np.zeros(0, np.float32)
        return FrameDetections(0, boxes[places], best[places], scores[places], none)


# OWLv2 and OWL-ViT: each text is a query, whose likeness to each patch of the image is its score.

OWL_FAMILIES = ("owlv2", "owlvit")
TEMPLATE = "a photo of a {}"
"""How texts are asked for. Source: the authors' prompts, of which this is the plainest."""


class OwlDetector(ZeroShotDetector):
    """Boxes for texts.

    Args:
        model: Owlv2ForObjectDetection or OwlViTForObjectDetection.
        tokenizer: of its words.
        texts: what is looked for.
        prepare: images to what the model takes; OWLv2 pads them to squares, below and on the right.
        rule: which boxes are kept.
        batch: images that are processed together.
        template: what a text stands in.

    Raises:
        UsageError: if the texts are none, or one is too long.

    Source: Minderer et al., ECCV 2022 (OWL-ViT), section 3, and NeurIPS 2023 (OWLv2).
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer,
        texts: Sequence[str],
        prepare: Preparer,
        rule: DetectRule | None = None,
        *,
        batch: int = 1,
        template: str = TEMPLATE,
    ) -> None:
        super().__init__(model, texts, prepare, rule, batch=batch)
        self.square = model.config.model_type == "owlv2"
        most = int(model.config.text_config.max_position_embeddings)
        said = [template.format(text) for text in self.texts]
        self.ids, self.mask = encode_padded_tokens(tokenizer, said, most, length=most)

    def sides(self, height: int, width: int) -> tuple[int, int]:
        """As of `ZeroShotDetector`."""
        return (max(height, width),) * 2 if self.square else (height, width)

    def scored(self, given: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """As of `ZeroShotDetector`."""
        pixels = given["pixel_values"]
        ids, mask = (each.to(pixels.device).repeat(len(pixels), 1) for each in (self.ids, self.mask))
        said = self.model(pixel_values=pixels, input_ids=ids, attention_mask=mask)
        return said.pred_boxes, torch.sigmoid(said.logits.float())


# Grounding DINO: texts stand in prompts, and a box's score of a text is the mean over the text's tokens.

GROUNDING_FAMILIES = ("grounding-dino", "mm-grounding-dino")
_PARTING = (".", "?")


@dataclass(frozen=True, eq=False)
class Prompt:
    """Some of the texts as one sentence.

    Args:
        ids: (n,) tokens.
        shares: (t, n) of each of all texts the weight of each token: one over the number of its tokens, zeros
            for a text that stands in another prompt.
    """

    ids: Tensor
    shares: Tensor


class GroundingDetector(ZeroShotDetector):
    """Boxes for texts; where all texts do not fit into one prompt, several prompts are asked.

    Args:
        model: GroundingDinoForObjectDetection or MMGroundingDinoForObjectDetection.
        tokenizer: of its words.
        texts: what is looked for.
        prepare: images to what the model takes.
        rule: which boxes are kept.
        batch: images that are processed together.

    Raises:
        UsageError: if the texts are none, one holds a dot or question mark, which part texts, is too long, or
            has a word that the tokenizer does not know.

    Source: Liu et al., ECCV 2024 (Grounding DINO), section 3.4 (prompts of phrases parted by dots, which see
    themselves alone); scores of texts as in its published evaluation on COCO.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer,
        texts: Sequence[str],
        prepare: Preparer,
        rule: DetectRule | None = None,
        *,
        batch: int = 1,
    ) -> None:
        super().__init__(model, texts, prepare, rule, batch=batch)
        self.prompts = build_prompts(tokenizer, self.texts, int(model.config.max_text_len))

    def scored(self, given: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """As of `ZeroShotDetector`."""
        boxes, scores = [], []
        pixels = given["pixel_values"]
        for prompt in self.prompts:
            ids = prompt.ids.to(pixels.device).expand(len(pixels), -1)
            said = self.model(
                **given,
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                token_type_ids=torch.zeros_like(ids),
            )
            # The logits are padded to the longest text that the model takes.
            token_scores = said.logits[..., : ids.shape[1]].float().sigmoid()
            boxes.append(said.pred_boxes)
            scores.append(token_scores @ prompt.shares.to(token_scores.device).T)
        return torch.cat(boxes, dim=1), torch.cat(scores, dim=1)


def build_prompts(tokenizer: Tokenizer, texts: Sequence[str], most: int) -> list[Prompt]:
    """Prompts that hold all texts, as many in each as fit.

    Args:
        tokenizer: of the model's words.
        texts: what is looked for.
        most: tokens of a prompt.

    Raises:
        UsageError: if one cannot be asked for.
    """
    for text in texts:
        if any(mark in text for mark in _PARTING):
            raise UsageError(f"{text!r} holds a dot or question mark, which part texts; leave it out")
    found: list[Prompt] = []
    held: list[int] = []
    for place in range(len(texts)):
        # A text too long for any prompt stays alone, and is refused where its prompt is made.
        if held and len(_encode_prompt(tokenizer, texts, [*held, place]).ids) > most:
            found.append(_prompt(tokenizer, texts, held, most))
            held = []
        held.append(place)
    return [*found, _prompt(tokenizer, texts, held, most)]


def _encode_prompt(tokenizer: Tokenizer, texts: Sequence[str], places: Sequence[int]) -> Any:
    (found,) = encode_texts(tokenizer, ["".join(f"{texts[place].lower()}. " for place in places).strip()])
    return found


def _prompt(tokenizer: Tokenizer, texts: Sequence[str], places: Sequence[int], most: int) -> Prompt:
    encoded = _encode_prompt(tokenizer, texts, places)
    if len(encoded.ids) > most:
        raise UsageError(f"{texts[places[0]]!r} has {len(encoded.ids)} tokens; up to {most} are read")
    shares, begin = torch.zeros(len(texts), len(encoded.ids)), 0
    for place in places:
        end = begin + len(texts[place].lower())
        inside = [
            n
            for n, (first, last) in enumerate(encoded.offsets)
            if begin <= first < last <= end and not encoded.special_tokens_mask[n]
        ]
        unknown = tokenizer.token_to_id("[UNK]")
        if not inside or any(encoded.ids[n] == unknown for n in inside):
            raise UsageError(f"the words of {texts[place]!r} are not in the vocabulary of the model")
        shares[place, inside] = 1 / len(inside)
        begin = end + len(". ")
    return Prompt(torch.tensor(encoded.ids), shares)


# Zero-shot detectors from folders as transformers keeps them.

ZERO_SHOT_FAMILIES = (*GROUNDING_FAMILIES, *OWL_FAMILIES)
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
        batch: images that are processed together.
        device: where it runs.
        dtype: what it computes with (default: that of the file).

    Raises:
        UsageError: if the texts cannot be asked for.
        InputError: if it is no such folder, of another kind of model, or lacks a file.
        DamagedError: if the weights do not fit.
    """
    asked = validate_texts(texts)
    maker = GroundingDetector if read_model_type(folder) in GROUNDING_FAMILIES else OwlDetector
    model = load_pretrained_model(
        folder, ZERO_SHOT_FAMILIES, transformers.AutoModelForZeroShotObjectDetection
    )
    tokenizer, prepare = load_tokenizer(folder), load_image_preparer(folder)
    return maker(model.to(device=device, dtype=dtype), tokenizer, asked, prepare, rule, batch=batch)
