"""A watch of a video that was killed is begun anew by the same command, and by no other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from online_stubs import FakeClock, Scripted, crowd, write_film

from roadaware.errors import UsageError
from roadaware.io.files import is_temporary
from roadaware.online.config import WatchConfig
from roadaware.online.run_folder import RECORD, SUMMARY, RunFolder, build_run_record, is_watch_of, prepare
from roadaware.online.times import TABLES
from roadaware.online.video_files import VideoFile
from roadaware.online.watch import watch
from roadaware.scenes.store import open_predictions

MODELS = [{"name": "scripted"}]


def _run(folder: Path, film: Path, *, killed: bool) -> dict[str, object]:
    """A watch of a video; where killed, nothing is completed after some frames."""
    clock, config = FakeClock(), WatchConfig()
    source, detector = VideoFile(film, clock), Scripted(crowd(1))
    prepare(folder, record=build_run_record(source, config, None, MODELS))
    kept = RunFolder(folder, source, detector, config, clock, lambda seen: seen.frame.picture, models=MODELS)
    if killed:
        detector.reset()

        class KilledError(Exception):
            """The process is gone."""

        class Gone:
            def add(self, seen: object) -> None:
                kept.add(seen)  # type: ignore[arg-type]
                if source.outcomes is not None and len(detector.pictures) == 9:
                    raise KilledError

            def add_events(self, events: object) -> None:
                kept.add_events(events)  # type: ignore[arg-type]

            def end(self, last: object) -> None: ...

        with pytest.raises(KilledError):
            watch(source, detector, config, Gone(), clock=clock)
        return {}
    return kept.summarise(watch(source, detector, config, kept, clock=clock))


def test_the_same_watch_begins_anew_and_ends_as_if_nothing_had_been(tmp_path: Path) -> None:
    film = write_film(tmp_path / "drive.mp4")
    _run(tmp_path / "killed", film, killed=True)
    record = json.loads((tmp_path / "killed" / RECORD).read_text())
    del record["ends_digest"]  # as earlier versions wrote it
    (tmp_path / "killed" / RECORD).write_text(json.dumps(record))
    assert not (tmp_path / "killed" / SUMMARY).exists()
    _run(tmp_path / "killed", film, killed=False)
    _run(tmp_path / "whole", film, killed=False)
    names = sorted(path.name for path in (tmp_path / "whole").iterdir())
    held = [path.name for path in (tmp_path / "killed").iterdir() if is_temporary(path.name) is None]
    assert (
        sorted(held) == names
    )  # the temporary video is still open here, as it is in no process that was killed
    for name in ("events.jsonl", RECORD, SUMMARY, "video.mp4"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_another_watch_and_one_that_ended_are_not_replaced(tmp_path: Path) -> None:
    film, other = write_film(tmp_path / "drive.mp4"), write_film(tmp_path / "other.mp4", frames=12)
    _run(tmp_path / "run", film, killed=True)
    config = WatchConfig()
    source = VideoFile(film, FakeClock())
    for record in (
        build_run_record(VideoFile(other, FakeClock()), config, None, MODELS),
        build_run_record(source, replace(config, begin_score=0.9), None, MODELS),
        build_run_record(source, config, "another name", MODELS),
        build_run_record(source, config, None, [{"name": "another"}]),
        {},
    ):
        with pytest.raises(UsageError, match="earlier watch"):
            prepare(tmp_path / "run", record=record)
    _run(tmp_path / "run", film, killed=False)
    with pytest.raises(UsageError, match="earlier watch"):
        prepare(tmp_path / "run", record=build_run_record(source, config, None, MODELS))
    assert json.loads((tmp_path / "run" / RECORD).read_text())["source"] == "drive.mp4"


def test_another_film_of_the_same_name_and_size_is_another(tmp_path: Path) -> None:
    film = write_film(tmp_path / "FILE0001.mp4")
    _run(tmp_path / "run", film, killed=False)
    assert is_watch_of(tmp_path / "run", film)
    content = film.read_bytes()
    film.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert not is_watch_of(tmp_path / "run", film)
    record = json.loads((tmp_path / "run" / RECORD).read_text())
    del record["ends_digest"]  # as earlier versions wrote it
    (tmp_path / "run" / RECORD).write_text(json.dumps(record))
    assert is_watch_of(tmp_path / "run", film)


def test_a_film_whose_name_is_no_text_is_watched(tmp_path: Path) -> None:
    film = write_film(tmp_path / os.fsdecode(b"old\xff.mp4"))
    _run(tmp_path / "run", film, killed=False)
    tables = open_predictions(tmp_path / "run" / TABLES)
    assert tables.videos["video"].to_list() == ["old\\udcff"]
    assert is_watch_of(tmp_path / "run", film)


@pytest.mark.slow
def test_a_command_that_was_killed_goes_on_to_the_same_result(tmp_path: Path) -> None:
    from benchmarks.kill_files import contents

    film = write_film(tmp_path / "drive.mp4", frames=120)
    words = [sys.executable, "-m", "roadaware", "watch", str(film), "--threads", "1", "--out"]
    with subprocess.Popen([*words, str(tmp_path / "killed")], stderr=subprocess.DEVNULL) as process:
        events = tmp_path / "killed" / "events.jsonl"
        for _ in range(1200):
            if (events.is_file() and events.stat().st_size) or process.poll() is not None:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "killed" / SUMMARY).exists()
    for folder in ("killed", "whole"):
        subprocess.run([*words, str(tmp_path / folder)], check=True, capture_output=True, timeout=300)
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
