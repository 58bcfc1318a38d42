"""Object detectors of transformers tell agents, as they are or fine-tuned; a network scores their boxes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tiny_objects import FIELDS, tiny_model

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.models.detector import FrameDetections, Stepwise, VideoDetector
from roadaware.models.detector_fusion import BoxScores, Union
from roadaware.models.loading import open_videos
from roadaware.models.object_detectors import (
    DETECTOR_FAMILIES,
    FACTS,
    ObjectDetector,
    build_detr_targets,
    create_model,
    open_objects,
    prepare_finetuning,
    save_objects,
)
from roadaware.models.object_labels import COCO_AGENTS, ROAD_AGENTS, merge_riders
from roadaware.models.retinanet3d import default
from roadaware.models.retinanet3d.config import DetectRule
from roadaware.models.retinanet3d.detector import Fit, NetworkVideos
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.weights import save_detector

torch.set_num_threads(1)
AGENTS = ("Ped", "Car", "Cyc")
COCO = ["person", "bicycle", "car", "kite"]
KINDS = {"agent": ("car", "bus"), "action": ("stop", "go")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("objects") / "coco"
    tiny_model("rt_detr", COCO, num_denoising=0).save_pretrained(path)
    (path / "preprocessor_config.json").write_text(json.dumps({"size": {"height": 64, "width": 96}}))
    return path


class _Says(torch.nn.Module):
    """A model that always says the same."""

    def __init__(self, boxes: list[list[float]], scores: list[list[float]]) -> None:
        super().__init__()
        self.boxes = torch.nn.Parameter(torch.tensor([boxes]))
        self.logits = torch.tensor([scores]).logit()
        self.seen: Any = None

    def forward(self, pixel_values: Any) -> Any:
        self.seen = pixel_values
        n = len(pixel_values)
        return SimpleNamespace(logits=self.logits.repeat(n, 1, 1), pred_boxes=self.boxes.repeat(n, 1, 1))


def test_boxes_come_in_pixels_by_falling_agentness_with_the_classes_of_the_table() -> None:
    model = _Says(
        [[0.5, 0.5, 0.2, 0.4], [0.1, 0.1, 0.4, 0.4], [0.7, 0.5, 0.1, 0.1], [0.5, 0.5, 0.2, 0.4]],
        [[0.3, 0.1, 0.0, 0.0], [0.1, 0.8, 0.0, 0.9], [0.0, 0.01, 0.0, 0.9], [0.25, 0.0, 0.0, 0.0]],
    )
    names = ["person", "car", "bicycle", "kite"]
    rule = DetectRule(min_agentness=0.05, nms_iou=0.5)
    detector = ObjectDetector(model, names, AGENTS, COCO_AGENTS, rule, size_px=(8, 16))
    picture = np.full((100, 200, 3), 255, np.uint8)
    (found,) = Stepwise(detector).detections([picture], 1)
    assert detector.kinds == {"agent": AGENTS}
    # The kite is no agent; the last box is suppressed by the first one.
    np.testing.assert_allclose(found.boxes, [[0, 0, 60, 30], [80, 30, 120, 70]], atol=1e-3)
    np.testing.assert_allclose(found.agentness, [0.8, 0.3], atol=1e-6)
    np.testing.assert_allclose(found.scores, [[0.1, 0.8, 0], [0.3, 0.1, 0]], atol=1e-6)
    assert model.seen.shape == (1, 3, 8, 16)
    torch.testing.assert_close(model.seen, torch.ones(1, 3, 8, 16))
    every = ObjectDetector(model, names, AGENTS, COCO_AGENTS, DetectRule(nms_iou=None, top=2), size_px=(8, 8))
    assert [len(each) for each in every.detections([picture] * 3, 3)] == [2, 2, 2]


@pytest.mark.parametrize(
    ("person", "rides"),
    [((20, 0, 40, 50), True), ((20, 0, 40, 20), False), ((52, 0, 80, 50), False)],
    ids=["upon", "above", "beside"],
)
def test_who_is_on_a_bicycle_is_a_cyclist(person: tuple[int, ...], rides: bool) -> None:
    boxes = np.array([[100, 0, 120, 40], person, [10, 30, 50, 60]], np.float32)
    scores = np.array([[0.9, 0, 0], [0.8, 0, 0.1], [0.2, 0, 0.7]], np.float32)
    found, told = merge_riders(boxes, scores, AGENTS)
    if not rides:
        np.testing.assert_array_equal(found, boxes)
        np.testing.assert_array_equal(told, scores)
        return
    np.testing.assert_array_equal(found, [[100, 0, 120, 40], [10, 0, 50, 60]])
    np.testing.assert_allclose(told, [[0.9, 0, 0], [0, 0, 0.7]])


def test_two_people_do_not_ride_one_bicycle() -> None:
    boxes = np.array([[10, 0, 40, 50], [12, 0, 42, 50], [10, 30, 50, 60]], np.float32)
    scores = np.array([[0.5, 0, 0], [0.8, 0, 0], [0, 0, 0.7]], np.float32)
    found, told = merge_riders(boxes, scores, AGENTS)
    assert len(found) == 2
    assert told.argmax(axis=1).tolist() == [0, 2]
    assert told[0, 0] == pytest.approx(0.5)


def test_the_table_names_agents_of_road() -> None:
    assert set(COCO_AGENTS.values()) <= set(ROAD_AGENTS)


def test_a_local_folder_is_opened_and_answers_every_frame(folder: Path) -> None:
    detector = open_videos([folder], DetectRule(min_agentness=0.0, nms_iou=None, top=5), batch=2)
    assert isinstance(detector, ObjectDetector)
    assert (detector.size_px, detector.kinds) == ((64, 96), {"agent": ROAD_AGENTS})
    video = list(np.random.default_rng(0).integers(0, 255, (3, 40, 60, 3), dtype=np.uint8))
    found = list(detector.detections(video, 3))
    assert [each.frame for each in found] == [0, 1, 2]
    for each in found:
        assert 0 < len(each) <= 5
        assert (np.diff(each.agentness) <= 0).all()
        assert (each.boxes >= 0).all()
        assert (each.boxes <= [60, 40, 60, 40]).all()
    one = next(open_objects(folder, detector.rule).detections(video[:1], 1))
    np.testing.assert_allclose(one.agentness, found[0].agentness, atol=1e-5)


def test_folders_that_are_no_detectors_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json"):
        open_objects(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(InputError, match="'bert'; known are rt_detr"):
        open_objects(tmp_path)
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickled")
    with pytest.raises(InputError, match=r"no model\.safetensors"):
        open_objects(tmp_path)
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-8])
    with pytest.raises(DamagedError, match="cannot be made"):
        open_objects(tmp_path)
    with pytest.raises(UsageError, match="is an agent"):
        ObjectDetector(_Says([[0.0] * 4], [[0.5]]), ["kite"])
    with pytest.raises(UsageError, match="object detector itself"):
        open_videos([folder], objects=folder)


PICTURES = list(np.random.default_rng(0).integers(0, 255, (2, 40, 60, 3), dtype=np.uint8))
PREPARED = ((64, 96), [0.0] * 3, [1.0] * 3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", DETECTOR_FAMILIES)
def test_each_family_is_saved_and_opened_to_the_same_detections(kind: str, tmp_path: Path) -> None:
    rule = DetectRule(min_agentness=0, nms_iou=None)
    model = tiny_model(kind, AGENTS)
    save_objects(tmp_path / "model", model, PREPARED, "agent", {"seed": 1})
    before = ObjectDetector(model, AGENTS, AGENTS, None, rule, size_px=(64, 96)).follow(PICTURES)
    detector = open_objects(tmp_path / "model", rule)
    assert detector.kinds == {"agent": AGENTS}
    assert json.loads((tmp_path / "model" / FACTS).read_text())["notes"] == {"seed": 1}
    for one, other in zip(before, detector.follow(PICTURES), strict=True):
        assert len(one) == 12
        np.testing.assert_allclose(one.boxes, other.boxes, atol=1e-4)
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)


def test_targets_are_centres_and_sizes_in_shares_of_the_picture() -> None:
    boxes = [torch.tensor([[16.0, 16, 32, 48]]), torch.zeros(0, 4)]
    found = build_detr_targets(boxes, [torch.tensor([1]), torch.zeros(0).long()], 64, 128)
    torch.testing.assert_close(found[0]["boxes"], torch.tensor([[0.1875, 0.5, 0.125, 0.5]]))
    assert found[1]["boxes"].shape == (0, 4)


def test_a_folder_that_names_other_labels_than_its_model_is_refused(tmp_path: Path) -> None:
    save_objects(tmp_path, tiny_model("rt_detr", ["walker", "van"]), PREPARED, "thing")
    assert open_objects(tmp_path).kinds == {"thing": ("walker", "van")}
    said = json.loads((tmp_path / FACTS).read_text())
    for change, says in (({"labels": ["walker"]}, "names the labels"), ({"format": 9}, "format 9")):
        (tmp_path / FACTS).write_text(json.dumps(said | change))
        with pytest.raises(InputError, match=says):
            open_objects(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rt_detr", "d_fine"])
def test_labels_begin_with_the_weights_of_the_classes_that_stand_for_them(kind: str, tmp_path: Path) -> None:
    old = tiny_model(kind, COCO)
    save_objects(tmp_path, old, PREPARED, "agent")
    new, sources = prepare_finetuning(tmp_path, {"num_queries": 9}, ("Car", "EmVeh", "Ped"))
    assert sources == {"Car": "car", "Ped": "person"}
    assert new.config.id2label == {0: "Car", 1: "EmVeh", 2: "Ped"}
    held, mine = old.state_dict(), new.state_dict()
    for name in ("model.enc_score_head.weight", "model.decoder.class_embed.1.bias"):
        assert torch.equal(mine[name][[0, 2]], held[name][[2, 0]])
        assert len(mine[name]) == 3
    name = "model.denoising_class_embed.weight"
    assert torch.equal(mine[name][[0, 2]], held[name][[2, 0]])
    same = [n for n in held if "class_embed" not in n and "score_head" not in n]
    assert all(torch.equal(mine[n], held[n]) for n in same)
    with pytest.raises(UsageError, match="do not fit the weights"):
        prepare_finetuning(tmp_path, {"decoder_ffn_dim": 8}, AGENTS)


@pytest.mark.parametrize(
    ("kind", "fields", "says"),
    [
        ("detr", {}, "one of rt_detr, rt_detr_v2, d_fine, not 'detr'"),
        ("rt_detr", {"num_querys": 3}, "did you mean 'num_queries'?"),
        ("rt_detr", {"num_queries": "many"}, "expected int, got str"),
        ("d_fine", {"d_model": 17}, "divisible"),
        ("d_fine", {"backbone_config": {"depths": [1]}}, "says its model_type"),
    ],
)
def test_fields_that_make_no_model_are_refused(kind: str, fields: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        create_model(kind, {**FIELDS.get(kind, {}), **fields}, AGENTS)
    assert says in str(caught.value)


def _network(**fields: Any) -> RetinaNet3D:
    """A tiny network in double precision."""
    torch.manual_seed(1)
    tiny = {
        "base_width": 8,
        "blocks": (1, 1, 1, 1),
        "width": 8,
        "head_layers": 1,
        "anchor_sizes_px": (32.0, 64.0),
        "anchor_scales": (1.0, 1.5),
        "short_side_px": 128,
    }
    network = RetinaNet3D(default(**{**tiny, **fields}), 5, 2).double().eval()
    for parameter in network.cls_heads.parameters():
        torch.nn.init.normal_(parameter, std=0.15)
    return network


@pytest.mark.parametrize("causal", [True, False])
def test_a_box_that_is_an_anchor_gets_the_scores_of_the_anchor(causal: bool) -> None:
    """Everywhere but where the convolutions see the border of their map."""
    network = _network(causal=causal)
    x = torch.randn(1, 3, 4, 128, 192, dtype=torch.float64)
    with torch.inference_mode():
        features = network.features(x)
        wanted = network.heads(features)
    anchors = network.anchors_for(features.maps).double()
    centres, begin = (anchors[:, :2] + anchors[:, 2:]) / 2, 0
    score = BoxScores(network)
    for map, stride in zip(features.maps, (8, 16), strict=True):
        count = map.shape[-1] * map.shape[-2] * network.config.n_anchors
        inside = (centres[begin : begin + count] > 2 * stride) & (
            centres[begin : begin + count] < torch.tensor([192, 128]) - 2 * stride
        )
        places = begin + torch.nonzero(inside.all(dim=1)).flatten()
        assert len(places) > 100
        for frame in range(4):
            found = score(features.maps, torch.full_like(places, frame), anchors[places])
            torch.testing.assert_close(found, wanted.class_logits[0, frame, places], rtol=1e-6, atol=1e-6)
        begin += count
    assert score(features.maps, torch.zeros(0).long(), torch.zeros(0, 4)).shape == (0, 5)


class _Boxes(VideoDetector):
    """Finds the same two boxes in every image."""

    BOXES = np.array([[30, 20, 62, 52], [60, 30, 90, 70]], np.float32)

    def follow(self, pictures: Sequence[np.ndarray]) -> list[FrameDetections]:
        score = np.array([0.9, 0.4], np.float32)
        return [FrameDetections(0, self.BOXES, score, score[:, None], score[:0]) for _ in pictures]


@pytest.mark.parametrize("causal", [True, False])
def test_the_union_has_the_boxes_of_one_and_the_scores_of_the_other(causal: bool) -> None:
    network, av = _network(causal=causal), ("still", "moving")
    video = list(np.random.default_rng(0).integers(0, 255, (5, 96, 128, 3), dtype=np.uint8))
    objects = _Boxes({"agent": ("any",)}, causal=True)
    found = [
        list(Union(network, objects, KINDS, av, window=4, batch=batch).detections(video, 5))
        for batch in (1, 2)
    ]
    alone = list(NetworkVideos(network, KINDS, av, window=4).detections(video, 5))
    for one, other, own in zip(*found, alone, strict=True):
        np.testing.assert_array_equal(one.boxes, _Boxes.BOXES)
        np.testing.assert_allclose(one.agentness, [0.9, 0.4])
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)
        np.testing.assert_allclose(one.av, own.av, atol=1e-6)
        assert one.scores.shape == (2, 4)
    if causal:
        fit = Fit.of(network.config)
        with torch.inference_mode():
            maps = network.features(fit.fit_all(video)[0][None].double()).maps
        _, x, y = fit.fit(video[0])
        boxes = torch.from_numpy(_Boxes.BOXES).double() * torch.tensor([x, y, x, y])
        wanted = BoxScores(network)(maps, torch.full((2,), 4), boxes)[:, 1:].sigmoid()
        np.testing.assert_allclose(found[0][4].scores, wanted.numpy(), atol=1e-6)


def test_the_union_is_opened_from_files(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "ours.safetensors"
    save_detector(path, _network(causal=True).float(), KINDS, ("still", "moving"))
    union = open_videos([path], objects=folder)
    assert isinstance(union, Union)
    assert (union.kinds, union.delay) == (KINDS, 0)
    with pytest.raises(UsageError, match="one network"):
        open_videos([path, path], objects=folder)
    kmeans = _network(anchors="kmeans", anchor_sizes_px=(32.0, 64.0, 128.0, 256.0, 512.0))
    with pytest.raises(UsageError, match="kmeans"):
        BoxScores(kmeans)
