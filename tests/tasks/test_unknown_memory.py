"""A memory bank of a set's images, and how strange the proposals of another set look."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "corner_cases"))

from planted_unknowns import (
    HEIGHT,
    WIDTH,
    planted_detections,
    planted_pictures,
    planted_proposals,
)

from roadaware.corner_cases.captures import SemanticMap
from roadaware.corner_cases.known_objects import fit_known
from roadaware.corner_cases.scorers import (
    EnergyConfig,
    MemoryBank,
    MemoryConfig,
    hash_videos,
    open_fitted,
    save_fitted,
)
from roadaware.errors import InputError, UsageError
from roadaware.protocols.coda import label_truth
from roadaware.tasks.unknown_memory import (
    CommonMemory,
    PlainLooker,
    compute_background_fraction,
    cut,
    fit_crops,
    load_crop_encoder,
    score_crop_novelty,
)

PLAIN, CONFIG = PlainLooker(), MemoryConfig(size=30, background=2)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    root = tmp_path_factory.mktemp("home")
    return CommonMemory(planted_pictures(root, 10), root)


@pytest.fixture(scope="module")
def away(tmp_path_factory):
    root = tmp_path_factory.mktemp("away")
    return CommonMemory(planted_pictures(root, 4, seed=1), root)


@pytest.fixture(scope="module")
def fitted(home):
    return fit_crops([home], PLAIN, CONFIG)


def test_what_is_not_in_the_bank_looks_strange(fitted, away, tmp_path):
    assert (fitted.about["common"], fitted.about["pictures"]) == (10, 10)
    assert 1 <= fitted.about["background"] <= 20
    save_fitted(tmp_path / "bank.npz", fitted)
    kept = open_fitted(tmp_path / "bank.npz")
    told = []
    shares, met, prints, refused = score_crop_novelty(
        planted_proposals(away.scenes),
        away.scenes,
        away.root,
        PLAIN,
        kept,
        progress=lambda *n: told.append(n),
    )
    common, strange, nowhere = shares.reshape(4, 3).T
    assert common.max() < strange.min()
    assert nowhere.max() < strange.min()
    assert (met.sum(), len(prints), refused, told[-1]) == (12, 4, {}, (4, 4))


def test_a_second_set_and_proposals_on_nothing_are_kept_too(home, away):
    more = CommonMemory(away.scenes, away.root, proposals=planted_proposals(away.scenes))
    fitted = fit_crops([home, more], PLAIN, MemoryConfig(background=0))
    assert (fitted.about["common"], fitted.about["proposals"], fitted.about["background"]) == (14, 4, 0)
    assert isinstance(fitted.model, MemoryBank)


def test_pictures_of_the_bank_are_refused_unless_asked_for(fitted, home, tmp_path):
    renamed = planted_pictures(tmp_path / "again", 10)
    with pytest.raises(UsageError, match="memory bank was made of this image"):
        score_crop_novelty(planted_proposals(renamed), renamed, tmp_path / "again", PLAIN, fitted)
    shares, *_ = score_crop_novelty(
        planted_proposals(home.scenes), home.scenes, home.root, PLAIN, fitted, allow_leak=True
    )
    assert len(shares) == 30


def test_a_bank_keeps_which_videos_it_was_made_of(fitted, home):
    source = replace(home.scenes.meta, source_digest="0f")
    told = CommonMemory(home.scenes.with_tables(meta=source), home.root)
    names = home.scenes.videos["video"].to_list()
    kept = fit_crops([told, home], PLAIN, CONFIG).videos
    assert kept.tolist() == hash_videos(told.scenes, names).tolist()
    assert len(kept) == len(names)
    assert len(fitted.videos) == 0, "single images without a source are told by themselves"


def test_no_row_is_lost_where_a_picture_cannot_be_opened(fitted, tmp_path):
    scenes = planted_pictures(tmp_path, 3, seed=2)
    (tmp_path / "2-1.png").write_bytes(b"no picture")
    (tmp_path / "2-2.png").unlink()
    proposals = planted_proposals(scenes)
    outside = proposals.boxes.with_columns(x1_px=proposals.boxes["x1_px"] + 900, x2_px=999.0)
    shares, met, _, refused = score_crop_novelty(proposals, scenes, tmp_path, PLAIN, fitted)
    assert met.tolist() == [1, 1, 1, 0, 0, 0, 0, 0, 0]
    assert shares[3:].tolist() == [0.5] * 6
    assert sum(refused.values()) == 2
    shares, met, *_ = score_crop_novelty(
        proposals.with_tables(boxes=outside), scenes, tmp_path, PLAIN, fitted
    )
    assert (shares.tolist(), met.sum()) == ([0.5] * 9, 0)


def test_background_is_drawn_where_a_map_says_so(home):
    class Left:
        def of(self, video, frame):
            classes = np.full((HEIGHT, WIDTH), 13)
            classes[:, :60] = 8
            return SemanticMap(classes)

    fitted = fit_crops([CommonMemory(home.scenes, home.root, Left())], PLAIN, CONFIG)
    assert fitted.about["background"] == 20


def test_the_share_of_background_is_counted_pixel_by_pixel():
    rng = np.random.default_rng(0)
    shown = SemanticMap(rng.integers(0, 19, (30, 40)))
    boxes = np.array([[0, 0, 40, 30], [3, 4, 9, 21], [39, 29, 40, 30]], dtype=np.float64)
    is_background = np.isin(shown.classes, [0, 1, 2, 3, 4, 5, 8, 9, 10])
    plain = [is_background[int(y1) : int(y2), int(x1) : int(x2)].mean() for x1, y1, x2, y2 in boxes]
    np.testing.assert_allclose(compute_background_fraction(boxes, shown), plain)


def test_crops_are_cut_to_the_picture_and_padded_to_squares():
    picture = np.full((20, 30, 3), 200, dtype=np.uint8)
    boxes = np.array([[-5, 5, 10, 10], [31, 0, 40, 9], [4, 4, 4, 9]], dtype=np.float64)
    crops, places = cut(picture, boxes, 8)
    assert (crops.shape, places.tolist()) == ((1, 8, 8, 3), [0])
    assert crops[0, [0, 1, 6, 7]].max() == 0
    assert crops[0, 2:6].min() == 200


def test_what_cannot_be_kept_or_asked_says_why(home, away, fitted, tmp_path):
    strange = home.scenes.with_tables(boxes=home.scenes.boxes.with_columns(corner_case=pl.lit(value=True)))
    with pytest.raises(InputError, match="nothing to keep in the memory bank"):
        fit_crops([CommonMemory(strange, home.root)], PLAIN, MemoryConfig(background=0))
    with pytest.raises(InputError, match="none of 10 images can be opened"):
        fit_crops([CommonMemory(home.scenes, tmp_path)], PLAIN, CONFIG)
    with pytest.raises(InputError, match="none of the videos"):
        score_crop_novelty(planted_proposals(home.scenes), away.scenes, away.root, PLAIN, fitted)
    energy = fit_known([(label_truth(home.scenes), planted_detections(home.scenes))], EnergyConfig())
    with pytest.raises(InputError, match="asks detections, not images"):
        score_crop_novelty(planted_proposals(away.scenes), away.scenes, away.root, PLAIN, energy)
    other = PlainLooker()
    other.name = "vgg16"
    with pytest.raises(InputError, match="made with plain"):
        score_crop_novelty(planted_proposals(away.scenes), away.scenes, away.root, other, fitted)
    with pytest.raises(UsageError, match="features are plain, vgg16, resnet50"):
        load_crop_encoder("nowhere")
    with pytest.raises(UsageError, match="plain takes none"):
        load_crop_encoder("plain", tmp_path)
