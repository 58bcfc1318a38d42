"""Energies of the boxes of a detector of known classes, fitted to ground truth and applied to proposals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.corner_cases.scorers import (
    NEUTRAL,
    EnergyConfig,
    EnergyModel,
    Fitted,
    Prints,
    compute_energy,
    convert_to_logits,
    fit_energies,
    hash_arrays,
    hash_videos,
    sort_fingerprints,
)
from roadaware.errors import InputError
from roadaware.geometry.boxes import iou
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes

Key = tuple[str, int]
LOGITS = "logits"
"""A column of boxes with raw logits, for heads whose scores are no sigmoids."""


@dataclass(frozen=True)
class Matching:
    """How boxes of a detector are taken to be of an object, or of a proposal.

    Args:
        kind: of the labels whose scores are taken.
        min_iou: the least overlap.
    """

    kind: str = "agent"
    min_iou: float = 0.5

    def __post_init__(self) -> None:
        if not (isinstance(self.min_iou, int | float) and 0 < self.min_iou <= 1):
            raise InputError(f"the least overlap lies above 0 and up to 1, not {self.min_iou!r}")


@dataclass(frozen=True, eq=False)
class Detected:
    """Detections by image.

    Args:
        boxes: of each image (n, 4) x1, y1, x2, y2 in pixels.
        energy: of each image (n,).
        prints: fingerprint of each image: of its surest box, so that a threshold does not change it.
    """

    boxes: Mapping[Key, Floats]
    energy: Mapping[Key, Floats]
    prints: Mapping[Key, int]


def compute_detection_energies(
    detections: Predictions, config: EnergyConfig, kind: str = "agent"
) -> Detected:
    """The energies of all boxes.

    Args:
        detections: boxes with dense `scores`, or with a column `logits` in the same order of classes.
        config: what an energy is.
        kind: of the labels whose scores are taken.

    Raises:
        InputError: if there are neither, no such kind, or numbers that are none.
    """
    table, logits = detections.boxes, _logits(detections, kind)
    energy = compute_energy(logits, config)
    corners = table.select(CORNERS).to_numpy().astype(np.float64).reshape(-1, 4)
    boxes, held, prints = {}, {}, {}
    for key, rows in group_rows_by_image(table).items():
        boxes[key], held[key] = corners[rows], energy[rows]
        # Of equal scores the first row: a fingerprint must not depend on the sorting algorithm.
        surest = rows[np.lexsort((rows, -logits[rows].max(axis=1)))[0]]
        prints[key] = hash_arrays(corners[surest].astype(np.float32), logits[surest].astype(np.float32))
    return Detected(boxes, held, prints)


def fit_known(
    sets: Sequence[tuple[Scenes, Predictions]], config: EnergyConfig, matching: Matching | None = None
) -> Fitted:
    """A re-scorer fitted to the boxes of a detector that lie on ground-truth objects.

    Each box counts for the object that it overlaps most, where by enough. Objects of common classes are known
    ones; corner cases of other classes are unknown. Boxes on anything else are left out, as by ORE.

    Args:
        sets: scenes, whose boxes have the columns `common`, `novel` and perhaps `corner_case` and `ignore`,
            each with the detections of their images.
        config: what an energy is.
        matching: which boxes are of an object.

    Raises:
        InputError: if scenes and detections share no image, or a kind of object has too few boxes.

    Source: Joseph et al., CVPR 2021 (ORE), section 3.4.
    """
    matching = matching or Matching()
    parts = [_collect_energies(scenes, detections, config, matching) for scenes, detections in sets]
    known, unknown = (np.concatenate([part[place] for part in parts]) for place in range(2))
    seen = sort_fingerprints(each for part in parts for each in part[2])
    about = {**collect_source_digests([scenes for scenes, _ in sets]), "pictures": len(seen)}
    about |= {"known": len(known), "unknown": len(unknown)}
    asked = {"kind": matching.kind, "min_iou": matching.min_iou}
    named = [hash_videos(one, other.boxes["video"].cast(pl.String).unique()) for one, other in sets]
    videos = sort_fingerprints(int(each) for part in named if part is not None for each in part)
    return Fitted(fit_energies(known, unknown, config), seen, asked, about, videos)


def _collect_energies(
    scenes: Scenes, detections: Predictions, config: EnergyConfig, matching: Matching
) -> tuple[Floats, Floats, list[int]]:
    """Energies of boxes on known and on unknown objects of a set, and fingerprints of all its images."""
    said, truth = compute_detection_energies(detections, config, matching.kind), _select_objects(scenes)
    corners = truth.select(CORNERS).to_numpy().astype(np.float64).reshape(-1, 4)
    unknown = truth["unknown"].to_numpy().astype(np.bool_)
    shared = {key: rows for key, rows in group_rows_by_image(truth).items() if key in said.boxes}
    if not shared:
        raise InputError(
            "truth and detections share no image: their videos or frames have other names",
            hint="run the detector on the images of the truth",
        )
    parts: dict[bool, list[Floats]] = {False: [], True: []}
    for key, rows in shared.items():
        place, overlap = find_best_overlap(said.boxes[key], corners[rows])
        met = overlap >= matching.min_iou
        strange = unknown[rows][place[met]]
        for kind, found in parts.items():
            found.append(said.energy[key][met][strange == kind])
    return np.concatenate(parts[False]), np.concatenate(parts[True]), list(said.prints.values())


def collect_source_digests(sets: Sequence[Scenes]) -> dict[str, list[str]]:
    """Names of sets, and digests of their sources, as plain data."""
    metas = [scenes.meta for scenes in sets]
    return {"datasets": [m.dataset for m in metas], "source_digests": [m.source_digest for m in metas]}


def score_energy_novelty(
    proposals: Predictions, detections: Predictions, fitted: Fitted
) -> tuple[Floats, Ints, Prints]:
    """How much each proposal is like an unknown object, by the box of the detector that overlaps it most.

    Args:
        proposals: boxes.
        detections: of the same images, by the detector that the re-scorer was fitted to.
        fitted: the re-scorer.

    Returns:
        (n,) shares of the unknown, `NEUTRAL` where no box overlaps enough; (n,) whether one does, as 0 or 1;
        fingerprints of the images with proposals and detections.

    Raises:
        InputError: if proposals and detections share no image, or the detector says what cannot be used.
    """
    if not isinstance(fitted.model, EnergyModel):
        raise InputError("this re-scorer is a memory bank and asks images, not detections")
    said = compute_detection_energies(detections, fitted.model.config, str(fitted.asked["kind"]))
    corners = proposals.boxes.select(CORNERS).to_numpy().astype(np.float64).reshape(-1, 4)
    images = group_rows_by_image(proposals.boxes)
    shared = {key: rows for key, rows in images.items() if key in said.boxes}
    if images and not shared:
        raise InputError(
            "proposals and detections share no image: their videos or frames have other names",
            hint="run the detector on the images of the proposals",
        )
    shares, met = np.full(len(corners), NEUTRAL), np.zeros(len(corners), dtype=np.int64)
    for key, rows in shared.items():
        place, overlap = find_best_overlap(corners[rows], said.boxes[key])
        enough = overlap >= float(fitted.asked["min_iou"])
        met[rows] = enough
        shares[rows[enough]] = fitted.model.unknown_share(said.energy[key][place[enough]])
    return shares, met, sort_fingerprints(said.prints[key] for key in shared)


def find_best_overlap(boxes: Floats, others: Floats) -> tuple[Ints, Floats]:
    """(n,) which other box each overlaps most, the first of equal ones, and (n,) by how much.

    Args:
        boxes: (n, 4) x1, y1, x2, y2 in pixels.
        others: (m, 4) the same, m at least 1.
    """
    table = iou(boxes, others)
    place = table.argmax(axis=1)
    return place, table[np.arange(len(boxes)), place]


def group_rows_by_image(table: pl.DataFrame) -> dict[Key, Ints]:
    """The rows of each image, in the order of the table.

    Args:
        table: with `video` and `frame`.
    """
    parts = table.select("video", "frame").with_row_index("row").partition_by("video", "frame", as_dict=True)
    return {
        (str(key[0]), int(key[1])): part["row"].to_numpy().astype(np.int64) for key, part in parts.items()
    }


def _logits(detections: Predictions, kind: str) -> Floats:
    """(n, c) logits of one kind of label."""
    table, where = detections.boxes, get_score_layout(detections.meta, "boxes")
    name = LOGITS if LOGITS in table.columns else "scores"
    if name not in table.columns:
        raise InputError(
            "the detections have one score a box, and an energy needs that of every class",
            hint="give what `roadaware predict` saves, or add the raw logits as the column `logits`",
        )
    if not len(table):
        raise InputError("there is no detection at all", hint="detect with a lower threshold")
    width, columns = (where.width, where.columns(kind)) if where.kinds else (_width(table[name]), slice(None))
    held = convert_to_matrix(table[name], width)[:, columns]
    return held.astype(np.float64) if name == LOGITS else convert_to_logits(held)


def _width(column: pl.Series) -> int:
    """How many numbers the first row of a dense column has."""
    if isinstance(column.dtype, pl.Array):
        return int(column.dtype.shape[0])
    return len(column[0]) if isinstance(column.dtype, pl.List) and column[0] is not None else 0


def _select_objects(scenes: Scenes) -> pl.DataFrame:
    """Objects that are known or unknown, with the column `unknown`."""
    boxes = scenes.boxes
    missing = [name for name in ("common", "novel") if name not in boxes.columns]
    if missing:
        raise InputError(f"the truth does not say what is {' and '.join(missing)}")
    for name, value in (("corner_case", True), ("ignore", False)):
        held = pl.col(name) if name in boxes.columns else pl.lit(value)
        boxes = boxes.with_columns(held.fill_null(value).alias(name))
    unknown = pl.col("novel") & pl.col("corner_case")
    boxes = boxes.with_columns(unknown=unknown.fill_null(value=False)).filter(~pl.col("ignore"))
    return boxes.filter(pl.col("common").is_not_null() | pl.col("unknown"))
