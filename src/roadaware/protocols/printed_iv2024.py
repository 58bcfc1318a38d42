"""Printed numbers of the IV 2024 paper: Tables I to VI as data, every cell of every model.

Rows of Table IV for speeds above 30 km/h and for the traffic signal are absent: the copy of the paper
that this was taken from lacks them.

Source: Rasouli and Kotseruba, Diving Deeper Into Pedestrian Behavior Understanding, IV 2024."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from roadaware.training.pedestrians.recipe import SamplesRecipe

Task = Literal["action", "intention", "risk"]
Dataset = Literal["jaad", "pie"]

RELEASED = "PedFormer"
"""The one model whose outputs the authors released."""


@dataclass(frozen=True)
class PrintedCell:
    """One printed number.

    Args:
        table: Roman number.
        dataset: jaad or pie.
        task: action, intention or risk.
        model: name as printed.
        metric: name among the project's metrics.
        value: as printed.
        digits: how many decimals are printed.
        group: scenario of Table IV as the project names it; None for the whole test set.
        samples: printed numbers of samples per class; empty where none are printed.
    """

    table: str
    dataset: Dataset
    task: Task
    model: str
    metric: str
    value: float
    digits: int = 2
    group: str | None = None
    samples: tuple[int, ...] = ()


_BASE = ("average_precision", "balanced_accuracy", "auc")
_DELTA = ("confidence_delta_max", "confidence_delta_mean")


def _pairs(first: str, second: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Column names of cells printed as `a/b`."""
    return tuple(f"{prefix}{name}" for name in names for prefix in (first, second))


_PLAIN = ("accuracy", "precision", "f1")
_INSTANCE = ("balanced_accuracy", "accuracy", "precision", "f1")

# Table II prints soft and hard accuracy before balanced accuracy; Tables III and VI the other way round.
INTENTION_COLUMNS = (
    *_BASE,
    *_PLAIN,
    *_pairs("soft_", "hard_", ("accuracy", "balanced_accuracy", "precision", "f1")),
    *_DELTA,
)
WEIGHTED_COLUMNS = (
    *_BASE,
    *_pairs("", "weighted_", _PLAIN),
    *_pairs("soft_", "hard_", _INSTANCE),
    *_DELTA,
)

_II = {
    "SFGRU": ".44 .41 .65 .76 .52 .41 .76 .67 .41 .31 .78 .28 .41 .29 .14 .04",
    "PCPA": ".46 .42 .65 .75 .41 .41 .77 .59 .45 .27 .45 .28 .44 .27 .21 .06",
    "BiPed": ".42 .41 .66 .73 .40 .39 .75 .57 .40 .27 .38 .29 .38 .27 .30 .09",
    "PedFormer": ".46 .45 .70 .70 .43 .43 .72 .55 .44 .28 .42 .31 .42 .29 .23 .06",
}
_III_PIE = {
    "SFGRU": ".75 .75 .87 .83 .82 .79 .73 .65 .64 .76 .61 .85 .72 .87 .50 .67 .43 .10 .04",
    "PCPA": ".79 .81 .89 .86 .85 .81 .75 .74 .72 .81 .63 .88 .72 .90 .50 .76 .46 .17 .07",
    "BiPed": ".84 .84 .93 .89 .88 .84 .80 .79 .77 .86 .66 .90 .74 .90 .56 .82 .51 .16 .06",
    "PedFormer": ".88 .85 .94 .89 .88 .85 .81 .79 .78 .86 .76 .91 .80 .89 .66 .82 .65 .12 .04",
}
_III_JAAD = {
    "SFGRU": ".61 .76 .85 .86 .87 .60 .63 .61 .61 .74 .60 .86 .74 .62 .34 .59 .31 .17 .07",
    "PCPA": ".56 .72 .81 .83 .83 .51 .51 .54 .53 .72 .55 .84 .70 .54 .27 .54 .24 .16 .07",
    "BiPed": ".60 .75 .86 .85 .85 .57 .58 .58 .59 .75 .52 .87 .68 .68 .23 .61 .20 .21 .10",
    "PedFormer": ".63 .78 .87 .86 .85 .58 .58 .62 .61 .78 .58 .87 .72 .64 .32 .64 .28 .15 .07",
}
_VI_PIE = {
    "SFGRU": ".26 .22 .86 .72 .50 .23 .21 .21 .19 .23 .16 .75 .64 .25 .16 .23 .14 .18 .02",
    "PCPA": ".24 .18 .86 .70 .47 .17 .16 .16 .13 .17 .15 .72 .62 .15 .15 .16 .14 .20 .02",
    "BiPed": ".26 .23 .87 .73 .51 .28 .25 .24 .21 .21 .15 .75 .65 .22 .20 .20 .14 .23 .02",
    "PedFormer": ".45 .42 .95 .80 .65 .49 .49 .44 .44 .39 .25 .82 .69 .45 .44 .40 .29 .17 .01",
}
_VI_JAAD = {
    "SFGRU": ".23 .24 .75 .42 .27 .24 .21 .22 .19 .25 .15 .47 .33 .25 .30 .23 .14 .20 .02",
    "PCPA": ".16 .16 .67 .37 .18 .15 .12 .11 .07 .16 .14 .41 .34 .09 .08 .11 .09 .15 .01",
    "BiPed": ".21 .22 .73 .39 .24 .21 .18 .20 .17 .21 .12 .43 .29 .19 .20 .18 .10 .29 .04",
    "PedFormer": ".42 .40 .90 .53 .42 .43 .41 .41 .39 .43 .22 .60 .36 .48 .43 .44 .25 .22 .02",
}

_BLOCKS: tuple[tuple[str, Dataset, Task, tuple[str, ...], dict[str, str]], ...] = (
    ("II", "pie", "intention", INTENTION_COLUMNS, _II),
    ("III", "pie", "action", WEIGHTED_COLUMNS, _III_PIE),
    ("III", "jaad", "action", WEIGHTED_COLUMNS, _III_JAAD),
    ("VI", "pie", "risk", WEIGHTED_COLUMNS, _VI_PIE),
    ("VI", "jaad", "risk", WEIGHTED_COLUMNS, _VI_JAAD),
)

SWAPPED = (("III", "jaad", "PedFormer", "hard_precision", "hard_f1"),)
"""Pairs of cells whose numbers stand in each other's place: table, dataset, model and both metrics."""


@dataclass(frozen=True)
class ScenarioRow:
    """A row of Table IV: average precision by scenario, with the numbers of samples per class.

    Args:
        group: the scenario as the project names it.
        intention: samples with no, unsure and crossing intention.
        intention_ap: PedFormer and SFGRU.
        action_ap: PedFormer and SFGRU.
        action: samples of pedestrians who do not cross, and who do.
    """

    group: str
    intention: tuple[int, int, int]
    intention_ap: tuple[float, float]
    action_ap: tuple[float, float]
    action: tuple[int, int]


TABLE_IV = (
    ScenarioRow("scale=0-80", (74, 214, 1111), (0.440, 0.401), (0.896, 0.889), (644, 251)),
    ScenarioRow("scale=80-100", (65, 114, 659), (0.471, 0.449), (0.872, 0.762), (526, 99)),
    ScenarioRow("scale=100-150", (177, 197, 1392), (0.471, 0.437), (0.862, 0.597), (922, 304)),
    ScenarioRow("scale=150-200", (171, 123, 812), (0.435, 0.484), (0.902, 0.724), (481, 243)),
    ScenarioRow("scale=200-300", (182, 122, 636), (0.469, 0.428), (0.892, 0.807), (395, 245)),
    ScenarioRow("scale=300+", (87, 65, 271), (0.544, 0.463), (0.736, 0.636), (235, 113)),
    ScenarioRow("state=walking", (286, 186, 1636), (0.541, 0.466), (0.929, 0.796), (669, 692)),
    ScenarioRow("state=standing", (470, 649, 3245), (0.420, 0.433), (0.820, 0.718), (2534, 563)),
    ScenarioRow("speed=0-0", (93, 81, 1326), (0.506, 0.414), (0.950, 0.894), (210, 792)),
    ScenarioRow("speed=0-5", (69, 37, 302), (0.464, 0.422), (0.876, 0.638), (189, 170)),
    ScenarioRow("speed=5-10", (95, 62, 441), (0.454, 0.445), (0.854, 0.566), (262, 102)),
    ScenarioRow("speed=10-20", (239, 204, 871), (0.448, 0.444), (0.725, 0.275), (748, 87)),
    ScenarioRow("speed=20-30", (193, 276, 1240), (0.479, 0.478), (0.407, 0.204), (1127, 79)),
    ScenarioRow("road=one-way", (325, 215, 1189), (0.471, 0.482), (0.789, 0.600), (869, 297)),
    ScenarioRow("road=two-way", (431, 620, 3692), (0.458, 0.404), (0.901, 0.780), (2334, 958)),
)

AGREEMENT_COLUMNS = ("both_right", "intention_right_only", "action_right_only", "both_wrong")
TABLE_V = {
    "no-crossing; not-crossing": (5.8, 0.2, 31.0, 28.0),
    "no-crossing; crossing": (0.0, 0.0, 0.0, 0.0),
    "unsure; not-crossing": (0.2, 0.0, 50.5, 19.0),
    "unsure; crossing": (0.0, 0.0, 2.3, 20.4),
    "crossing; not-crossing": (65.5, 29.8, 16.2, 2.4),
    "crossing; crossing": (28.5, 70.0, 0.0, 30.3),
    "overall": (63.0, 10.9, 22.6, 3.5),
}
"""Percent of samples by classes of intention and action (rows) and by which prediction is right (columns)."""

TABLE_I: dict[tuple[Dataset, Task], dict[str, tuple[int, ...]]] = {
    ("pie", "intention"): {
        "train": (1922, 1009, 5282),
        "test": (756, 835, 4881),
        "val": (449, 312, 1538),
        "pedestrians": (329, 220, 1285),
    },
    ("pie", "action"): {
        "train": (4163, 1417),
        "test": (3203, 1255),
        "val": (1218, 327),
        "pedestrians": (1282, 499),
    },
    ("jaad", "action"): {
        "train": (4456, 1122),
        "test": (3548, 769),
        "val": (702, 107),
        "pedestrians": (1519, 353),
    },
}
"""Samples per split, and pedestrians, by class. In print the action block of PIE has no name of its own."""


def iterate_printed_cells() -> Iterator[PrintedCell]:
    """Every cell of Tables II to VI, table by table, row by row."""
    for table in ("II", "III", "IV", "V", "VI"):
        if table == "IV":
            yield from _scenario_cells()
        elif table == "V":
            yield from _agreement_cells()
        else:
            yield from _model_cells(table)


def _model_cells(wanted: str) -> Iterator[PrintedCell]:
    for table, dataset, task, columns, rows in _BLOCKS:
        if table != wanted:
            continue
        for model, text in rows.items():
            for metric, value in zip(columns, text.split(), strict=True):
                yield PrintedCell(table, dataset, task, model, metric, float(value))


def _scenario_cells() -> Iterator[PrintedCell]:
    for row in TABLE_IV:
        both: tuple[tuple[Task, tuple[float, float], tuple[int, ...]], ...] = (
            ("intention", row.intention_ap, row.intention),
            ("action", row.action_ap, row.action),
        )
        for task, values, samples in both:
            for model, value in zip(("PedFormer", "SFGRU"), values, strict=True):
                yield PrintedCell("IV", "pie", task, model, "average_precision", value, 3, row.group, samples)


def _agreement_cells() -> Iterator[PrintedCell]:
    for group, values in TABLE_V.items():
        for metric, value in zip(AGREEMENT_COLUMNS, values, strict=True):
            yield PrintedCell("V", "pie", "intention", "PedFormer", metric, value, 1, group)


def iterate_printed(samples: SamplesRecipe, judged: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Models and what is printed of them on such samples; nothing unless these are the published ones, all.

    Args:
        samples: of the recipes that are shown beside.
        judged: how many samples of test there were.
    """
    what, _, paper = samples.protocol.partition("@")
    published = samples.reader == what.partition("-")[0] and not samples.options and not samples.fields
    if paper != "iv2024" or samples.config != "reference" or not published:
        return
    counts = {f"{dataset}-{task}": sum(rows["test"]) for (dataset, task), rows in TABLE_I.items()}
    # Risk is asked of the samples of action, and the counts of it are not printed.
    if judged < counts[what.replace("-risk", "-action")]:
        return
    held: dict[str, dict[str, float]] = {}
    for cell in iterate_printed_cells():
        if f"{cell.dataset}-{cell.task}" == what and cell.group is None and cell.table != "V":
            held.setdefault(cell.model, {})[cell.metric] = cell.value
    yield from held.items()
