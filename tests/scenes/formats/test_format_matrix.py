"""The matrix of docs/formats.md, cell by cell: a green cell is gone through by the command line, a red one is refused there.

`python tests/scenes/formats/test_format_matrix.py` prints the colours that the command line gives.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

if __name__ == "__main__":
    sys.path += [str(Path(__file__).parent), str(Path(__file__).resolve().parents[2] / "data")]

import test_box_forms as forms
import test_converted_predictions as converted
from sets import SETS, maker, rows_add_up

from roadaware.cli.app import main
from roadaware.datasets import READERS
from roadaware.formats.boxes.comparison import count_differences
from roadaware.formats.boxes.forms import FORMS, MARKER, PREDICTED
from roadaware.formats.truth_files import WRITERS
from roadaware.scenes.store import open_scenes, save
from roadaware.scenes.tables import Meta, Predictions, Scenes

PAGE = Path(__file__).resolve().parents[3] / "docs" / "formats.md"
COLUMNS = ("read", "written", "predictions read", "predictions written")
NAMES = ("Straße 7 – 日本 №1", "one frame", "nothing at all", "100%_a.b~c")


class RefusedError(Exception):
    """What the command line said when it took something not."""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))


def run(*words: str | Path) -> None:
    """A command.

    Raises:
        RefusedError: where it ends in anything but 0.
    """
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = main([str(word) for word in words])
    if code:
        raise RefusedError(f"exit {code}: {said.getvalue()}")


def awkward_scenes(holds: frozenset[str]) -> Scenes:
    """Tables of which a form that holds these things loses nothing, with what tends to get lost.

    Names with spaces and of other alphabets, a video of one frame and one without boxes, tracks up to 2 ** 53 - 1, corners at
    fractions of pixels and outside of the image, odd sizes, 29.97 images a second.
    """
    videos, frames, boxes, labels, tubes = [], [], [], [], []
    hides = bool({"occluded", "hidden"} & holds)
    for v, (name, length) in enumerate(zip(NAMES, (7, 1, 3, 2), strict=True)):
        split = ["default/val" if v % 2 else "default/train"] if "split" in holds else None
        videos.append((name, 1921, 1081, 29.97 if "rate" in holds else None, length, split))
        frames += [(name, frame, True) for frame in range(length)]
        if name == "nothing at all":
            continue
        for k, mark in enumerate((2**53 - 1, 2**53 - 2, 7) if "track" in holds else (None, None)):
            if mark is not None:
                tubes.append((10 * v + k, name, str(mark)))
            for frame in range(length):
                x1, y1 = (-12.25, 1900.125, 0.0)[k] + frame / 3, (-0.5, 1070.75, 500.0)[k]
                bare = "unclassed" in holds and k == 2
                box = (len(boxes), name, frame, None if mark is None else 10 * v + k, x1, y1, x1 + 40.1, y1 + 33.3,
                       "ignore" in holds and k == 1, "part" if k == 1 and hides else "none")  # fmt: skip
                if not bare:
                    labels.append((len(boxes), "agent", k))
                boxes.append(box)
    corners = dict.fromkeys(("x1_px", "y1_px", "x2_px", "y2_px"), pl.Float32)
    return Scenes(
        videos=pl.DataFrame(videos, orient="row", schema={
            "video": pl.String, "width_px": pl.Int64, "height_px": pl.Int64, "fps": pl.Float32, "n_frames": pl.Int64,
            "splits": pl.List(pl.String)}),
        frames=pl.DataFrame(frames, orient="row", schema={"video": pl.String, "frame": pl.Int64, "annotated": pl.Boolean}),
        boxes=pl.DataFrame(boxes, orient="row", schema={
            "box": pl.Int64, "video": pl.String, "frame": pl.Int64, "tube": pl.Int64, **corners, "ignore": pl.Boolean,
            "occlusion": pl.String}),
        labels=pl.DataFrame(labels, orient="row", schema={"box": pl.Int64, "kind": pl.String, "label": pl.Int64}),
        tubes=pl.DataFrame(tubes, orient="row", schema={"tube": pl.Int64, "video": pl.String, "name": pl.String}),
        meta=Meta("awkward", vocabularies={"agent": forms.CLASSES}),
    )  # fmt: skip


def make_native(reader: str, folder: Path) -> tuple[Path, list[str]]:
    """A tiny set in the form of a reader, and the words that say what its files do not."""
    if reader == "nuscenes":
        return maker(reader).tables(folder), []
    reader = "ava" if reader == "mmaction2" else reader
    native = SETS[reader]
    facts = [f"{name}={value}" for name, value in native.options.items()]
    return native.make(folder), ["--option", *facts] if facts else []


def prove_read(reader: str, folder: Path) -> None:
    """A set in the form, known by its content, becomes tables in which every row is or is refused."""
    path, facts = make_native(reader, folder / "set")
    if reader == "jaad":
        facts = []  # known by its content, options are of a reader that is named
    run("read", path, "-o", folder / "tables", *facts)
    scenes = open_scenes(folder / "tables")
    rows_add_up(scenes)
    assert len(scenes.videos) > 0


def prove_written(reader: str, folder: Path) -> None:
    """Tables are written, and come back as far as the form holds them; what came back gives the same files."""
    written = [form for form, each in FORMS.items() if each.reader == reader] or [reader]
    for form in written:
        place, reader = folder / form, "ava" if form == "mmaction2" else reader
        if form in forms.GENERAL:
            given, words = awkward_scenes(FORMS[form].holds), []
            save(given, place / "tables")
        else:
            path, facts = make_native(reader, place / "set")
            run("read", reader, path, "-o", place / "tables", *facts)
            given, words = open_scenes(place / "tables"), [] if form in WRITERS else ["--lossy"]
        run("convert", place / "tables", "--to", form, *words, "-o", place / "first")
        facts = ["--option", "appearance=True"] if reader == "jaad" else []
        run("read", reader, place / "first", "-o", place / "back", *facts)
        back = open_scenes(place / "back")
        assert back.rejected.is_empty()
        if form in forms.GENERAL:
            check_same(forms.summarize(back), forms.summarize(given))
        elif form in FORMS and FORMS[form].compared:
            assert not {what for what, n in count_differences(given, back).items() if n}
        assert len(back.boxes) == len(given.boxes), form
        run("convert", place / "back", "--to", form, *words, "-o", place / "second")
        texts = [
            {
                name: sorted(data.splitlines()) if name.endswith(".txt") else data
                for name, data in forms.read_files(place / each).items()
                if not name.startswith(("not-held", MARKER))
            }
            for each in ("first", "second")
        ]
        if form != "nuscenes":  # of a scene's moments the order of sensors is not that of the tables
            assert texts[0] == texts[1], form


def check_same(found: dict[str, list[tuple[object, ...]]], due: dict[str, list[tuple[object, ...]]]) -> None:
    """The same videos, frames and boxes, corners as single precision has them."""
    assert found["videos"] == due["videos"]
    assert found["frames"] == due["frames"]
    assert [row[:6] for row in found["boxes"]] == [row[:6] for row in due["boxes"]]
    for one, other in zip(found["boxes"], due["boxes"], strict=True):
        assert one[6:] == pytest.approx(other[6:], rel=2e-7, abs=1e-5)


def prove_predictions(reader: str, folder: Path) -> None:
    """Predictions are written with their scores, known by their content, and go on to a csv that holds the same."""
    for form in [form for form, each in FORMS.items() if each.reader == reader]:
        place = folder / form
        holds = PREDICTED[form].holds if form in PREDICTED else FORMS[form].holds
        given = forms.add_scores(awkward_scenes(frozenset(holds - {"ignore", "occluded", "hidden"})), 5)
        save(given, place / "tables")
        run("convert", place / "tables", "--to", form, "-o", place / "first")
        run("convert", place / "first", "--predictions", "--to", "csv", "--lossy", "-o", place / "csv")
        check_predictions(forms.read_predictions("csv", place / "csv"), given)


def prove_simulated(reader: str, folder: Path) -> None:
    """Scenes that are made are read."""
    how = ("--scenes", "1", "--seconds", "1", "--fps", "5", "--size", "160x120")
    run("simulate", "--preset", "road", *how, "-o", folder / "made")
    run("read", folder / "made", "-o", folder / "tables")
    assert len(open_scenes(folder / "tables").boxes) > 0


def refuse_annotations(reader: str, folder: Path) -> None:
    """What is said of files of predictions that are called annotations."""
    path, _ = make_native(reader, folder / "set")
    run("convert", path, "--from", reader, "--to", "csv", "--lossy", "-o", folder / "out")


def refuse_reading(reader: str, folder: Path) -> None:
    """What is said of files of the form that are called predictions."""
    path, _ = make_native(reader, folder / "set")
    run("convert", path, "--from", reader, "--predictions", "--to", "csv", "-o", folder / "out", "--lossy")


def refuse_writing(reader: str, folder: Path) -> None:
    """What is said of predictions that are to be written in the form, where scores may not get lost."""
    save(forms.add_scores(awkward_scenes(FORMS["csv"].holds), 5), folder / "tables")
    run("convert", folder / "tables", "--to", reader, "-o", folder / "out")


Proof = Callable[[str, Path], None]
_BOTH: dict[str, Callable[[Path], None]] = {
    "coco": lambda folder: prove_results(folder),
    "mot": lambda folder: prove_results_of_tracks(folder),
    "kitti": lambda folder: prove_kitti(folder),
    "kitti_tracking": lambda folder: prove_kitti_tracking(folder),
    "activitynet": lambda folder: prove_segments(folder),
    "ava": converted.test_actions_of_ava_go_to_csv_and_back_with_the_annotations,
    "mmaction2": converted.test_proposals_of_mmaction2_come_back,
    "label_studio": converted.test_tasks_of_label_studio_go_both_ways,
}
"""Predictions that need more than their files, or hold other things than boxes with any class and name."""


def prove_results(folder: Path) -> None:
    """Results of COCO, about the images of a COCO file."""
    given = forms.add_scores(awkward_scenes(frozenset(PREDICTED["coco"].holds - {"ignore", "track"})), 5)
    save(given, folder / "tables")
    run("convert", folder / "tables", "--to", "coco", "-o", folder / "first")
    truth = folder / "first" / "annotations" / "image_info_all.json"
    words = ("--truth", truth, "--to", "csv", "-o", folder / "csv")
    run("convert", folder / "first" / "results.json", *words)
    check_predictions(forms.read_predictions("csv", folder / "csv"), given)


def prove_results_of_tracks(folder: Path) -> None:
    """MOT text, whose videos have no size and whose boxes no class."""
    given = forms.add_scores(awkward_scenes(PREDICTED["mot"].holds), 5)
    given = given.with_tables(labels=given.labels.clear())
    save(given, folder / "tables")
    run("convert", folder / "tables", "--to", "mot", "--lossy", "-o", folder / "first")
    for path in (folder / "first").rglob("*.txt"):
        assert path.stem in NAMES
    run("convert", folder / "first", "--predictions", "--to", "csv", "--lossy", "-o", folder / "csv")
    check_predictions(forms.read_predictions("csv", folder / "csv"), given)


def check_predictions(back: Predictions, given: Predictions) -> None:
    """The same boxes, tracks, classes and scores."""
    found, due = forms.summarize_predictions(back), forms.summarize_predictions(given)
    assert [row[:4] for row in found] == [row[:4] for row in due]
    for one, other in zip(found, due, strict=True):
        assert one[4] == pytest.approx(other[4], rel=2e-7, abs=1e-5)


def prove_kitti(folder: Path, drives: bool = False) -> None:
    """Lines of KITTI with scores come back number by number."""
    place = folder / "set" / "training" / ("label_02" if drives else "label_2")
    place.mkdir(parents=True)
    lines = [line for line in forms.LINES.splitlines() if "DontCare" not in line]
    texts = {f"{n:06d}.txt": f"{line.split(' ', 2)[2]} 0.{n + 1}25\n" for n, line in enumerate(lines)}
    if drives:
        texts = {"0003.txt": "".join(f"{line} 0.{n + 1}25\n" for n, line in enumerate(lines))}
    for name, text in texts.items():
        (place / name).write_text(text)
    form = "kitti_tracking" if drives else "kitti"
    run("convert", folder / "set", "--predictions", "--to", form, "-o", folder / "out")
    back = {
        path.name: path.read_text() for path in (folder / "out" / place.relative_to(folder / "set")).iterdir()
    }
    assert sorted(back) == sorted(texts)
    for name, text in texts.items():
        assert forms.read_numbers(back[name]) == forms.read_numbers(text)


def prove_kitti_tracking(folder: Path) -> None:
    """The same of drives."""
    prove_kitti(folder, drives=True)


def prove_segments(folder: Path) -> None:
    """Segments with scores come back as they were."""
    listed = {"v ü": [{"segment": [0.125, 9.5], "label": "a, b", "score": 0.3}]}
    text = json.dumps({"version": "VERSION 1.3", "external_data": {}, "results": listed})
    (folder / "given.json").write_text(text)
    run("convert", folder / "given.json", "--predictions", "--to", "activitynet", "-o", folder / "out")
    assert json.loads((folder / "out" / "activitynet.json").read_text()) == json.loads(text)


def choose_proof(reader: str, column: str) -> Proof:
    """What goes through a cell: it passes, or raises what the command line said."""
    if column == "read":
        return refuse_annotations if reader == "mmaction2" else prove_read
    if column == "written":
        return prove_simulated if reader == "simulator" else prove_written
    if reader in _BOTH:
        return lambda _, folder: _BOTH[reader](folder)
    if column == "predictions read" and reader == "road":
        return lambda _, folder: converted.test_detections_of_road_go_to_csv_with_the_annotations(folder)
    if reader in {form.reader for form in PREDICTED.values()}:
        return prove_predictions
    return refuse_reading if column == "predictions read" else refuse_writing


def read_page() -> dict[tuple[str, str], str]:
    """(reader, column) to the words of its cell."""
    text = (
        PAGE.read_text(encoding="utf-8")
        .partition("## Which format goes which way")[2]
        .partition("\n**What")[0]
    )
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    return {
        (name, column): cell
        for _, names, *cells in rows[1:]
        for name in re.findall(r"`(\w+)`", names)
        for column, cell in zip(COLUMNS, cells, strict=True)
    }


def try_cell(reader: str, column: str, folder: Path) -> str:
    """`green`, or `red: ` and what the command line said."""
    try:
        choose_proof(reader, column)(reader, folder)
    except RefusedError as refusal:
        return f"red: {refusal}"
    return "green"


def test_the_page_has_a_cell_for_each_reader() -> None:
    cells = read_page()
    assert {reader for reader, _ in cells} == {*READERS, "mmaction2"}
    assert all(cell.startswith("green") or len(cell.removeprefix("red: ")) > 6 for cell in cells.values())


@pytest.mark.slow
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("reader", [*READERS, "mmaction2"])
def test_a_cell_is_what_the_page_says(reader: str, column: str, tmp_path: Path) -> None:
    page = read_page()[reader, column]
    found = try_cell(reader, column, tmp_path)
    assert page.startswith(found.partition(":")[0]), found
    if found != "green":
        assert re.match(r"red: exit [123]: roadaware: \w", found), "refused with a sentence"


if __name__ == "__main__":
    for name, column in read_page():
        with tempfile.TemporaryDirectory() as folder:
            print(f"{name:20} {column:20} {try_cell(name, column, Path(folder))[:150]!r}", flush=True)
