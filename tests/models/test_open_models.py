"""Segmenters, zero-shot detectors and namers of crops, from folders: tiny, random, or taught one image."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tiny_hub

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from open_folders import noise
from torch.nn import functional

from roadaware.errors import InputError, UsageError
from roadaware.models.crops import CropRule, crop, validate_texts
from roadaware.models.loading import open_videos
from roadaware.models.object_detectors import Segmenter, compute_class_mask, open_segmenter
from roadaware.models.open_vocabulary import (
    CropNamer,
    GroundingDetector,
    OwlDetector,
    build_prompts,
    encode_padded_tokens,
    open_namer,
    open_zero_shot,
)
from roadaware.models.pretrained import load_image_preparer, load_tokenizer
from roadaware.models.retinanet3d.config import DetectRule

torch.set_num_threads(1)
TEXTS = ("tyre", "traffic cone", "dog")
ALL = DetectRule(min_agentness=0.0, nms_iou=None, top=50)


# Segmenters


def test_cells_and_their_padding_are_brought_to_the_pixels_of_the_picture() -> None:
    scores = torch.zeros(20, 2, 4)
    scores[17, 0, :] = 1.0
    scores[3, 1, :] = 1.0
    best = compute_class_mask(scores, (6, 8))
    assert best[:2].unique().tolist() == [17]
    assert best[-2:].unique().tolist() == [3]
    # The lower half of the cells is padding: the image shows class 17 alone.
    assert compute_class_mask(scores, (6, 8), (0.5, 1.0))[:3].unique().tolist() == [17]
    whole = functional.interpolate(scores[None], size=(6, 8), mode="bilinear", align_corners=False)[0]
    assert torch.equal(best, whole.argmax(dim=0))


@pytest.mark.parametrize("name", ["segformer", "mask2former"])
def test_a_segmenter_answers_in_the_size_of_the_pictures(folders: dict[str, Path], name: str) -> None:
    segmenter = open_segmenter(folders[name])
    assert segmenter.labels == tiny_hub.CITYSCAPES
    pictures = noise((37, 81), (37, 81))
    both = segmenter.segment(pictures)
    assert [mask.shape for mask in both] == [(37, 81)] * 2
    assert all(mask.dtype == np.uint8 for mask in both)
    np.testing.assert_array_equal(both[1], segmenter.segment(pictures[1:])[0])
    np.testing.assert_array_equal(both[1], open_segmenter(folders[name]).segment(pictures[1:])[0])


def test_masks_of_queries_lie_where_the_picture_is_and_not_in_the_padding() -> None:
    """A query whose mask is the left half of the image: the prepared image is padded on the right."""

    class Says(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.here = torch.nn.Parameter(torch.zeros(1))

        def forward(self, pixel_values: Any, pixel_mask: Any) -> Any:
            masks = torch.full((1, 2, 16, 32), -9.0)
            masks[:, 0, :, :12] = 9.0  # of 24 columns that show the image
            masks[:, 1, :, 12:] = 9.0
            classes = torch.tensor([[[9.0, 0.0, 0.0], [0.0, 9.0, 0.0]]])
            return SimpleNamespace(class_queries_logits=classes, masks_queries_logits=masks)

    def prepare(pictures: Any) -> dict[str, Any]:
        mask = torch.zeros(len(pictures), 64, 128)
        mask[:, :, :96] = 1
        return {"pixel_values": torch.zeros(len(pictures), 3, 64, 128), "pixel_mask": mask}

    (found,) = Segmenter(Says(), ("road", "sky"), prepare).segment(noise((40, 60)))
    assert (found[:, :29] == 0).all()
    assert (found[:, 31:] == 1).all()


@pytest.mark.slow
def test_a_segmenter_taught_one_picture_labels_its_road(tmp_path: Path) -> None:
    """Learnt on the prepared image, it says so in the pixels of the image as it was: 90 % and more."""
    model = tiny_hub.write_segformer(tmp_path)
    truth = np.zeros((120, 160), np.int64)
    truth[:50], truth[50:80], truth[60:90, 100:140] = 4, 2, 5
    colours = np.array([(90, 90, 90), (0, 0, 0), (150, 60, 40), (0, 0, 0), (120, 180, 255), (20, 20, 200)])
    picture = colours[truth].astype(np.uint8)
    pixels = load_image_preparer(tmp_path)([picture])["pixel_values"]
    target = functional.interpolate(torch.from_numpy(truth)[None, None].float(), size=(64, 96)).long()[:, 0]
    optimiser = torch.optim.AdamW(model.parameters(), lr=4e-3)
    torch.manual_seed(0)
    model.train()
    for _ in range(60):
        optimiser.zero_grad()
        model(pixel_values=pixels, labels=target).loss.backward()
        optimiser.step()
    model.save_pretrained(tmp_path)
    (found,) = open_segmenter(tmp_path).segment([picture])
    assert (found == truth).mean() > 0.9
    assert (found[truth == 0] == 0).mean() > 0.95


def test_more_than_256_classes_take_16_bits() -> None:
    class Says(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.here = torch.nn.Parameter(torch.zeros(1))

        def forward(self, pixel_values: Any) -> Any:
            return SimpleNamespace(logits=torch.eye(300)[299].view(1, 300, 1, 1).expand(1, 300, 4, 4))

    def prepare(pictures: Any) -> dict[str, Any]:
        return {"pixel_values": torch.zeros(len(pictures), 3, 8, 8)}

    (found,) = Segmenter(Says(), [str(n) for n in range(300)], prepare).segment(noise((5, 7)))
    assert (found.dtype, found.shape, found.min()) == (np.uint16, (5, 7), 299)
    with pytest.raises(InputError, match="scores more classes than the 2"):
        Segmenter(Says(), ["road", "sky"], prepare).segment(noise((5, 7)))


# Zero-shot detectors


@pytest.mark.parametrize(("name", "kind"), [("grounding-dino", GroundingDetector), ("owlv2", OwlDetector)])
def test_a_zero_shot_detector_tells_texts_in_pixels(folders: dict[str, Path], name: str, kind: type) -> None:
    detector = open_videos([folders[name]], ALL, batch=2, texts=TEXTS)
    assert isinstance(detector, kind)
    assert (detector.kinds, detector.single, detector.delay) == ({"corner": TEXTS}, True, 0)
    pictures = noise((60, 90), (60, 90))
    both = detector.follow(pictures)
    for each in both:
        assert each.scores.shape == (len(each), 3)
        assert len(each) > 3
        np.testing.assert_array_equal(each.agentness, each.scores.max(axis=1))
        assert (np.diff(each.agentness) <= 0).all()
        assert (each.boxes >= 0).all()
        assert (each.boxes <= [90, 60, 90, 60]).all()
    (one,) = open_zero_shot(folders[name], TEXTS, ALL).follow(pictures[1:])
    np.testing.assert_allclose(one.boxes, both[1].boxes, atol=1e-3)
    np.testing.assert_allclose(one.scores, both[1].scores, atol=1e-5)
    few = open_zero_shot(folders[name], TEXTS, DetectRule(min_agentness=0.0, nms_iou=0.3, top=2))
    assert [len(each) <= 2 for each in few.follow(pictures)] == [True, True]


def test_boxes_of_owlv2_are_shares_of_the_padded_square(folders: dict[str, Path]) -> None:
    detector = open_zero_shot(folders["owlv2"], TEXTS)
    assert detector.sides(60, 90) == (90, 90)
    assert open_zero_shot(folders["grounding-dino"], TEXTS).sides(60, 90) == (60, 90)
    detector.scored = lambda given: (  # type: ignore[method-assign]
        torch.tensor([[[0.5, 0.25, 0.2, 0.1], [0.5, 0.9, 0.2, 0.1]]]),
        torch.tensor([[[0.1, 0.2, 0.7], [0.9, 0.0, 0.0]]]),
    )
    (found,) = detector.follow(noise((60, 90)))
    # The second box lies in the padding, below the image.
    np.testing.assert_allclose(found.boxes, [[36, 18, 54, 27]], atol=1e-4)
    np.testing.assert_allclose(found.agentness, [0.7])


def test_each_text_has_its_own_tokens_and_their_mean(folders: dict[str, Path]) -> None:
    tokenizer = load_tokenizer(folders["grounding-dino"])
    (prompt,) = build_prompts(tokenizer, ["Tyre", "traffic cone", "dog"], 32)
    # [CLS] tyre . traffic cone . dog . [SEP]
    assert prompt.ids.tolist() == [101, 1030, 1012, 1032, 1033, 1012, 1031, 1012, 102]
    expected = torch.zeros(3, 9)
    expected[0, 1], expected[1, 3:5], expected[2, 6] = 1, 0.5, 1
    torch.testing.assert_close(prompt.shares, expected)
    parts = build_prompts(tokenizer, ["tyre", "traffic cone", "dog"], 6)
    assert [part.ids.tolist() for part in parts] == [
        [101, 1030, 1012, 102],
        [101, 1032, 1033, 1012, 102],
        [101, 1031, 1012, 102],
    ]
    torch.testing.assert_close(sum((part.shares.sum(dim=1) for part in parts), torch.zeros(3)), torch.ones(3))


def test_texts_that_do_not_fit_into_one_prompt_are_asked_in_several(tmp_path: Path) -> None:
    model = tiny_hub.write_grounding(tmp_path, max_text_len=6)
    pictures = noise((60, 90))
    (found,) = open_zero_shot(tmp_path, TEXTS, ALL).follow(pictures)
    assert len(found) > model.config.num_queries
    assert (found.scores > 0).any(axis=0).all()
    assert ((found.scores > 0).sum(axis=1) == 1).all()
    (alone,) = open_zero_shot(tmp_path, ["dog"], ALL).follow(pictures)
    of_dog = found.scores[:, 2] > 0
    np.testing.assert_allclose(found.agentness[of_dog], alone.agentness, atol=1e-6)


@pytest.mark.slow
def test_a_zero_shot_detector_taught_one_picture_finds_what_the_text_says(tmp_path: Path) -> None:
    """An OWLv2 that is taught two boxes: the red square is the traffic cone, the blue one the dog."""
    model = tiny_hub.write_owl(tmp_path)
    picture = np.full((64, 64, 3), 90, np.uint8)
    picture[8:16, 8:16], picture[40:56, 40:56] = (255, 0, 0), (0, 0, 255)
    detector = OwlDetector(model, load_tokenizer(tmp_path), TEXTS, load_image_preparer(tmp_path), ALL)
    given = detector.prepare([picture])
    wanted = torch.zeros(1, 16, 3)
    wanted[0, 0, 1] = wanted[0, 10, 2] = 1  # patches of 16 pixels: the first, and the third of the third row
    boxes = torch.tensor([[12.0, 12, 8, 8], [48, 48, 16, 16]]) / 64
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(60):
        optimiser.zero_grad()
        told, scores = detector.scored(given)
        loss = functional.binary_cross_entropy(scores, wanted, reduction="sum")
        (loss + 20 * (told[0, [0, 10]] - boxes).abs().mean()).backward()
        optimiser.step()
    model.save_pretrained(tmp_path)
    rule = DetectRule(min_agentness=0.5)
    (found,) = open_zero_shot(tmp_path, TEXTS, rule).follow([picture])
    assert len(found) == 2
    order = np.argsort(found.boxes[:, 0])
    np.testing.assert_allclose(found.boxes[order], [[8, 8, 16, 16], [40, 40, 56, 56]], atol=2)
    assert [TEXTS[n] for n in found.scores[order].argmax(axis=1)] == ["traffic cone", "dog"]


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ([], "at least one"),
        (["tyre", " "], "none empty"),
        (["tyre", "dog", "Tyre "], "stand twice: Tyre, tyre"),
        (["tyre. dog"], "dot or question mark"),
        (["unicorn"], "not in the vocabulary"),
        (["tyre " * 40], "43 tokens; up to 32"),
    ],
)
def test_texts_that_cannot_be_asked_for(folders: dict[str, Path], texts: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        build_prompts(load_tokenizer(folders["grounding-dino"]), validate_texts(texts), 32)


def test_texts_and_folders_belong_together(folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="say what it looks for"):
        open_videos([folders["owlv2"]])
    with pytest.raises(UsageError, match=r"\(segformer\) takes no texts"):
        open_videos([folders["segformer"]], texts=TEXTS)
    with pytest.raises(InputError, match="'clip'; known are rt_detr"):
        open_videos([folders["clip"]])


# CLIP


def test_crops_are_squares_inside_the_picture() -> None:
    picture = np.arange(20 * 30 * 3, dtype=np.int64).reshape(20, 30, 3).astype(np.uint8)
    box = np.array([10.0, 5.0, 14.0, 7.0])
    np.testing.assert_array_equal(crop(picture, box, CropRule(0, square=False)), picture[5:7, 10:14])
    np.testing.assert_array_equal(crop(picture, box, CropRule(0.25)), picture[3:9, 9:15])
    # In a corner the square moves inwards; it is never larger than the image, and has a pixel at least.
    np.testing.assert_array_equal(
        crop(picture, np.array([28.0, 18, 30, 20]), CropRule(0.5)), picture[16:, 26:]
    )
    assert crop(picture, np.array([0.0, 0, 30, 20])).shape == (20, 30, 3)
    assert crop(picture, np.array([7.2, 3.1, 7.2, 3.1]), CropRule(0)).shape == (1, 1, 3)
    with pytest.raises(UsageError, match="margin"):
        CropRule(-0.1)


def test_scores_of_crops_are_probabilities_whatever_goes_together(folders: dict[str, Path]) -> None:
    crops = noise((12, 12), (40, 9), (1, 1), (5, 30))
    namer = open_namer(folders["clip"], TEXTS, batch=3)
    found = namer.scores(crops)
    assert found.shape == (4, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    for n in range(4):
        np.testing.assert_allclose(namer.scores(crops[n : n + 1])[0], found[n], atol=1e-6)
    assert namer.scores([]).shape == (0, 3)
    turned = open_namer(folders["clip"], TEXTS[::-1]).scores(crops)
    np.testing.assert_allclose(turned[:, ::-1], found, atol=1e-6)


def test_what_fills_up_behind_a_text_means_nothing(folders: dict[str, Path]) -> None:
    tokenizer = load_tokenizer(folders["clip"])
    namer = open_namer(folders["clip"], TEXTS)
    told = [
        namer.model.get_text_features(input_ids=ids, attention_mask=mask).pooler_output[0]
        for ids, mask in (
            encode_padded_tokens(tokenizer, ["a dog"], 16),
            encode_padded_tokens(tokenizer, ["a dog"], 16, length=16),
        )
    ]
    torch.testing.assert_close(told[0], told[1])
    with pytest.raises(UsageError, match="6 tokens; up to 5"):
        encode_padded_tokens(tokenizer, ["a photo of dog"], 5)


def test_clip_taught_four_crops_names_them(tmp_path: Path) -> None:
    model = tiny_hub.write_clip(tmp_path)
    labels = ("red", "green", "blue", "grey")
    colours = ((220, 30, 30), (30, 220, 30), (30, 30, 220), (128, 128, 128))
    crops = [np.full((20, 30, 3), colour, np.uint8) for colour in colours]
    tokenizer, prepare = load_tokenizer(tmp_path), load_image_preparer(tmp_path)
    ids, mask = encode_padded_tokens(tokenizer, [f"a photo of a {label}." for label in labels], 16)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(60):
        optimiser.zero_grad()
        said = model(input_ids=ids, attention_mask=mask, **prepare(crops))
        functional.cross_entropy(said.logits_per_image, torch.arange(4)).backward()
        optimiser.step()
    model.save_pretrained(tmp_path)
    namer = open_namer(tmp_path, labels, templates=["a photo of a {}."])
    shades = [np.clip(each.astype(np.int64) + 8, 0, 255).astype(np.uint8) for each in crops]
    for shown in (crops, shades):
        found = namer.scores(shown)
        assert found.argmax(axis=1).tolist() == [0, 1, 2, 3]
        assert (found.max(axis=1) > 0.8).all()


def test_templates_have_a_place_for_the_text(folders: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match=r"one \{\}"):
        open_namer(folders["clip"], TEXTS, templates=["a photo"])
    assert isinstance(open_namer(folders["clip"], TEXTS, templates=["a {}"]), CropNamer)
