"""A detector's boxes on known and unknown objects: fitted, kept in a file, and asked about other images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from planted_unknowns import film_of, planted_detections, planted_pictures, planted_proposals

from roadaware.corner_cases.known_objects import (
    Matching,
    compute_detection_energies,
    fit_known,
    score_energy_novelty,
)
from roadaware.corner_cases.scorers import (
    EnergyConfig,
    EnergyModel,
    check_apart,
    check_held_out,
    hash_videos,
    open_fitted,
    rescore_proposals,
    save_fitted,
    sort_fingerprints,
)
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.io.npz import open_arrays, save_arrays
from roadaware.protocols.coda import label_truth
from roadaware.scenes.tables import Predictions, Scenes

CONFIG = EnergyConfig()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    return label_truth(planted_pictures(tmp_path_factory.mktemp("home"), 12))


@pytest.fixture(scope="module")
def away(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    return planted_pictures(tmp_path_factory.mktemp("away"), 5, seed=1)


def with_boxes(predictions: Predictions, **columns: object) -> Predictions:
    return predictions.with_tables(boxes=predictions.boxes.with_columns(**columns))


def test_strange_things_are_found_among_pictures_that_were_not_fitted_on(home: Scenes, away: Scenes) -> None:
    fitted = fit_known([(home, planted_detections(home))], CONFIG)
    assert dict(fitted.about) | {"known": 12, "unknown": 12, "pictures": 12} == fitted.about
    shares, met, prints = score_energy_novelty(planted_proposals(away), planted_detections(away, 1), fitted)
    common, strange, nowhere = shares.reshape(5, 3).T
    assert common.max() < 0.2
    assert strange.min() > 0.8
    assert nowhere.tolist() == [0.5] * 5
    assert met.tolist() == [1, 1, 0] * 5
    assert check_held_out(fitted, prints) == 0


def test_several_sets_are_fitted_together(home: Scenes, away: Scenes) -> None:
    sets = [(home, planted_detections(home)), (label_truth(away), planted_detections(away, 1))]
    fitted = fit_known(sets, CONFIG)
    assert (fitted.about["known"], fitted.about["pictures"], len(fitted.seen)) == (17, 17, 17)


def test_pictures_that_were_fitted_on_are_refused_unless_asked_for(home: Scenes) -> None:
    predictions = planted_detections(home)
    fitted = fit_known([(home, predictions)], CONFIG)
    fewer = predictions.with_tables(boxes=predictions.boxes.filter(pl.col("score") > 0.5))
    _, _, prints = score_energy_novelty(planted_proposals(home), fewer, fitted)
    with pytest.raises(UsageError, match="fitted on 12 of these 12 images"):
        check_held_out(fitted, prints)
    assert check_held_out(fitted, prints, allowed=True) == 12


def test_other_frames_of_a_video_that_was_fitted_on_are_refused(home: Scenes, tmp_path: Path) -> None:
    film = film_of(home)
    fitted = fit_known([(film, planted_detections(film))], CONFIG)
    save_fitted(tmp_path / "fit.npz", fitted)
    again = hash_videos(film, ["film"])
    assert again is not None
    with pytest.raises(UsageError, match="images of 1 of these 1 videos"):
        check_apart(open_fitted(tmp_path / "fit.npz"), again)
    assert check_apart(fitted, again, allowed=True) == 1
    other = film.with_tables(meta=replace(film.meta, source_digest="another"))
    for scenes, video in ((other, "film"), (film, "another")):
        apart = hash_videos(scenes, [video])
        assert apart is not None
        assert check_apart(fitted, apart) == 0, "a name alone tells no video, and neither does a source"
    nameless = film.with_tables(meta=replace(film.meta, source_digest=""))
    assert hash_videos(nameless, ["film"]) is None
    singles = hash_videos(home, ["0-1"])
    assert singles is not None
    assert len(singles) == 0, "single images are told by themselves"


def test_logits_beside_the_scores_are_taken_as_they_are(home: Scenes) -> None:
    predictions = planted_detections(home)
    scores = predictions.boxes["scores"].to_numpy()
    logits = pl.Series(np.log(scores / (1 - scores)), dtype=pl.Array(pl.Float32, 2))
    soft = pl.Series(np.full((24, 2), 0.5, dtype=np.float32), dtype=pl.Array(pl.Float32, 2))
    one = compute_detection_energies(predictions, CONFIG).energy["0-3", 0]
    other = compute_detection_energies(with_boxes(predictions, logits=logits, scores=soft), CONFIG).energy[
        "0-3", 0
    ]
    np.testing.assert_allclose(one, other, rtol=1e-4)
    with pytest.raises(InputError, match="as after a softmax"):
        compute_detection_energies(with_boxes(predictions, scores=soft), CONFIG)


def test_what_cannot_be_fitted_says_why(home: Scenes) -> None:
    predictions = planted_detections(home)
    known = home.with_tables(boxes=home.boxes.with_columns(corner_case=pl.lit(value=False)))
    elsewhere = with_boxes(predictions, video=pl.lit("another"))
    alike = with_boxes(predictions, scores=pl.Series([[0.3, 0.1]] * 24, dtype=pl.Array(pl.Float32, 2)))
    for scenes, said, told in (
        (known, predictions, "0 unknown objects have a detection"),
        (home, elsewhere, "share no image"),
        (home, alike, "energies of known objects: all 12 values"),
        (home, predictions.with_tables(boxes=predictions.boxes.drop("scores")), "one score a box"),
        (home, predictions.with_tables(boxes=predictions.boxes.head(0)), "no detection at all"),
        (home.with_tables(boxes=home.boxes.drop("common")), predictions, "does not say what is common"),
    ):
        with pytest.raises(InputError, match=told):
            fit_known([(scenes, said)], CONFIG)
    with pytest.raises(InputError, match="no scores of 'action'"):
        fit_known([(home, predictions)], CONFIG, Matching(kind="action"))
    with pytest.raises(InputError, match="least overlap"):
        Matching(min_iou=0)


def test_nothing_in_common_with_the_detections_is_an_error(home: Scenes, away: Scenes) -> None:
    fitted = fit_known([(home, planted_detections(home))], CONFIG)
    with pytest.raises(InputError, match="proposals and detections share no image"):
        score_energy_novelty(planted_proposals(away), planted_detections(home), fitted)
    none = planted_proposals(away)
    shares, _, _ = score_energy_novelty(
        none.with_tables(boxes=none.boxes.head(0)), planted_detections(home), fitted
    )
    assert len(shares) == 0


def test_a_fit_is_one_file_that_is_whole_or_refused(home: Scenes, tmp_path: Path) -> None:
    fitted = fit_known([(home, planted_detections(home))], CONFIG, Matching(min_iou=0.4))
    path = tmp_path / "fit.npz"
    save_fitted(path, fitted)
    found = open_fitted(path)
    assert isinstance(found.model, EnergyModel)
    assert (found.model, found.digest, found.by) == (fitted.model, fitted.digest, "energy")
    assert (dict(found.asked), dict(found.about)) == (dict(fitted.asked), dict(fitted.about))
    arrays, facts = open_arrays(path)
    for broken in ({"digest": "0"}, {"version": 2}, {"by": "luck"}, {"known": {"shape": 0}}):
        save_arrays(path, arrays, {**facts, **broken})
        with pytest.raises(DamagedError):
            open_fitted(path)
    with pytest.raises(InputError, match="found none"):
        open_fitted(tmp_path / "none")


def test_the_old_score_stands_beside_the_new_and_the_rest_stays(away: Scenes) -> None:
    proposals = planted_proposals(away)
    shares = np.linspace(0, 1, 15)
    once = rescore_proposals(proposals, shares, "energy", facts={"fit": "abc"})
    twice = rescore_proposals(once, shares, "memory", combine="alone")
    assert once.boxes["score"].to_list() == pytest.approx((np.tile([0.8, 0.6, 0.4], 5) * shares).tolist())
    assert twice.boxes["score"].to_list() == shares.tolist()
    assert twice.boxes["score_before"].to_list() == proposals.boxes["score"].to_list()
    assert twice.boxes.select(proposals.boxes.columns).drop("score").equals(proposals.boxes.drop("score"))
    assert [note["by"] for note in twice.meta.notes["rescored"]] == ["energy", "memory"]
    with pytest.raises(UsageError, match="re-scored by energy before"):
        rescore_proposals(twice, shares, "energy")
    with pytest.raises(InputError, match="one share from 0 to 1"):
        rescore_proposals(proposals, shares[:3], "energy")
    with pytest.raises(InputError, match="without a score"):
        rescore_proposals(proposals.with_tables(boxes=proposals.boxes.drop("score")), shares, "energy")


def test_prints_are_kept_once() -> None:
    assert sort_fingerprints([7, 2**64 - 1, 7]).tolist() == [7, 2**64 - 1]
