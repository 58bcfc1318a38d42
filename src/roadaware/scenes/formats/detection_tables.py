"""From the arrays of detection files to the tables of claims; what cannot be taken is refused by name."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Numbers
from roadaware.errors import InputError
from roadaware.scenes.formats.kinds import Kinds
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.schema import CORNERS

_AGENTNESS = 4


@dataclass
class Read:
    """What was read so far: for every frame its video, number, boxes and scores."""

    video: list[str] = field(default_factory=list)
    frame: list[int] = field(default_factory=list)
    file: list[str] = field(default_factory=list)
    main: list[Numbers] = field(default_factory=list)
    ego: list[Numbers] = field(default_factory=list)
    errors: list[InputError] = field(default_factory=list)

    def widths(self) -> tuple[int | None, int | None]:
        """The first number of class scores of a box, and of scores of a frame."""
        width = next((main.shape[1] - _AGENTNESS - 1 for main in self.main if len(main)), None)
        return width, next((len(ego) for ego in self.ego if len(ego)), None)


def drop_other_widths(read: Read, kinds: Kinds, findings: Findings) -> None:
    """Refuse the files whose boxes or frames have other numbers of scores than there are labels."""
    columns = _AGENTNESS + 1 + kinds.width
    kept = []
    for place, (main, ego) in enumerate(zip(read.main, read.ego, strict=True)):
        message = ""
        if len(main) and main.shape[1] != columns:
            message = (
                f"'main' has {main.shape[1]} columns; expected {columns}: four corners, agentness and "
                f"{kinds.width} class scores ({kinds.told()})"
            )
        elif len(ego) and kinds.av_width and len(ego) != kinds.av_width:
            message = f"'ego' has {len(ego)} scores; expected {kinds.av_width}, one for each av_action"
        if message:
            hint = "give the scenes of the data set that was detected in, or `vocabularies`"
            error = InputError(message, where=read.file[place], hint=hint)
            findings.reject("files", read.file[place], "", message, rows=0)
            read.errors.append(error)
        else:
            kept.append(place)
    if len(kept) < len(read.frame):
        for name in ("video", "frame", "file", "main", "ego"):
            held = getattr(read, name)
            setattr(read, name, [held[place] for place in kept])


def tables_of(read: Read, kinds: Kinds, size: tuple[int, int], findings: Findings) -> Predictions:
    """The tables of what was read."""
    boxes = _boxes(read, kinds, findings)
    frames, scored = _frames(read, kinds, findings)
    names = sorted(set(read.video))
    meta = kinds.claims_meta(
        boxes=True, frames=scored, rows_read=dict(sorted(findings.read.items())), notes=findings.notes()
    )
    return Predictions(
        videos=pl.DataFrame(
            {"video": names, "width_px": [size[0]] * len(names), "height_px": [size[1]] * len(names)}
        ),
        frames=frames,
        boxes=boxes,
        rejected=findings.table(),
        meta=meta,
    )


def _boxes(read: Read, kinds: Kinds, findings: Findings) -> pl.DataFrame:
    """The table of boxes; bad rows are refused."""
    counts = np.array([len(main) for main in read.main], dtype=np.int64)
    columns = _AGENTNESS + 1 + kinds.width
    filled = [main for main in read.main if len(main)]
    rows = np.concatenate(filled) if filled else np.zeros((0, columns), np.float32)
    rows = rows.astype(np.float32, copy=False) if rows.dtype.itemsize < 4 else rows
    read.main.clear()
    place = np.repeat(np.arange(len(counts)), counts)
    good = _sound_rows(rows, place, counts, read, findings)
    if not good.all():
        rows, place = rows[good], place[good]
    corners = rows[:, :_AGENTNESS].astype(np.float32)
    return pl.DataFrame(
        {
            "box": np.arange(len(rows)),
            "video": pl.Series(read.video, dtype=pl.String).gather(place),
            "frame": np.array(read.frame, dtype=np.int64)[place],
            **{name: np.ascontiguousarray(corners[:, at]) for at, name in enumerate(CORNERS)},
            "score": np.ascontiguousarray(rows[:, _AGENTNESS]),
            "scores": pl.Series(
                np.ascontiguousarray(rows[:, _AGENTNESS + 1 :]),
                dtype=pl.Array(pl.Float64 if rows.dtype == np.float64 else pl.Float32, kinds.width),
            ),
        }
    )


def _sound_rows(rows: Numbers, place: Numbers, counts: Numbers, read: Read, findings: Findings) -> Bools:
    """(n,) which rows can be taken; the others are refused with their reason."""
    findings.read["boxes"] += len(rows)
    if not len(rows):
        return np.ones(0, dtype=np.bool_)
    scores = rows[:, _AGENTNESS:]
    with np.errstate(invalid="ignore", over="ignore"):
        finite: Bools = np.asarray(np.isfinite(rows[:, :_AGENTNESS].astype(np.float32)).all(axis=1))
        upside = (rows[:, 0] > rows[:, 2]) | (rows[:, 1] > rows[:, 3])
        within: Bools = np.asarray((scores.min(axis=1) >= 0) & (scores.max(axis=1) <= 1))
    bad: Bools = ~finite | upside | ~within
    if bad.any():
        row = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        at = np.flatnonzero(bad)
        reason = np.where(
            ~finite[at],
            "a corner that is not a finite number",
            np.where(
                upside[at], "a box upside down: x1 > x2 or y1 > y2", "a score that is no number in [0, 1]"
            ),
        )
        refused = {
            "file": [read.file[n] for n in place[at]],
            "line": [None] * len(at),
            "item": [f"frame {read.frame[place[n]]}, row {row[n]} of 'main'" for n in at],
            "reason": reason.tolist(),
        }
        findings.reject_rows("boxes", pl.DataFrame(refused))
    good: Bools = ~bad
    return good


def _frames(read: Read, kinds: Kinds, findings: Findings) -> tuple[pl.DataFrame, bool]:
    """The table of frames, and whether it has scores; a frame without sound scores is refused."""
    findings.read["frames"] += len(read.frame)
    table = pl.DataFrame(
        {"video": pl.Series(read.video, dtype=pl.String), "frame": pl.Series(read.frame, dtype=pl.Int64)}
    )
    if not kinds.av_width or not any(len(ego) for ego in read.ego):
        return table, False
    good = np.ones(len(read.frame), dtype=np.bool_)
    for place, ego in enumerate(read.ego):
        if len(ego) == 0 or not (ego.min() >= 0 and ego.max() <= 1):
            good[place] = False
            reason = "a score of 'ego' that is no number in [0, 1]" if len(ego) else "no scores in 'ego'"
            item = f"frame {read.frame[place]}"
            findings.reject("frames", read.file[place], item, reason, rows=0)
    held = [ego for ego, taken in zip(read.ego, good, strict=True) if taken]
    scores = np.stack(held) if held else np.zeros((0, kinds.av_width), np.float32)
    double = scores.dtype == np.float64
    column = pl.Series("scores", scores, dtype=pl.Array(pl.Float64 if double else pl.Float32, kinds.av_width))
    return table.filter(good).with_columns(column), True
