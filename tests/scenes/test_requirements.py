"""Requirements: both forms say the same, every malformed line is named, contradictions are found and are minimal."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import numpy as np
import pytest

from roadaware.demo_data.road import VOCABULARIES
from roadaware.errors import InputError
from roadaware.scenes.requirements import (
    ROAD_LABELS,
    Requirements,
    bind_requirements,
    find_contradiction,
    find_model,
    format_dimacs,
    format_readable,
    group_equal_rows,
    open_requirements,
    parse_requirements,
    read_requirements,
)
from roadaware.simulator.truth.terms import ROAD_VOCABULARIES

READABLE = '''"""
A comment, not a requirement
"""

# another
Ped not PushObj
not Car or not Cyc
Ped Cyc not Xing
'''


def seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311


def random_clauses(rng: random.Random, n_labels: int, n_clauses: int) -> list[tuple[int, ...]]:
    """Different clauses of one to four literals, none with a label and its absence."""
    found: dict[frozenset[int], tuple[int, ...]] = {}
    while len(found) < n_clauses:
        labels = rng.sample(range(1, n_labels + 1), rng.randint(1, min(4, n_labels)))
        clause = tuple(k if rng.random() < 0.5 else -k for k in labels)
        found.setdefault(frozenset(clause), clause)
    return list(found.values())


def holds(clause: tuple[int, ...], there: tuple[bool, ...]) -> bool:
    """By definition: one of the literals is true."""
    return any(there[abs(k) - 1] == (k > 0) for k in clause)


def brute_force_models(clauses: list[tuple[int, ...]], n_labels: int) -> list[tuple[bool, ...]]:
    """Every assignment that satisfies all clauses."""
    every = itertools.product((False, True), repeat=n_labels)
    return [there for there in every if all(holds(clause, there) for clause in clauses)]


class TestParse:
    def test_reads_the_readable_form(self) -> None:
        found = parse_requirements(READABLE, "rules.txt")
        assert found.named_clauses() == [
            {("Ped", True), ("PushObj", False)},
            {("Car", False), ("Cyc", False)},
            {("Ped", True), ("Cyc", True), ("Xing", False)},
        ]
        assert found.lines == (6, 7, 8)
        assert found.form == "readable"
        assert found.place(1) == "rules.txt:7"

    def test_labels_of_road_have_its_order_however_few_are_named(self) -> None:
        assert parse_requirements("not Xing Ped").labels == tuple(itertools.chain(*ROAD_LABELS.values()))
        assert parse_requirements("not tree person").labels == ("tree", "person")

    def test_reads_dimacs_with_names(self) -> None:
        text = "c rules of mine\nc 1 red car\nc 2 walks\nc 3 agent:Ped\np cnf 3 2\n-1 3 0 2\n-3 0\n"
        found = parse_requirements(text)
        assert found.labels == ("red car", "walks", "agent:Ped")
        assert found.clauses == ((-1, 3), (2, -3))
        assert found.lines == (6, 6)

    def test_forty_one_labels_without_names_are_those_of_road(self) -> None:
        found = parse_requirements("p cnf 41 2\n1 -29 0\n-39 -28 0\n")
        assert found.named_clauses() == [
            {("Ped", True), ("PushObj", False)},
            {("XingLoc", False), ("Xing", False)},
        ]

    @pytest.mark.parametrize("write", [format_readable, format_dimacs])
    def test_what_is_written_reads_back(self, write) -> None:
        rng = seeded(1)
        for _ in range(20):
            labels = tuple(f"label-{k}" for k in range(6))
            rules = Requirements(labels, tuple(random_clauses(rng, 6, 8)))
            assert parse_requirements(write(rules)).named_clauses() == rules.named_clauses()

    def test_repeated_requirements_count_once_and_are_named(self) -> None:
        found = parse_requirements("p cnf 41 4\n1 2 0\n2 1 0 3 4 0\n4 3 3 0\n")
        assert found.clauses == ((1, 2), (3, 4))
        assert found.duplicates == ((3, 2), (4, 3))
        assert "2 lines repeat a requirement" in bind_requirements(found, VOCABULARIES).notes[0]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "found none"),
            ("# nothing\n", "found none"),
            ("Ped not\n", ":1: expected a label after `not`"),
            ("Ped\nnot not Car\n", ":2: expected a label after `not`, found `not` again"),
            ("or Ped\n", ":1: expected a label before and after `or`"),
            ("Ped or\n", ":1: expected a label after `or`"),
            ("Ped or or Car\n", ":1: expected a label before and after `or`"),
            ("Ped & Car\n", ":1: expected a label, found '&'"),
            ("Ped 3\n", ":1: expected a label, found '3'"),
            ('Ped\n"""\nstill open\n', ':2: the comment that starts with """ never ends'),
            ("Ped Car not Ped\n", ":1: the requirement holds whatever"),
            ("1 2 0\n", ":1: expected `p cnf LABELS CLAUSES` before"),
            ("p cnf 41\n1 0\n", ":1: expected one line `p cnf"),
            ("p cnf 41 1\np cnf 41 1\n1 0\n", ":2: expected one line `p cnf LABELS CLAUSES`, found a second"),
            ("p cnf 41 1\n1 x 0\n", ":2: expected a whole number, found 'x'"),
            ("p cnf 41 1\n1 42 0\n", ":2: expected labels from 1 to 41, as line 1 says; found 42"),
            ("p cnf 41 1\n1 2\n", ":2: expected 0 at the end"),
            ("p cnf 41 2\n1 2 0\n", "line 1 announces 2 requirements, and there are 1"),
            ("p cnf 41 1\n0\n", ":2: found a requirement without labels"),
            ("p cnf 3 1\n1 0\n", "expected a name for each of the 3 labels"),
            ("c 1 a\np cnf 2 1\n1 0\n", "labels 2 have no name"),
            ("c 1 a\nc 2 a\np cnf 2 1\n1 0\n", "labels 1 and 2 have one name"),
            ("p cnf 999999999 1\n1 0\n", "expected a name for each"),
        ],
    )
    def test_malformed_lines_are_named(self, text: str, said: str) -> None:
        with pytest.raises(InputError) as caught:
            parse_requirements(text, "rules.txt")
        assert said in str(caught.value)

    def test_files_that_cannot_be_read_are_refused(self, tmp_path) -> None:
        (tmp_path / "latin.txt").write_bytes(b"Ped \xff\n")
        for path in (tmp_path / "latin.txt", tmp_path / "none.txt", tmp_path):
            with pytest.raises(InputError, match=path.name):
                read_requirements(path)

    def test_any_text_is_read_or_refused(self) -> None:
        rng = seeded(7)
        pieces = [
            "p cnf 41 2",
            "1",
            "-2",
            "0",
            "\n",
            "not",
            "or",
            "Ped",
            '"""',
            "c 1 x",
            "#",
            "\x00",
            "é",
            "p",
            " ",
        ]
        for _ in range(500):
            text = " ".join(rng.choices(pieces, k=rng.randint(0, 12)))
            try:
                assert len(parse_requirements(text)) > 0
            except InputError:
                continue


class TestSeveralFiles:
    def test_two_files_have_to_say_the_same(self, tmp_path) -> None:
        one, two, three = (tmp_path / name for name in ("one.txt", "two.cnf", "three.txt"))
        one.write_text("Ped not PushObj\nnot Car not Cyc\n")
        two.write_text("p cnf 41 2\n-3 -2 0\n-29 1 0\n")
        three.write_text("Ped not PushObj\nnot Car not Bus\nTL\n")
        assert len(open_requirements([one, two])) == 2
        with pytest.raises(
            InputError, match=r"one.txt:2 \(not Car or not Cyc\) is not in three.txt"
        ) as caught:
            open_requirements([one, three])
        assert "one.txt has 2, three.txt 3" in str(caught.value)
        assert "three.txt:3 (TL) is not in one.txt" in str(caught.value)

    def test_contradictory_ones_are_refused_with_the_lines_that_clash(self, tmp_path) -> None:
        path = tmp_path / "rules.txt"
        path.write_text("Ped Car\nnot Bus\nnot Ped\nTL not Bus\nnot Car\n")
        with pytest.raises(InputError, match="these 3 together") as caught:
            open_requirements([path])
        assert all(f"rules.txt:{line}" in str(caught.value) for line in (1, 3, 5))
        assert "rules.txt:2" not in str(caught.value)


class TestContradiction:
    def test_models_are_found_exactly_where_there_are_some(self) -> None:
        rng = seeded(0)
        outcomes = set()
        for _ in range(200):
            n_labels = rng.randint(2, 6)
            clauses = random_clauses(rng, n_labels, rng.randint(1, 12 if n_labels > 3 else 5))
            expected = brute_force_models(clauses, n_labels)
            found = find_model(clauses)
            outcomes.add(bool(expected))
            assert (found is not None) == bool(expected)
            if found is not None:
                assert all(not found.isdisjoint(clause) for clause in clauses)
        assert outcomes == {True, False}

    def test_cores_are_contradictory_and_minimal(self) -> None:
        rng = seeded(5)
        cores = 0
        for _ in range(150):
            clauses = random_clauses(rng, 4, 14)
            rules = Requirements(tuple("abcd"), tuple(clauses))
            core = find_contradiction(rules)
            models = brute_force_models(clauses, 4)
            assert bool(core) == (not models)
            held = [clauses[k] for k in core]
            if core:
                cores += 1
                assert not brute_force_models(held, 4)
                assert all(brute_force_models(held[:k] + held[k + 1 :], 4) for k in range(len(held)))
        assert cores > 20


class TestBind:
    def test_violations_are_those_of_the_definition(self) -> None:
        rng = seeded(3)
        labels = ("Ped", "Car", "Cyc", "Xing", "Mov")
        for _ in range(20):
            clauses = random_clauses(rng, 5, 7)
            bound = bind_requirements(Requirements(labels, tuple(clauses)), VOCABULARIES)
            rows = np.array(list(itertools.product((False, True), repeat=5)))
            expected = [[not holds(clause, tuple(row)) for clause in clauses] for row in rows.tolist()]
            assert bound.violations(rows).tolist() == expected

    def test_names_are_found_under_the_spelling_of_the_annotations(self) -> None:
        rules = parse_requirements("not Xing not XingLoc not IncatLeft not Parking location:xing")
        bound = bind_requirements(rules, VOCABULARIES)
        found = dict(zip(bound.labels, bound.columns, strict=True))
        assert found["Xing"] == ("action", VOCABULARIES["action"].index("Xing"))
        assert (
            found["XingLoc"] == found["location:xing"] == ("location", VOCABULARIES["location"].index("xing"))
        )
        assert found["IncatLeft"] == ("action", VOCABULARIES["action"].index("IncatLft"))
        assert found["Parking"] == ("location", VOCABULARIES["location"].index("parking"))

    def test_requirements_of_missing_kinds_are_left_out_and_missing_labels_are_never_there(self) -> None:
        rules = parse_requirements("not Car not Cyc\nnot PushObj Ped\nEmVeh Car Cyc\n")
        bound = bind_requirements(rules, {"agent": ("Car", "Cyc")})
        assert bound.judged == (0, 2)
        assert bound.missing_kinds == ("action",)
        assert "EmVeh" in bound.absent
        assert "1 of 3 requirements are not judged" in bound.notes[0]

    def test_other_labels_are_refused_by_name(self) -> None:
        with pytest.raises(InputError, match="does not have: walks, runs"):
            bind_requirements(parse_requirements("walks not runs"), VOCABULARIES)
        with pytest.raises(InputError, match="does not have: Pedd"):
            bind_requirements(parse_requirements("Pedd not Car"), VOCABULARIES)
        with pytest.raises(InputError, match="does not have: Ped"):
            bind_requirements(parse_requirements("Ped not Car"), {"action": ("walk", "run")})

    def test_a_label_of_several_kinds_needs_its_kind(self) -> None:
        held = {"pose": ("stands", "sits"), "action": ("stands", "walks")}
        with pytest.raises(InputError, match="of several kinds: pose, action") as caught:
            bind_requirements(parse_requirements("stands walks"), held)
        assert "pose:stands" in str(caught.value)
        assert bind_requirements(parse_requirements("pose:stands walks"), held).columns == (
            ("pose", 0),
            ("action", 1),
        )

    def test_rows_are_grouped(self) -> None:
        rng = np.random.default_rng(0)
        for width in (1, 7, 8, 41, 70):
            rows = rng.random((50, width)) < 0.1
            distinct, which = group_equal_rows(rows)
            assert (distinct[which] == rows).all()
            assert len(np.unique(distinct, axis=0)) == len(distinct)
        empty, of_none = group_equal_rows(np.zeros((0, 5), dtype=bool))
        assert empty.shape == (0, 5)
        assert of_none.shape == (0,)


@pytest.mark.skipif("ROADAWARE_DATA_DIR" not in os.environ, reason="ROADAWARE_DATA_DIR is not set")
class TestRoadR:
    """The file of ROAD-R, where a copy is at hand."""

    @pytest.fixture
    def files(self):
        folder = Path(os.environ["ROADAWARE_DATA_DIR"]) / "road_r"
        if not folder.is_dir():
            pytest.skip("no copy of ROAD-R's requirements below ROADAWARE_DATA_DIR")
        return folder / "requirements_readable.txt", folder / "requirements_dimacs.txt"

    def test_both_forms_hold_the_same_243_in_the_same_order(self, files) -> None:
        readable, dimacs = map(read_requirements, files)
        assert len(readable) == len(dimacs) == 243
        assert readable.named_clauses() == dimacs.named_clauses()
        assert not readable.duplicates
        assert len(open_requirements(files)) == 243

    @pytest.mark.parametrize("vocabularies", [VOCABULARIES, ROAD_VOCABULARIES])
    def test_all_labels_are_found_in_road_and_in_simulated_sets(self, files, vocabularies) -> None:
        bound = bind_requirements(read_requirements(files[0]), vocabularies)
        assert len(bound.judged) == 243
        assert not bound.notes
        for (kind, label), name in zip(bound.columns, bound.labels, strict=True):
            assert name in ROAD_LABELS[kind]
            assert vocabularies[kind][label].lower()[:4] == name.lower()[:4]


@pytest.mark.parametrize(
    ("text", "line"),
    [("c 1 Ped\nc 1 Car\np cnf 1 1\n1 0\n", 2), ("c 1 Ped\nc 2 Ped\np cnf 2 1\n1 2 0\n", 2)],
)
def test_a_label_named_twice_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(InputError, match=rf"rules:{line}"):
        parse_requirements(text, "rules")
