"""Annotations of one's own, such as in the forms of AVA, VidVRD, VGG-SS or YOLO, with the films that lie beside them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from roadaware.datasets.detect_format import FILMS
from roadaware.datasets.issues import Findings
from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.io.images import parse_image_size
from roadaware.io.sources import to_printable
from roadaware.io.storage import locate_content
from roadaware.io.video import VideoReader
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

PICTURES = (".jpg", ".jpeg", ".png")
"""Suffixes of the pictures that stand for films in sets of sounds, where one picture is one item."""
FORMS = ("ava", "chaotic_world", "vidvrd", "hcstvg", "vidstg", "vggss")
"""Readers of annotations that films belong to."""
UNIT_NOTES = ("unit_pictures", "unit_boxes")
"""Notes of sets whose images count as 1 x 1: of AVA and VGG-SS, whose moments are seconds or items, and of YOLO, which counts
frames."""
_DEEPEST, _MOST_FILES, _HEAD_BYTES, _NAMED = 3, 200_000, 1 << 16, 5
_log = logging.getLogger("roadaware")


@dataclass(frozen=True)
class FoundFilm:
    """A film, or the picture that stands for it.

    Args:
        path: relative to the folder that was searched.
        width_px: of its images.
        height_px: of its images.
        fps: frames per second; None of a picture, or where the film does not say.
        n_frames: how many it has.
    """

    path: str
    width_px: int
    height_px: int
    fps: float | None
    n_frames: int


def attach_films(scenes: Scenes, root: Path, *, strict: bool = False) -> Scenes:
    """The scenes in frames and pixels of their films; videos whose film is not found are in `rejected`.

    Boxes in shares of the image become pixels, moments in seconds the frame shown then, an item of VGG-SS the middle
    frame of its film. Boxes in pixels of another size than the film's are scaled, which is counted.

    Args:
        scenes: annotations.
        root: the folder with the films, searched three folders deep; `videos.path` starts there.
        strict: a missing film is an error.

    Raises:
        DatasetNotFoundError: if no film is found, or under `strict` one is missing; names them.
    """
    findings = Findings()
    # Stem to paths, below a folder, of the films and pictures in it
    if not root.is_dir():
        raise DatasetNotFoundError("there is no such folder of films", where=to_printable(str(root)))
    found: dict[str, list[str]] = {}
    for count, path in enumerate(_walk(root, _DEEPEST), 1):
        if count > _MOST_FILES:
            raise InputError(
                f"more than {_MOST_FILES:,} files; name the folder of the films", where=str(root)
            )
        if path.suffix.lower() in (*FILMS, *PICTURES):
            found.setdefault(path.stem, []).append(path.relative_to(root).as_posix())
    files = found
    films: dict[str, FoundFilm] = {}
    missing: list[str] = []
    stills = "unit_pictures" in scenes.meta.notes and not scenes.sounds.is_empty()
    for row in scenes.videos.iter_rows(named=True):
        video = str(row["video"])
        place = _find_file(video, row.get("path"), files, stills=stills)
        if place is None:
            missing.append(video)
            text = " or ".join((*FILMS[:3], *(PICTURES[:1] if stills else ())))
            findings.reject("videos", str(root), video, f"no film is called so ({text})", rows=0)
            continue
        try:
            films[video] = _open_film(root, place)
        except InputError as error:
            missing.append(video)
            findings.reject("videos", place, video, f"the film cannot be opened: {error.message}", rows=0)
    if missing and (strict or not films):
        named = ", ".join(repr(to_printable(name, 60)) for name in missing[:_NAMED])
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        raise DatasetNotFoundError(
            f"{len(missing)} of {len(scenes.videos)} films are missing: {named}{more}",
            where=to_printable(str(root)),
            hint="put each film there under the name that the annotations give it, such as NAME.mp4, or name the "
            "folder of the films",
        )
    for name in missing[:_NAMED]:
        _log.warning("no film of video %s in %s: it is left out", to_printable(name, 60), root)
    kept = scenes.only(films) if missing else scenes
    moved = _move_to_films(kept, films, findings)
    rejected = pl.concat([scenes.rejected, findings.table()], how="diagonal_relaxed")
    notes = {name: value for name, value in scenes.meta.notes.items() if name not in UNIT_NOTES}
    warnings = [*notes.get("warnings", []), *findings.notes()["warnings"]]
    return moved.with_tables(
        rejected=rejected, meta=replace(scenes.meta, notes={**notes, "warnings": warnings})
    )


def _walk(folder: Path, depth: int) -> Iterable[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and depth > 0 and not path.is_symlink():
            yield from _walk(path, depth - 1)
        elif path.is_file():
            yield path


def _find_file(video: str, given: str | None, files: dict[str, list[str]], *, stills: bool) -> str | None:
    """The file of a video below a folder: what the annotations say, else one of its name, films before pictures."""
    every = {name for names in files.values() for name in names} if given else set()
    if given in every:
        return given
    known = [*files.get(video, []), *files.get(video.rpartition("/")[2], [])]
    known += files.get(Path(video).stem, []) if Path(video).suffix.lower() in FILMS else []
    for suffixes in (FILMS, PICTURES) if stills else (FILMS,):
        for name in known:
            if Path(name).suffix.lower() in suffixes:
                return name
    return None


def _open_film(root: Path, name: str) -> FoundFilm:
    """Raises an InputError if it cannot be opened."""
    path = root / name
    if path.suffix.lower() in PICTURES:
        with locate_content(path).open("rb") as file:
            size = parse_image_size(file.read(_HEAD_BYTES))
        if size is None:
            raise InputError("it is no picture", where=to_printable(str(path)))
        return FoundFilm(name, size[0], size[1], None, 1)
    with VideoReader(path) as film:
        return FoundFilm(name, film.width_px, film.height_px, film.fps, len(film))


def _move_to_films(scenes: Scenes, films: dict[str, FoundFilm], findings: Findings) -> Scenes:
    """The tables in pixels and frames of the films."""
    unit = any(note in scenes.meta.notes for note in UNIT_NOTES)
    seconds = "unit_pictures" in scenes.meta.notes and scenes.sounds.is_empty()
    selected = {str(row["video"]): row for row in scenes.videos.iter_rows(named=True)}
    rows = []
    for video, film in films.items():
        wide, high = (
            selected[video].get(name) or size
            for name, size in (("width_px", film.width_px), ("height_px", film.height_px))
        )
        scaled = not unit and (wide, high) != (film.width_px, film.height_px)
        findings.warn("films of another size than the annotations say, boxes scaled", video, int(scaled))
        middle = film.n_frames // 2 if "unit_pictures" in scenes.meta.notes and not seconds else 0
        rate = (film.fps or 25.0) if seconds else 1.0
        rows.append((video, film.width_px / wide, film.height_px / high, rate, middle, film.n_frames))
    names = ("video", "fx", "fy", "rate", "middle", "count")
    facts = pl.DataFrame(
        rows,
        schema=dict(zip(names, (pl.String, *[pl.Float64] * 3, *[pl.Int64] * 2), strict=True)),
        orient="row",
    )
    changes: dict[str, pl.DataFrame] = {}
    for name in ("boxes", "frames", "sounds"):
        table: pl.DataFrame = getattr(scenes, name)
        if table.is_empty():
            continue
        held = table.with_columns(pl.col("video").cast(pl.String)).join(
            facts, on="video", how="left", maintain_order="left"
        )
        frame = (pl.col("frame") * pl.col("rate")).round().cast(pl.Int64) + pl.col("middle")
        held = held.with_columns(frame=frame)
        if name == "boxes":
            held = held.with_columns(
                *(pl.col(c).cast(pl.Float64) * pl.col("fx" if c[0] == "x" else "fy") for c in CORNERS)
            )
        beyond = held.filter(pl.col("frame") >= pl.col("count"))
        for video, count in beyond.group_by("video", maintain_order=True).len().iter_rows():
            findings.warn(f"rows of {name} behind the end of their film, left out", video, count)
        changes[name] = held.filter((pl.col("frame") < pl.col("count")) | pl.col("frame").is_null()).drop(
            names[1:]
        )
    boxes = changes.get("boxes", scenes.boxes)
    if len(boxes) < len(scenes.boxes):
        changes["labels"] = scenes.labels.join(
            boxes.select("box"), on="box", how="semi", maintain_order="left"
        )
    if seconds and len(scenes.tubes) and "tube" in boxes.columns:
        ends = (
            boxes.drop_nulls("tube")
            .group_by("tube")
            .agg(start_frame=pl.col("frame").min(), end_frame=pl.col("frame").max() + 1)
        )
        tubes = scenes.tubes.drop("start_frame", "end_frame", strict=False)
        changes["tubes"] = tubes.join(ends, on="tube", how="left", maintain_order="left")
    columns = ("path", "width_px", "height_px", "fps", "n_frames")
    found = pl.DataFrame(
        [(video, film.path, film.width_px, film.height_px, film.fps, film.n_frames) for video, film in films.items()],
        schema={"video": pl.String, "path": pl.String, "width_px": pl.Int64, "height_px": pl.Int64, "fps": pl.Float32,
                "n_frames": pl.Int64},
        orient="row",
    )  # fmt: skip
    videos = scenes.videos.drop(columns, strict=False).with_columns(pl.col("video").cast(pl.String))
    changes["videos"] = videos.join(found, on="video", how="left", maintain_order="left")
    return scenes.with_tables(**changes)
