"""`roadaware label agree`: how far annotators agree on boxes, what most drew, and what is disputed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console, folders, outputs, text
from roadaware.cli.label_inputs import dataset, labels, saved_files
from roadaware.cli.options import (
    USUAL,
    Common,
    Draws,
    Outcome,
    OutputFolder,
    Overwrite,
    Seed,
    Switch,
    between,
)
from roadaware.errors import UsageError

if TYPE_CHECKING:
    from roadaware.analysis.labelling.agreement import BoxAgreement
    from roadaware.analysis.labelling.consensus import Consensus
    from roadaware.scenes.tables import Scenes

CONSENSUS, DISPUTES = "consensus", "disputed"
_LABELS = "What `label import` wrote, or saved tables with `boxes.annotator`."
_IOU = "Boxes of two annotators that overlap less are of different things."
_KIND = "The kind of label that is compared."
_VIDEOS = "The dataset, for --draw: one of `propose`, or saved tables beside their pictures."
_DRAW = "Also draw the first so many disputed pictures, with the boxes of every annotator."
_FOLDER = "Write the consensus as tables, the disputes, the agreement and a page into this folder."
_STRICT = "Exit with 1 if anything is disputed."
_PAGE = "report.html"


def agree(
    path: Annotated[Path, Parameter(help=_LABELS)],
    /,
    *,
    iou: Annotated[float, Parameter(help=_IOU)] = 0.5,
    kind: Annotated[str, Parameter(help=_KIND)] = "corner",
    draws: Draws = 1000,
    seed: Seed = 0,
    draw: Annotated[int, Parameter(help=_DRAW, validator=between(0, 1000))] = 0,
    videos: Annotated[Path | None, Parameter(help=_VIDEOS)] = None,
    folder: Annotated[Path | None, Parameter(help=_FOLDER), OutputFolder, outputs.RESULT] = None,
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False,
    common: Common = USUAL,
) -> Outcome:
    """Compare the boxes of several annotators, and make truth of what most of them drew.

    Boxes are paired one to one by overlap. Agreement is told on what is there (drawn by all, by one), where
    it is (overlap) and what it is (Krippendorff's alpha), for all, for every two annotators and by class,
    with intervals over pictures and over videos. What half or fewer drew, classes without a majority, and
    pictures that one alone saw are disputes, for a further look.

    For example:

        roadaware label agree runs/labels -o runs/consensus

        roadaware label agree runs/labels -o runs/consensus --draw 20 --videos runs/streets/scenes
    """
    from roadaware.analysis.labelling.agreement import box_agreement
    from roadaware.analysis.labelling.consensus import consensus
    from roadaware.analysis.labelling.things import things_of

    if not 0 < iou <= 1:
        raise UsageError(f"--iou lies above 0 and up to 1, not {iou}")
    if draw and (videos is None or folder is None):
        raise UsageError("--draw needs --videos, where the pictures are, and --output, where they go")
    scenes = labels(path)
    with console.working("comparing"):
        things = things_of(scenes, kind=kind, least=iou)
        found, agreed = box_agreement(things, draws=draws, seed=seed), consensus(things, scenes)
    data = {
        "annotators": list(things.annotators),
        "pictures": len(things.pictures),
        "pictures_one_alone_saw": len(things.alone),
        "agreement": found.table.to_dicts(),
        "found_by": found.counts.to_dicts(),
        "boxes_agreed": len(agreed.scenes.boxes),
        "disputes": len(agreed.disputes),
    }
    if folder is not None:
        pictures = _drawn(scenes, agreed, videos, draw) if draw and videos is not None else {}
        _save(folder, found, agreed, data, pictures, overwrite=overwrite)
    failed = f"--strict: {len(agreed.disputes)} disputes" if strict and len(agreed.disputes) else None
    return Outcome(_text(found, agreed, data), data, failed)


def _drawn(scenes: Scenes, agreed: Consensus, videos: Path, most: int) -> dict[str, bytes]:
    """Disputed pictures as PNG files."""
    import io

    from PIL import Image

    from roadaware.reports.dispute_pictures import disputed_places, draw_dispute
    from roadaware.scenes.sensors import open_frame

    source, root = dataset(videos, None)
    found: dict[str, bytes] = {}
    with console.working("drawing"):
        for number, (video, frame, reasons) in enumerate(disputed_places(agreed.disputes, most)):
            picture = open_frame(source, root, video, frame)
            title = f"{video}  {frame}  {reasons}"
            stream = io.BytesIO()
            Image.fromarray(draw_dispute(scenes, picture, video, frame, title=title)).save(stream, "PNG")
            name = f"{DISPUTES}/{number:04d}-{video.replace('/', '-')}-{frame:06d}.png"
            found[name] = stream.getvalue()
    return found


def _save(
    folder: Path,
    found: BoxAgreement,
    agreed: Consensus,
    data: dict[str, Any],
    pictures: dict[str, bytes],
    *,
    overwrite: bool,
) -> None:
    from roadaware.reports.labelling import agreement_section
    from roadaware.reports.page import report
    from roadaware.scenes.csv_text import csv_text

    page = report([agreement_section(found, agreed.disputes)], title="Agreement of annotators")
    files = {
        **saved_files(agreed.scenes, CONSENSUS),
        "agreement.csv": csv_text(found.table).encode(),
        "found_by.csv": csv_text(found.counts).encode(),
        "disputes.csv": csv_text(agreed.disputes).encode(),
        **pictures,
        _PAGE: page.encode("utf-8", errors="backslashreplace"),
    }
    folders.put_folder(folder, folders.with_marker(files, data), overwrite=overwrite)
    console.note(f"wrote {folder} (truth: {folder / CONSENSUS}, report: {folder / _PAGE})")


def _text(found: BoxAgreement, agreed: Consensus, data: dict[str, Any]) -> str:
    rows = [
        (
            row["group"] or "all",
            row["measure"].replace("_", " "),
            text.number(row["value"]),
            text.row_interval(row, "picture", 2),
            text.row_interval(row, "video", 2),
            f"{row['n']:,}",
        )
        for row in found.table.iter_rows(named=True)
    ]
    counts = [f"{row['things']:,} by {row['n_found']} of {row['n_saw']}" for row in data["found_by"]]
    lines = [
        f"{data['pictures']:,} pictures that two or more of {len(data['annotators'])} annotators saw; "
        f"{data['pictures_one_alone_saw']:,} that one alone saw",
        f"things drawn: {'; '.join(counts) or 'none'}",
        text.table(["of", "measure", "value", "over pictures", "over videos", "rests on"], rows, left=2),
        "",
        f"{data['boxes_agreed']:,} boxes that most drew; {data['disputes']:,} disputes for a further look:",
    ]
    reasons = agreed.disputes["reason"].value_counts().sort("count", descending=True)
    lines += [f"  {count:,} {text.cell(reason)}" for reason, count in reasons.iter_rows()]
    return "\n".join(lines)
