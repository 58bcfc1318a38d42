"""The experiments of the ROAD paper (TPAMI 2022): a run's numbers beside the printed ones, split by split."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from roadaware.errors import UsageError
from roadaware.metrics.result import MetricResult
from roadaware.protocols.printed_tpami22 import AVERAGED, load_printed

SPLITS = ("val_1", "val_2", "val_3", "test")
BESIDE: dict[str, Any] = {
    "level": pl.String,
    "threshold": pl.String,
    "kind": pl.String,
    "label": pl.String,
    "obtained": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "table": pl.String,
    "model": pl.String,
    "trained_on": pl.String,
    "split": pl.String,
    "printed": pl.Float64,
    "difference": pl.Float64,
    "note": pl.String,
}
_DATASETS = {"road": "road", "ucf24": "ucf24", "ucf101-24": "ucf24"}
_MEASURED = ("frame", "video", "av_action")
_REPEATS = ("7", "8")  # what they print stands in Tables 21 to 25 too
_ELSEWHERE = {
    "pedestrian": "ped",
    "cyclist": "cyc",
    "vehtl": "tl",
    "tlred": "red",
    "tlamber": "amber",
    "tlgreen": "green",
    "moving": "mov",
    "braking": "brake",
    "stopped": "stop",
    "crossing": "xing",
    "atjunction": "jun",
    "atcrossing": "xing",
    "atparking": "parking",
    "pavement": "pav",
    "avmove": "avmov",
    "avturnright": "avturrht",
    "avturnleft": "avturlft",
    "avovertake": "avovtak",
    "avmoveleft": "avmovlft",
    "avmoveright": "avmovrht",
}


def normalize_name(label: str) -> str:
    """A class name without case, hyphens and blanks, by its short form where print uses several.

    >>> normalize_name("Ped-MovAway-LftPav") == normalize_name("Ped-movaway-lftpav")
    True
    >>> normalize_name("AV-Mov") == normalize_name("Av-move"), normalize_name("Pedestrian")
    (True, 'ped')
    """
    plain = re.sub(r"[^a-z0-9]", "", label.casefold())
    return _ELSEWHERE.get(plain, plain)


def match_printed(
    result: MetricResult,
    split: str,
    *,
    dataset: str = "road",
    trained_on: str | None = None,
    group: str | None = None,
) -> pl.DataFrame:
    """Each measured number that the paper prints too, once for every printed one, in per cent.

    A class or mean is compared where level, threshold and kind are the same and the split is: val_n with
    val_n, test with test. Means over the paper's three splits stand with them, marked in `trained_on` and
    `split`. Where composite scores were products of marginals, the paper's rows of the same way are taken for
    composite kinds. Tubes are compared in spatio-temporal overlap.

    Args:
        result: of an evaluation of road events.
        split: what was evaluated: val_1, val_2, val_3 or test; or `test` of UCF101-24.
        dataset: road or ucf24, in any case.
        trained_on: only the paper's models trained on train_1, train_2 or train_3 (default: all).
        group: which of the result's groups (default: the whole set).

    Returns:
        A frame with the columns `BESIDE`: `obtained` with `low` and `high` (its interval over videos),
        `load_printed` (null where unreadable), `difference` (obtained less printed).

    Raises:
        UsageError: if the paper knows no such split or dataset, or there is no such group.

    Source: Singh et al., TPAMI 2022, Tables 3, 5, 6, 9, 10 and 21 to 25.
    """
    dataset = _DATASETS.get(dataset.casefold(), dataset)
    known = SPLITS if dataset == "road" else ("test",) if dataset == "ucf24" else ()
    if split not in known:
        raise UsageError(
            f"the paper prints nothing for '{split}' of {dataset}; "
            f"it has {', '.join(SPLITS)} of road, and test of ucf24"
        )
    ours = _select_measured(result.of_group(group))
    theirs = _printed_for(split, dataset, product=result.config.get("composite_scores") == "product")
    if trained_on is not None:
        theirs = theirs.filter(pl.col("trained_on") == trained_on)
    keys = ["level", "at", "kind", "name"]
    # Means over classes have no label: there null meets null.
    both = ours.join(theirs, on=keys, how="inner", maintain_order="left_right", nulls_equal=True)
    both = both.with_columns(difference=pl.col("obtained") - pl.col("printed"))
    return both.select(pl.col(name).cast(dtype) for name, dtype in BESIDE.items())


def _select_measured(summary: pl.DataFrame) -> pl.DataFrame:
    """The defined rows of a summary in per cent, with the plain name of their class."""
    rows = summary.filter(
        pl.col("valid"),
        pl.col("level").is_in(_MEASURED),
        pl.col("overlap").fill_null("").is_in(["", "stiou"]),
    )
    return rows.select(
        "level",
        "threshold",
        "kind",
        "label",
        at=_at(),
        name=_name(),
        obtained=pl.col("value") * 100,
        low=pl.col("low_video") * 100,
        high=pl.col("high_video") * 100,
    )


def _printed_for(split: str, dataset: str, *, product: bool) -> pl.DataFrame:
    """Printed numbers for a split: its own numbers, then the means over the three splits."""
    averaged = "test" if split == "test" else "val"
    rows = load_printed().filter(
        pl.col("dataset") == dataset,
        pl.col("level").is_in(_MEASURED),
        ~pl.col("table").is_in(_REPEATS),
        (pl.col("split") == split) | ((pl.col("split") == averaged) & (pl.col("trained_on") == AVERAGED)),
    )
    marginal = pl.col("model").str.contains("product").fill_null(False)
    joint = pl.col("table").is_in(["22", "23"])
    repeated = pl.col("table").is_in(["24", "25"]) & ~marginal  # the joint means stand in 22 and 23
    rows = rows.filter(~repeated, ~joint if product else ~marginal)
    return rows.select(
        "level",
        "kind",
        "table",
        "model",
        "trained_on",
        "split",
        "note",
        at=_at(),
        name=_name(),
        printed=pl.col("value"),
    )


def _at() -> pl.Expr:
    """The threshold to compare by; the vehicle's action has none."""
    return pl.when(pl.col("level") == "av_action").then(pl.lit("")).otherwise(pl.col("threshold"))


def _name() -> pl.Expr:
    return pl.col("label").map_elements(normalize_name, return_dtype=pl.String)
