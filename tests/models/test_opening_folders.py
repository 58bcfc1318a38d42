"""Folders of published models: what they lack, links, and files as older versions wrote them."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from open_folders import WRITERS, noise

from roadaware.errors import DamagedError, InputError
from roadaware.models import FOLDERS, list_folder_cards
from roadaware.models.object_detectors import open_segmenter
from roadaware.models.open_vocabulary import open_namer, open_zero_shot
from roadaware.models.pretrained import load_image_preparer, load_tokenizer

torch.set_num_threads(1)
TEXTS = ("tyre", "traffic cone", "dog")


def _open(name: str, folder: Path) -> Any:
    if name in ("segformer", "mask2former"):
        return open_segmenter(folder)
    return open_namer(folder, TEXTS) if name == "clip" else open_zero_shot(folder, TEXTS)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name == "grounding-dino" else name for name in WRITERS],
)
def test_folders_that_lack_something_are_refused(copied: Any, name: str) -> None:
    folder = copied(name)
    for gone, told in (
        ("tokenizer.json", "texts cannot be read"),
        ("preprocessor_config.json", "there is no pre"),
    ):
        path = folder / gone
        if path.exists():
            content = path.read_bytes()
            path.unlink()
            with pytest.raises(InputError, match=told):
                _open(name, folder)
            path.write_bytes(b"[")
            with pytest.raises(InputError, match=r"no tokenizer|not understood"):
                _open(name, folder)
            path.write_bytes(content)
    weights = folder / "model.safetensors"
    (folder / "pytorch_model.bin").write_bytes(b"pickled")
    content = weights.read_bytes()
    weights.write_bytes(content[: len(content) // 2])
    with pytest.raises(DamagedError, match="cannot be made"):
        _open(name, folder)
    weights.unlink()
    with pytest.raises(InputError, match=r"no model\.safetensors"):
        _open(name, folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(InputError, match="'bert'; known are"):
        _open(name, folder)


def test_a_snapshot_of_the_cache_whose_files_are_links_is_opened(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "main"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    for path in folders["clip"].iterdir():
        (blobs / f"of-{path.name}").write_bytes(path.read_bytes())
        (snapshot / path.name).symlink_to(f"../../blobs/of-{path.name}")
    crops = noise((12, 12))
    found = open_namer(snapshot, TEXTS).scores(crops)
    np.testing.assert_array_equal(found, open_namer(folders["clip"], TEXTS).scores(crops))


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "tokenizer.json", "preprocessor_config.json"]
)
def test_links_that_lead_elsewhere_are_refused(copied: Any, tmp_path: Path, name: str) -> None:
    folder = copied("clip")
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="leads out"):
        open_namer(folder, TEXTS)


def test_vocabularies_in_older_files_are_read(copied: Any) -> None:
    folder = copied("clip")
    (folder / "tokenizer.json").unlink()
    letters = "adgo"
    words = ["!", *letters, *(f"{letter}</w>" for letter in letters), "do", "dog</w>"]
    words += ["<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({word: n for n, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\nd o\ndo g</w>\n")
    ids = load_tokenizer(folder).encode("a Dog").ids
    assert [words[n] for n in ids] == ["<|startoftext|>", "a</w>", "dog</w>", "<|endoftext|>"]


def test_descriptions_of_preparation_as_older_versions_wrote_them(copied: Any) -> None:
    folder = copied("clip")
    said = {
        "crop_size": 32,
        "do_center_crop": True,
        "do_normalize": True,
        "do_resize": True,
        "feature_extractor_type": "CLIPFeatureExtractor",
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
        "resample": 3,
        "size": 32,
    }
    (picture,) = noise((40, 60))
    new = load_image_preparer(folder)([picture])["pixel_values"]
    (folder / "preprocessor_config.json").write_text(json.dumps(said))
    torch.testing.assert_close(load_image_preparer(folder)([picture])["pixel_values"], new)
    folder = copied("segformer")
    old = {"feature_extractor_type": "SegformerFeatureExtractor", "reduce_labels": True, "size": 64}
    (folder / "preprocessor_config.json").write_text(json.dumps(old))
    assert load_image_preparer(folder)([picture])["pixel_values"].shape == (1, 3, 64, 64)


def test_every_type_of_folder_has_a_whole_card() -> None:
    from roadaware.models import open_vocabulary
    from roadaware.models.object_detectors import DETECTOR_FAMILIES
    from roadaware.models.object_detectors import SEGMENTER_FAMILIES as SEGMENTERS

    assert set(FOLDERS) == {
        *DETECTOR_FAMILIES,
        *open_vocabulary.ZERO_SHOT_FAMILIES,
        *open_vocabulary.CLIP_FAMILIES,
        *SEGMENTERS,
    }
    for name, card in list_folder_cards().items():
        assert card.name == name
        assert [f.name for f in fields(card) if not getattr(card, f.name) and f.name != "published"] == []
        assert "arxiv.org" in card.paper
        assert "unproven: no weights" in card.weights
