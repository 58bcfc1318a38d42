"""`roadaware submit`: the file for the server of a ROAD challenge, checked; nothing is uploaded."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

from roadaware.analysis.evaluation import event_inputs, events
from roadaware.cli import console, outputs
from roadaware.cli.options import Outcome, Output, Overwrite, Several, Stated, Switch
from roadaware.cli.results import ImageSize
from roadaware.errors import InputError, UsageError
from roadaware.formats.road_detections import CLASS_KINDS, NETWORK_SIZE, encode_pickle
from roadaware.formats.submission import (
    FILE,
    THRESHOLDS,
    Challenge,
    Remark,
    Submission,
    build_submission,
    merge_submissions,
    write_submission,
)
from roadaware.io.folders import make_folder
from roadaware.reports.tracking_text import format_submission
from roadaware.scenes.tables import Scenes

_RUNS = "Tubes: tables that `link` wrote, or a tube file (.pkl). Of roadpp two, in the order of --truth."
_TRUTH = "The annotation file of the release, which names videos and labels; of roadpp that of each data set."
_SPLIT = "The split that the challenge judges."
_KINDS = "What is handed in: agent, action, location, duplex, event. [default: agent action event]"
_OUT = "The zip. [default: CHALLENGE.zip]"
_STRICT = "Exit with 1 if anything would be scored 0."
_PARTS: dict[Challenge, tuple[str, ...]] = {
    "road": ("",),
    "road-waymo": ("",),
    "roadpp": ("ROAD", "ROAD-Waymo"),
}
"""What the data sets of a challenge are called beside their scores."""


def submit(
    challenge: Annotated[Challenge, Parameter(help="road, road-waymo or roadpp.")],
    runs: Annotated[list[Path], Parameter(help=_RUNS)],
    /,
    *,
    truth: Annotated[list[Path], Parameter(help=_TRUTH), Several],
    split: Annotated[str, Parameter(help=_SPLIT)] = "test",
    kinds: Annotated[tuple[str, ...], Parameter(help=_KINDS), Several, Stated] = (),
    size: ImageSize = "682x512",
    out: Annotated[Path | None, Output, Parameter(help=_OUT), outputs.NEW_FILE] = None,
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False,
    overwrite: Overwrite = False,
) -> Outcome:
    """Check tubes and write the zip that a server of the ROAD challenges takes; nothing is uploaded.

    The zip holds one pickle of tubes, with kinds, labels and videos as the release names them, frames from 1 without
    holes, and boxes in the 682x512 pixels that the published evaluator compares. What would be scored 0 is
    said, with the reason. Where the release annotates the split (val_1 ...), the file is also judged as the
    published evaluator does.

    For example:

        roadaware submit road linked --truth road_trainval_v1.0.json --split test -o road.zip

        roadaware submit roadpp linked-road linked-waymo --split test \\
            --truth road_trainval_v1.0.json road_waymo_trainval_v1.0.json
    """
    expected = len(_PARTS[challenge])
    if len(runs) != expected or len(truth) != expected:
        raise UsageError(
            f"{challenge} takes {expected} of RUNS and of --truth, in the same order; got {len(runs)} and {len(truth)}"
        )
    path = out or Path(f"{challenge}.zip")
    if out is None and path.exists() and not overwrite:
        raise UsageError(f"{path} is there already; say --overwrite to replace it, or -o FILE")
    size_px = event_inputs.parse_size(size)
    parts: list[Submission] = []
    first: dict[str, tuple[str, ...]] = {}
    scores: dict[str, dict[str, float]] = {}
    for part_name, run, release in zip(_PARTS[challenge], runs, truth, strict=True):
        whole = event_inputs.open_truth(release)
        scenes = _select_split(whole, split, release)
        opened = event_inputs.open_predictions(run, whole, size_px)
        if not opened.has_tubes:
            raise InputError(
                "expected tubes, found detections", where=str(run), hint="Link them first: roadaware link."
            )
        tables = event_inputs.assign_labels(opened.tables, whole)
        with console.log_step(f"checking {run}"):
            part = build_submission(tables, scenes, event_inputs.convert_kinds(kinds, whole))
        refused = [Remark(True, f"Left out: {count:,} {what}.") for what, count in opened.dropped.items()]
        parts.append(Submission(part.lists, (*refused, *part.remarks)))
        if len(scenes.tubes):
            scores |= _score(part, release, split, part_name)
        labels = {
            kind: whole.meta.vocabularies[kind] for kind in CLASS_KINDS if kind in whole.meta.vocabularies
        }
        if len(parts) > 1 and labels != first:
            odd = next(kind for kind in {**first, **labels} if first.get(kind) != labels.get(kind))
            raise InputError(
                f"{truth[0]} and {release} have other labels of {odd}; one file numbers them alike"
            )
        first = labels
    whole_file = merge_submissions(parts)
    make_folder(path.parent)
    remarks = [*whole_file.remarks, *write_submission(whole_file, path)]
    console.print_note(f"wrote {path}")
    costly = sum(remark.costs for remark in remarks)
    data: dict[str, Any] = {
        "challenge": challenge,
        "split": split,
        "file": str(path),
        "bytes": path.stat().st_size,
        "tubes": whole_file.n_tubes,
        "videos": len(next(iter(whole_file.lists.values()))),
        "remarks": [{"scored_0": remark.costs, "says": remark.says} for remark in remarks],
        "video_map": scores,
    }
    failed = f"--strict: {costly} things would be scored 0" if strict and costly else None
    return Outcome(format_submission(data, remarks), data, failed)


def _select_split(whole: Scenes, split: str, release: Path) -> Scenes:
    """The videos of the split, annotated or not."""
    names = (
        whole.videos["splits"].explode().drop_nulls().unique().sort().to_list()
        if "splits" in whole.videos.columns
        else []
    )
    if split == "all":
        return whole
    if split not in names:
        listed = ", ".join(map(str, names)) or "none"
        raise UsageError(f"{release} has no split {split!r}; its splits are {listed}, or all")
    return whole.split(split)


def _score(part: Submission, release: Path, split: str, of: str) -> dict[str, dict[str, float]]:
    """Kind to video-mAP at each threshold, as the published evaluator has it, of what is handed in."""
    with tempfile.TemporaryDirectory(prefix="roadaware-") as folder:
        file = Path(folder) / FILE
        file.write_bytes(encode_pickle(part.lists))
        request = events.EventRequest(
            "road",
            config="reference",
            split=split,
            kinds=tuple(part.lists),
            video_thresholds=THRESHOLDS,
            only="video",
            size_px=NETWORK_SIZE,
        )
        try:
            summary = events.evaluate_event_files(release, [file], request).summary
        except InputError as error:
            console.print_note(f"not judged: {error.message}")
            return {}
    rows = summary.filter(pl.col("metric").str.starts_with("video_map@"), pl.col("group").is_null())
    scores: dict[str, dict[str, float]] = {}
    for kind, threshold, value in rows.select("kind", "threshold", "value").iter_rows():
        if value is not None:
            scores.setdefault(f"{of} {kind}".strip(), {})[str(threshold)] = float(value)
    return scores
