"""Disks that are full or fail while a set is saved, and readers beside writers."""

import errno
import os
import re
import resource
from pathlib import Path

import pytest
from saved_sets import files_of, names
from table_sets import small_scenes

from roadaware.errors import DiskError, InputError, RoadawareError
from roadaware.scenes import store
from roadaware.scenes.store import encode, open_scenes, save


@pytest.fixture
def saved(tmp_path):
    save(small_scenes(), tmp_path / "set")
    return tmp_path / "set"


@pytest.mark.slow
@pytest.mark.parametrize("share", ["0", "1 kB", "half", "one byte less"])
@pytest.mark.parametrize("before", ["a set", "nothing"])
def test_a_full_disk_leaves_the_old_set_alone(tmp_path, share, before):
    folder = tmp_path / "deep" / "set"
    if before == "a set":
        save(small_scenes(), folder)
    new = small_scenes("new", n_boxes=3000)
    files, content = encode(new)
    largest = max(map(len, files.values()))
    size = {"0": 0, "1 kB": 1000, "half": largest // 2, "one byte less": largest - 1}[share]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        with pytest.raises(DiskError) as caught:
            save(new, folder, overwrite=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    needed = sum(map(len, files.values())) + len(content)
    assert re.search(
        rf"File too large\n  {needed:,} bytes are needed, [\d,]+ bytes are free", str(caught.value)
    )
    if before == "a set":
        assert open_scenes(folder) == small_scenes()
        assert names(folder) == files_of(small_scenes())
    else:
        assert names(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("before", ["a set", "nothing"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_failure_at_any_call_leaves_the_old_set_or_the_new(tmp_path, monkeypatch, code, before):
    old, new = small_scenes(), small_scenes("new")
    encoded = encode(new)
    monkeypatch.setattr(store, "encode", lambda _: encoded)
    for step in range(1, 100):
        folder = tmp_path / f"{step}" / "set"
        if before == "a set":
            save_old(old, folder)
        else:
            folder.parent.mkdir()
        failure, calls = failed(monkeypatch, step, code, new, folder)
        written = failure is None or "did not confirm it" in failure
        if written:
            assert open_scenes(folder) == new, calls
        elif before == "a set":
            assert open_scenes(folder) == old, calls
            assert names(folder) == files_of(old), calls
        else:
            assert names(folder.parent) == [], calls
        save(new, folder, overwrite=True)
        assert sorted([*encoded[0], "meta.json"]) == names(folder)
        if len(calls) < step:
            break
    assert len(calls) < step, "a failure was met at every call"
    assert step > 15


def save_old(old, folder):
    files, content = encode(old)
    store.write_table_set(folder, files, content, overwrite=False)


def failed(monkeypatch, step, code, new, folder):
    """Save while the k-th call to the file system fails; the failure's words, and the calls made."""
    calls = []

    def failing(name, call):
        def wrapped(*arguments, **named):
            calls.append(name)
            if len(calls) == step:
                raise OSError(code, os.strerror(code))
            return call(*arguments, **named)

        return wrapped

    with monkeypatch.context() as patch:
        for name in ("open", "write", "fsync", "replace", "mkdir", "scandir"):
            patch.setattr(os, name, failing(name, getattr(os, name)))
        try:
            save(new, folder, overwrite=True)
        except DiskError as error:
            return str(error), calls
    return None, calls


def test_every_file_is_flushed_before_its_name_and_every_name_before_the_set_counts(tmp_path, monkeypatch):
    """A loss of power keeps what was flushed and may drop the rest: order is all that protects the set."""
    calls, paths = [], {}
    real = {name: getattr(os, name) for name in ("open", "fsync", "replace")}

    def opened(path, *arguments, **named):
        handle = real["open"](path, *arguments, **named)
        paths[handle] = os.fspath(path)
        return handle

    def flushed(handle):
        calls.append(("flush", paths[handle]))
        real["fsync"](handle)

    def renamed(source, target):
        calls.append(("rename", os.fspath(source), Path(target).name))
        real["replace"](source, target)

    for name, call in (("open", opened), ("fsync", flushed), ("replace", renamed)):
        monkeypatch.setattr(os, name, call)
    save(small_scenes(), tmp_path / "set")
    renames = [place for place, call in enumerate(calls) if call[0] == "rename"]
    assert [calls[place][2] for place in renames][-1] == "meta.json"
    assert sorted(calls[place][2] for place in renames) == files_of(small_scenes())
    for place in renames:
        assert calls[place - 1] == ("flush", calls[place][1])
    folder = ("flush", str(tmp_path / "set"))
    assert calls[renames[-1] - 2] == folder, "names of tables are flushed before meta.json is written"
    assert calls[-1] == folder, "and the name of meta.json after it"


@pytest.mark.parametrize("place", ["/proc/roadaware/set", "/dev/null/set", "file/set"])
def test_a_place_that_cannot_be_made_is_a_disk_error(tmp_path, place):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RoadawareError, match=r"cannot write|is a file"):
        save(small_scenes(), tmp_path / place)
    assert names(tmp_path) == ["file"]


def test_a_folder_that_vanishes_is_a_disk_error(tmp_path, monkeypatch):
    folder = tmp_path / "set"
    real = os.open

    def vanishing(path, *arguments, **named):
        if str(path).endswith(".tmp") and folder.exists():
            folder.rmdir()
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, "open", vanishing)
    with pytest.raises(DiskError, match=r"cannot write .*: No such file or directory"):
        save(small_scenes(), folder)
    assert names(tmp_path) == []


def test_an_interrupted_save_takes_its_files_back(saved, monkeypatch):
    files = files_of(small_scenes())
    real, calls = os.fsync, []

    def interrupted(handle):
        calls.append(handle)
        if len(calls) == 3:
            raise KeyboardInterrupt
        real(handle)

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(small_scenes("new"), saved, overwrite=True)
    assert names(saved) == files
    assert open_scenes(saved) == small_scenes()


def test_a_reader_that_loses_a_race_reads_the_new_set(saved, monkeypatch):
    new, real, raced = small_scenes("new"), store.read_regular, []

    def racing(path, *, limit):
        if path.suffix == ".parquet" and not raced:
            raced.append(path)
            save(new, saved, overwrite=True)
        return real(path, limit=limit)

    monkeypatch.setattr(store, "read_regular", racing)
    assert open_scenes(saved) == new
    assert raced


def test_a_reader_that_always_loses_gives_up_with_words(saved, monkeypatch):
    real, turn = store.read_regular, []

    def racing(path, *, limit):
        if path.suffix == ".parquet":
            turn.append(path)
            save(small_scenes(f"turn {len(turn)}"), saved, overwrite=True)
        return real(path, limit=limit)

    monkeypatch.setattr(store, "_RACES", 4)
    monkeypatch.setattr(store, "read_regular", racing)
    with pytest.raises(InputError, match="it was replaced 4 times while being read"):
        open_scenes(saved)
