"""Object detectors of transformers as detectors of agents, as they are or fine-tuned; imports torch.

Pictures are prepared here: the library's own preparation needs torchvision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.arrays import Pixels
from roadaware.errors import UsageError
from roadaware.models.detector import FrameDetections
from roadaware.models.object_folders import SIZE_PX, facts_of, labels_of, model_of, preparation_of
from roadaware.models.object_labels import COCO_AGENTS, ROAD_AGENTS, joined_riders
from roadaware.models.pretrained import answering, refuse_odd
from roadaware.models.retinanet3d.pictures import checked
from roadaware.models.retinanet3d.rule import DetectRule
from roadaware.models.videos import VideoDetector


class ObjectDetector(VideoDetector):
    """Agents in single frames; agentness is the largest score of an agent.

    Args:
        model: for object detection, such as RTDetrForObjectDetection, with its weights.
        names: of its classes.
        agents: what is told: the labels of `kind`.
        table: name of a class to an agent; None if the names are agents themselves (fine-tuned).
        rule: which boxes are kept; these detectors need no suppression, which `nms_iou` 1 or None leaves out.
        size_px: height and width that pictures are brought to, whatever their shape.
        mean, std: of the channels, red first, of pictures in [0, 1].
        batch: frames that are looked at together.
        kind: of the labels.

    Raises:
        UsageError: if no class is an agent.

    Source: Zhao et al., CVPR 2024 (RT-DETR): pictures of 640x640 in [0, 1], not normalised.
    """

    single = True

    def __init__(
        self,
        model: nn.Module,
        names: Sequence[str],
        agents: Sequence[str] = ROAD_AGENTS,
        table: Mapping[str, str] | None = COCO_AGENTS,
        rule: DetectRule | None = None,
        *,
        size_px: tuple[int, int] = SIZE_PX,
        mean: Sequence[float] = (0.0, 0.0, 0.0),
        std: Sequence[float] = (1.0, 1.0, 1.0),
        batch: int = 1,
        kind: str = "agent",
    ) -> None:
        super().__init__({kind: tuple(agents)}, (), rule, causal=True, batch=batch)
        self.model, self.size_px, self.riders = model.eval(), size_px, table is not None
        place = next(model.parameters())
        self.mean = torch.tensor(mean, device=place.device).view(1, 3, 1, 1)
        self.std = torch.tensor(std, device=place.device).view(1, 3, 1, 1)
        named = [name if table is None else table.get(name.lower(), "") for name in names]
        self.columns = [[c for c, name in enumerate(named) if name == agent] for agent in agents]
        if not any(self.columns):
            raise UsageError(f"none of {len(names)} classes ({', '.join(list(names)[:4])}, ...) is an agent")

    def follow(self, pictures: Sequence[Pixels]) -> list[FrameDetections]:
        """As of `VideoDetector`."""
        for picture in pictures:
            checked(picture, pictures[0].shape)
        height, width = pictures[0].shape[:2]
        with answering(self.model):
            said = self.model(pixel_values=self.prepared(pictures))
            scores = said.logits.float().sigmoid()
            told = torch.stack(
                [
                    scores[..., columns].amax(dim=-1) if columns else torch.zeros_like(scores[..., 0])
                    for columns in self.columns
                ],
                dim=-1,
            )
            refuse_odd(said.pred_boxes, scores)
            boxes = corners(said.pred_boxes.float()) * told.new_tensor([width, height, width, height])
        return [
            self._kept(each.cpu().numpy(), score.cpu().numpy(), width, height)
            for each, score in zip(boxes, told, strict=True)
        ]

    def prepared(self, pictures: Sequence[Pixels]) -> Tensor:
        """(B, 3, h, w) of pictures of one size, as the model wants them."""
        place = next(self.model.parameters())
        stacked = torch.from_numpy(np.stack(pictures)).to(place.device).permute(0, 3, 1, 2).float()
        resized = functional.interpolate(
            stacked, size=self.size_px, mode="bilinear", align_corners=False, antialias=True
        )
        return ((resized / 255 - self.mean) / self.std).to(place.dtype)

    def _kept(self, boxes: Any, scores: Any, width: int, height: int) -> FrameDetections:
        """The boxes of a frame that pass the rule, by falling agentness."""
        boxes = np.clip(boxes, 0, [width, height, width, height]).astype(np.float32)
        agentness = scores.max(axis=1)
        order = np.argsort(-agentness, kind="stable")
        order = order[agentness[order] > self.rule.min_agentness]
        boxes, scores = boxes[order], scores[order]
        if self.riders:
            boxes, scores = joined_riders(boxes, scores, *self.kinds.values())
        agentness = scores.max(axis=1) if len(scores) else scores[:, :0].sum(axis=1)
        places = np.argsort(-agentness, kind="stable")
        if self.rule.nms_iou is not None:
            places = places[_suppressed(boxes[places], self.rule)]
        places = places[: self.rule.top]
        none = np.zeros(0, np.float32)
        return FrameDetections(0, boxes[places], agentness[places], scores[places], none)


def _suppressed(boxes: Any, rule: DetectRule) -> Any:
    from roadaware.models.nms import greedy

    return greedy(torch.from_numpy(boxes), rule.nms_iou or 0.0, top=rule.top).numpy()


def corners(boxes: Tensor) -> Tensor:
    """(..., 4) centre, width and height as x1, y1, x2, y2."""
    x, y, w, h = boxes.unbind(-1)
    return torch.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], dim=-1)


def open_objects(
    folder: Path,
    rule: DetectRule | None = None,
    *,
    batch: int = 1,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
) -> ObjectDetector:
    """The detector in a folder as transformers saves it: config.json and model.safetensors.

    One that a recipe trained says its labels itself. Of others, one whose classes are all agents of ROAD is
    taken as fine-tuned, else the table says who is who.

    Args:
        folder: local; nothing is downloaded, and no code of it is run.
        rule: which boxes are kept.
        batch: frames that are looked at together.
        device: where it runs.
        dtype: what it computes with, such as bfloat16; that of the file unless told.

    Raises:
        InputError: if it is no such folder, of another kind of model, or has no safetensors; or if it says
            that it tells other labels than the model does.
        DamagedError: if the weights do not fit.
    """
    model = model_of(folder)
    names = labels_of(model)
    size_px, mean, std = preparation_of(folder)
    facts = facts_of(folder, names)
    tuned = facts is not None or set(names) <= set(ROAD_AGENTS)
    return ObjectDetector(
        model.to(device=device, dtype=dtype),
        names,
        names if tuned else ROAD_AGENTS,
        None if tuned else COCO_AGENTS,
        rule,
        size_px=size_px,
        mean=mean,
        std=std,
        batch=batch,
        kind="agent" if facts is None else facts["kind"],
    )


def targets_of(
    boxes: Sequence[Tensor], agents: Sequence[Tensor], height: int, width: int
) -> list[dict[str, Tensor]]:
    """Truth as models of transformers want it for their loss.

    Args:
        boxes: of each picture (n, 4) x1, y1, x2, y2 in pixels.
        agents: of each picture (n,) the class of each box, int64.
        height, width: of the pictures.
    """
    scale = torch.tensor([width, height, width, height], dtype=torch.float32)
    return [
        {"class_labels": labels, "boxes": _centred(each / scale.to(each))}
        for each, labels in zip(boxes, agents, strict=True)
    ]


def _centred(boxes: Tensor) -> Tensor:
    x1, y1, x2, y2 = boxes.unbind(-1)
    return torch.stack([(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1], dim=-1)
