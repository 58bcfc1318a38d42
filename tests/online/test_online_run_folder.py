"""The folder of a watch: events, tables, video and summary, and what is left of them when something fails."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from online_stubs import (
    AV,
    KINDS,
    FakeClock,
    Kept,
    Listed,
    Scripted,
    crowd,
    kept_run,
    one_car,
    picture,
    write_film,
)

from roadaware.errors import DamagedError, DiskError, InputError, UsageError
from roadaware.io.video import VideoReader, read_sound
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.models.detector import FrameDetections
from roadaware.online.config import WatchConfig
from roadaware.online.events import EventWriter, read_events
from roadaware.online.film import Film
from roadaware.online.run_folder import prepare
from roadaware.online.sources import open_source
from roadaware.online.tables import TableWriter, load_interrupted_run
from roadaware.online.times import open_timed, read_times
from roadaware.online.watch import watch
from roadaware.scenes.store import open_predictions, save
from roadaware.scenes.tables import Predictions
from roadaware.tasks.road_events import build_predictions


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "delay"),
    [
        (LinkerConfig.default(), 0),
        (LinkerConfig.reference(), 0),
        (replace(LinkerConfig.default("ucf24"), gaps="keep", cost="ioul2"), 3),
    ],
    ids=["default", "reference", "trimmed"],
)
def test_tables_are_those_of_the_offline_linker_on_the_frames_that_arrived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: LinkerConfig, delay: int
) -> None:
    monkeypatch.setattr("roadaware.online.tables._ROWS", 97)
    clock, rng = FakeClock(), np.random.default_rng(0)
    numbers = np.flatnonzero(rng.random(140) < 0.85)
    numbers = numbers[(numbers < 60) | (numbers > 75)].tolist()
    detector = Scripted(crowd(3), delay=delay)
    watching = WatchConfig(linker=config)
    kept_run(tmp_path / "run", Listed(numbers, clock), detector, clock, watching)
    tables = open_timed(tmp_path / "run")
    plain = build_predictions({"listed": [crowd(3)(n) for n in range(len(numbers))]}, _classes())
    real = pl.Series(numbers)
    predictions = Predictions(
        boxes=plain.boxes.with_columns(
            frame=real.gather(plain.boxes["frame"]), ready_s=tables.boxes["ready_s"][: len(plain.boxes)]
        ),
        frames=plain.frames.with_columns(frame=real, t_s=(real / 12.0).cast(pl.Float32)),
        meta=plain.meta,
    )
    expected = link(predictions, watching.linker_at(12.0))
    assert len(expected.tubes) > 20
    for name in ("boxes", "tubes", "tube_labels"):
        ours, theirs = getattr(tables, name), getattr(expected, name)
        assert ours.select(theirs.columns).equals(theirs), name
    assert tables.meta.notes["linker"] == expected.meta.notes["linker"]
    assert tables.frames.select(expected.frames.columns).equals(expected.frames)
    # The number of a tube in the events is the name of the path in the tables.
    paths = tables.tubes.filter(pl.col("parent").is_null())
    ends = {
        event["tube"]: event
        for event in read_events(tmp_path / "run" / "events.jsonl")
        if event["tube"] is not None
    }
    for row in paths.iter_rows(named=True):
        if int(row["name"]) in ends:
            assert ends[int(row["name"])]["first_frame"] == row["start_frame"]


def _classes() -> object:
    from roadaware.tasks.road_events import Classes

    return Classes(KINDS, AV)


def test_a_run_holds_events_tables_film_and_summary(tmp_path: Path) -> None:
    clock = FakeClock()
    path = write_film(tmp_path / "drive.mp4", frames=60, sound_rate=8000)
    source = open_source(path, clock=clock)
    kept, progress = kept_run(tmp_path / "run", source, Scripted(one_car), clock)
    summary = kept.summarise(progress)
    assert summary["files"] == [
        "events.jsonl",
        "predictions",
        "timing.parquet",
        "video.mp4",
        "timing.json",
        "summary.json",
    ]
    kept_apart = json.loads((tmp_path / "run" / "timing.json").read_text())
    assert set(kept_apart) == {"watched_s", "fps", "latency_ms"}
    assert summary == json.loads((tmp_path / "run" / "summary.json").read_text()) | kept_apart
    assert (summary["frames"], summary["tubes"], summary["ended"]["reason"]) == (60, 1, "end")
    assert [event["event"] for event in read_events(tmp_path / "run" / "events.jsonl")][-1] == "end"
    tables = open_predictions(tmp_path / "run" / "predictions")
    row = tables.videos.row(0, named=True)
    assert (row["video"], row["width_px"], row["height_px"], row["n_frames"]) == ("drive", 64, 48, 60)
    assert row["path"] == "drive.mp4"
    with VideoReader(tmp_path / "run" / "video.mp4") as film:
        assert len(film) == 60
        assert np.abs(film.frame(30).astype(int) - picture(30)).mean() < 6
    given, ours = read_sound(path, 0, 4.9)[0], read_sound(tmp_path / "run" / "video.mp4", 0, 4.9)[0]
    n = min(len(given), len(ours))
    assert n > 4.8 * 8000
    # In step to within a millisecond: the best lag of one to the other is none.
    lags = range(-40, 41, 8)
    fits = [
        float(np.corrcoef(given[4000 : n - 4000, 0], ours[4000 + lag : n - 4000 + lag, 0])[0, 1])
        for lag in lags
    ]
    assert lags[int(np.argmax(fits))] == 0
    assert max(fits) > 0.9


def test_a_film_keeps_the_pace_of_its_stream(tmp_path: Path) -> None:
    """Frames that did not arrive are filled by the one before; a pause of an hour is not."""
    film = Film(tmp_path / "a.mp4", 10.0)
    for time in (0.0, 0.1, 0.6, 0.7, 3600.7, 3600.8):
        film.write(picture(round(time * 10) % 100), time)
    assert film.close()
    with VideoReader(tmp_path / "a.mp4") as reader:
        assert len(reader) == 1 + 5 + 1 + 100 + 1 + 1
        assert np.abs(reader.frame(4).astype(int) - picture(1)).mean() < 6


def test_a_folder_is_taken_over_only_where_all_in_it_is_ours(tmp_path: Path) -> None:
    clock = FakeClock()
    kept_run(tmp_path / "run", Listed(range(5), clock), Scripted(one_car), clock)
    with pytest.raises(UsageError, match="--overwrite"):
        prepare(tmp_path / "run")
    (tmp_path / "run" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"mine\.txt"):
        prepare(tmp_path / "run", overwrite=True)
    (tmp_path / "run" / "mine.txt").unlink()
    prepare(tmp_path / "run", overwrite=True)
    assert not list((tmp_path / "run").iterdir())


class _Full:
    """A disk that takes no more after so many writes."""

    def __init__(self, writes: int) -> None:
        self.left = writes

    def __call__(self, *_: object) -> None:
        self.left -= 1
        if self.left < 0:
            raise DiskError("no space left")


@pytest.mark.parametrize("part", ["film", "events"])
def test_a_full_disk_ends_the_watch_and_keeps_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    clock, full = FakeClock(), _Full(6)
    name = {"film": "roadaware.online.film.Film.write", "events": "roadaware.online.events.EventWriter.write"}
    monkeypatch.setattr(name[part], full)
    kept, progress = kept_run(tmp_path / "run", Listed(range(40), clock), Scripted(one_car), clock)
    assert progress.ending is not None
    assert progress.ending.reason == "disk"
    tables = open_predictions(tmp_path / "run" / "predictions")
    assert len(tables.frames) in (6, 7)
    summary = kept.summarise(progress)
    assert summary["ended"]["reason"] == "disk"
    assert ("video.mp4" in summary["files"]) == (part == "events")


def test_what_a_killed_watch_left_can_be_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roadaware.online.tables._FRAMES", 10)
    clock, kept = FakeClock(), Kept()
    watch(Listed(range(35), clock), Scripted(one_car), WatchConfig(), kept, clock=clock)
    tables = TableWriter(tmp_path / "parts", _classes(), "drive", WatchConfig().linker, clock)  # type: ignore[arg-type]
    for seen in kept.seen:
        tables.add(seen)
    found = load_interrupted_run(tmp_path / "parts")  # nothing was finished
    assert found.frames["frame"].to_list() == list(range(30))
    assert len(found.tubes.filter(pl.col("parent").is_null())) == 1
    with pytest.raises(InputError):
        load_interrupted_run(tmp_path)


def test_a_last_line_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    writer = EventWriter(path, FakeClock())
    writer.write([{"event": "begin", "tube": n} for n in range(3)])
    writer.close()
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        assert len(list(read_events(path))) == whole[:cut].count(b"\n")
    path.write_bytes(b'{"event": "be\n' + whole)
    with pytest.raises(DamagedError, match=":1"):
        list(read_events(path))
    with pytest.raises(InputError):
        list(read_events(tmp_path / "absent"))


def test_events_are_flushed_to_the_disk_once_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[float] = []
    clock = FakeClock()
    monkeypatch.setattr("os.fsync", lambda _: synced.append(clock.now))
    writer = EventWriter(tmp_path / "events.jsonl", clock)
    for _ in range(40):
        clock.sleep(0.1)
        writer.write([{"event": "update"}])
    assert len(synced) == pytest.approx(4, abs=1)
    writer.close()
    assert clock.now - synced[-1] < 1e-9


class _Slow(Scripted):
    """Takes longer for each frame than a clock that stands still would have it."""

    def __init__(self, clock: FakeClock, spent_s: float) -> None:
        super().__init__(crowd(3))
        self._clock, self._spent_s = clock, spent_s

    def step(self, picture: np.ndarray) -> list[FrameDetections]:
        self._clock.now += self._spent_s
        return super().step(picture)


def _timed_run(folder: Path, spent_s: float) -> Path:
    clock = FakeClock()
    numbers = [n for n in range(60) if n % 7]
    kept, done = kept_run(folder, Listed(numbers, clock), _Slow(clock, spent_s), clock)
    kept.summarise(done)
    return folder


def test_what_the_clock_says_stands_in_files_of_its_own(tmp_path: Path) -> None:
    fast, slow = (_timed_run(tmp_path / f"{spent}", spent) for spent in (0.01, 0.04))
    told = [
        {path.relative_to(run): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}
        for run in (fast, slow)
    ]
    assert set(told[0]) == set(told[1])
    differ = {str(path) for path in told[0] if told[0][path] != told[1][path]}
    assert differ == {"timing.parquet", "timing.json"}


def test_each_event_and_box_was_known_when_its_frame_was(tmp_path: Path) -> None:
    run = _timed_run(tmp_path / "run", 0.04)
    times = read_times(run)
    ready = dict(times.iter_rows())
    frames = open_predictions(run / "predictions").frames
    assert times["frame"].to_list() == frames["frame"].to_list()
    late = times["ready_s"] - frames["t_s"]
    assert late.to_list() == pytest.approx([0.04] * len(late), abs=1e-6)
    assert {event["frame"] for event in read_events(run / "events.jsonl")} <= set(ready)
    boxes = open_timed(run).boxes
    found = boxes.filter(~pl.col("interpolated"))
    assert found["ready_s"].to_list() == [ready[frame] for frame in found["frame"]]
    made = boxes.filter(pl.col("interpolated"))
    assert set(range(7, 56, 7)) <= set(made["frame"])
    for row in made.iter_rows(named=True):
        after = found.filter((pl.col("tube") == row["tube"]) & (pl.col("frame") > row["frame"]))
        assert row["ready_s"] == ready[after["frame"].min()]


def test_times_of_earlier_watches_are_read_off_their_boxes(tmp_path: Path) -> None:
    run = _timed_run(tmp_path / "run", 0.04)
    whole, times = open_timed(run), read_times(run)
    (run / "timing.parquet").unlink()
    with pytest.raises(InputError, match="timing"):
        read_times(run)
    save(whole, run / "predictions", overwrite=True)
    found = whole.boxes.filter(~pl.col("interpolated"))["frame"]
    assert read_times(run).equals(times.filter(pl.col("frame").is_in(found.implode())))
    assert open_timed(run).boxes.equals(whole.boxes)
    (run / "timing.parquet").write_bytes(b"PAR1")
    with pytest.raises(DamagedError, match="times"):
        read_times(run)
