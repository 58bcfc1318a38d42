"""CODA: common and novel objects, the classes of a detector, and the printed numbers, questionable ones marked.

`coda_classes.csv` and `coda_training.csv` in `data` hold both kinds of classes. The paper takes the classes of SODA10M for
common, and merges vehicles; buses are novel in the base set and common in that of 2022. The 34 classes of the
base set are printed in an image alone: what the csv does not name is novel. Files name super-classes
themselves; the column in the csv stands in for those that do not, as AD-OWOD groups the classes.

Printed numbers are Tables 1 to 4 and 8 to 10 as long tables. They lie in `data` as they are printed, one csv each, in per
cent; `coda_notes.csv` says which numbers are questionable and why, `*` standing for every row or column. Tables 5 to 7
(parameters of the proposals) are `COPG_TABLES`.

Source: Li et al., CODA: A Real-World Road Corner Case Dataset for Object Detection in Autonomous Driving, ECCV 2022
(arXiv:2203.07724): Table 1 in section 3, classes in 5.1, Table 2 in 5, Tables 3 and 4 in 6, Tables 8 to 10 in appendix D;
SSLAD challenge 2022, track 3; AD-OWOD, ACM MM 2024."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeVar

import polars as pl

from roadaware.errors import InputError, UsageError
from roadaware.io.text_rows import read_csv_rows as csv_rows
from roadaware.metrics.corner_cases.evaluate import UNANSWERED
from roadaware.metrics.corner_cases.matching import KIND, SUPER
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout
from roadaware.scenes.tables import Predictions, Scenes

Version = Literal["base", "2022"]
VERSIONS: tuple[Version, ...] = ("base", "2022")
TRAINING_SETS = ("soda10m", "bdd100k", "waymo")
OWN = "coda"
"""A detector that calls its boxes by the classes of the ground truth."""
CLASSES_2022 = 43
_COLUMNS = ("id", "label", "common", "novel")
_KINDS = (KIND, "agent", "object")
"""Kinds of labels that say what a box is: the first that is there does."""
_NO_CLASSES = "the predictions have no classes"
Set = TypeVar("Set", Scenes, Predictions)


@dataclass(frozen=True)
class ObjectClass:
    """One class of CODA.

    Args:
        label: its name.
        number: its id in the files of 2022.
        super_class: what it belongs to.
        common: version to the common class it counts as; absent where it is novel.
        also: other names of it.
    """

    label: str
    number: int
    super_class: str
    common: Mapping[str, str]
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Route:
    """Group of the predictions of one class of a detector.

    Args:
        label: the detector's name of the class.
        number: its category id in results, None where there is no usual one.
        common: the common class that its predictions are about; None for none.
        novel: whether its predictions are about novel objects, too.
        also: other names of the class.
    """

    label: str
    number: int | None
    common: str | None
    novel: bool
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrainingSet:
    """Class names of detectors trained on a set.

    Args:
        name: of the set.
        routes: one for each class.
    """

    name: str
    routes: tuple[Route, ...]

    @property
    def categories(self) -> dict[int, str]:
        """Category id in results to label."""
        return {route.number: route.label for route in self.routes if route.number is not None}


@cache
def load_object_classes() -> tuple[ObjectClass, ...]:
    """The classes of CODA that are known by name."""
    return tuple(
        ObjectClass(
            row["label"],
            int(row["id"]),
            row["super_class"],
            {version: row[version] for version in VERSIONS if row[version]},
            _words(row["also"]),
        )
        for row in _read_table("classes")
    )


def map_own_categories(said: Mapping[str, int]) -> dict[int, str]:
    """Category id to label of results that use the numbers of the ground truth.

    A file of CODA 2022 may name the common classes alone, while results name any of its 43: where the numbers
    are those of 2022, the others are added, numbered where the csv does not name them.

    Args:
        said: label to number, as the ground truth has them.
    """
    known = {each.number: each.label for each in load_object_classes()}
    own = {number: label for label, number in said.items()}
    # Numbers that mean other classes than those of 2022 are the set's own, and nothing is added.
    if not own or any(_plain(known.get(number, "")) != _plain(label) for number, label in own.items()):
        return own
    return {n: own.get(n, known.get(n, f"class {n}")) for n in range(1, CLASSES_2022 + 1)}


def load_training_set(name: str) -> TrainingSet:
    """The class names of detectors trained on a set.

    Args:
        name: one of `TRAINING_SETS`, or the path of a csv with the columns id, label, common and novel (`yes`
            or empty), and perhaps also.

    Raises:
        UsageError: if it is neither.
        InputError: if the csv cannot be read, lacks a column, or names a label twice.
    """
    if name in TRAINING_SETS:
        rows = [row for row in _read_table("training") if row["trained_on"] == name]
        return TrainingSet(name, _routes(rows, name))
    path = Path(name)
    if path.suffix != ".csv" or not path.is_file():
        raise UsageError(
            f"--trained-on is one of {', '.join(TRAINING_SETS)}, {OWN} (the classes of the truth), or a csv "
            f"with {', '.join(_COLUMNS)}; got {name!r}"
        )

    lines = [cells for _, cells in csv_rows(path)]
    missing = [column for column in _COLUMNS if not lines or column not in lines[0]]
    if missing:
        raise InputError(f"the first row lacks {', '.join(missing)}", where=str(path))
    held = [dict(zip(lines[0], cells, strict=False)) for cells in lines[1:]]
    return TrainingSet(path.stem, _routes(held, str(path)))


def label_truth(scenes: Scenes, version: Version = "base", *, merged: bool = True) -> Scenes:
    """The ground truth with common and novel objects marked: the columns `common` and `novel` of its boxes.

    An object is what its label of the kind `corner` says, else that of the kind `agent` or `object`. Objects
    without any, and those that are not known by name, are novel. Super-classes are added where none are.

    Args:
        scenes: boxes with labels.
        version: base (buses are novel) or 2022 (buses are common).
        merged: whether cars, trucks, trams, tricycles and buses are all `vehicle`.

    Source: Li et al., ECCV 2022 (CODA), section 5.1.
    """
    common = _common_names(version, merged=merged)
    names = _get_plain_names(scenes, _KINDS)
    mapped = names.replace_strict(common, default=None, return_dtype=pl.String)
    boxes = scenes.boxes.with_columns(common=mapped, novel=mapped.is_null())
    return _with_supers(scenes.with_tables(boxes=boxes), names)


def label_predictions(predictions: Predictions, training: TrainingSet) -> Predictions:
    """The predictions with common and novel classes marked: the columns `common` and `novel` of their boxes.

    A label that the training set does not have answers neither. Groups that the predictions cannot answer stand in
    `meta.notes` with the reason.

    Args:
        predictions: boxes with labels of the kind `corner`.
        training: what their detector learnt on.

    Raises:
        InputError: if none of the labels is a class of the training set.

    Source: Li et al., ECCV 2022 (CODA), section 5.1, evaluation.
    """
    by_name = {_plain(word): route for route in training.routes for word in (route.label, *route.also)}
    words = predictions.meta.vocabularies.get(KIND, ())
    routes = {_plain(word): by_name[_plain(word)] for word in words if _plain(word) in by_name}
    if words and not routes:
        raise InputError(
            f"none of the classes {', '.join(words[:8])} is one of {training.name}: "
            f"{', '.join(route.label for route in training.routes)}",
            hint="say what the detector learnt on, or --agnostic to leave classes aside",
        )
    names = _get_plain_names(predictions, (KIND,))
    common = {word: route.common for word, route in routes.items() if route.common}
    mapped = names.replace_strict(common, default=None, return_dtype=pl.String)
    novel = names.is_in([word for word, route in routes.items() if route.novel]).fill_null(value=False)
    unanswered = {"classes": f"a detector that learnt on {training.name} has other classes than the truth"}
    if not common:
        unanswered["common"] = f"no class of {training.name} is a common one"
    if not any(route.novel for route in routes.values()):
        unanswered["novel"] = f"a detector that learnt on {training.name} names no novel object"
    return _answering(predictions, mapped, novel, unanswered)


def label_own_predictions(
    predictions: Predictions, version: Version = "base", *, merged: bool = True
) -> Predictions:
    """The same for predictions that are called by the ground truth's own classes.

    Args:
        predictions: boxes with labels of the kind `corner`.
        version: as `label_truth`.
        merged: as `label_truth`.
    """
    names = _get_plain_names(predictions, (KIND,))
    mapped = names.replace_strict(_common_names(version, merged=merged), default=None, return_dtype=pl.String)
    return _answering(predictions, mapped, names.is_not_null() & mapped.is_null(), {})


def drop_classes(predictions: Predictions) -> Predictions:
    """The predictions as proposals, such as those of a region proposal network, which say no class."""
    nothing = pl.Series([None] * len(predictions.boxes), dtype=pl.String)
    reasons = dict.fromkeys(("common", "novel", "classes"), _NO_CLASSES)
    return _answering(predictions, nothing, nothing.is_not_null(), reasons)


def label_trained_predictions(
    predictions: Predictions, trained_on: str | None, version: Version = "base", *, merged: bool = True
) -> Predictions:
    """The predictions with what they answer, by what their detector was trained on.

    Args:
        predictions: boxes, with labels or dense scores of the kind `corner`, `agent` or `object` where they have classes.
        trained_on: one of `TRAINING_SETS`, `coda` for the truth's own classes, or the path of a csv as
            `load_training_set` takes it; None leaves classes aside.
        version: as `label_truth`.
        merged: as `label_truth`.

    Raises:
        UsageError, InputError: as `load_training_set` and `label_predictions`.
    """
    if trained_on is None:
        return drop_classes(predictions)
    predictions = _name_predictions(predictions)
    if trained_on == OWN:
        return label_own_predictions(predictions, version, merged=merged)
    return label_predictions(predictions, load_training_set(trained_on))


def has_classes(predictions: Predictions) -> bool:
    """Whether boxes have labels, or scores of the labels of a kind, that say what they are."""
    scored = get_score_layout(predictions.meta, "boxes").kinds
    return not predictions.labels.is_empty() or any(kind in scored for kind in _KINDS)


def _name_predictions(predictions: Predictions) -> Predictions:
    """The predictions with labels of the kind `corner`: theirs, else those of another kind that says what a box is.

    Of dense scores each box has the label that scores highest.
    """
    layout, held = get_score_layout(predictions.meta, "boxes"), predictions.labels
    for kind in _KINDS:
        rows = held.filter(pl.col("kind").cast(pl.String) == kind)
        if kind == KIND and len(rows):
            return predictions
        if rows.is_empty() and kind in layout.kinds:
            scores = convert_to_matrix(predictions.boxes["scores"], layout.width)[:, layout.columns(kind)]
            best = {"box": predictions.boxes["box"], "label": scores.argmax(axis=1)}
            rows = pl.DataFrame(best).filter(pl.Series(scores.max(axis=1) > 0))
        if len(rows):
            vocabularies = {**predictions.meta.vocabularies, KIND: predictions.meta.vocabularies[kind]}
            labels = rows.select("box", kind=pl.lit(KIND), label=pl.col("label").cast(pl.Int64))
            return predictions.with_tables(
                labels=labels, meta=replace(predictions.meta, vocabularies=vocabularies)
            )
    return predictions


def infer_version(scenes: Scenes) -> Version:
    """Which classes are common: those of 2022 where the truth holds more than corner cases."""
    boxes = scenes.boxes
    # A box that does not say is a corner case, as all those of the base set are.
    more = "corner_case" in boxes.columns and not boxes["corner_case"].fill_null(value=True).all()
    return "2022" if more else "base"


def _answering(
    predictions: Predictions, common: pl.Series, novel: pl.Series, unanswered: dict[str, str]
) -> Predictions:
    meta = replace(predictions.meta, notes={**predictions.meta.notes, UNANSWERED: unanswered})
    boxes = predictions.boxes.with_columns(common=common, novel=novel)
    return predictions.with_tables(boxes=boxes, meta=meta)


def _common_names(version: Version, *, merged: bool) -> dict[str, str]:
    """Every name of a common class to that class.

    Raises:
        UsageError: if there is no such version.
    """
    if version not in VERSIONS:
        raise UsageError(f"classes are common as in {' or '.join(VERSIONS)}, not {version!r}")
    found: dict[str, str] = {}
    for each in load_object_classes():
        if version in each.common:
            for word in (each.label, *each.also):
                found[_plain(word)] = each.common[version] if merged else each.label
    return found


def _get_plain_names(tables: Set, kinds: Iterable[str]) -> pl.Series:
    """(boxes,) plain name of what each box is, by the first kind of label that it has; null for none."""
    found = pl.DataFrame({"box": tables.boxes["box"]}).with_columns(name=pl.lit(None, dtype=pl.String))
    for kind in kinds:
        words = tables.meta.vocabularies.get(kind, ())
        if not words:
            continue
        labels = tables.labels.filter(pl.col("kind").cast(pl.String) == kind).unique("box", keep="first")
        plain = {n: _plain(word) for n, word in enumerate(words)}
        held = labels.select(
            "box", said=pl.col("label").cast(pl.Int64).replace_strict(plain, return_dtype=pl.String)
        )
        found = found.join(held, on="box", how="left", maintain_order="left")
        found = found.select("box", name=pl.coalesce("name", "said"))
    return found["name"]


def _with_supers(scenes: Scenes, names: pl.Series) -> Scenes:
    """Super-classes of the boxes, where the set names none."""
    if SUPER in scenes.meta.vocabularies:
        return scenes
    above = {_plain(word): c.super_class for c in load_object_classes() for word in (c.label, *c.also)}
    mapped = names.replace_strict(above, default=None, return_dtype=pl.String)
    words = tuple(mapped.drop_nulls().unique(maintain_order=True))
    if not words:
        return scenes
    rows = pl.DataFrame({"box": scenes.boxes["box"], "word": mapped}).drop_nulls()
    number = pl.col("word").replace_strict(list(words), list(range(len(words))), return_dtype=pl.Int64)
    rows = rows.select("box", kind=pl.lit(SUPER), label=number)
    labels = scenes.labels.with_columns(pl.col("kind").cast(pl.String), pl.col("label").cast(pl.Int64))
    meta = replace(scenes.meta, vocabularies={**scenes.meta.vocabularies, SUPER: words})
    return scenes.with_tables(labels=pl.concat([labels.select("box", "kind", "label"), rows]), meta=meta)


def _routes(rows: Iterable[Mapping[str, Any]], where: str) -> tuple[Route, ...]:
    found: dict[str, Route] = {}
    for row in rows:
        label, number, novel = row["label"], row["id"], row["novel"].lower()
        if _plain(label) in found or not label:
            raise InputError(f"the class {label!r} stands twice, or has no name", where=where)
        if novel not in ("", "yes", "no") or (number and not number.isdigit()):
            raise InputError(
                f"class {label!r}: id should be a whole number or empty, novel yes, no or empty; got "
                f"{number!r} and {row['novel']!r}",
                where=where,
            )
        route = Route(
            *(label, int(number) if number else None, row["common"] or None, novel == "yes"),
            _words(row.get("also") or ""),
        )
        found[_plain(label)] = route
    return tuple(found.values())


def _plain(word: str) -> str:
    """A name without what files differ in: capitals, blanks and dashes."""
    return word.strip().lower().replace(" ", "_").replace("-", "_")


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split("|") if word)


def _read_table(name: str) -> list[dict[str, str]]:
    source = files("roadaware.protocols") / "data" / f"coda_{name}.csv"
    with source.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def map_training_sets(label: str) -> dict[str, bool]:
    """Which training sets have a class for a class of CODA, by any of its names.

    A set that calls all vehicles `vehicle` has one for those that are common in 2022.
    """
    known = next((c for c in load_object_classes() if _plain(label) in map(_plain, (c.label, *c.also))), None)
    words = {_plain(label)} | ({_plain(w) for w in (known.label, *known.also)} if known else set())
    words |= set(known.common.values()) if known else set()
    return {
        name: any({_plain(w) for w in (r.label, *r.also)} & words for r in load_training_set(name).routes)
        for name in TRAINING_SETS
    }


# What the paper on CODA prints of detectors: Tables 1 to 4 and 8 to 10.

COLUMNS: dict[str, Any] = {
    "table": pl.String,
    "printed_as": pl.String,
    "trained_on": pl.String,
    "domain": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "spread": pl.Float64,
    "doubt": pl.String,
}
TABLES = {"2": None, "3": "kitti", "4": None, "8": "once", "9": "once", "10": None}
"""Tables of results, and the part of CODA that each is about; None for all of it."""
WITHOUT_CLASSES = "RPN"
"""Rows of proposals without classes begin with it."""
_SIZES = {"s": "_small", "m": "_medium", "l": "_large"}
_COUNTS = {"scenes": pl.Int64, "classes": pl.Int64, "instances": pl.Int64}


def load_printed(table: str | None = None, **where: str) -> pl.DataFrame:
    """Printed results, in the order of print; cells printed as `-` are absent.

    Columns: `table` (2, 3, 4, 8, 9, 10); `printed_as`, the row; `trained_on` (soda10m, bdd100k, waymo; null in
    Tables 3 and 4); `domain`, the part of CODA, null for all of it; `metric` as the project calls it (`corner_ar`,
    `common_ar50`, `novel_ar10`, `origin_ap`, ...; of Table 4 `classes_ar`, ... is 34-way and `corner_ar`, ... 1-way); `value`
    in per cent; `spread` over five repeats, in Table 4 alone; `doubt`, why it is no reference.

    Args:
        table: one of them (default: all).
        where: column to the value that is wanted.

    Raises:
        UsageError: if there is no such table or column.

    >>> load_printed("2", printed_as="RetinaNet", trained_on="bdd100k", metric="corner_ar")["value"].item()
    12.8
    """
    rows = _every_number()
    if table is not None:
        if table not in TABLES:
            raise UsageError(f"no printed results {table}; there are {', '.join(TABLES)}")
        rows = rows.filter(pl.col("table") == table)
    unknown = sorted(set(where) - set(COLUMNS))
    if unknown:
        raise UsageError(
            f"printed tables have no column {', '.join(unknown)}; they have {', '.join(COLUMNS)}"
        )
    return rows.filter(*(pl.col(name) == value for name, value in where.items()))


def load_composition() -> pl.DataFrame:
    """Table 1: `row`, `scenes`, `classes`, `instances`, `doubt`; its marks of weather and period are lost."""
    uncertainties = _doubts()
    rows = []
    for row in _read_table("table_01"):
        counts = {name: int(row[name]) for name in _COUNTS}
        rows.append(
            {"row": row["row"], **counts, "doubt": _doubt(uncertainties, "1", row["row"], "", "instances")}
        )
    return pl.DataFrame(rows, schema={"row": pl.String, **_COUNTS, "doubt": pl.String})


@cache
def _every_number() -> pl.DataFrame:
    rows = [row for table in TABLES for row in _numbers(table)]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def _numbers(table: str) -> Iterator[tuple[Any, ...]]:
    uncertainties = _doubts()
    for row in _read_table(f"table_{int(table):02d}"):
        learnt = row.get("trained on", "")
        for column, cell in row.items():
            if column in ("row", "trained on") or cell == "-":
                continue
            uncertainty = _doubt(uncertainties, table, row["row"], learnt, column)
            value, _, spread = cell.partition("±")
            yield (
                table,
                row["row"],
                learnt.lower() or None,
                TABLES[table],
                _metric(column),
                float(value),
                float(spread) if spread else None,
                uncertainty,
            )


def _metric(column: str) -> str:
    """The project's name of a printed column: `CORNER AR50m` is `corner_ar50_medium`."""
    group, name = column.lower().split(" ")
    size = _SIZES.get(name[-1], "")
    return f"{group}_{name[:-1] if size else name}{size}"


def _doubts() -> dict[tuple[str, ...], str]:
    return {
        (row["table"], row["row"], row["trained on"], row["column"]): row["note"]
        for row in _read_table("notes")
    }


def _doubt(
    uncertainties: dict[tuple[str, ...], str], table: str, row: str, learnt: str, column: str
) -> str | None:
    # A note on this row counts before one on all rows, and one on this column before one on all.
    for name in (row, "*"):
        for of in (column, "*"):
            if (table, name, learnt, of) in uncertainties:
                return uncertainties[table, name, learnt, of]
    return None


def select_printed(
    trained_on: str | None, *, classes: bool, domains: set[str | None]
) -> list[dict[str, Any]]:
    """Printed rows that a result may stand beside, as plain data.

    Each has `table`, `row`, `trained_on`, `values` (fractions, by the project's names of metrics), `doubts`.
    Tables 8 and 9 are about the images of ONCE, 3 about those of KITTI, 2 and 10 about all of CODA.

    Args:
        trained_on: the training set of the detector; rows of all sets where None.
        classes: whether its predictions have classes; the rows of proposals are for those that have none.
        domains: the parts of CODA that the ground truth is from; null for what is not known.
    """
    only = next(iter(domains)) if len(domains) == 1 else None
    tables = {"once": ("8", "9"), "kitti": ("3",)}.get(only or "", ("2", "10"))
    rows = load_printed().filter(pl.col("table").is_in(tables), ~pl.col("metric").str.starts_with("origin"))
    if trained_on is not None:
        rows = rows.filter(pl.col("trained_on").is_null() | (pl.col("trained_on") == trained_on))
    if tables != ("3",):
        rows = rows.filter(pl.col("printed_as").str.starts_with(WITHOUT_CLASSES) != classes)
    found: dict[tuple[str, str | None], dict[str, Any]] = {}
    for row in rows.iter_rows(named=True):
        key = row["printed_as"], row["trained_on"]
        blank = {
            "table": " and ".join(tables),
            "row": key[0],
            "trained_on": key[1],
            "values": {},
            "doubts": {},
        }
        held = found.setdefault(key, blank)
        # Rounded, so that per cents become the shares that one would write down.
        held["values"][row["metric"]] = round(row["value"] / 100, 4)
        if row["doubt"]:
            held["doubts"][row["metric"]] = row["doubt"]
    return list(found.values())


def get_scene_shares() -> dict[str, dict[str, float]]:
    """Shares of the scenes by weather and period of section 3; the weather adds up to 1.01.

    Source: Li et al., ECCV 2022 (CODA), section 3, diversity.
    """
    return {"weather": {"clear": 0.75, "cloudy": 0.22, "rainy": 0.04}, "period": {"night": 0.09}}


# What the paper on CODA prints of its proposals under other parameters: Tables 5 to 7, questionable numbers marked.

COPG_TABLES = ("5", "6", "7")
COPG_COLUMNS: dict[str, Any] = {
    "table": pl.String,
    "knob": pl.String,
    "value": pl.Float64,
    "ap": pl.Float64,
    "ar": pl.Float64,
    "proposals": pl.Int64,
    "scenes": pl.Int64,
    "doubt": pl.String,
}


def select_printed_knobs(knob: str | None = None, value: float | None = None) -> pl.DataFrame:
    """Printed rows in the order of print; AP and AR in per cent, `scenes` are images with a proposal.

    Args:
        knob: field of `CopgConfig` (default: all).
        value: of the parameter (default: all).

    >>> select_printed_knobs("theta_deg", 8)["ar"].item()
    5.1
    """
    rows = _every_row()
    if knob is not None:
        rows = rows.filter(pl.col("knob") == knob)
    return rows if value is None else rows.filter((pl.col("value") - value).abs() < 1e-9)


@cache
def _every_row() -> pl.DataFrame:
    uncertainties = {(row["table"], row["row"]): row["note"] for row in _read_table("notes")}
    rows = [
        (
            table,
            row["knob"],
            float(row["value"]),
            float(row["AP"]),
            float(row["AR"]),
            int(row["proposals"]),
            int(row["scenes"]),
            uncertainties.get((table, f"{row['knob']} {row['value']}")),
        )
        for table in COPG_TABLES
        for row in _read_table(f"table_{int(table):02d}")
    ]
    return pl.DataFrame(rows, schema=COPG_COLUMNS, orient="row")
