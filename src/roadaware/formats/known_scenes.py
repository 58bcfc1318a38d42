"""Videos and frame counts of the scenes that predictions are read for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from roadaware.datasets.issues import Findings
from roadaware.errors import DatasetNotFoundError, FindingsError
from roadaware.formats.detection_folders import FrameFile
from roadaware.io.sources import to_printable
from roadaware.scenes.tables import Predictions, Scenes

_SHOWN = 10


class Known:
    """The videos of some scenes with their lengths; without scenes every video and frame is believed.

    Args:
        scenes: what predictions are made of, or None.
    """

    def __init__(self, scenes: Scenes | None) -> None:
        self.lengths: dict[str, int | None] | None = None
        if scenes is None:
            return
        table = scenes.videos.select(pl.col("video").cast(pl.String))
        if "n_frames" in scenes.videos.columns:
            table = table.with_columns(scenes.videos["n_frames"])
        else:
            table = table.with_columns(n_frames=pl.lit(None, pl.Int64))
        self.lengths = dict(table.iter_rows())

    def reason(self, video: str, first: int, last: int) -> str:
        """Why frames of a video cannot be predicted; empty where they can.

        Args:
            video: its name.
            first: the first frame that is predicted.
            last: the last one.
        """
        if first < 0:
            return f"frame {first}, counted from 0, lies before the first"
        if self.lengths is None:
            return ""
        if video not in self.lengths:
            return "a video that the scenes do not have"
        end = self.lengths[video]
        return (
            f"frame {last}, counted from 0, lies behind the end of the video, which has {end}"
            if end is not None and last >= end
            else ""
        )

    def sift(
        self, listed: Mapping[str, Sequence[FrameFile]], findings: Findings
    ) -> dict[str, list[FrameFile]]:
        """The files whose video and frame the scenes have; the others are refused."""
        kept: dict[str, list[FrameFile]] = {}
        refused: list[tuple[str, str, str]] = []
        for video, files in listed.items():
            for file in files:
                reason = self.reason(video, file.frame, file.frame)
                if reason:
                    refused.append((file.name, f"frame {file.frame}", reason))
                else:
                    kept.setdefault(video, []).append(file)
        findings.read["files"] += len(refused)
        table = pl.DataFrame(refused, schema=["file", "item", "reason"], orient="row")
        findings.reject_rows("files", table.with_columns(line=pl.lit(None, pl.Int64)))
        return kept


def build_absent_error(path: Path, expected: str) -> DatasetNotFoundError:
    """The error for a file that is not there, which says what lies beside it.

    Args:
        path: of the file.
        expected: what it should be and what was found, as the message says it.
    """
    near = path.absolute().parent
    held = sorted(p.name for p in near.iterdir())[:5] if near.is_dir() else []
    return DatasetNotFoundError(
        f"expected {expected}; beside it lie {', '.join(map(to_printable, held)) or 'no files'}",
        where=to_printable(str(path)),
        hint="check the path",
    )


def refuse_findings(where: str, predictions: Predictions) -> None:
    """Turn what was rejected into an error that lists the first of it.

    Raises:
        FindingsError: if anything was rejected.
    """
    if not len(predictions.rejected):
        return
    lines = [
        f"{row['table']}: {row['file']}: {row['item'] + ': ' if row['item'] else ''}{row['reason']}"
        for row in predictions.rejected.head(_SHOWN).to_dicts()
    ]
    message = f"{where}: {len(predictions.rejected)} rejected rows or files, and strict reading was asked for"
    raise FindingsError("\n  ".join([message, *lines]))
