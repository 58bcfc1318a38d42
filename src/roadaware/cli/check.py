"""`roadaware check`: do annotations hold up, between rounds of checking and by themselves?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from roadaware.cli import console, folders, outputs, text
from roadaware.cli.check_inputs import (
    USUAL_LIMITS,
    USUAL_NATIVE,
    Limits,
    Native,
    dictionary_of,
    opened,
    words_of,
)
from roadaware.cli.check_text import told
from roadaware.cli.options import (
    USUAL,
    WHOLE_SEED,
    Common,
    Html,
    Outcome,
    OutputFolder,
    Overwrite,
    Switch,
)
from roadaware.cli.text import paragraphs

if TYPE_CHECKING:
    from roadaware.analysis.quality import Quality

check = App(
    name="check",
    help=paragraphs("""
        Check annotations: against a second pair of eyes, dictionaries, and the rules that always hold.

        For example:

            roadaware check example runs/rounds

            roadaware check annotations runs/rounds/original runs/rounds/round1 runs/rounds/round2
        """),
    help_format="plaintext",
)
_FILE = "a native file or folder, or tables that `read -o` saved."
_WORDS = "Text file of words that no description may hold, one word or phrase a line."
_LABELS = "Label map (.pbtxt) of AVA's files."
_FOLDER = "Write items, agreement and a page into this folder."
_STRICT = "Exit with 1 if an item failed or is disputed."
_PAGE, _TITLE = "report.html", "Check of annotations"


def check_annotations(
    original: Annotated[Path, Parameter(help=f"As first annotated: {_FILE}")],
    round1: Annotated[Path, Parameter(help=f"As the first reviewer left it: {_FILE}")],
    round2: Annotated[Path | None, Parameter(help="As a second reviewer has it: the same forms.")] = None,
    /,
    *,
    labels: Annotated[Path | None, Parameter(help=_LABELS)] = None,
    forbidden_words: Annotated[Path | None, Parameter(help=_WORDS)] = None,
    limits: Limits = USUAL_LIMITS,
    native: Native = USUAL_NATIVE,
    html: Html = None,
    folder: Annotated[Path | None, Parameter(help=_FOLDER), OutputFolder, outputs.RESULT] = None,
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False,
    common: Common = USUAL,
) -> Outcome:
    """Compare annotations with one or two rounds of checking: each item passes, fails, or is disputed.

    Round 1 checks and updates the original: differences within the limits pass, greater ones fail. Round 2
    judges round 1 on its own: what it does not agree with is disputed, and two further annotators decide.
    Boxes are compared edge by edge (8 px at 1280x720, so 2 px at 320x180), starts and ends within 2 frames
    at 5 per second; exactly the limit passes. Labels are looked up in the dictionaries of Chaotic World,
    descriptions searched for words that you list, and structure is checked: boxes inside the picture, ends
    after starts, known persons, nobody his own object, relations inside both tracks, boxes of sounds where
    the sound starts, reviewers that differ.

    For example:

        roadaware check annotations original.json reviewed.json --html quality.html

        roadaware check annotations a.csv b.csv c.csv --reader chaotic_world \\
            --forbidden-words words.txt -o runs/quality --strict

        roadaware check annotations ava1.csv ava2.csv --labels list.pbtxt \\
            --dictionary none --frames 10 --frame-rate file
    """
    from roadaware.cli.output import write_text

    config, allowed, words = limits.config(), dictionary_of(limits.dictionary), words_of(forbidden_words)
    options = native.options(labels)
    scenes = [opened(path, native.reader, options) for path in (original, round1, round2) if path is not None]
    from roadaware.analysis.quality import check as checked

    with console.working("checking"):
        found = checked(*scenes, config=config, dictionary=allowed, words=words)
    if html is not None:
        write_text(html, page(found))
        console.note(f"wrote {html}")
    if folder is not None:
        _save(found, folder, overwrite=overwrite)
    summary = found.summary()
    wrong = summary["fail"] + summary["disputed"]
    failed = f"--strict: {summary['fail']} items failed, {summary['disputed']} are disputed"
    return Outcome(told(found), found.to_dict(), failed if strict and wrong else None)


_EXAMPLE = "A new or empty folder; an earlier example is replaced."


def example(
    folder: Annotated[Path, Parameter(help=_EXAMPLE), outputs.ROUNDS],
    /,
    *,
    seed: Annotated[int, Parameter(help="Of the scenes and the differences.", validator=WHOLE_SEED)] = 0,
    common: Common = USUAL,
) -> Outcome:
    """Write a small set of annotations with two rounds of checking and known faults, to try `check` on.

    It has original, round1 and round2 (tables), words.txt (a list for --forbidden-words) and planted.json
    (what is wrong, and what a check should say).

    For example:

        roadaware check example runs/rounds
    """
    from dataclasses import asdict

    from roadaware.cli.output import json_text, make_folder, write_text
    from roadaware.scenes.demo.annotations import FORBIDDEN, annotation_rounds
    from roadaware.scenes.store import save

    rounds = annotation_rounds(seed=seed)
    versions = {"original": rounds.original, "round1": rounds.round1, "round2": rounds.round2}
    make_folder(folder)
    for name, scenes in versions.items():
        save(scenes, folder / name, overwrite=True)
    planted = [asdict(fault) for fault in rounds.planted]
    write_text(
        folder / "words.txt", "".join(f"{word}\n" for word in ("# never in a description", *FORBIDDEN))
    )
    write_text(folder / "planted.json", json_text({"seed": seed, "planted": planted}))
    shown = text.cell(folder)
    said = (
        f"wrote {shown}: original, round1, round2, words.txt and planted.json ({len(planted)} faults)\n"
        f"$ roadaware check annotations {shown}/original {shown}/round1 {shown}/round2 "
        f"--forbidden-words {shown}/words.txt"
    )
    return Outcome(said, {"folder": str(folder), "seed": seed, "planted": planted})


check.command(
    check_annotations, name="annotations", help=paragraphs(check_annotations.__doc__ or ""), sort_key=0
)
check.command(example, help=paragraphs(example.__doc__ or ""), sort_key=1)


def page(found: Quality) -> str:
    """The result as one page that needs no network."""
    from roadaware.reports.page import report
    from roadaware.reports.quality import quality_sections

    with console.working("report"):
        return report(quality_sections(found), title=_TITLE)


def _save(found: Quality, folder: Path, *, overwrite: bool) -> None:
    """Items, agreement and page as one result folder."""
    import polars as pl

    from roadaware.cli.runs import parquet
    from roadaware.scenes.csv_text import csv_text

    flat = found.items.with_columns(
        pl.col(name).list.join("; ")
        for name, dtype in found.items.schema.items()
        if dtype == pl.List(pl.String)
    )
    files = {
        "items.parquet": parquet(found.items),
        "items.csv": csv_text(flat).encode(),
        "agreement.csv": csv_text(found.agreement).encode(),
        "label_agreement.csv": csv_text(found.labels).encode(),
        _PAGE: page(found).encode("utf-8", errors="backslashreplace"),
    }
    data = {name: value for name, value in found.to_dict(most=0).items() if name != "items"}
    folders.put_folder(folder, folders.with_marker(files, data), overwrite=overwrite)
    console.note(f"wrote {folder} (report: {folder / _PAGE})")
