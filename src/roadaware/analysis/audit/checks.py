"""Inputs of the checks, the joins that several of them need, and their findings."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.scenes.factors import extract_windows
from roadaware.scenes.sampling import EventProtocol
from roadaware.scenes.tables import Scenes

# What an audit says: findings with counts, places to look at, and what to do about them.

Severity = Literal["serious", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("serious", "warning", "note")
SHOWN = 5


@dataclass(frozen=True)
class Example:
    """One example of a finding; unknown fields are None."""

    video: str | None = None
    pedestrian: str | None = None
    frame: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Numbers behind a finding."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | float | None, ...], ...]


@dataclass(frozen=True)
class Finding:
    """One finding: an error in the data, or a fact that changes the meaning of a number.

    Args:
        name: of the check, in kebab-case.
        severity: serious (a published number means something else), warning (some rows are wrong or
            unsure), note (worth knowing).
        count: how many.
        out_of: of how many.
        sentence: what was found, with its numbers.
        why: why it matters.
        advice: what to do.
        table: the numbers by split or by group.
        measures: further numbers by name.
        examples: up to five places, in the order of the data.
    """

    name: str
    severity: Severity
    count: int
    out_of: int
    sentence: str
    why: str
    advice: str
    table: Table | None = None
    measures: dict[str, float | int | None] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True)
class Audit:
    """All that was checked.

    Args:
        dataset: its name.
        protocol: the protocol's config as plain data.
        findings: what is wrong, serious things first.
        passed: checks that found nothing.
        skipped: checks that could not be made, with the reason.
    """

    dataset: str
    protocol: dict[str, Any]
    findings: tuple[Finding, ...]
    passed: tuple[str, ...]
    skipped: dict[str, str]

    def finding(self, name: str) -> Finding | None:
        """The finding of that name, None if the check passed or was skipped."""
        return next((finding for finding in self.findings if finding.name == name), None)

    def of_severity(self, severity: Severity) -> tuple[Finding, ...]:
        """The findings of one severity."""
        return tuple(finding for finding in self.findings if finding.severity == severity)

    def to_dict(self) -> dict[str, Any]:
        """The audit as JSON-ready data."""
        return {
            "dataset": self.dataset,
            "protocol": self.protocol,
            "counts": {severity: len(self.of_severity(severity)) for severity in SEVERITIES},
            "findings": [asdict(finding) for finding in self.findings],
            "passed": list(self.passed),
            "skipped": dict(self.skipped),
        }


class NotApplicableError(Exception):
    """A check cannot be made on these scenes; the message says why."""


@dataclass(frozen=True)
class Context:
    """The scenes, the same scenes with samples, and the protocol that cut them.

    Args:
        scenes: as given.
        sampled: with the samples of all splits that hold videos.
        protocol: that cut them, with those splits that have samples.
        asked: the protocol with all splits that were asked for.
    """

    scenes: Scenes
    sampled: Scenes
    protocol: EventProtocol
    asked: EventProtocol

    @cached_property
    def pedestrians(self) -> pl.DataFrame:
        """Tubes of single pedestrians: `tube`, `video`, `name` as text and the attributes as they are."""
        tubes = self.scenes.tubes.with_columns(pl.col("video", "name").cast(pl.String))
        if "track_label" in tubes.columns:
            label = pl.col("track_label").cast(pl.String)
            tubes = tubes.filter(label.is_in(["pedestrian", "ped"]) | label.is_null())
        return tubes

    @cached_property
    def crossing(self) -> pl.DataFrame:
        """One row per pedestrian with boxes: `first_tag` and `last_tag`, the frames tagged as crossing."""
        self.needs("boxes", "cross")
        tagged = pl.col("frame").filter(pl.col("cross").cast(pl.String) == "crossing")
        tags = self.scenes.boxes.group_by("tube").agg(
            tagged.min().alias("first_tag"),
            tagged.max().alias("last_tag"),
            pl.col("cross").is_not_null().any().alias("is_tagged"),
        )
        return self.pedestrians.join(tags, on="tube", how="inner", maintain_order="left")

    @cached_property
    def samples(self) -> pl.DataFrame:
        """The samples with their pedestrian's `name`, `video` and whether they are a `crosser`."""
        known = self.scenes.tubes.select(
            "tube",
            pl.col("name").cast(pl.String),
            (pl.col("crossing").cast(pl.String) == "crossing").fill_null(False).alias("crosser"),
        )
        plain = self.sampled.samples.with_columns(pl.col("video", "split", "event_source").cast(pl.String))
        return plain.join(known, on="tube", how="left", maintain_order="left")

    @cached_property
    def observed_crossing(self) -> npt.NDArray[np.bool_]:
        """(n,) whether a box inside the sample's observation is tagged as crossing."""
        self.needs("boxes", "cross")
        categories = self.scenes.boxes["cross"].cast(pl.Categorical).cast(pl.String)
        boxes = self.scenes.boxes.with_columns((categories == "crossing").cast(pl.Float64).alias("cross"))
        seen = extract_windows(self.scenes.with_tables(boxes=boxes), self.sampled.samples, ("cross",))
        return np.asarray((seen[..., 0] == 1).any(axis=1))

    def needs(self, table: str, *columns: str) -> None:
        """Refuse the check unless the table has rows and these columns.

        Raises:
            NotApplicableError: saying what is absent.
        """
        frame: pl.DataFrame = getattr(self.scenes, table)
        missing = [column for column in columns if column not in frame.columns]
        if frame.is_empty():
            raise NotApplicableError(f"there are no {table}")
        if missing:
            raise NotApplicableError(f"{table} have no {', '.join(missing)}")


def list_examples(
    rows: pl.DataFrame, frame: str | None = None, note: pl.Expr | None = None
) -> tuple[Example, ...]:
    """The first rows as examples; `frame` names the column to look at, `note` what to say of it."""
    picked = rows.head(SHOWN).select(
        pl.col("video").cast(pl.String),
        (pl.col("name").cast(pl.String) if "name" in rows.columns else pl.lit(None)).alias("pedestrian"),
        (pl.col(frame) if frame else pl.lit(None)).alias("frame"),
        (note if note is not None else pl.lit("")).alias("note"),
    )
    return tuple(Example(**row) for row in picked.iter_rows(named=True))


def build_finding(
    part: pl.DataFrame,
    whole: pl.DataFrame,
    says: str,
    *,
    name: str,
    severity: Severity,
    why: str,
    advice: str,
    at: str | None = None,
    note: pl.Expr | None = None,
    table: Table | None = None,
    measures: dict[str, float | int | None] | None = None,
) -> Finding:
    """A finding on some rows of a table, whose first rows are its examples.

    Args:
        part: the rows found.
        whole: the rows among which they were found.
        says: what is wrong with them; the sentence is `<part> of <whole> <says>`.
        name, severity, why, advice, table, measures: see `Finding`.
        at, note: `frame` and `note` of `list_examples`.
    """
    return Finding(
        name=name,
        severity=severity,
        count=len(part),
        out_of=len(whole),
        sentence=f"{len(part)} of {len(whole)} {says}",
        why=why,
        advice=advice,
        table=table,
        measures=measures or {},
        examples=list_examples(part, at, note),
    )
