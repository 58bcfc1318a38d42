"""`roadaware check`: do annotations hold up, between rounds of checking and by themselves?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
from cyclopts import Parameter

from roadaware.analysis.quality import Dictionary, ForbiddenWords, QualityConfig
from roadaware.analysis.quality import check as checked
from roadaware.cli import console, datasets, outputs
from roadaware.cli.options import (
    USUAL,
    WHOLE_SEED,
    Common,
    Html,
    Outcome,
    Output,
    Overwrite,
    Several,
    Switch,
    add_commands,
    create_app,
)
from roadaware.cli.results import write_page, write_result
from roadaware.datasets import get_reader, read
from roadaware.datasets.detect_format import detect_dataset_format
from roadaware.demo_data.annotations import FORBIDDEN, generate_annotation_rounds
from roadaware.errors import InputError, UsageError
from roadaware.io import folders
from roadaware.io.csv import format_csv
from roadaware.io.files import read_regular
from roadaware.io.folders import encode_json, make_folder, write_text
from roadaware.reports import terminal
from roadaware.reports.page import report
from roadaware.reports.quality import build_quality_sections
from roadaware.reports.quality_text import format_quality
from roadaware.reports.runs import encode_parquet
from roadaware.scenes.store import save

if TYPE_CHECKING:
    from roadaware.analysis.quality import Quality
    from roadaware.scenes.tables import Scenes

# What `roadaware check` is given: annotations in any form, limits, dictionaries and lists of words.

_LIMIT = 1 << 24


@Parameter(name="*")
@dataclass(frozen=True)
class Limits:
    """How far versions may differ, and what is looked up."""

    edge_px: float = 8.0
    """Largest difference of an edge that passes, in pixels at --resolution."""
    resolution: str = "1280x720"
    """Resolution at which --edge-px counts; boxes of other sizes are brought to it."""
    frames: float = 2.0
    """Largest difference of a start or an end that passes, in frames at --frame-rate."""
    frame_rate: str = "5"
    """Frames per second of --frames; `file` for frames of the file."""
    dictionary: str | None = None
    """JSON of allowed labels by kind, {"action": [...], "predicate": [...]}; `none` to look nothing up."""
    any_reviewer: Annotated[bool, Switch] = False
    """Do not ask that a round was checked by somebody else."""

    def config(self) -> QualityConfig:
        """The limits of the check.

        Raises:
            UsageError: if one of them makes no sense.
        """

        sides = self.resolution.lower().split("x")
        if len(sides) != 2 or not all(
            side.isascii() and side.isdecimal() and len(side) < 7 for side in sides
        ):
            raise UsageError(
                f"--resolution needs WIDTHxHEIGHT, such as 1280x720; got {self.resolution[:40]!r}"
            )
        try:
            rate = None if self.frame_rate.strip().lower() == "file" else float(self.frame_rate)
        except ValueError as error:
            raise UsageError(
                f"--frame-rate needs a number or `file`; got {self.frame_rate[:40]!r}"
            ) from error
        return QualityConfig(
            edge_px=self.edge_px,
            resolution=(int(sides[0]), int(sides[1])),
            frames=self.frames,
            frame_rate=rate,
            reviewers_differ=not self.any_reviewer,
        )


@Parameter(name="*")
@dataclass(frozen=True)
class Native:
    """How native files are read."""

    reader: str | None = None
    """Name of the reader of native files, such as label_studio; told from their content if left away."""
    kinds: Annotated[list[str] | None, Several] = None
    """For Label Studio: what a control labels, such as videolabel=action."""
    fps: float | None = None
    """For Label Studio: frames per second, where the export does not say."""

    def options(self, labels: Path | None) -> dict[str, Any]:
        """The options of the reader, None where not given.

        Args:
            labels: a label map.

        Raises:
            UsageError: if --kinds is not made of pairs.
        """
        return {"labels": labels, "kinds": _kinds(self.kinds), "fps": self.fps}


USUAL_LIMITS, USUAL_NATIVE = Limits(), Native()


def open_annotations(
    path: Path, reader: str | None = None, options: Mapping[str, Any] | None = None
) -> Scenes:
    """Annotations in any form: tables that were saved, or native files.

    Args:
        path: where they lie.
        reader: of native files; told from their content where None.
        options: of the reader, by name; None where not given.

    Raises:
        InputError: if they cannot be read, or nothing tells what they are.
        UsageError: if the reader takes no such option.
    """
    given = {name: value for name, value in (options or {}).items() if value is not None}
    if datasets.is_saved(path):
        from roadaware.scenes.store import open_scenes

        with console.log_step(f"opening {path}"):
            return open_scenes(path)
    if not path.exists():
        raise InputError("there is no such file or folder", where=str(path), hint="Check the path.")

    name = reader or detect_dataset_format(path)
    lacking = [f"--{option}" for option in given if option not in get_reader(name).options]
    if lacking:
        raise UsageError(f"{', '.join(lacking)}: annotations of {name} take none; leave it away")
    with console.show_progress(f"reading {path.name}") as progress:
        # A label map lies outside of what the cache watches.
        return read(name, path, cache="labels" not in given, progress=progress, **given)


def load_dictionary(given: str | None) -> Dictionary | None:
    """The user's dictionary; an empty one for `none`; None for the usual one.

    Raises:
        InputError: if it is not lists of labels by kind.
    """

    if given is None:
        return None
    if given.lower() == "none":
        return Dictionary({}, title="none")
    path = Path(given)
    wanted = 'Write {"action": ["running", ...], "predicate": [...], "sound": [...], "event": [...]}.'
    try:
        found = json.loads(read_regular(path, limit=_LIMIT).decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"the dictionary cannot be read: {error.strerror}", where=given) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"expected JSON in UTF-8: {error}", where=given, hint=wanted) from error
    lists = isinstance(found, dict) and all(isinstance(names, list) for names in found.values())
    if not lists or not all(isinstance(name, str) for names in found.values() for name in names):
        raise InputError("expected lists of labels by kind", where=given, hint=wanted)
    return Dictionary(found, title=path.name)


def load_forbidden_words(path: Path | None) -> ForbiddenWords | None:
    """The user's list of forbidden words; None where none is given.

    Raises:
        InputError: if it cannot be read, or holds no word.
    """

    if path is None:
        return None
    try:
        lines = read_regular(path, limit=_LIMIT).decode("utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"the list of words cannot be read: {error.strerror}", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise InputError("expected text in UTF-8", where=str(path), hint="Save the list as UTF-8.") from error
    try:
        return ForbiddenWords([line for line in lines if not line.lstrip().startswith("#")])
    except InputError as error:
        raise InputError(error.message, where=str(path), hint=error.hint) from error


def _kinds(pairs: Sequence[str] | None) -> dict[str, str] | None:
    """Control to kind of label, out of CONTROL=KIND.

    Raises:
        UsageError: if one is not such a pair.
    """
    split = [pair.partition("=") for pair in pairs or ()]
    if not all(control and kind for control, _, kind in split):
        raise UsageError(
            f"--kinds needs CONTROL=KIND, such as videolabel=action; got {' '.join(pairs or ())}"
        )
    return {control: kind for control, _, kind in split} or None


check = create_app(
    "check",
    """
    Check annotations: against a second pair of eyes, dictionaries, and the rules that always hold.

    For example:

        roadaware check example runs/rounds

        roadaware check annotations runs/rounds/original runs/rounds/round1 runs/rounds/round2
    """,
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
    folder: Annotated[Path | None, Parameter(help=_FOLDER), Output, outputs.RESULT] = None,
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False,
    common: Common = USUAL,
) -> Outcome:
    """Compare annotations with one or two rounds of checking: each item passes, fails, or is disputed.

    Round 1 checks and updates the original: differences within the limits pass, greater ones fail. Round 2
    judges round 1 on its own: what it does not agree with is disputed, and two further annotators decide.
    Boxes are compared edge by edge (8 px at 1280x720, so 2 px at 320x180), starts and ends within 2 frames
    at 5 per second; exactly the limit passes. Labels are looked up in the dictionaries of Chaotic World,
    descriptions searched for words that you list, and structure is checked: boxes inside the image, ends
    after starts, known persons, nobody his own object, relations inside both tracks, boxes of sounds where
    the sound starts, reviewers that differ.

    For example:

        roadaware check annotations original.json reviewed.json --html quality.html

        roadaware check annotations a.csv b.csv c.csv --reader chaotic_world \\
            --forbidden-words words.txt -o runs/quality --strict

        roadaware check annotations ava1.csv ava2.csv --labels list.pbtxt \\
            --dictionary none --frames 10 --frame-rate file
    """

    config, allowed, words = (
        limits.config(),
        load_dictionary(limits.dictionary),
        load_forbidden_words(forbidden_words),
    )
    options = native.options(labels)
    scenes = [
        open_annotations(path, native.reader, options)
        for path in (original, round1, round2)
        if path is not None
    ]

    with console.log_step("checking"):
        found = checked(*scenes, config=config, dictionary=allowed, words=words)
    if html is not None:
        write_page(html, render_quality_page(found))
    if folder is not None:
        _save(found, folder, overwrite=overwrite)
    summary = found.summary()
    wrong = summary["fail"] + summary["disputed"]
    failed = f"--strict: {summary['fail']} items failed, {summary['disputed']} are disputed"
    return Outcome(format_quality(found), found.to_dict(), failed if strict and wrong else None)


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

    rounds = generate_annotation_rounds(seed=seed)
    versions = {"original": rounds.original, "round1": rounds.round1, "round2": rounds.round2}
    make_folder(folder)
    for name, scenes in versions.items():
        save(scenes, folder / name, overwrite=True)
    planted = [asdict(fault) for fault in rounds.planted]
    write_text(
        folder / "words.txt", "".join(f"{word}\n" for word in ("# never in a description", *FORBIDDEN))
    )
    write_text(folder / "planted.json", encode_json({"seed": seed, "planted": planted}))
    shown = terminal.format_cell(folder)
    said = (
        f"wrote {shown}: original, round1, round2, words.txt and planted.json ({len(planted)} faults)\n"
        f"$ roadaware check annotations {shown}/original {shown}/round1 {shown}/round2 "
        f"--forbidden-words {shown}/words.txt"
    )
    return Outcome(said, {"folder": str(folder), "seed": seed, "planted": planted})


add_commands(check, (check_annotations, example), check_annotations="annotations")


def render_quality_page(found: Quality) -> str:
    """The result as one page that needs no network."""

    with console.log_step("report"):
        return report(build_quality_sections(found), title=_TITLE)


def _save(found: Quality, folder: Path, *, overwrite: bool) -> None:
    """Items, agreement and page as one result folder."""

    flat = found.items.with_columns(
        pl.col(name).list.join("; ")
        for name, dtype in found.items.schema.items()
        if dtype == pl.List(pl.String)
    )
    files = {
        "items.parquet": encode_parquet(found.items),
        "items.csv": format_csv(flat).encode(),
        "agreement.csv": format_csv(found.agreement).encode(),
        "label_agreement.csv": format_csv(found.labels).encode(),
        _PAGE: render_quality_page(found).encode("utf-8", errors="backslashreplace"),
    }
    data = {name: value for name, value in found.to_dict(most=0).items() if name != "items"}
    write_result(folder, folders.add_marker(files, data), overwrite=overwrite)
