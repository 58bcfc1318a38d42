"""Object detectors and segmenters of transformers, opened from the disk alone; imports torch."""

from __future__ import annotations

import difflib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional

from roadaware import __version__
from roadaware.arrays import Pixels
from roadaware.errors import InputError, UsageError, raise_interrupt
from roadaware.io.files import build_disk_error, write_atomically
from roadaware.models.detector import FrameDetections, VideoDetector
from roadaware.models.object_labels import COCO_AGENTS, ROAD_AGENTS, merge_riders
from roadaware.models.offline import block_network
from roadaware.models.pretrained import (
    Preparer,
    build_transformers_config,
    check_processor_fields,
    load_image_preparer,
    load_pretrained_model,
    move_to_model,
    parse_folder_json,
    read_model_type,
    refuse_odd,
    silence_transformers,
    wrap_inference,
)
from roadaware.models.retinanet3d.config import DetectRule
from roadaware.models.retinanet3d.detector import check_frame
from roadaware.models.roi import suppress_sorted_boxes
from roadaware.models.tensor_files import limit_network_size

DETECTOR_FAMILIES = ("rt_detr", "rt_detr_v2", "d_fine")
"""Types of models that are known to end in boxes and one sigmoid for each class."""
SIZE_PX = (640, 640)
FACTS = "roadaware.json"
"""What a folder of ours says beside what transformers writes."""
_CONFIG, _PREPARATION, _WEIGHTS = "config.json", "preprocessor_config.json", "model.safetensors"
_FORMAT = 1

Preparation = tuple[tuple[int, int], list[float], list[float]]


def load_detector_model(folder: Path) -> Any:
    """The model with its weights; nothing is downloaded, and no code of the folder is run.

    Args:
        folder: with config.json and model.safetensors.

    Raises:
        InputError: if it is no such folder, of another kind of model, or has no safetensors.
        DamagedError: if the weights do not fit.
    """
    return load_pretrained_model(folder, DETECTOR_FAMILIES, transformers.AutoModelForObjectDetection)


def get_class_labels(model: Any) -> list[str]:
    """The classes of a model, in the order of its scores."""
    labels = model.config.id2label
    return [str(labels[n]) for n in sorted(labels)]


def load_preparation(folder: Path) -> Preparation:
    """Height and width of images, mean and deviation, as the folder says, else as published.

    Raises:
        InputError: if what it says is not understood.
    """
    none, one = [0.0] * 3, [1.0] * 3
    if not os.path.lexists(folder / _PREPARATION):
        return SIZE_PX, none, one
    where = str(folder / _PREPARATION)
    try:
        said = check_processor_fields(parse_folder_json(folder / _PREPARATION), where)
        size = said.get("size") or {}
        size_px = (int(size.get("height", SIZE_PX[0])), int(size.get("width", SIZE_PX[1])))
        if not said.get("do_normalize", False):
            return size_px, none, one
        mean, std = ([float(n) for n in said[name]] for name in ("image_mean", "image_std"))
        if len(mean) != len(none) or len(std) != len(one):
            raise ValueError("image_mean and image_std have a number for each of three channels")
        return size_px, mean, std
    except (KeyError, TypeError, ValueError, AttributeError, InputError) as error:
        text = error.message if isinstance(error, InputError) else str(error)
        raise InputError(f"not understood how images are prepared: {text}", where=where) from error


def read_folder_facts(folder: Path, labels: Sequence[str]) -> dict[str, Any] | None:
    """Facts of a folder of ours: `kind` and `labels`, `version` and `notes`; None of a folder of others.

    Raises:
        InputError: if these are not the labels it says, or it is of another format.
    """
    path = folder / FACTS
    if not os.path.lexists(path):
        return None
    said = parse_folder_json(path)
    if said.get("format") != _FORMAT or not isinstance(said.get("kind"), str) or not said["kind"]:
        hint = f"open it with roadaware {str(said.get('version', 'of its time'))[:60]}"
        raise InputError(
            f"format {repr(said.get('format'))[:60]} is not {_FORMAT}", where=str(path), hint=hint
        )
    if said.get("labels") != list(labels):
        hint = f"take both from one run; without {FACTS} the names in {_CONFIG} alone count"
        raise InputError(
            f"it names the labels {str(said.get('labels'))[:200]}, and {_CONFIG} beside it {list(labels)}",
            where=str(path),
            hint=hint,
        )
    return said


def save_objects(
    folder: Path,
    model: Any,
    preparation: Preparation,
    kind: str,
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Write a model as `save_pretrained` does, with all that opening it needs beside it.

    Every file is replaced whole, the weights last.

    Args:
        folder: is made where it is not there.
        model: with its weights; its config names its labels.
        preparation: of images.
        kind: of the labels.
        notes: JSON-ready, such as how it was trained.

    Raises:
        DiskError: if it cannot be written; what stood there before still stands, file by file.
    """
    (height, width), mean, std = preparation
    said = {
        "do_resize": True,
        "size": {"height": height, "width": width},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": mean != [0.0] * 3 or std != [1.0] * 3,
        "image_mean": mean,
        "image_std": std,
    }
    facts = {
        "format": _FORMAT,
        "version": __version__,
        "kind": kind,
        "labels": get_class_labels(model),
        "notes": dict(notes or {}),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".saving-") as place, silence_transformers():
            model.save_pretrained(place, max_shard_size="1TB")
            config, weights = ((Path(place) / name).read_bytes() for name in (_CONFIG, _WEIGHTS))
    except OSError as error:
        raise build_disk_error(
            folder / _WEIGHTS, 4 * sum(p.numel() for p in model.parameters()), error
        ) from error
    write_atomically(folder / _CONFIG, config)
    write_atomically(folder / _PREPARATION, _text(said))
    write_atomically(folder / FACTS, _text(facts))
    write_atomically(folder / _WEIGHTS, weights)


def _text(said: Mapping[str, Any]) -> bytes:
    return (json.dumps(said, indent=2) + "\n").encode()


class ObjectDetector(VideoDetector):
    """Agents in single frames; agentness is the largest score of an agent.

    Args:
        model: for object detection, such as RTDetrForObjectDetection, with its weights.
        names: of its classes.
        agents: what is reported: the labels of `kind`.
        table: name of a class to an agent; None if the names are agents themselves (fine-tuned).
        rule: which boxes are kept; these detectors need no suppression, which `nms_iou` 1 or None leaves out.
        size_px: height and width that images are brought to, whatever their shape.
        mean, std: of the channels, red first, of images in [0, 1].
        batch: frames that are processed together.
        kind: of the labels.

    Raises:
        UsageError: if no class is an agent.

    Source: Zhao et al., CVPR 2024 (RT-DETR): images of 640x640 in [0, 1], not normalised.
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

    def follow(self, images: Sequence[Pixels]) -> list[FrameDetections]:
        """As of `VideoDetector`."""
        for image in images:
            check_frame(image, images[0].shape)
        height, width = images[0].shape[:2]
        with wrap_inference(self.model):
            said = self.model(pixel_values=self.prepared(images))
            scores = said.logits.float().sigmoid()
            sizes = torch.stack(
                [
                    scores[..., columns].amax(dim=-1) if columns else torch.zeros_like(scores[..., 0])
                    for columns in self.columns
                ],
                dim=-1,
            )
            refuse_odd(said.pred_boxes, scores)
            boxes = convert_to_xyxy(said.pred_boxes.float()) * sizes.new_tensor(
                [width, height, width, height]
            )
        return [
            self._kept(each.cpu().numpy(), score.cpu().numpy(), width, height)
            for each, score in zip(boxes, sizes, strict=True)
        ]

    def prepared(self, images: Sequence[Pixels]) -> Tensor:
        """(B, 3, h, w) of images of one size, as the model wants them."""
        place = next(self.model.parameters())
        stacked = torch.from_numpy(np.stack(images)).to(place.device).permute(0, 3, 1, 2).float()
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
            boxes, scores = merge_riders(boxes, scores, *self.kinds.values())
        agentness = scores.max(axis=1) if len(scores) else scores[:, :0].sum(axis=1)
        places = np.argsort(-agentness, kind="stable")
        if self.rule.nms_iou is not None:
            places = places[
                suppress_sorted_boxes(
                    torch.from_numpy(boxes[places]), self.rule.nms_iou or 0.0, top=self.rule.top
                ).numpy()
            ]
        places = places[: self.rule.top]
        none = np.zeros(0, np.float32)
        return FrameDetections(0, boxes[places], agentness[places], scores[places], none)


def convert_to_xyxy(boxes: Tensor) -> Tensor:
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
        batch: frames that are processed together.
        device: where it runs.
        dtype: what it computes with, such as bfloat16 (default: that of the file).

    Raises:
        InputError: if it is no such folder, of another kind of model, or has no safetensors; or if it says
            that it has other labels than the model.
        DamagedError: if the weights do not fit.
    """
    model = load_detector_model(folder)
    names = get_class_labels(model)
    size_px, mean, std = load_preparation(folder)
    facts = read_folder_facts(folder, names)
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


def build_detr_targets(
    boxes: Sequence[Tensor], agents: Sequence[Tensor], height: int, width: int
) -> list[dict[str, Tensor]]:
    """Ground truth as models of transformers want it for their loss.

    Args:
        boxes: of each image (n, 4) x1, y1, x2, y2 in pixels.
        agents: of each image (n,) the class of each box, int64.
        height, width: of the images.
    """
    scale = torch.tensor([width, height, width, height], dtype=torch.float32)
    return [
        {"class_labels": labels, "boxes": _convert_to_cxcywh(each / scale.to(each))}
        for each, labels in zip(boxes, agents, strict=True)
    ]


def _convert_to_cxcywh(boxes: Tensor) -> Tensor:
    x1, y1, x2, y2 = boxes.unbind(-1)
    return torch.stack([(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1], dim=-1)


# Object detectors of transformers to be trained: with random weights, or with those of a folder.

_CLASSWISE = ("class_embed", "enc_score_head")
"""Parts of the names of tensors that hold a row for each class."""
_OWN = ("id2label", "label2id", "num_labels")


def create_model(kind: str, fields: Mapping[str, Any], labels: Sequence[str]) -> Any:
    """A model with random weights, drawn from the generator of torch.

    Args:
        kind: one of `FAMILIES`.
        fields: of its config, such as `num_queries`; the rest is as published, but the norms of the backbone
            learn, since the statistics that published weights freeze mean nothing to random ones.
        labels: that it distinguishes.

    Raises:
        UsageError: if the type or a field is unknown, or values are impossible.
    """
    if kind not in DETECTOR_FAMILIES:
        raise UsageError(f"model.fields.type is one of {', '.join(DETECTOR_FAMILIES)}, not {kind!r}")
    backbone = fields.get("backbone_config")
    if isinstance(backbone, Mapping) and "model_type" not in backbone:
        raise UsageError(
            "model.fields.backbone_config says its model_type, such as rt_detr_resnet or hgnet_v2"
        )
    return _built(kind, {"freeze_backbone_batch_norms": False, **fields}, fields, labels)


def prepare_finetuning(
    folder: Path, fields: Mapping[str, Any], labels: Sequence[str]
) -> tuple[Any, dict[str, str]]:
    """Prepare the model of a folder for fine-tuning on other labels.

    A label begins with the weights of the class of its name, else of the class of COCO that stands for it
    (`COCO_AGENTS`); where there is neither they are random. Everything else is taken as it is.

    Args:
        folder: as transformers saves it.
        fields: of its config that are to be others, such as `num_denoising`.
        labels: that it is to distinguish.

    Returns:
        The model, and label to the class whose weights it begins with.

    Raises:
        UsageError: if the other fields do not fit the weights.
        InputError: if the folder is none of such a model.
    """
    old = load_detector_model(folder)
    kind = str(old.config.model_type)
    new = _built(kind, {**old.config.to_dict(), **fields}, fields, labels)
    classes = get_class_labels(old)
    # Place of a label to the class whose weights it begins with
    found = {}
    for row, label in enumerate(labels):
        names = [n for n, name in enumerate(classes) if name.lower() == label.lower()]
        names += [n for n, name in enumerate(classes) if COCO_AGENTS.get(name.lower()) == label]
        if names:
            found[row] = names[0]
    sources = found
    held, differ = old.state_dict(), []
    for name, mine in new.state_dict().items():  # these are the weights themselves
        theirs = held.get(name)
        if any(part in name for part in _CLASSWISE):
            if theirs is not None and theirs.shape[1:] == mine.shape[1:]:
                # Rows of classes; one more, which stands for no class where there is one, stays at the end.
                for row, source in sources.items():
                    mine[row] = theirs[source]
        elif theirs is None or theirs.shape != mine.shape:
            differ.append(name)
        else:
            mine.copy_(theirs)
    if differ:
        shown = ", ".join(differ[:3])
        raise UsageError(f"model.fields do not fit the weights in {folder}: {shown} would be others")
    return new, {labels[row]: classes[source] for row, source in sources.items()}


def extract_plain_config(model: Any) -> dict[str, Any]:
    """The config of a model without labels and versions, as plain data: what decides its shapes."""
    usual = {*transformers.PreTrainedConfig().to_dict(), *_OWN} - {"model_type"}
    said = json.loads(model.config.to_json_string())
    return {name: value for name, value in said.items() if name not in usual}


def _built(kind: str, config: Mapping[str, Any], fields: Mapping[str, Any], labels: Sequence[str]) -> Any:
    """A model with a config, of which somebody has written some fields."""
    family = type(transformers.AutoConfig.for_model(kind))
    known = [each.name for each in fields_of(family) if each.name not in _OWN]
    for name in fields:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            meant = f"; did you mean '{near[0]}'?" if near else ""
            raise UsageError(f"a model of type {kind} has no field 'model.fields.{name}'{meant}")
    named = {"id2label": dict(enumerate(labels)), "label2id": {label: n for n, label in enumerate(labels)}}
    maker: Any = transformers.AutoModelForObjectDetection
    where = "model.fields"
    try:
        with silence_transformers(), block_network(where), limit_network_size(where):
            return maker.from_config(
                build_transformers_config({**config, **named, "model_type": kind}, where)
            ).float()
    except InputError as error:
        raise UsageError(str(error)) from error
    except Exception as error:  # the library raises whatever its parts do
        raise_interrupt(error)
        first = " ".join(str(error).split())[:200] or type(error).__name__
        raise UsageError(f"model.fields make no model of type {kind}: {first}") from error


SCORING = ("segformer", "upernet")
"""Types of models that score classes of cells."""
SEGMENTER_FAMILIES = (*SCORING, "mask2former", "maskformer")
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
    model = load_pretrained_model(folder, SEGMENTER_FAMILIES, makers.get(read_model_type(folder)))
    return Segmenter(
        model.to(device=device, dtype=dtype), get_class_labels(model), load_image_preparer(folder)
    )
