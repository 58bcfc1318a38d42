"""The vocabularies hold what the paper and the released files name, once each, and say how the two relate."""

from __future__ import annotations

from collections import Counter

import pytest

from roadaware.datasets.chaotic_vocabulary import (
    ACTION_SYNONYMS,
    ACTIONS_OFFICIAL,
    ACTIONS_PAPER,
    EVENT_CATEGORIES,
    INTERACTIONS,
    SOUNDS,
    Vocabulary,
    find_canonical_name,
    list_label_names,
)


def test_counts():
    assert len(EVENT_CATEGORIES) == 15
    assert len(ACTIONS_OFFICIAL) == 50
    assert [len(names) for names in ACTIONS_PAPER.values()] == [8, 1, 1, 3, 3, 3, 6, 4, 11, 2]
    assert [len(names) for names in INTERACTIONS.values()] == [5, 1, 3, 7, 1, 1]
    assert [len(names) for names in SOUNDS.values()] == [9, 1, 2, 3, 3, 3, 7]


@pytest.mark.parametrize("of", ["action", "interaction", "sound", "event"])
def test_a_name_stands_once_and_is_its_own_spelling(of: Vocabulary):
    names = list_label_names(of)
    assert max(Counter(name.casefold() for name in names).values()) == 1
    assert [find_canonical_name(name.upper().replace(" ", "_"), of) for name in names] == list(names)


def test_the_ids_of_the_files_are_places():
    at = {0: "aiming weapon", 6: "chanting/cheering", 15: "hitting an object/smashing", 49: "waving hands"}
    assert {place: ACTIONS_OFFICIAL[place] for place in at} == at
    assert list(ACTIONS_OFFICIAL) == sorted(ACTIONS_OFFICIAL)


def test_how_many_official_actions_the_paper_knows():
    paper = {name for names in ACTIONS_PAPER.values() for name in names}
    assert len(paper & set(ACTIONS_OFFICIAL)) == 33
    assert len(ACTION_SYNONYMS) == 3
    assert len(paper - set(ACTIONS_OFFICIAL) - set(ACTION_SYNONYMS)) == 6


def test_synonyms_lead_from_the_paper_to_the_official_list():
    paper = {name for names in ACTIONS_PAPER.values() for name in names}
    assert set(ACTION_SYNONYMS) <= paper - set(ACTIONS_OFFICIAL)
    assert set(ACTION_SYNONYMS.values()) <= set(ACTIONS_OFFICIAL) - paper
