"""Grounding DINO: texts stand in prompts, and a box's score of a text is the mean over the text's tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from roadaware.errors import UsageError
from roadaware.models.folder_words import encodings
from roadaware.models.open_vocabulary.zero_shot import ZeroShotDetector
from roadaware.models.pretrained import Preparer
from roadaware.models.retinanet3d.rule import DetectRule

FAMILIES = ("grounding-dino", "mm-grounding-dino")
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
        prepare: pictures to what the model takes.
        rule: which boxes are kept.
        batch: pictures that are looked at together.

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
        self.prompts = prompts_of(tokenizer, self.texts, int(model.config.max_text_len))

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
            told = said.logits[..., : ids.shape[1]].float().sigmoid()
            boxes.append(said.pred_boxes)
            scores.append(told @ prompt.shares.to(told.device).T)
        return torch.cat(boxes, dim=1), torch.cat(scores, dim=1)


def prompts_of(tokenizer: Tokenizer, texts: Sequence[str], most: int) -> list[Prompt]:
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
        if held and len(_encoded(tokenizer, texts, [*held, place]).ids) > most:
            found.append(_prompt(tokenizer, texts, held, most))
            held = []
        held.append(place)
    return [*found, _prompt(tokenizer, texts, held, most)]


def _encoded(tokenizer: Tokenizer, texts: Sequence[str], places: Sequence[int]) -> Any:
    (found,) = encodings(tokenizer, ["".join(f"{texts[place].lower()}. " for place in places).strip()])
    return found


def _prompt(tokenizer: Tokenizer, texts: Sequence[str], places: Sequence[int], most: int) -> Prompt:
    encoded = _encoded(tokenizer, texts, places)
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
