"""Sentences: grammatical for every combination of labels, true to their times, and harmless for any label."""

from __future__ import annotations

import itertools
import re

import pytest

from roadaware.demo_data import road
from roadaware.simulator.truth.terms import ACTIONS as SIMULATED_ACTIONS
from roadaware.simulator.truth.terms import CROWD_VOCABULARIES, ROAD_VOCABULARIES
from roadaware.simulator.truth.terms import LOCATIONS as SIMULATED_LOCATIONS
from roadaware.tasks.road_events import (
    ACTIONS,
    AGENTS,
    AV_ACTIONS,
    LOCATIONS,
    collect_stretches,
    describe_event,
)

# Written from the grammar: article and noun, places, verbs in the third person, a time, a full stop.
_WORD = r"(?!or\b|and\b)[a-z]+"
_NOUN = rf"(?:a(?= [^aeiou])|an(?= [aeiou])) {_WORD}(?: {_WORD}){{0,3}}"
_THE = rf"(?:our|the|a) {_WORD}(?: {_WORD}){{0,5}}"
_PLACE = rf"(?: (?:in|on|at) {_THE})"
_VERB = r"(?:moves|comes|walks|reverses|brakes|stands|indicates|flashes|turns|overtakes|waits|crosses|pushes|shows|is)"
# What may follow where the verb of alternatives is said once.
_OTHER_WAY = r"(?:red|amber|green|away|closer|across|left|right|(?:to|from) the (?:left|right))"
_SENTENCE = re.compile(
    rf"{_NOUN}(?:(?:,| or) {_NOUN})*?(?:{_PLACE}(?:(?:,| and| or){_PLACE}|(?:,| or) {_THE})*)? "
    rf"{_VERB}(?: {_WORD})*?(?:(?:,| and| or) {_VERB}(?: {_WORD})*?|(?:,| or) {_OTHER_WAY})*"
    r"(?:, at \d+\.\d s|, \d+\.\d to \d+\.\d s)?\."
)


def is_grammatical(text: str) -> bool:
    return text[0].isupper() and _SENTENCE.fullmatch(text[0].lower() + text[1:]) is not None


def test_every_label_of_road_and_of_the_simulator_has_words() -> None:
    never = {kind: tuple(names) for kind, names in road.NEVER_SEEN.items()}
    assert set(AGENTS) == {*road.AGENTS, *never["agent"]} >= set(ROAD_VOCABULARIES["agent"])
    assert set(ACTIONS) == {*road.ACTIONS, *never["action"]} == set(SIMULATED_ACTIONS)
    assert set(LOCATIONS) == {*road.LOCATIONS, *never["location"]} == set(SIMULATED_LOCATIONS)
    assert set(AV_ACTIONS) == set(road.AV_ACTIONS)


def test_every_combination_is_a_sentence() -> None:
    said = set()
    choices = itertools.product((*AGENTS, None), (*ACTIONS, None), (*LOCATIONS, None))
    for agent, action, location in choices:
        labels = {"agent": [agent], "action": [action], "location": [location]}
        text = describe_event({kind: held for kind, held in labels.items() if held != [None]}, 3.21, 5.0)
        assert is_grammatical(text), text
        assert text.endswith(", 3.2 to 5.0 s.")
        said.add(text)
    # Different labels are told apart by their sentences.
    assert len(said) == (len(AGENTS) + 1) * (len(ACTIONS) + 1) * (len(LOCATIONS) + 1)


def test_every_pair_of_a_kind_is_a_sentence() -> None:
    for words, kind in ((AGENTS, "agent"), (ACTIONS, "action"), (LOCATIONS, "location")):
        for count in (2, 3):
            for names in itertools.combinations(words, count):
                labels = {"agent": ["Car"], "action": ["Stop"], "location": ["Jun"]} | {kind: list(names)}
                text = describe_event(labels)
                assert is_grammatical(text), text


@pytest.mark.parametrize(
    "wrong",
    [
        "A emergency vehicle brakes.",
        "An car brakes.",
        "A car brake.",
        "a car brakes.",
        "A car brakes",
        "A car  brakes.",
        "Car brakes.",
        "A car in lane.",
        "A car brakes or lane.",
        "A car in our lane or lane brakes.",
    ],
)
def test_what_is_not_grammatical_is_found_out(wrong: str) -> None:
    assert not is_grammatical(wrong)


@pytest.mark.parametrize(
    ("labels", "times", "text"),
    [
        (
            {"agent": ["Ped"], "location": ["LftPav"], "action": ["MovAway"]},
            (3.2, 5.0),
            "A pedestrian on the left pavement walks away, 3.2 to 5.0 s.",
        ),
        ({"agent": ["EmVeh", "Car"]}, (1.0, 1.04), "An emergency vehicle or a car is there, at 1.0 s."),
        ({"action": ["Xing"]}, (2.0, None), "A road user crosses, at 2.0 s."),
        ({}, (None, None), "A road user is there."),
        ({"av_action": ["AV-TurRht"]}, (0.0, 2.0), "Our vehicle turns right, 0.0 to 2.0 s."),
        (
            {"agent": ["Car"], "action": ["MovAway", "Brake", "IncatLft"], "event": ["Car-Brake-Jun"]},
            (None, None),
            "A car moves away, brakes and indicates left.",
        ),
        (
            {
                "agent": ["Ped"],
                "action": ["MovTow", "PushObj", "MovAway"],
                "location": ["Jun", "LftPav", "RhtPav"],
            },
            (None, None),
            "A pedestrian at the junction and on the left pavement or the right pavement walks closer or away and pushes an "
            "object.",
        ),
        (
            {"agent": ["TL"], "action": ["Red", "Amber", "Green"]},
            (None, None),
            "A traffic light shows red, amber or green.",
        ),
        (
            {"agent": ["TL"], "action": ["Red", "Black"]},
            (None, None),
            "A traffic light shows red or is dark.",
        ),
        (
            {"av_action": ["AV-Mov", "AV-MovLft"]},
            (1.0, None),
            "Our vehicle moves or moves to the left, at 1.0 s.",
        ),
        ({"agent": ["unicycle"]}, (None, None), "A unicycle is there."),
        ({"agent": ["traffic_cone"]}, (None, None), "A traffic cone is there."),
        (
            {"agent": ["Ped"], "action": ["running/escaping"]},
            (None, None),
            'A pedestrian is seen to do "running/escaping".',
        ),
    ],
)
def test_sentences(labels, times, text: str) -> None:
    assert describe_event(labels, *times) == text


def test_any_label_makes_one_line() -> None:
    for name in ("", "\x1b[31mred", "a\nb", "x" * 500, "<script>", *CROWD_VOCABULARIES["action"], "ö"):
        for kind in ("agent", "action", "location", "av_action"):
            text = describe_event({kind: [name]}, 0.0)
            assert text.endswith(", at 0.0 s.")
            assert text.isprintable()
            assert "<" not in text
            assert len(text) < 120


class TestStretches:
    def event(self, what: str, t_s: float, tube: int | None, **labels: float) -> dict:
        kinds = {"Car": "agent", "Bus": "agent", "Brake": "action", "Jun": "location", "AV_Mov": "av_action"}
        held: dict[str, dict[str, float]] = {}
        for name, score in labels.items():
            held.setdefault(kinds[name], {})[name.replace("AV_", "AV-")] = score
        return {"event": what, "t_s": t_s, "tube": tube, "labels": held, "frame": int(10 * t_s)}

    def test_a_tube_has_a_sentence_for_each_change(self) -> None:
        events = [
            self.event("begin", 1.0, 3, Car=0.9),
            self.event("begin", 1.5, None, AV_Mov=0.9),
            self.event("update", 2.0, 3, Car=0.9, Brake=0.5),
            self.event("crossing_probable", 2.5, 3, Car=0.8, Brake=0.6),
            {"event": "source", "t_s": 2.7, "tube": None, "what": "gap", "frame": 27},
            self.event("end", 4.0, 3, Car=0.9, Brake=0.5),
        ]
        assert [each.text for each in collect_stretches(events)] == [
            "A car is there, 1.0 to 2.0 s.",
            "Our vehicle moves, 1.5 to 4.0 s.",
            "A car brakes, 2.0 to 4.0 s.",
        ]

    def test_what_has_not_ended_lasts_to_the_last_event(self) -> None:
        events = [self.event("begin", 1.0, 1, Bus=0.9), self.event("begin", 3.0, 2, Car=0.5, Bus=0.6)]
        assert [each.text for each in collect_stretches(events)] == [
            "A bus is there, 1.0 to 3.0 s.",
            "A bus or a car is there, at 3.0 s.",
        ]

    def test_no_events_have_none(self) -> None:
        assert collect_stretches([]) == []
