"""The vocabularies hold what the paper and the released files name, once each, and say how the two relate."""

from __future__ import annotations

from collections import Counter

import pytest

from roadaware.datasets.chaotic_vocabulary import (
    ACTION_SYNONYMS,
    ACTIONS_OFFICIAL,
    ACTIONS_PAPER,
    DESCRIPTION_SLOTS,
    EVENT_CATEGORIES,
    EVENT_GROUPS,
    EVENT_TITLES,
    INTERACTIONS,
    SOUNDS,
    Vocabulary,
    find_canonical_action,
    find_canonical_name,
    get_label_group,
    list_action_relations,
    list_label_names,
)
from roadaware.errors import UsageError

RELATIONS = """
aiming weapon | - | only official
arguing | arguing | same
arresting | arresting | same
burning/setting fire | burning/setting fire | same
carrying | - | only official
carrying casualty | carrying casualty | same
chanting/cheering | cheering/chanting | synonym
chasing | - | only official
clapping | clapping | same
creating barricade | creating barricade | same
dancing | dancing | same
destroying | - | only official
extinguishing fire | extinguishing fire | same
fighting | fighting | same
guarding | guarding | same
hitting an object/smashing | hitting | synonym
holding a burning stick | - | only official
holding flag | holding flag | same
holding hands | holding hands | same
holding signage | holding signage | same
holding weapon | - | only official
hugging | hugging | same
injured | - | only official
kneeling | kneeling | same
painting | - | only official
pinning | pinning | same
playing instrument | playing instrument | same
praying | praying | same
pulling barricade | - | only official
punching | punching | same
pushing | pushing | same
raising fist | raising fist | same
raising hands | - | only official
recording | recording | same
reporting live | reporting live | same
retreating | retreating | same
running/escaping | running/escaping | same
shooting/firing | shooting/firing | same
shouting | shouting | same
singing | - | only official
speaking on stage | - | only official
speaking/talking | - | only official
spraying | spraying aerosol | synonym
stealing/looting | stealing/looting | same
throwing object | throwing object | same
walking | walking | same
watching | watching | same
waving flag | waving flag | same
waving flarestick | waving flarestick | same
waving hands | - | only official
- | kicking | only paper
- | pulling | only paper
- | holding flarestick | only paper
- | performing resuscitation | only paper
- | lying down | only paper
- | squatting | only paper
"""


def test_counts():
    assert len(EVENT_CATEGORIES) == len(EVENT_TITLES) == 15
    assert {group: len(names) for group, names in EVENT_GROUPS.items()} == {
        "natural_disaster": 7,
        "violence_crime": 4,
    }
    assert len(ACTIONS_OFFICIAL) == 50
    assert [len(names) for names in ACTIONS_PAPER.values()] == [8, 1, 1, 3, 3, 3, 6, 4, 11, 2]
    assert [len(names) for names in INTERACTIONS.values()] == [5, 1, 3, 7, 1, 1]
    assert [len(names) for names in SOUNDS.values()] == [9, 1, 2, 3, 3, 3, 7]
    assert len(DESCRIPTION_SLOTS) == 8


@pytest.mark.parametrize("of", ["action", "interaction", "sound", "event"])
def test_a_name_stands_once_and_is_its_own_spelling(of: Vocabulary):
    names = list_label_names(of)
    assert max(Counter(name.casefold() for name in names).values()) == 1
    assert [find_canonical_name(name.upper().replace(" ", "_"), of) for name in names] == list(names)


def test_the_ids_of_the_files_are_places():
    at = {0: "aiming weapon", 6: "chanting/cheering", 15: "hitting an object/smashing", 49: "waving hands"}
    assert {place: ACTIONS_OFFICIAL[place] for place in at} == at
    assert list(ACTIONS_OFFICIAL) == sorted(ACTIONS_OFFICIAL)


def test_how_each_official_action_relates_to_the_paper():
    shown = [" | ".join(word or "-" for word in row) for row in list_action_relations()]
    assert shown == RELATIONS.strip().splitlines()
    assert Counter(kind for *_, kind in list_action_relations()) == {
        "same": 33,
        "synonym": 3,
        "only official": 14,
        "only paper": 6,
    }


def test_synonyms_lead_from_the_paper_to_the_official_list():
    paper = {name for names in ACTIONS_PAPER.values() for name in names}
    assert set(ACTION_SYNONYMS) <= paper - set(ACTIONS_OFFICIAL)
    assert set(ACTION_SYNONYMS.values()) <= set(ACTIONS_OFFICIAL) - paper


def test_an_unknown_action_is_told_the_nearest():
    with pytest.raises(UsageError, match=r"did you mean .*punching"):
        find_canonical_action("puncing")
    with pytest.raises(UsageError, match="there are fighting, kicking"):
        get_label_group("xyzzy", "interaction")


def test_groups():
    assert get_label_group("chanting/cheering") == get_label_group("cheering/chanting") == "verbal"
    assert get_label_group("chasing") is None
    assert get_label_group("Gunshot_Terrorist attack", "event") == "violence_crime"
    assert get_label_group("fires", "event") is None
    assert get_label_group("watching", "interaction") == "non_aggressive"
