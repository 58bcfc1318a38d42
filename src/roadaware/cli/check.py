"""`roadaware check`: do annotations hold up, between rounds of checking and by themselves? `audit`: what is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.analysis.audit import audit as find_flaws
from roadaware.analysis.audit import render
from roadaware.analysis.audit.requirements import audit_requirements
from roadaware.analysis.quality import Dictionary, ForbiddenWords, QualityConfig
from roadaware.analysis.quality import check as find_faults
from roadaware.cli import console, outputs
from roadaware.cli.options import (
    WHOLE_SEED,
    Dataset,
    DatasetPath,
    Html,
    Outcome,
    SampleConfig,
    Several,
    Stated,
    Switch,
    TaskName,
    add_commands,
    create_app,
)
from roadaware.cli.results import NOWHERE, Kept, write_page
from roadaware.config import change_fields
from roadaware.datasets import get_reader, read
from roadaware.datasets.detect_format import detect_dataset_format
from roadaware.datasets.loading import open_dataset
from roadaware.demo_data.annotations import write_annotation_rounds
from roadaware.errors import InputError, UsageError
from roadaware.formats.corrections import build_rounds
from roadaware.reports import terminal
from roadaware.reports.quality import build_quality_files, format_quality, render_quality_page
from roadaware.scenes.requirements import open_requirements
from roadaware.scenes.sampling import get_protocol
from roadaware.scenes.store import is_saved, open_scenes

if TYPE_CHECKING:
    from roadaware.scenes.tables import Scenes


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
            UsageError: if --kinds is not made of pairs CONTROL=KIND.
        """
        pairs = [pair.partition("=") for pair in self.kinds or ()]
        if not all(control and kind for control, _, kind in pairs):
            given = " ".join(self.kinds or ())
            raise UsageError(f"--kinds needs CONTROL=KIND, such as videolabel=action; got {given}")
        kinds = {control: kind for control, _, kind in pairs} or None
        return {"labels": labels, "kinds": kinds, "fps": self.fps}


USUAL_NATIVE = Native()


# `roadaware audit`: what is wrong with a dataset, and with the samples cut from it.

_TASK = "Whose samples. [default: action, and intention on PIE]"
_REQUIREMENTS = (
    "Count instead how often boxes and tracks violate these logical requirements, those of ROAD-R in either form or your "
    "own; two files have to say the same."
)
_AUDIT_STRICT = "Exit with 1 if something serious, or a warning, was found."


def audit(
    dataset: Dataset,
    path: DatasetPath,
    /,
    *,
    task: Annotated[TaskName | None, Parameter(help=_TASK)] = None,
    requirements: Annotated[tuple[Path, ...], Parameter(help=_REQUIREMENTS), Several] = (),
    config: SampleConfig = "reference",
    html: Html = None,
    strict: Annotated[bool, Parameter(help=_AUDIT_STRICT), Switch] = False,
) -> Outcome:
    """Say what is wrong with a dataset or its published samples, with counts, reasons and examples.

    Crossing samples without an annotated event, crossing inside the observation, identifiers and tags
    that give the answer away, gaps in tracks, attributes against tags, refused rows, counts against the
    printed tables. Needs the folder or zip of the dataset.

    With --requirements the labels of any dataset of road events (road, ucf24, simulator, or saved tables) are held
    against logical requirements instead, such as the 243 of ROAD-R.

    For example:

        roadaware audit jaad JAAD-JAAD_2.0.zip

        roadaware audit jaad JAAD --task risk --html audit.html --strict

        roadaware audit road road_trainval_v1.0.json --requirements requirements_dimacs.txt
    """
    if requirements:
        if task is not None:
            raise UsageError(
                "--requirements look at labels, --task at samples of pedestrians; leave one away"
            )
        rules = open_requirements(requirements)
        scenes = open_dataset(dataset, path)
        with console.log_step("audit"):
            found = audit_requirements(scenes, rules)
    else:
        asked: TaskName = task or ("intention" if dataset == "pie" else "action")
        scenes = open_dataset(dataset, path)
        with console.log_step("audit"):
            found = find_flaws(scenes, get_protocol(f"{dataset}-{asked}@iv2024", config))
    if html is not None:
        from roadaware.reports.audit import audit_section
        from roadaware.reports.page import report

        write_page(html, report([audit_section(found)], title=f"Audit of {found.dataset}"))

    serious, warnings = (len(found.of_severity(severity)) for severity in ("serious", "warning"))
    failed = f"--strict: {serious} serious findings and {warnings} warnings"
    return Outcome(render(found), found.to_dict(), failed if strict and serious + warnings else None)


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
_VERDICTS = "Or `corrections.parquet` of the viewer, verdicts of one or two reviewers on the original."
_LIMITS = (
    "FIELD=VALUE: how far versions may differ. edge_px (8), of an edge in pixels at resolution (1280x720); frames (2), of a "
    "start or end at frame_rate (5, or `file` for frames of the file); reviewers_differ (true), whether a round has to be "
    "by somebody else."
)
_DICTIONARY = (
    'JSON of allowed labels by kind, {"action": [...], "predicate": [...]}; `none` to look nothing up. [default: Chaotic '
    "World's]"
)
_WORDS = "Text file of words that no description may hold, one word or phrase a line."


def check_annotations(
    original: Annotated[Path, Parameter(help=f"As first annotated: {_FILE}")],
    round1: Annotated[Path, Parameter(help=f"As the first reviewer left it: {_FILE} {_VERDICTS}")],
    round2: Annotated[Path | None, Parameter(help="As a second reviewer has it: the same forms.")] = None,
    /,
    *,
    labels: Annotated[Path | None, Parameter(help="Label map (.pbtxt) of AVA's files.")] = None,
    forbidden_words: Annotated[Path | None, Parameter(help=_WORDS)] = None,
    dictionary: Annotated[str | None, Parameter(help=_DICTIONARY)] = None,
    limits: Annotated[tuple[str, ...], Parameter(name="--set", help=_LIMITS), Several, Stated] = (),
    native: Native = USUAL_NATIVE,
    kept: Kept = NOWHERE,
    strict: Annotated[bool, Parameter(help="Exit with 1 if an item failed or is disputed."), Switch] = False,
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

        roadaware check annotations runs/original corrections.parquet

        roadaware check annotations ava1.csv ava2.csv --labels list.pbtxt \\
            --dictionary none --set frames=10 frame_rate=file
    """
    said = [
        each if re.sub(r"\s", "", each.lower()) != "frame_rate=file" else "frame_rate=null" for each in limits
    ]
    config = change_fields(QualityConfig(), said, "the check")
    allowed = None  # the usual ones
    if dictionary is not None:
        none = dictionary.lower() == "none"
        allowed = Dictionary({}, title="none") if none else Dictionary.load(Path(dictionary))
    words = None if forbidden_words is None else ForbiddenWords.load(forbidden_words)
    options = native.options(labels)
    if round1.suffix == ".parquet":
        if round2 is not None:
            raise UsageError(f"{round1} holds the rounds of all its annotators; leave ROUND2 away")
        whole = _open(original, native.reader, options)
        with console.log_step(f"reading {round1}"):
            judged, rounds = build_rounds(round1, whole)
        scenes = [judged, *rounds]
    else:
        named = [path for path in (original, round1, round2) if path is not None]
        scenes = [_open(path, native.reader, options) for path in named]
    with console.log_step("checking"):
        found = find_faults(*scenes, config=config, dictionary=allowed, words=words)
    if kept.wanted:
        with console.log_step("report"):
            page = render_quality_page(found)
        kept.write_both(page, lambda: build_quality_files(found))
    summary = found.summary()
    wrong = summary["fail"] + summary["disputed"]
    failed = f"--strict: {summary['fail']} items failed, {summary['disputed']} are disputed"
    return Outcome(format_quality(found), found.to_dict(), failed if strict and wrong else None)


def _open(path: Path, reader: str | None, options: dict[str, Any]) -> Scenes:
    """Annotations in any form: tables that were saved, or native files, whose content tells the reader."""
    given = {name: value for name, value in options.items() if value is not None}
    if is_saved(path):
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


_EXAMPLE = "A new or empty folder; an earlier example is replaced."


def example(
    folder: Annotated[Path, Parameter(help=_EXAMPLE), outputs.ROUNDS],
    /,
    *,
    seed: Annotated[int, Parameter(help="Of the scenes and the differences.", validator=WHOLE_SEED)] = 0,
) -> Outcome:
    """Write a small set of annotations with two rounds of checking and known faults, to try `check` on.

    It has original, round1 and round2 (tables), words.txt (a list for --forbidden-words) and planted.json
    (what is wrong, and what a check should say).

    For example:

        roadaware check example runs/rounds
    """
    planted = write_annotation_rounds(folder, seed=seed)
    files = [terminal.format_word(folder / name) for name in ("original", "round1", "round2", "words.txt")]
    said = (
        f"wrote {terminal.format_cell(folder)}: original, round1, round2, words.txt and planted.json "
        f"({len(planted)} faults)\n"
        f"$ roadaware check annotations {' '.join(files[:3])} --forbidden-words {files[3]}"
    )
    return Outcome(said, {"folder": str(folder), "seed": seed, "planted": planted})


add_commands(check, (check_annotations, example), check_annotations="annotations")
