"""OWLv2 and OWL-ViT: each text is a query, whose likeness to each patch of the picture is its score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from roadaware.models.open_vocabulary.tokens import padded_tokens
from roadaware.models.open_vocabulary.zero_shot import ZeroShotDetector
from roadaware.models.pretrained import Preparer
from roadaware.models.retinanet3d.rule import DetectRule

FAMILIES = ("owlv2", "owlvit")
TEMPLATE = "a photo of a {}"
"""How texts are asked for. Source: the authors' prompts, of which this is the plainest."""


class OwlDetector(ZeroShotDetector):
    """Boxes for texts.

    Args:
        model: Owlv2ForObjectDetection or OwlViTForObjectDetection.
        tokenizer: of its words.
        texts: what is looked for.
        prepare: pictures to what the model takes; OWLv2 pads them to squares, below and on the right.
        rule: which boxes are kept.
        batch: pictures that are looked at together.
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
        self.ids, self.mask = padded_tokens(tokenizer, said, most, length=most)

    def sides(self, height: int, width: int) -> tuple[int, int]:
        """As of `ZeroShotDetector`."""
        return (max(height, width),) * 2 if self.square else (height, width)

    def scored(self, given: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """As of `ZeroShotDetector`."""
        pixels = given["pixel_values"]
        ids, mask = (each.to(pixels.device).repeat(len(pixels), 1) for each in (self.ids, self.mask))
        said = self.model(pixel_values=pixels, input_ids=ids, attention_mask=mask)
        return said.pred_boxes, torch.sigmoid(said.logits.float())
