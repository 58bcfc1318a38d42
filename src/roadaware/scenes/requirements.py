"""Logical requirements over labels: clauses read from files, checked, matched to vocabularies, and held against labels.

A requirement is a clause: at least one of some labels is there, or one of some others is not. `not PushObj or Ped` says
that who pushes an object is a pedestrian. Source: Giunchiglia et al., "ROAD-R: the autonomous driving dataset with
logical requirements", Machine Learning 112, 2023.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Ints
from roadaware.errors import InputError, UsageError
from roadaware.io.files import read_regular
from roadaware.io.sources import to_printable

# What requirements are over: labels by name. ROAD-R numbers those of ROAD from 1, kind after kind.

ROAD_LABELS: dict[str, tuple[str, ...]] = {
    "agent": ("Ped", "Car", "Cyc", "Mobike", "MedVeh", "LarVeh", "Bus", "EmVeh", "TL", "OthTL"),
    "action": (
        *("Red", "Amber", "Green", "MovAway", "MovTow", "Mov", "Brake", "Stop", "IncatLeft", "IncatRht"),
        *("HazLit", "TurLft", "TurRht", "Ovtak", "Wait2X", "XingFmLft", "XingFmRht", "Xing", "PushObj"),
    ),
    "location": (
        *("VehLane", "OutgoLane", "OutgoCycLane", "IncomLane", "IncomCycLane", "Pav", "LftPav", "RhtPav"),
        *("Jun", "XingLoc", "BusStop", "Parking"),
    ),
}
"""The 41 labels as ROAD-R spells them, in its order."""
_ROAD_KINDS = {name: kind for kind, names in ROAD_LABELS.items() for name in names}
_ROAD_SPELLING = {"IncatLeft": "IncatLft", "XingLoc": "xing", "Parking": "parking"}
"""Labels that ROAD's own annotations spell otherwise; `xing`, the place, is another label than `Xing`, the action."""
_KIND_NAMES = {"loc": "location", "triplet": "event"}
_NOT_SEARCHED = ("agentness", "av_action", "duplex", "event")
"""Kinds whose labels are meant only where their kind stands before them, as in `duplex:Car-Stop`."""
_MOST_BYTES, _MOST_LABELS, _MOST_CLAUSES = 1 << 22, 1_000, 20_000
_MOST_DECISIONS = 100_000
_SHOWN = 5


@dataclass(frozen=True)
class Requirements:
    """Clauses over labels.

    Args:
        labels: names, each once; label k of the clauses is `labels[k - 1]`.
        clauses: for each requirement its literals: k for label k, -k for its absence. None is empty, repeats a
            label, holds a label and its absence, or equals another.
        name: of the file.
        lines: for each clause its line in the file; empty where they are from none.
        duplicates: pairs of lines of which the first repeats the second; its clause counts once.
        form: of the file.

    Raises:
        InputError: if a clause names a label that is not there, or is not as said.
    """

    labels: tuple[str, ...]
    clauses: tuple[tuple[int, ...], ...]
    name: str = ""
    lines: tuple[int, ...] = ()
    duplicates: tuple[tuple[int, int], ...] = ()
    form: str = ""

    def __post_init__(self) -> None:
        """Refuse clauses that are none."""
        if len(set(self.labels)) < len(self.labels):
            raise InputError("requirements name a label twice")
        if self.lines and len(self.lines) != len(self.clauses):
            raise InputError(f"{len(self.lines)} lines for {len(self.clauses)} requirements")
        for clause in self.clauses:
            labels = {abs(literal) for literal in clause}
            if not clause or len(labels) < len(clause) or not labels <= set(range(1, len(self.labels) + 1)):
                raise InputError(
                    f"a requirement names labels from 1 to {len(self.labels)}, each once; found {clause}"
                )
        if len({frozenset(clause) for clause in self.clauses}) < len(self.clauses):
            raise InputError("a requirement stands there twice")

    def __len__(self) -> int:
        return len(self.clauses)

    def named_clauses(self) -> list[frozenset[tuple[str, bool]]]:
        """Each clause as (label, whether it is to be there), in order."""
        return [frozenset((self.labels[abs(k) - 1], k > 0) for k in clause) for clause in self.clauses]

    def place(self, clause: int) -> str:
        """Where a clause stands: file and line; its number, from 1, where it is from no file."""
        return f"{self.name}:{self.lines[clause]}" if self.lines else f"requirement {clause + 1}"

    def format_clause(self, clause: int) -> str:
        """A clause in the readable form, such as `not PushObj or Ped`."""
        words = [("" if k > 0 else "not ") + self.labels[abs(k) - 1] for k in self.clauses[clause]]
        return " or ".join(words)

    def describe_clause(self, clause: int) -> str:
        """A clause in words.

        >>> rules = Requirements(("Ped", "Cyc", "Xing"), ((-3, 1, 2), (-1, -2), (1, 2)))
        >>> [rules.describe_clause(k) for k in range(3)]
        ['Xing needs Ped or Cyc', 'Ped excludes Cyc', 'one of Ped and Cyc']
        """
        literals = self.clauses[clause]
        there = [self.labels[k - 1] for k in literals if k > 0]
        absent = [self.labels[-k - 1] for k in literals if k < 0]
        if not absent:
            return f"one of {_join(there, 'and')}" if len(there) > 1 else f"always {there[0]}"
        if not there:
            return f"{absent[0]} excludes {_join(absent[1:], 'with')}" if absent[1:] else f"never {absent[0]}"
        return f"{_join(absent, 'with')} needs {_join(there, 'or')}"


def _join(words: Sequence[str], last: str) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


# Reading both forms.


def read_requirements(path: Path) -> Requirements:
    """The requirements in a file of either form; see `parse_requirements`.

    Raises:
        InputError: if it cannot be read, or a line is malformed.
    """
    try:
        text = read_regular(path, limit=_MOST_BYTES).decode("utf-8-sig")
    except OSError as error:
        said = f"the requirements cannot be read: {error.strerror or error}"
        raise InputError(said, where=str(path)) from error
    except UnicodeDecodeError as error:
        raise InputError(
            "expected text in UTF-8", where=str(path), hint="Save the requirements as UTF-8."
        ) from error
    return parse_requirements(text, path.name, where=str(path))


def open_requirements(paths: Sequence[Path]) -> Requirements:
    """The requirements in one file, or in two or more that have to say the same, such as both forms of ROAD-R.

    Contradictory ones are refused, with a smallest set of lines that cannot all hold.

    Raises:
        UsageError: if no file is named.
        InputError: if a file cannot be read, files differ, or the requirements contradict each other.
    """
    if not paths:
        raise UsageError("name a file of requirements")
    first, *others = [(path, read_requirements(path)) for path in paths]
    path, found = first
    for other, beside in others:
        _compare(path, found, other, beside)
    if core := find_contradiction(found):
        lines = "; ".join(f"{found.place(k)}: {found.format_clause(k)}" for k in core[:_SHOWN])
        more = f"; and {len(core) - _SHOWN} more" if len(core) > _SHOWN else ""
        raise InputError(
            f"the requirements contradict each other: no labels satisfy these {len(core)} together: "
            f"{to_printable(lines, 700)}{more}",
            where=str(path),
            hint="Without any one of them the others of these can hold; correct or remove one.",
        )
    return found


def _compare(path: Path, found: Requirements, other: Path, beside: Requirements) -> None:
    """Refuse two files that do not hold the same clauses."""
    count, sides = len(found), []
    for one, two, where in ((found, beside, other), (beside, found, path)):
        held = set(two.named_clauses())
        sides += [
            f"{one.place(k)} ({one.format_clause(k)}) is not in {where.name}"
            for k, clause in enumerate(one.named_clauses())
            if clause not in held
        ]
    if sides:
        more = f"; and {len(sides) - _SHOWN} more" if len(sides) > _SHOWN else ""
        raise InputError(
            f"expected the same requirements in both files; {path.name} has {count}, {other.name} "
            f"{len(beside)}: {to_printable('; '.join(sides[:_SHOWN]), 700)}{more}",
            where=f"{path} and {other}",
            hint="Name one of the files alone, or correct the other.",
        )


def parse_requirements(text: str, name: str = "requirements", *, where: str = "") -> Requirements:
    """The requirements in a text, in the readable form or as DIMACS.

    Readable: a requirement a line, names of labels with blanks or `or` between, `not` before a label that is to be
    absent; a line that starts with `#` and what stands between two lines of three quotes is comment. A name may have
    its kind before it, as `location:xing`, which is needed where several kinds have it.

    DIMACS: a line `p cnf LABELS CLAUSES`, then clauses as whole numbers that end with 0. Lines `c NUMBER NAME` name
    the labels; where there are none, 41 labels are those of ROAD in the order of `ROAD_LABELS`.

    Args:
        text: of the file.
        name: of the file, shown beside line numbers.
        where: the file, in errors (default: the name).

    Raises:
        InputError: if a line is malformed, by its number.
    """
    place = where or name
    lines = text.splitlines()
    content = [line.strip() for line in lines if line.strip()]
    is_dimacs = any(re.match(r"p\s", line) for line in content) or (
        bool(content) and all(re.fullmatch(r"c\b.*|(-?\d+\s*)+", line) for line in content)
    )
    found = _parse_dimacs(lines, place) if is_dimacs else _parse_readable(lines, place)
    labels, rows = found
    if not rows:
        raise InputError("expected requirements, found none", where=place, hint=_FORMS)
    if len(labels) > _MOST_LABELS or len(rows) > _MOST_CLAUSES:
        raise InputError(
            f"expected at most {_MOST_LABELS:,} labels and {_MOST_CLAUSES:,} requirements, found {len(labels):,} "
            f"and {len(rows):,}",
            where=place,
        )
    first: dict[frozenset[int], int] = {}
    clauses, duplicates = [], []
    for number, literals in rows:
        clause = tuple(dict.fromkeys(literals))
        both = next((abs(k) for k in clause if -k in clause), None)
        if both is not None:
            said = (
                f"the requirement holds whatever the labels are: it names {labels[both - 1]} and its absence"
            )
            raise InputError(to_printable(said), where=f"{place}:{number}", hint="Remove the line.")
        if frozenset(clause) in first:
            duplicates.append((number, first[frozenset(clause)]))
            continue
        first[frozenset(clause)] = number
        clauses.append(clause)
    form = "dimacs" if is_dimacs else "readable"
    return Requirements(labels, tuple(clauses), name, tuple(first.values()), tuple(duplicates), form)


_FORMS = (
    "Write a requirement a line, such as `not PushObj or Ped`, or DIMACS: `p cnf LABELS CLAUSES` and clauses that "
    "end with 0."
)


def _parse_readable(
    lines: Sequence[str], place: str
) -> tuple[tuple[str, ...], list[tuple[int, tuple[int, ...]]]]:
    """The labels, and line and literals of each requirement."""
    rows, quoted_from = [], 0
    for number, line in enumerate(lines, 1):
        held = line.strip()
        quotes = held.count('"""')
        if quotes or quoted_from:
            if quotes % 2:
                quoted_from = 0 if quoted_from else number
            continue
        if not held or held.startswith("#"):
            continue
        rows.append((number, _parse_words(held, f"{place}:{number}")))
    if quoted_from:
        raise InputError('the comment that starts with """ never ends', where=f"{place}:{quoted_from}")
    names = list(dict.fromkeys(word for _, words in rows for word, _ in words))
    if set(names) <= set(_ROAD_KINDS):
        names = list(_ROAD_KINDS)
    at = {name: k for k, name in enumerate(names, 1)}
    return tuple(names), [(n, tuple(at[w] if there else -at[w] for w, there in words)) for n, words in rows]


def _parse_words(line: str, place: str) -> list[tuple[str, bool]]:
    """The literals of a readable line: label, and whether it is to be there."""
    found: list[tuple[str, bool]] = []
    absent, open_or = False, False
    for word in line.split():
        if word == "not":
            if absent:
                raise InputError(
                    "expected a label after `not`, found `not` again", where=place, hint="Remove one."
                )
            absent = True
        elif word == "or":
            if absent or open_or or not found:
                said = f"expected a label before and after `or`, found: {to_printable(line, 200)}"
                raise InputError(said, where=place)
            open_or = True
        elif not re.fullmatch(r"[\w./+-]+(:[\w./+-]+)?", word) or re.fullmatch(r"[+-]?\d+", word):
            raise InputError(f"expected a label, found {to_printable(word, 60)!r}", where=place, hint=_FORMS)
        else:
            found.append((word, not absent))
            absent = open_or = False
    if absent or open_or:
        raise InputError(
            f"expected a label after `{'not' if absent else 'or'}`, found the end of the line", where=place
        )
    return found


def _parse_dimacs(
    lines: Sequence[str], place: str
) -> tuple[tuple[str, ...], list[tuple[int, tuple[int, ...]]]]:
    """The labels, and line and literals of each clause."""
    names: dict[int, tuple[str, int]] = {}
    header: tuple[int, int, int] | None = None
    rows: list[tuple[int, tuple[int, ...]]] = []
    literals: list[int] = []
    began = 0
    for number, line in enumerate(lines, 1):
        at, held = f"{place}:{number}", line.strip()
        if not held:
            continue
        if re.match(r"c(\s|$)", held):
            if named := re.fullmatch(r"c\s+(\d{1,9})\s+(\S.*)", held):
                label = int(named[1])
                if label in names:
                    said = f"label {label} is named twice; line {names[label][1]} names it too"
                    raise InputError(said, where=at, hint="Remove one of the lines.")
                names[label] = (named[2].strip(), number)
            continue
        if re.match(r"p\s", held):
            sizes = re.fullmatch(r"p\s+cnf\s+(\d{1,9})\s+(\d{1,9})", held)
            if sizes is None or header is not None:
                why = "a second header" if header else to_printable(held, 80)
                raise InputError(f"expected one line `p cnf LABELS CLAUSES`, found {why}", where=at)
            header = (int(sizes[1]), int(sizes[2]), number)
            continue
        if header is None:
            raise InputError("expected `p cnf LABELS CLAUSES` before the first clause", where=at)
        for word in held.split():
            if not re.fullmatch(r"[+-]?\d{1,9}", word):
                raise InputError(f"expected a whole number, found {to_printable(word, 60)!r}", where=at)
            literal = int(word)
            began = began or number
            if literal:
                if abs(literal) > header[0]:
                    raise InputError(
                        f"expected labels from 1 to {header[0]}, as line {header[2]} says; found {literal}",
                        where=at,
                    )
                literals.append(literal)
                continue
            if not literals:
                raise InputError("found a requirement without labels, which nothing satisfies", where=at)
            rows.append((began, tuple(literals)))
            literals, began = [], 0
    if header is None:
        raise InputError("expected a line `p cnf LABELS CLAUSES`", where=place, hint=_FORMS)
    if literals:
        raise InputError("expected 0 at the end of the last requirement", where=f"{place}:{began}")
    if len(rows) != header[1]:
        raise InputError(
            f"line {header[2]} announces {header[1]:,} requirements, and there are {len(rows):,}", where=place
        )
    return _name_labels(header[0], names, place), rows


def _name_labels(count: int, names: Mapping[int, tuple[str, int]], place: str) -> tuple[str, ...]:
    """The names of numbered labels: those that comments give, else those of ROAD."""
    if not names:
        if count == len(_ROAD_KINDS):
            return tuple(_ROAD_KINDS)
        raise InputError(
            f"expected a name for each of the {count:,} labels: 41 without names are those of ROAD",
            where=place,
            hint="Add a line for each, such as `c 1 Ped` and `c 2 Car`.",
        )
    if count > _MOST_LABELS:
        raise InputError(f"expected at most {_MOST_LABELS:,} labels, found {count:,}", where=place)
    lacking = [k for k in range(1, count + 1) if k not in names]
    if lacking:
        shown = ", ".join(map(str, lacking[:_SHOWN]))
        raise InputError(
            f"labels {shown} have no name", where=place, hint=f"Add a line such as `c {lacking[0]} NAME`."
        )
    found: dict[str, int] = {}
    for k in range(1, count + 1):
        name, number = names[k]
        if name in found:
            said = f"labels {found[name]} and {k} have one name: {to_printable(name, 60)}"
            raise InputError(said, where=f"{place}:{number}")
        found[name] = k
    return tuple(found)


def format_readable(requirements: Requirements) -> str:
    """The requirements in the readable form, a line each."""
    return "".join(f"{requirements.format_clause(k)}\n" for k in range(len(requirements)))


def format_dimacs(requirements: Requirements) -> str:
    """The requirements as DIMACS, with the names of the labels as comments."""
    names = [f"c {k} {name}\n" for k, name in enumerate(requirements.labels, 1)]
    rows = [" ".join(map(str, (*clause, 0))) + "\n" for clause in requirements.clauses]
    return "".join([*names, f"p cnf {len(requirements.labels)} {len(rows)}\n", *rows])


# Whether requirements can hold at all.


def find_contradiction(requirements: Requirements) -> tuple[int, ...]:
    """Indices of clauses that no labels satisfy together; empty where all of them can hold.

    The set is minimal: without any one of its clauses the others can hold.

    Raises:
        InputError: if it cannot be decided in 100,000 decisions, which no requirements written by people need.
    """
    clauses = requirements.clauses
    if find_model(clauses) is not None:
        return ()
    core = list(range(len(clauses)))
    # Large pieces first: most clauses have no part in a contradiction.
    size = max(1, len(core) // 2)
    while True:
        start = 0
        while start < len(core):
            rest = core[:start] + core[start + size :]
            if find_model([clauses[k] for k in rest]) is None:
                core = rest
            else:
                start += size
        if size == 1:
            return tuple(core)
        size = max(1, min(size, len(core)) // 2)


def find_model(clauses: Sequence[Sequence[int]]) -> frozenset[int] | None:
    """Literals that satisfy all clauses, by branching with unit propagation; None where there are none.

    Args:
        clauses: each of whole numbers other than 0.

    Raises:
        InputError: if it cannot be decided in 100,000 decisions.

    Source: Davis, Logemann and Loveland, Communications of the ACM 1962.

    >>> sorted(find_model([(-1, 2), (1,)])), find_model([(1,), (-1,)])
    ([1, 2], None)
    """
    pending: list[frozenset[int]] = [frozenset()]
    for _ in range(_MOST_DECISIONS):
        if not pending:
            return None
        found = _propagate(clauses, set(pending.pop()))
        if found is None:
            continue
        true, rest = found
        if not rest:
            return frozenset(true)
        literal = min(rest, key=len)[0]
        pending += [frozenset(true | {-literal}), frozenset(true | {literal})]
    raise InputError(f"whether the requirements can hold is not known after {_MOST_DECISIONS:,} decisions")


def _propagate(clauses: Sequence[Sequence[int]], true: set[int]) -> tuple[set[int], list[list[int]]] | None:
    """The literals that follow, and what is left of the clauses; None where one of them cannot hold."""
    while True:
        rest, grown = [], False
        for clause in clauses:
            if not true.isdisjoint(clause):
                continue
            left = [k for k in clause if -k not in true]
            if not left:
                return None
            if len(left) == 1:
                true.add(left[0])
                grown = True
            else:
                rest.append(left)
        if not grown:
            return true, rest


# Requirements matched to the labels of a set.


@dataclass(frozen=True, eq=False)
class BoundRequirements:
    """Requirements whose labels are matched to vocabularies by name.

    Args:
        requirements: all of them.
        columns: for each label its kind and index in the vocabulary; None where the vocabularies lack it: it is
            then never there.
        judged: indices of the clauses that are judged: all of whose labels are of kinds that there are.
        absent: labels of kinds that there are, which these do not have.
        missing_kinds: kinds of labels that there are not; clauses that name such labels are not judged.
    """

    requirements: Requirements
    columns: tuple[tuple[str, int] | None, ...]
    judged: tuple[int, ...]
    absent: tuple[str, ...] = ()
    missing_kinds: tuple[str, ...] = ()
    _literals: tuple[Ints, Ints] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Lay the literals of the judged clauses out as one array."""
        held = [self.requirements.clauses[k] for k in self.judged]
        ends = np.cumsum([0, *map(len, held)]).astype(np.int64)
        flat = np.array([k for clause in held for k in clause], dtype=np.int64)
        object.__setattr__(self, "_literals", (flat, ends))

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the labels."""
        return self.requirements.labels

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of labels that requirements are over, in order."""
        return tuple(dict.fromkeys(column[0] for column in self.columns if column is not None))

    @property
    def notes(self) -> list[str]:
        """What was not matched, in words."""
        found = []
        if left := len(self.requirements) - len(self.judged):
            found.append(
                f"{left} of {len(self.requirements)} requirements are not judged: there are no labels of "
                f"{', '.join(self.missing_kinds)}"
            )
        if self.absent:
            found.append(f"no box can have {', '.join(self.absent)}: the vocabularies lack these labels")
        if doubles := self.requirements.duplicates:
            shown = ", ".join(f"{line} (as {first})" for line, first in doubles[:_SHOWN])
            found.append(f"{len(doubles)} lines repeat a requirement and count once: {shown}")
        return found

    def literals(self) -> tuple[Ints, Ints]:
        """(k,) the literals of the judged clauses one after the other, and (clauses + 1,) where each begins."""
        return self._literals

    def violations(self, labels: Bools) -> Bools:
        """(n, judged) which clauses each row of labels violates.

        Args:
            labels: (n, labels) whether each label is there, in the order of `labels`.
        """
        positive, negative = self._matrices()
        there = labels.astype(np.float32)
        satisfied = there @ positive + (1 - there) @ negative
        found: Bools = satisfied == 0
        return found

    def _matrices(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        literals, ends = self._literals
        clause = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        found = np.zeros((2, len(self.labels), len(ends) - 1), dtype=np.float32)
        found[(literals < 0).astype(np.int64), np.abs(literals) - 1, clause] = 1
        return found[0], found[1]


def bind_requirements(
    requirements: Requirements, vocabularies: Mapping[str, Sequence[str]]
) -> BoundRequirements:
    """Requirements with their labels found in vocabularies by name.

    A label of ROAD-R is found under the spelling of ROAD's annotations too: `XingLoc` is `xing` there, `IncatLeft`
    `IncatLft`, `Parking` `parking`. Where a whole kind is missing, as in the predictions of a detector of agents
    alone, the clauses that need it are not judged; a label that its kind lacks is never there.

    Args:
        requirements: over labels by name, each with or without its kind before it.
        vocabularies: kind to labels, as a set's `meta` or a score layout has them.

    Raises:
        InputError: if a label is of no kind, or of several, or none of them is found.
    """
    columns: list[tuple[str, int] | None] = []
    absent: list[str] = []
    missing: dict[str, str] = {}
    unknown: list[str] = []
    for name in requirements.labels:
        found = _find_label(name, vocabularies)
        columns.append(found)
        if found is not None:
            continue
        kind = _name_kind(name)
        if kind is None or (kind in vocabularies and name.rpartition(":")[2] not in _ROAD_KINDS):
            unknown.append(name)
        elif kind in vocabularies:
            absent.append(name)
        else:
            missing[name] = kind
    used = {abs(k) for clause in requirements.clauses for k in clause}
    where = requirements.name or None
    if not any(columns) or unknown:
        names = unknown or list(requirements.labels)
        shown = ", ".join(to_printable(name, 60) for name in names[:_SHOWN])
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        held = "; ".join(
            f"{kind}: {', '.join(labels[:4])}{', ...' if len(labels) > 4 else ''}"
            for kind, labels in vocabularies.items()
            if kind not in _NOT_SEARCHED
        )
        raise InputError(
            f"the requirements are over labels that this set does not have: {shown}{more}",
            where=where,
            hint=f"It has {to_printable(held, 400) or 'no labels'}. Names are matched letter by letter.",
        )
    number = {name: k for k, name in enumerate(requirements.labels, 1)}
    lost = {number[name] for name in missing}
    judged = tuple(
        k
        for k, clause in enumerate(requirements.clauses)
        if not any(abs(literal) in lost for literal in clause)
    )
    return BoundRequirements(
        requirements,
        tuple(columns),
        judged,
        tuple(name for name in absent if number[name] in used),
        tuple(dict.fromkeys(kind for name, kind in missing.items() if number[name] in used)),
    )


def number_clauses(bound: BoundRequirements, places: Mapping[tuple[str, int], int]) -> list[list[int]]:
    """The judged clauses over the outputs of a network: literals k of its k-th output, -k of that one's absence.

    Args:
        bound: requirements.
        places: kind and index of a label to its output, from 1. A label that has none is absent: a clause that this satisfies
            is left out, and else the label is.
    """
    of_label = [None if held is None else places.get(held) for held in bound.columns]
    found = []
    for k in bound.judged:
        literals = [(of_label[abs(literal) - 1], literal > 0) for literal in bound.requirements.clauses[k]]
        if any(place is None and not there for place, there in literals):
            continue
        known = [place if there else -place for place, there in literals if place is not None]
        if known:
            found.append(known)
    return found


def _name_kind(name: str) -> str | None:
    """The kind that a name says, or that ROAD has it in; None where neither is known."""
    kind, colon, _ = name.partition(":")
    return _KIND_NAMES.get(kind, kind) if colon else _ROAD_KINDS.get(name)


def _find_label(name: str, vocabularies: Mapping[str, Sequence[str]]) -> tuple[str, int] | None:
    """Kind and index of a label; None where there is none."""
    kind, colon, label = name.partition(":")
    kind = _KIND_NAMES.get(kind, kind)
    if colon and kind in vocabularies:
        for spelling in (label, _ROAD_SPELLING.get(label)):
            if spelling in vocabularies[kind]:
                return kind, list(vocabularies[kind]).index(str(spelling))
        return None
    of_road = _ROAD_KINDS.get(name)
    # A label of ROAD is looked for in its own kind: another set may have a place that is called as an action is.
    kinds = [of_road] if of_road else [kind for kind in vocabularies if kind not in _NOT_SEARCHED]
    for spelling in (name, _ROAD_SPELLING.get(name)):
        held = [kind for kind in kinds if spelling in vocabularies.get(kind, ())]
        if len(held) > 1:
            raise InputError(
                f"{to_printable(name, 60)} is a label of several kinds: {', '.join(held)}",
                hint=f"Write its kind before it, as {held[0]}:{to_printable(name, 60)}.",
            )
        if held:
            return held[0], list(vocabularies[held[0]]).index(str(spelling))
    return None


def group_equal_rows(labels: Bools) -> tuple[Bools, Ints]:
    """The different rows of labels, and for each row which of them it is: many boxes have the same labels.

    Args:
        labels: (n, k).

    Returns:
        (m, k) rows, and (n,) indices.
    """
    packed = np.packbits(labels, axis=1)
    width = packed.shape[1]
    if not len(labels) or not width:
        return labels[:1], np.zeros(len(labels), dtype=np.int64)
    # Up to 64 labels are one number, which sorts many times faster than bytes.
    packed = np.pad(packed, ((0, 0), (0, max(0, 8 - width))))
    kind: np.dtype[Any] = np.dtype(np.uint64) if width <= 8 else np.dtype((np.void, width))
    keys = np.ascontiguousarray(packed).view(kind).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return labels[first], which.astype(np.int64)
