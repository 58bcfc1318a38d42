"""A world of annotators: three people draw boxes in the same images, name them, and keep proposals."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Self

import numpy as np
import polars as pl

from benchmarks.coverage.world import Ints, Told, World, sigmoid
from roadaware.analysis.annotation.agreement import (
    MEASURES,
    OVERLAP,
    PAIR,
    THING,
    Things,
    measure_box_agreement,
)

_WHO = ("ann", "bob", "cem")
_WORDS = ("car", "cone", "dog", "pram")
_SHARES = (0.6, 0.25, 0.1, 0.05)


@dataclass(frozen=True, eq=False)
class Annotators(World):
    """Agreement of three people on what is there, where it is, what it is, and which proposals hold."""

    pictures: pl.DataFrame
    members: pl.DataFrame
    overlaps: pl.DataFrame
    pairs: pl.DataFrame
    links: pl.DataFrame

    @classmethod
    def of(cls, name: str, seed: int, units: int) -> Self:
        """Videos of one to several images, with things that are easy to see and to name, or not.

        Args:
            name: of the world.
            seed: of the world.
            units: videos.
        """
        rng = np.random.default_rng(seed)
        video = np.repeat(np.arange(units), 1 + rng.poisson(2 * rng.gamma(1, 1, units)))
        ease = rng.normal(0, 0.8, units)
        picture = np.repeat(np.arange(len(video)), 1 + rng.poisson(2.0, len(video)))
        of_video = ease[video[picture]]
        clear = of_video + rng.normal(0, 0.8, len(picture))
        label = rng.choice(len(_WORDS), len(picture), p=_SHARES)
        found = rng.random((len(picture), len(_WHO))) < sigmoid(1.0 + clear)[:, None]
        wrong = rng.random(found.shape) < sigmoid(-2.0 - 0.7 * clear)[:, None]
        named = np.where(wrong, rng.integers(0, len(_WORDS), found.shape), label[:, None])
        thing, who = np.nonzero(found)
        kept = found & (rng.random(found.shape) < 0.9)
        members = pl.DataFrame(
            {
                "thing": thing,
                "picture": picture[thing],
                "annotator": np.array(_WHO)[who],
                "box": np.arange(len(thing)),
                "label": named[thing, who],
            },
            schema=THING,
        )
        parts = []
        n_pairs, iou_sum = np.zeros(len(picture)), np.zeros(len(picture))
        for a, b in combinations(range(len(_WHO)), 2):
            both = found[:, a] & found[:, b]
            iou = np.where(both, sigmoid(1.2 + 0.5 * clear + rng.normal(0, 0.7, len(picture))), 0.0)
            n_pairs, iou_sum = n_pairs + both, iou_sum + iou
            columns = (found[:, a], found[:, b], both, iou, both, both & (named[:, a] == named[:, b]))
            sums = [np.bincount(picture, column, len(video)) for column in columns]
            names = ("n_first", "n_second", "matched", "iou_sum", "named", "same")
            part = pl.DataFrame(dict(zip(names, sums, strict=True))).with_columns(
                picture=pl.int_range(len(video)), first=pl.lit(_WHO[a]), second=pl.lit(_WHO[b])
            )
            parts.append(part.select(pl.col(column).cast(kind) for column, kind in PAIR.items()))
        several = n_pairs > 0
        overlaps = pl.DataFrame(
            {"thing": np.flatnonzero(several), "n_pairs": n_pairs[several], "iou_sum": iou_sum[several]},
            schema=OVERLAP,
        )
        proposal, by = np.nonzero(kept)
        links = pl.DataFrame({"annotator": np.array(_WHO)[by], "proposals": proposal})
        pictures = pl.DataFrame({"number": video, "thing": np.split(np.arange(len(picture)), _ends(picture))})
        return cls(name, units, pictures, members, overlaps, pl.concat(parts), links)

    def told(self, chosen: Ints, resamples: int) -> dict[str, Told]:
        """As `label agree` prints it, over videos."""
        held = self.pictures.with_row_index("old").filter(pl.col("number").is_in(chosen.tolist()))
        place = held.select(picture=pl.col("old").cast(pl.Int64), new=pl.int_range(pl.len(), dtype=pl.Int64))

        def of(table: pl.DataFrame) -> pl.DataFrame:
            joined = table.join(place, on="picture", how="inner", maintain_order="left")
            return joined.with_columns(picture="new").drop("new")

        members = of(self.members)
        things = held["thing"].explode()
        pictures = held.select(
            video=pl.col("number").cast(pl.String),
            frame=pl.lit(0, dtype=pl.Int64),
            annotators=pl.lit(list(_WHO)),
            proposals=pl.col("thing"),
        )
        given = Things(
            pictures,
            pl.DataFrame(schema={"video": pl.String, "frame": pl.Int64, "annotator": pl.String}),
            members,
            self.overlaps.filter(pl.col("thing").is_in(things.implode())),
            of(self.pairs),
            self.links.filter(pl.col("proposals").is_in(things.implode())),
            pl.DataFrame(schema={"annotator": pl.String, "proposals": pl.Int64}),
            _WHO,
            _WORDS,
        )
        table = measure_box_agreement(given, resamples=resamples).table.filter(pl.col("group").is_null())
        return {
            row["measure"]: Told(row["value"], row["low_video"], row["high_video"])
            for row in table.iter_rows(named=True)
            if row["measure"] in MEASURES
        }


def _ends(picture: Ints) -> Ints:
    """Where the things of each image but the first begin."""
    return np.searchsorted(picture, np.arange(1, int(picture[-1]) + 1))


def worlds() -> list[World]:
    """One world."""
    return [Annotators.of("annotators", 1, 4000)]
