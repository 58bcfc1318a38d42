"""Zero-shot detectors: boxes in single pictures for whatever a list of texts names; imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from roadaware.arrays import Pixels
from roadaware.models.detector import FrameDetections
from roadaware.models.nms import greedy
from roadaware.models.object_detectors import corners
from roadaware.models.open_vocabulary.texts import checked_texts
from roadaware.models.pretrained import Preparer, answering, placed, refuse_odd
from roadaware.models.retinanet3d.pictures import checked
from roadaware.models.retinanet3d.rule import DetectRule
from roadaware.models.videos import VideoDetector

KIND = "corner"
"""The kind of label of what these detectors tell, as the evaluation of corner cases knows it."""


class ZeroShotDetector(VideoDetector):
    """Base of detectors that are asked for texts; `agentness` of a box is the score of its best text.

    A subclass answers in numbers (`scored`).

    Args:
        model: with its weights.
        texts: what is looked for; they are the labels.
        prepare: pictures to what the model takes.
        rule: which boxes are kept.
        batch: pictures that are looked at together.

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
        self.texts = checked_texts(texts)
        super().__init__({KIND: self.texts}, (), rule, causal=True, batch=batch)
        self.model, self.prepare = model.eval(), prepare

    def scored(self, given: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """(b, q, 4) boxes and (b, q, t) scores of all texts in [0, 1].

        Boxes are centre, width and height as shares of what `sides` says.

        Args:
            given: what the preparation made of b pictures.
        """
        raise NotImplementedError

    def sides(self, height: int, width: int) -> tuple[int, int]:
        """Height and width in pixels that boxes are shares of.

        Args:
            height, width: of the picture.
        """
        return height, width

    def follow(self, pictures: Sequence[Pixels]) -> list[FrameDetections]:
        """As of `VideoDetector`."""
        for picture in pictures:
            checked(picture, pictures[0].shape)
        with answering(self.model):
            boxes, scores = self.scored(placed(self.prepare(pictures), self.model))
            refuse_odd(boxes, scores)
        height, width = pictures[0].shape[:2]
        down, across = self.sides(height, width)
        edges = corners(boxes.float()) * boxes.new_tensor([across, down, across, down], dtype=torch.float32)
        return [
            self._kept(each.cpu().numpy(), score.float().cpu().numpy(), width, height)
            for each, score in zip(edges, scores, strict=True)
        ]

    def _kept(self, boxes: Any, scores: Any, width: int, height: int) -> FrameDetections:
        """The boxes of a picture that pass the rule, by falling score of the best text."""
        boxes = np.clip(boxes, 0, [width, height, width, height]).astype(np.float32)
        best = scores.max(axis=1)
        inside = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
        places = np.argsort(-best, kind="stable")
        places = places[(best > self.rule.min_agentness)[places] & inside[places]]
        if self.rule.nms_iou is not None:
            held = greedy(torch.from_numpy(boxes[places]), self.rule.nms_iou, top=self.rule.top)
            places = places[held.numpy()]
        places = places[: self.rule.top]
        none = np.zeros(0, np.float32)
        return FrameDetections(0, boxes[places], best[places], scores[places], none)
