"""A mistake planted in a tracker's MOT text is named and undone, and the corrected file scores as the clean one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from roadaware.analysis.corrected_scores import CorrectedScores, Source, correct_file
from roadaware.analysis.doctor.corrections import TrueBoxes, find_corrections
from roadaware.cli.app import main
from roadaware.errors import InputError, UsageError
from roadaware.formats.raw_predictions import RawPredictions
from roadaware.scenes.store import save
from roadaware.scenes.tables import Meta, Scenes

WIDTH, HEIGHT, FPS, LENGTH = 1280, 720, 25.0, 90
Rows = dict[str, np.ndarray]
"""Video to (n, 7) frame, id, left, top, width, height, conf as MOT has them."""


@functools.cache
def build(seed: int = 0) -> tuple[Scenes, Rows]:
    """Three videos of moving boxes, and a fair tracker of them: jittered, with gaps, false boxes and some exchanged ids."""
    rng = np.random.default_rng(seed)
    boxes, tubes, rows = [], [], {}
    for video in ("alley", "bridge", "crossing"):
        lines = []
        for track in range(1, 9):
            tube = len(tubes)
            tubes.append((tube, video, str(track)))
            begin, end = sorted((int(rng.integers(0, 40)), int(rng.integers(50, LENGTH))))
            size = rng.uniform(40, 160, 2)
            place, speed = rng.uniform((0, 0), (1000, 500)), rng.normal(0, 2, 2)
            for frame in range(begin, end):
                corner = place + speed * (frame - begin)
                boxes.append((video, frame, tube, *corner, *(corner + size)))
                if rng.random() < 0.9:
                    noisy = np.concatenate([corner + 1, size]) + rng.normal(0, 2, 4)
                    lines.append((frame + 1, track, *noisy, round(rng.uniform(0.4, 1), 4)))
        lines += [
            (int(rng.integers(1, LENGTH)), 50 + k, *rng.uniform((0, 0, 40, 40), (1000, 500, 160, 160)), 0.3)
            for k in range(6)
        ]
        rows[video] = np.array(sorted(lines))
    corners = ("x1_px", "y1_px", "x2_px", "y2_px")
    table = pl.DataFrame(boxes, orient="row", schema=["video", "frame", "tube", *corners])
    spans = table.group_by("tube").agg(start_frame=pl.col("frame").min(), end_frame=pl.col("frame").max() + 1)
    named = pl.DataFrame(tubes, orient="row", schema=["tube", "video", "name"])
    scenes = Scenes(
        videos=pl.DataFrame({"video": list(rows)}).with_columns(
            width_px=WIDTH, height_px=HEIGHT, fps=pl.lit(FPS, pl.Float32), n_frames=LENGTH
        ),
        boxes=table.with_row_index("box").with_columns(pl.col("box", "frame", "tube").cast(pl.Int64)),
        tubes=named.join(spans, on="tube", maintain_order="left"),
        meta=Meta("MOT"),
    )
    return scenes, rows


def put(rows: Rows, folder: Path) -> Path:
    folder.mkdir(parents=True)
    for video, values in rows.items():
        text = "".join(",".join(f"{number:.10g}" for number in line) + ",-1,-1,-1\n" for line in values)
        (folder / f"{video}.txt").write_text(text)
    return folder


def edit(*columns: int) -> Callable[[Callable[..., np.ndarray]], Callable[[Rows], Rows]]:
    """A change of these columns of every file."""

    def make(change: Callable[..., np.ndarray]) -> Callable[[Rows], Rows]:
        def apply(rows: Rows) -> Rows:
            found = {}
            for video, values in rows.items():
                found[video] = values.copy()
                found[video][:, list(columns)] = change(values[:, list(columns)])
            return found

        return apply

    return make


def restart_ids(rows: Rows) -> Rows:
    """Ids from 1 again in every third of the video, and each object another than in the third before."""
    found = {}
    for video, values in rows.items():
        values = values.copy()
        values[:, 1] = 1 + (values[:, 1] + 3 * (values[:, 0] // 30)) % 8
        order = np.unique(values[:, :2], axis=0, return_index=True)[1]
        found[video] = values[np.sort(order)]
    return found


def renumber_clips(rows: Rows) -> Rows:
    """Ids from 1 again in clips of thirty frames, in the order in which objects are first seen."""
    found = {}
    for video, values in rows.items():
        found[video] = values.copy()
        for clip in range(LENGTH // 30):
            inside = (values[:, 0] - 1) // 30 == clip
            known: dict[float, int] = {}
            found[video][inside, 1] = [known.setdefault(each, len(known) + 1) for each in values[inside, 1]]
    return found


def halve_ids(rows: Rows) -> Rows:
    """Two objects share each id, mostly in one frame."""
    return edit(1)(lambda ids: (ids + 1) // 2)(rows)


SIZE = np.array([WIDTH, HEIGHT] * 2)
ONE = np.array([1, 1, 0, 0])
# Says, change, and whether the corrected file scores as the clean one to the last digit or nearly.
PLANTED: dict[str, tuple[str, Callable[[Rows], Rows], float]] = {
    "frames from 0": ("Frames are 1 early", edit(0)(lambda f: f - 1), 0.02),
    "frames from 2": ("Frames are 1 late", edit(0)(lambda f: f + 1), 1e-6),
    "seconds": ("Frames are seconds", edit(0)(lambda f: (f - 1) / FPS), 1e-6),
    "seconds from 1": ("Frames are seconds", edit(0)(lambda f: f / FPS), 1e-6),
    "shares": ("are shares of the image", edit(2, 3, 4, 5)(lambda b: (b - ONE) / SIZE), 1e-6),
    "per cent": ("are per cent of the image", edit(2, 3, 4, 5)(lambda b: 100 * (b - ONE) / SIZE), 1e-6),
    "corners": (
        "second corner where width and height",
        edit(2, 3, 4, 5)(lambda b: np.hstack([b[:, :2], b[:, :2] + b[:, 2:]])),
        1e-6,
    ),
    "centre": ("centre", edit(2, 3, 4, 5)(lambda b: np.hstack([b[:, :2] + b[:, 2:] / 2, b[:, 2:]])), 1e-6),
    "640": (
        "pixels of images of 640x360",
        edit(2, 3, 4, 5)(lambda b: (b - ONE) / 2 + ONE),
        1e-6,
    ),
    "names": (
        "Videos have other names",
        lambda rows: {f"{video}.mp4": values for video, values in rows.items()},
        1e-6,
    ),
    "exchanged": (
        "Boxes are those of other videos",
        lambda rows: dict(zip(rows, [*list(rows.values())[1:], rows["alley"]], strict=True)),
        1e-6,
    ),
    "numbered": (
        "Boxes are those of other videos",
        lambda rows: {str(k): values for k, values in enumerate(rows.values())},
        1e-6,
    ),
    "unscored": ("conf is -1", edit(6)(lambda s: np.full_like(s, -1)), 1e-6),
    "per cent of scores": ("Scores are per cent", edit(6)(lambda s: 100 * s), 1e-6),
    # Joined by overlap: where several boxes stand close the tracks may go over to each other.
    "ids restart": ("Ids begin anew in the middle of videos", restart_ids, 0.1),
    "ids restart in order": ("Ids begin anew in the middle of videos", renumber_clips, 0.02),
    "ids reused": ("Ids stand for several objects", halve_ids, 0.05),
    "no ids": ("Boxes are detections", edit(1)(lambda i: np.full_like(i, -1)), 0.2),
    "an id a row": (
        "Boxes are detections",
        edit(1)(lambda i: np.arange(1, len(i) + 1, dtype=np.float64)[:, None]),
        0.2,
    ),
    # Boxes in another form fit no video as they stand, so that nothing says which is which.
    "exchanged and corners as shares": (
        "Boxes are those of other videos",
        lambda rows: PLANTED["exchanged"][1](
            edit(2, 3, 4, 5)(lambda b: np.hstack([b[:, :2] - 1, b[:, :2] - 1 + b[:, 2:]]) / SIZE)(rows)
        ),
        1e-6,
    ),
    "shares and late": (
        "are shares of the image",
        lambda rows: edit(2, 3, 4, 5)(lambda b: (b - ONE) / SIZE)(edit(0)(lambda f: f + 1)(rows)),
        1e-6,
    ),
}


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tracked") / "truth"
    save(build()[0], folder)
    return folder


@pytest.fixture(scope="module")
def clean(truth: Path, tmp_path_factory: pytest.TempPathFactory) -> CorrectedScores:
    found = correct_file(
        Source("tracking", truth, put(build()[1], tmp_path_factory.mktemp("clean") / "tracks"))
    )
    assert found.findings == ()
    assert 0.6 < (found.before or 0) < 0.98, "a fair tracker is taken as it is"
    return found


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if place % 5 else ()) for place, name in enumerate(PLANTED)],
)
def test_a_planted_mistake_of_tracks_is_named_and_undone(
    truth: Path, clean: CorrectedScores, name: str, tmp_path: Path
) -> None:
    says, change, near = PLANTED[name]
    planted, output = put(change(build()[1]), tmp_path / "tracks"), tmp_path / "out"
    found = correct_file(Source("tracking", truth, planted), output)
    assert says in " ".join(each.says for each in found.findings)
    assert len(found.findings) == 1 + (" and " in name)
    assert found.after == pytest.approx(clean.before, abs=near)
    assert found.before is None or found.before <= found.after
    assert found.beside is not None
    assert found.beside[0] == "mota"
    assert found.beside[2] is not None
    again = correct_file(Source("tracking", truth, output))
    assert again.findings == ()
    assert again.before == found.after


@pytest.mark.parametrize("by", [-1, 0, 1])
def test_a_short_video_that_is_a_frame_late_is_found(by: int, tmp_path: Path) -> None:
    scenes, rows = build(3)
    here = pl.col("video").cast(pl.String) == "bridge"
    short = scenes.boxes.filter(here, pl.col("frame") < 45)
    save(
        scenes.with_tables(videos=scenes.videos.filter(here), boxes=short, tubes=scenes.tubes.filter(here)),
        tmp_path / "truth",
    )
    seen = rows["bridge"][rows["bridge"][:, 0] <= 45]
    tracks = put({"bridge": seen + np.array([by, 0, 0, 0, 0, 0, 0])}, tmp_path / "tracks")
    found = correct_file(Source("tracking", tmp_path / "truth", tracks)).findings
    assert [each.says for each in found] == ([f"Frames are 1 {'late' if by > 0 else 'early'}."] if by else [])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_a_tracker_without_a_mistake_is_left_alone(seed: int, tmp_path: Path) -> None:
    scenes, rows = build(seed)
    save(scenes, tmp_path / "truth")
    assert correct_file(Source("tracking", tmp_path / "truth", put(rows, tmp_path / "tracks"))).findings == ()


def queue(step: float, *, missed: float = 0.0, seed: int = 0, first: int = 0) -> np.ndarray:
    """(n, 7) rows of 60 frames of cars of 80 px, 100 px apart, that move by so much a frame through the image."""
    rng = np.random.default_rng(seed)
    lines = []
    for frame in range(60):
        for car in range(int(60 * step) // 100 + 13):
            left = 1200 - 100 * car + step * frame
            if 0 <= left <= 1200 and rng.random() >= missed:
                lines.append((frame + 1, first + car + 1, left + 1, 300, 80, 60, 0.9))
    return np.array(lines)


def scene(seed: int, *, first: int = 0, start: int = 0, count: int = 12) -> np.ndarray:
    """(n, 7) rows of 30 frames of objects that move slowly at places of their own."""
    rng = np.random.default_rng(seed)
    lines = []
    for k in range(count):
        place = np.array([300 * (k % 4), 220 * (k // 4)]) + rng.uniform(0, 150, 2)
        size, speed = rng.uniform(30, 60, 2), rng.normal(0, 1, 2)
        lines += [(start + f + 1, first + k + 1, *(place + speed * f), *size, 0.9) for f in range(30)]
    return np.array(sorted(lines))


def diagnose(rows: Rows, true: Rows) -> tuple[list[str], dict[str, np.ndarray]]:
    """Codes of what is found about tracks, and the ids of each video without it."""
    table = pl.concat(
        pl.DataFrame(values[:, :6], schema=["frame", "tube", "x1_px", "y1_px", "x2_px", "y2_px"]).with_columns(
            pl.lit(video).alias("video"), pl.col("frame").cast(pl.Int64) - 1, tube=pl.col("tube").cast(pl.Int64),
            x2_px=pl.col("x1_px") + pl.col("x2_px"), y2_px=pl.col("y1_px") + pl.col("y2_px"),
        )
        for video, values in true.items()
    )  # fmt: skip
    names = [f"{video} {tube}" for video, tube in table.select("video", "tube").iter_rows()]
    objects = np.unique(names, return_inverse=True)[1]
    values = np.concatenate(list(rows.values()))
    raw = RawPredictions(
        video=pl.Series([video for video, each in rows.items() for _ in each]),
        frame=values[:, 0].astype(np.int64) - 1,
        corners=np.hstack([values[:, 2:4], values[:, 2:4] + values[:, 4:6]]),
        unit_px=np.ones((len(values), 2)),
        image_px=np.tile([WIDTH, HEIGHT], (len(values), 1)),
        write=lambda rows, path: None,
        scores=values[:, 6:7],
        label=None,
        tracks=values[:, 1].astype(np.int64),
    )
    found, fixed = find_corrections(raw, TrueBoxes(table, objects))
    assert fixed.tracks is not None
    ids = {video: fixed.tracks[(raw.video == video).to_numpy()] for video in rows}
    return [each.finding.code for each in found], ids


@pytest.mark.parametrize("missed", [0.0, 0.15])
@pytest.mark.parametrize("step", [20.0, 60.0, 100.0, 130.0])
def test_dense_traffic_with_right_ids_is_left_alone(step: float, missed: float) -> None:
    rows = {"queue": queue(step, missed=missed)}
    codes, ids = diagnose(rows, rows)
    assert codes == []
    np.testing.assert_array_equal(ids["queue"], rows["queue"][:, 1])


@pytest.mark.parametrize("first", [0, 100])
def test_a_queue_that_is_tracked_clip_by_clip_is_joined(first: int) -> None:
    true = queue(20.0)
    rows = true.copy()
    later = rows[:, 0] > 30
    rows[later, 1] = first + 1 + rows[later, 1] - rows[later, 1].min()
    codes, ids = diagnose({"queue": rows}, {"queue": true})
    assert codes == ["ids_restart"]
    assert len(np.unique(np.stack([ids["queue"], true[:, 1]]), axis=1).T) == len(np.unique(true[:, 1]))


def test_a_cut_to_another_scene_begins_no_ids_anew() -> None:
    rows = {
        f"film {k}": np.concatenate([scene(2 * k), scene(2 * k + 1, first=12, start=30)]) for k in range(4)
    }
    assert diagnose(rows, rows)[0] == []


@pytest.mark.parametrize("first", [0, 6])
def test_ids_that_are_reused_are_named_where_a_video_has_a_cut(first: int) -> None:
    true = {f"film {k}": scene(k) for k in range(4)}
    true["film 0"] = np.concatenate([true["film 0"], scene(9, first=12, start=30)])
    rows = halve_ids(true)
    rows["film 0"][30 * 12 :, 1] += first - 6
    codes, ids = diagnose(rows, true)
    assert codes == ["ids_reused"]
    for video, values in true.items():
        assert len(np.unique(np.stack([ids[video], values[:, 1]]), axis=1).T) == len(np.unique(values[:, 1]))


def test_ids_that_are_reused_and_begin_anew_are_named_both() -> None:
    true = {f"film {k}": scene(k) for k in range(4)}
    rows = halve_ids(true)
    values = true["film 0"].copy()
    values[values[:, 0] > 15, 1] = 13 - values[values[:, 0] > 15, 1]
    rows["film 0"] = values
    assert diagnose(rows, true)[0] == ["ids_reused", "ids_restart"]


@pytest.mark.parametrize("line", ["frame,id,x", "1,2.5,3,4,5,6,1", "1,1,3,4,5,nan,1", "1,1,3,4,5,6"])
def test_rows_that_are_no_tracks_are_refused(line: str, truth: Path, tmp_path: Path) -> None:
    (tmp_path / "alley.txt").write_text(f"1,1,10,10,20,20,1,-1,-1,-1\n{line}\n")
    with pytest.raises(InputError, match="a row should be frame,id"):
        correct_file(Source("tracking", truth, tmp_path / "alley.txt"))


def test_what_is_no_text_of_a_tracker_is_refused(truth: Path, tmp_path: Path) -> None:
    (tmp_path / "tracks.json").write_text("[]")
    with pytest.raises(UsageError, match="no MOT text"):
        correct_file(Source("tracking", truth, tmp_path / "tracks.json"))
    (tmp_path / "alley.txt").write_text("")
    with pytest.raises(InputError, match="the file is empty"):
        correct_file(Source("tracking", truth, tmp_path / "alley.txt"))


def test_doctor_of_tracking_says_both_scores(
    truth: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    late = {video: values + np.array([1, 0, 0, 0, 0, 0, 0]) for video, values in build()[1].items()}
    tracks = put(late, tmp_path / "tracks")
    words = ["--truth", str(truth), "--predictions", str(tracks), "--output", str(tmp_path / "fixed")]
    assert main(["doctor", "tracking", *words]) == 0
    said = capsys.readouterr().out
    assert "Frames are 1 late" in said
    assert "hota corrected" in said
    assert "mota as written" in said
    assert sorted(path.name for path in (tmp_path / "fixed").iterdir()) == [f"{video}.txt" for video in late]
