"""Of small faults put into statistics and metrics the tests find 95 in 100; a sample of each module."""

import ast
import textwrap
from pathlib import Path

import pytest
from benchmarks.mutation.__main__ import LEAST, outcomes
from benchmarks.mutation.changes import changed, changes
from benchmarks.mutation.excuses import EXCUSES
from benchmarks.mutation.groups import GROUPS

SAMPLE = 6
ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPS)
def test_the_tests_of_a_group_find_its_faults(name):
    found = outcomes(GROUPS[name], sample=SAMPLE)
    assert {module: held.stale for module, held in found.items() if held.stale} == {}
    killed, tried = (sum(getattr(held, what) for held in found.values()) for what in ("killed", "tried"))
    assert tried > 0
    assert killed >= LEAST * tried, [line for held in found.values() for line in held.survivors]


def test_modules_tests_and_excuses_are_there():
    for group in GROUPS.values():
        for module in group.modules:
            source = (ROOT / "src" / "roadaware" / module.replace(".", "/")).with_suffix(".py")
            found = {change.key for change in changes(ast.parse(source.read_text(encoding="utf-8")))}
            assert set(EXCUSES.get(module, {})) <= found, module
        assert all((ROOT / "tests" / name).exists() for name in group.tests)


SOURCE = textwrap.dedent('''
    """A module of 1 line."""
    LIMITS: tuple[int, int] = (2, 97)

    def share(part: int, whole: int = 3) -> float:
        """Part of 2."""
        if not whole or len([part]) < 2:
            raise ValueError(f"{whole + 1} is 0")
        return min(part / whole, 0.5)
''')


def test_faults_are_those_of_what_runs():
    found = [change.key for change in changes(ast.parse(SOURCE))]
    assert found == [
        ": 2 -> 3",
        ": 97 -> 98",
        "share: 3 -> 4",
        "share: if not whole or len([part]) < 2 -> if not",
        "share: not whole or len([part]) < 2 -> not whole and len([part]) < 2",
        "share: not whole -> not not whole",
        "share: len([part]) < 2 -> len([part]) <= 2",
        "share: 2 -> 3",
        "share: return min(part / whole, 0.5) -> None",
        "share: min(part / whole, 0.5) -> max(part / whole, 0.5)",
        "share: part / whole -> part * whole",
        "share: 0.5 -> 0.505",
    ]


def test_assertions_are_left_out():
    source = "def f(a, b):\n    assert a > 1\n    yield from zip(a, b, strict=True)"
    assert changes(ast.parse(source)) == []


def test_each_change_alters_one_place():
    before = ast.unparse(ast.parse(SOURCE)).splitlines()
    count = len(changes(ast.parse(SOURCE)))
    for place in range(count):
        after = ast.unparse(changed(SOURCE, place)).splitlines()
        assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_excuses_name_modules_and_give_reasons():
    modules = {module for group in GROUPS.values() for module in group.modules}
    assert set(EXCUSES) <= modules
    assert all(len(reason) > 10 for held in EXCUSES.values() for reason in held.values())
