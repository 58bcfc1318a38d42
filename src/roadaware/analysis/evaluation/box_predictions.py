"""Predicted boxes opened in any form: saved, of evaluators, or of annotation tools and trackers with scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from roadaware.analysis.evaluation.event_inputs import NETWORK_SIZE, detect_form, open_predictions, parse_size
from roadaware.datasets import READERS, read_predictions
from roadaware.datasets.detect_format import detect_dataset_format
from roadaware.datasets.loading import add_columns, open_saved_predictions, parse_reader_options, require_path
from roadaware.errors import InputError, UsageError
from roadaware.formats import label_studio
from roadaware.formats.actions import read_action_claims, read_person_boxes
from roadaware.formats.boxes.flat import choose_kind
from roadaware.formats.coco import CocoIndex, build_scenes_index, read_results
from roadaware.formats.mot import read_tracks
from roadaware.scenes.store import is_saved
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.steps import show_progress


def open_box_predictions(
    path: Path,
    reader: str | None = None,
    truth: Scenes | None = None,
    index: CocoIndex | None = None,
    option: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> tuple[Predictions, str]:
    """Predictions, and what they were taken for; "" for saved tables.

    Args:
        path: saved tables, a file or a folder.
        reader: a reader that reads predictions, or coco (results), mot, ava, mmaction2 (proposals),
            label_studio, or detections of ROAD (default: by the content).
        truth: the annotations, which name frames and classes where predictions do not.
        index: images and categories of the annotations where they are COCO JSON, by whose numbers results go.
        option: of the reader, such as fps=25.
        columns: of csv, such as frame=f.

    Raises:
        UsageError: if they cannot be read without the annotations, or options were given that the reader does not have.
        InputError: if they cannot be read.
    """
    require_path(path)
    if is_saved(path):
        if option or columns:
            raise UsageError(f"{path} holds saved tables; --option and --columns are of files of others")
        return open_saved_predictions(path), ""
    if reader is None:
        try:
            reader = detect_dataset_format(path)
        except InputError:
            reader = ""
        if reader not in ("ava", "label_studio") and not (reader in READERS and READERS[reader].predicted):
            form = detect_form(path)
            reader = "detections" if form in ("detections", "tubes") else form
    title = READERS[reader].title if reader in READERS else "detections or tubes of ROAD"
    if reader in READERS and READERS[reader].predicted:
        options = add_columns(reader, parse_reader_options(reader, option) if option else {}, columns)
        with show_progress(f"reading {reader}") as progress:
            return read_predictions(reader, path, progress=progress, **options), title
    if option or columns:
        raise UsageError(f"--option and --columns are not of predictions of {reader}")
    if reader == "mot":
        files = (
            {each.stem: each for each in sorted(path.glob("*.txt"))} if path.is_dir() else {path.stem: path}
        )
        if not files:
            raise UsageError(f"{path} holds no text of MOT, such as VIDEO.txt")
        return read_tracks(files, truth), title
    if reader == "label_studio":
        found = label_studio.read_predictions(path)
        # A region has one score, which is that of each of its boxes.
        scores = (
            found.tubes.select("tube", "score")
            if "score" in found.tubes.columns
            else found.tubes.select("tube", score=None)
        )
        return found.with_tables(boxes=found.boxes.drop("score", strict=False).join(
            scores, on="tube", how="left", maintain_order="left")), title  # fmt: skip
    if reader == "mmaction2":
        proposed = read_person_boxes(path, truth)
        names = proposed.boxes["video"].cast(pl.String).unique(maintain_order=True)
        # Shares of the image and seconds, where no annotations say more.
        videos = (
            pl.DataFrame({"video": names}).with_columns(width_px=1, height_px=1, fps=pl.lit(1, pl.Float32))
            if truth is None
            else truth.videos.filter(pl.col("video").cast(pl.String).is_in(names.implode()))
        )
        return proposed.with_tables(videos=videos), "MMAction2's proposals"
    if reader not in ("coco", "ava", "detections"):
        known = [name for name, each in READERS.items() if each.predicted]
        raise UsageError(
            f"no predictions are read from {reader}; they are from {', '.join(known)}, mot, coco, ava, mmaction2, "
            "label_studio, detections"
        )
    if truth is None:
        raise UsageError(
            f"{path} does not name its frames and classes: say --truth TRUTH, the annotations it is about"
        )
    if reader == "ava":
        return read_action_claims(path, truth), title
    if reader == "coco":
        return read_results(path, index or build_scenes_index(truth, choose_kind(truth) or "agent")), title
    return open_predictions(path, truth, parse_size(NETWORK_SIZE)).tables, title
