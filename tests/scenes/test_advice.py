"""Advice of detectors: through a saved set and back, and merged where several speak."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from roadaware.errors import DamagedError
from roadaware.linking.config import LinkerConfig, apply_advice
from roadaware.scenes.advice import Advice, get_advice, merge_advice, parse_advice, set_advice
from roadaware.scenes.concatenation import concat
from roadaware.scenes.store import open_predictions, save
from roadaware.scenes.tables import Meta, Predictions

SAID = Advice({"min_iou": 0.1, "trim_alphas": [1, 2]}, 0.3)


def predictions(video: str, advice: Advice) -> Predictions:
    meta = set_advice(Meta(notes={"x": 1}), advice)
    return Predictions(videos=pl.DataFrame({"video": [video]}), meta=meta)


def test_a_saved_set_says_what_was_advised_and_one_without_says_nothing(tmp_path: Path) -> None:
    save(predictions("a", SAID), tmp_path / "said")
    save(predictions("a", Advice()), tmp_path / "silent")
    assert get_advice(open_predictions(tmp_path / "said").meta) == SAID
    assert get_advice(open_predictions(tmp_path / "silent").meta) == Advice()
    assert open_predictions(tmp_path / "silent").meta.notes == {"x": 1}  # as sets always were


def test_sets_that_agree_keep_their_advice_and_others_say_what_they_dispute() -> None:
    same = concat([predictions("a", SAID), predictions("b", SAID)])
    assert get_advice(same.meta) == SAID
    other = Advice({"min_iou": 0.1, "jump_gap": 8}, 0.4)
    apart = get_advice(concat([predictions("a", SAID), predictions("b", other)]).meta)
    assert (apart.linking, apart.min_score) == ({"min_iou": 0.1}, None)
    assert apart.disputed["min_score"] == (0.3, 0.4)
    assert apart.disputed["linking.jump_gap"] == (None, 8)
    silent = get_advice(concat([predictions("a", SAID), predictions("b", Advice())]).meta)
    assert not silent.linking
    assert silent.disputed["linking.min_iou"] == (0.1, None)


def test_a_dispute_outlives_further_joining_and_order_does_not_decide() -> None:
    one, two = Advice(min_score=0.3), Advice(min_score=0.4)
    both = merge_advice([one, two])
    assert merge_advice([both, one]) == both
    assert set(merge_advice([two, one]).disputed["min_score"]) == set(both.disputed["min_score"])
    assert merge_advice([one]) == one
    assert merge_advice([]) == Advice()


@pytest.mark.parametrize(
    "plain",
    ["0.3", 3, [], {"min_score": -0.1}, {"min_score": float("nan")}, {"min_score": True}, {"linking": 3}],
)
def test_what_is_no_advice_is_damage(plain: object) -> None:
    with pytest.raises(DamagedError):
        parse_advice(plain, "somewhere")


@pytest.mark.parametrize(
    "linking",
    [{"min_iou": 2}, {"min_iou": "x"}, {"min_iou": None}, {"cost": "dear"}, {"type": "Other"}, {"no": 1}],
)
def test_advice_that_fits_no_linker_is_damage(linking: dict[str, object]) -> None:
    with pytest.raises(DamagedError, match="fits no linker"):
        apply_advice(LinkerConfig.default(), Advice(linking))


def test_advice_changes_the_fields_that_it_names() -> None:
    found = apply_advice(LinkerConfig.default("ucf24"), SAID)
    assert (found.min_iou, found.trim_alphas, found.trim) == (0.1, (1, 2), "indiv")
