"""Laws that every registered reader keeps."""

from __future__ import annotations

import importlib
import json
import os
import re
import resource
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import damage
import pytest
from sets import SETS, NativeSet, copied, edit, rows_add_up, same_rows, tree

from roadaware.datasets import READERS
from roadaware.errors import DatasetNotFoundError, FindingsError, InputError
from roadaware.io.parallel import Workers
from roadaware.io.xml import Walkers
from roadaware.scenes.store import open_scenes, save
from roadaware.scenes.tables import Scenes

_DIGESTS = """
import hashlib, json, sys
from pathlib import Path
from roadaware.datasets import read
digests = {}
for name, root, options in json.loads(sys.argv[1]):
    scenes = read(name, Path(root), cache=False, processes=1, **options)
    text = "".join(f"{table}{frame.schema}{frame.rows()}" for table, frame in scenes.tables().items())
    digests[name] = hashlib.sha256((text + repr(scenes.meta)).encode()).hexdigest()
print(json.dumps(digests))
"""


def _python(*arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_there_is_something_to_read(native: NativeSet, clean: Scenes) -> None:
    scenes = clean
    assert not scenes.videos.is_empty()
    assert not (scenes.tubes.is_empty() and scenes.sounds.is_empty() and scenes.boxes.is_empty())
    assert scenes.rejected.is_empty()
    assert scenes.meta.notes["warnings"] == []
    assert scenes.meta.licence
    assert scenes.meta.dataset in READERS[native.name].datasets
    assert native.maker.VIDEO in scenes.videos["video"].to_list()


def test_rows_read_are_taken_or_rejected(clean: Scenes) -> None:
    rows_add_up(clean)


def test_strict_accepts_a_clean_set(native: NativeSet, root: Path, clean: Scenes) -> None:
    assert native.read(root, strict=True) == clean


def test_strict_refuses_a_damaged_file(native: NativeSet, root: Path) -> None:
    edit(root / native.main, native.change("cut"))
    with pytest.raises((FindingsError, InputError), match=re.escape(native.main)):
        native.read(root, strict=True)


def test_strict_refuses_a_bad_row(native: NativeSet, root: Path) -> None:
    edit(root / native.main, native.change("bad_row"))
    with pytest.raises(FindingsError, match=rf"boxes: {re.escape(native.main)}(:\d+)?: .*{native.bad_row}"):
        native.read(root, strict=True)


@pytest.mark.slow
def test_two_runs_are_equal(native: NativeSet, root: Path) -> None:
    assert native.read(root) == native.read(root)


@pytest.mark.slow
def test_the_hash_seed_changes_nothing(clean_roots: dict[str, Path]) -> None:
    jobs = json.dumps([[name, str(root), SETS[name].options] for name, root in clean_roots.items()])
    one, other = (json.loads(_python("-c", _DIGESTS, jobs, PYTHONHASHSEED=seed)) for seed in ("1", "4242"))
    assert set(one) == set(SETS)
    assert one == other


@pytest.mark.spread(3, among="readers")
def test_a_zip_equals_its_folder(native: NativeSet, root: Path, tmp_path: Path, clean: Scenes) -> None:
    for prefix in ("", "Set-2.0/", "outer/inner/"):
        archive = damage.packed(root, tmp_path / f"set{len(prefix)}.zip", prefix=prefix)
        assert native.read(archive) == clean, prefix


@pytest.mark.spread(3, among="readers")
def test_a_zip_in_a_folder_is_found(native: NativeSet, root: Path, tmp_path: Path, clean: Scenes) -> None:
    holder = tmp_path / "holder"
    holder.mkdir()
    damage.packed(root, holder / "download.zip", prefix="Set-2.0/")
    assert native.read(holder) == clean


@pytest.mark.spread(3, among="readers")
def test_a_folder_inside_is_found(native: NativeSet, root: Path, clean: Scenes) -> None:
    assert native.read(root.parent) == clean


@pytest.mark.spread(3, among="readers")
def test_a_moved_root_changes_nothing(native: NativeSet, root: Path, tmp_path: Path, clean: Scenes) -> None:
    moved = root.rename(tmp_path / "elsewhere")
    link = tmp_path / "link"
    link.symlink_to(moved)
    assert native.read(moved) == clean
    assert native.read(link) == clean


def test_foreign_files_beside_change_nothing(native: NativeSet, root: Path, clean: Scenes) -> None:
    (root / "README.md").write_text("read me")
    (root / "images").mkdir()
    (root / "images" / "a.xml").write_text("<not")
    (root / Path(native.main).parent / ".DS_Store").write_bytes(b"\0\1")
    (root / Path(native.main).parent / "notes.txt").write_text("mine")
    assert native.read(root) == clean


@pytest.mark.spread(3, among="readers")
def test_the_source_stays_as_it_was(native: NativeSet, root: Path) -> None:
    for path in root.rglob("*"):
        path.chmod(stat.S_IRUSR | (stat.S_IXUSR if path.is_dir() else 0))
    before = tree(root)
    native.read(root, cache=True)
    assert tree(root) == before


def test_saved_and_opened_is_equal(clean: Scenes, tmp_path: Path) -> None:
    save(clean, tmp_path / "saved")
    assert open_scenes(tmp_path / "saved") == clean


def test_what_was_rejected_is_saved_too(native: NativeSet, root: Path, tmp_path: Path) -> None:
    edit(root / native.main, native.change("bad_row"))
    scenes = native.read(root)
    assert not scenes.rejected.is_empty()
    save(scenes, tmp_path / "saved")
    assert open_scenes(tmp_path / "saved") == scenes


@pytest.mark.slow
@pytest.mark.parametrize(
    "native", [n for n, each in SETS.items() if each.maker.FORMAT == "xml"], indirect=True
)
def test_one_process_equals_two(native: NativeSet, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in root.rglob("*.xml"):
        path.write_bytes(re.sub(rb'<box frame="(\d+)"', rb"<box frame='\1'", path.read_bytes(), count=1))
    one = native.read(root, processes=1)
    monkeypatch.setattr(Walkers.__init__, "__defaults__", (None, 0))
    # A single document, as a folder of this small set holds, is else read here.
    monkeypatch.setattr(Workers, "is_inline", lambda workers, parts: workers.processes == 1)
    worked = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    assert native.read(root, processes=2) == one
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime > worked


@pytest.mark.spread(3, among="readers")
def test_progress_runs_to_the_end(native: NativeSet, root: Path) -> None:
    told: list[tuple[int, int, str]] = []
    native.read(root, progress=lambda done, total, what: told.append((done, total, what)))
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert told[-1][0] == told[-1][1]


@pytest.mark.spread(3, among="readers")
def test_what_is_cached_equals_what_is_read(native: NativeSet, root: Path, no_reading: Path) -> None:
    fresh = native.read(root)
    assert native.read(root, cache=True) == fresh
    no_reading.touch()
    assert native.read(root, cache=True) == fresh


@pytest.fixture
def no_reading(native: NativeSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Once this file exists, reading the source fails the test."""
    module = importlib.import_module(READERS[native.name].module)
    flag, plain = tmp_path / "no-reading", module.read

    def guarded(*arguments: object, **options: object) -> Scenes:
        assert not flag.exists(), "the source was read although it was kept"
        scenes: Scenes = plain(*arguments, **options)
        return scenes

    monkeypatch.setattr(module, "read", guarded)
    return flag


@pytest.mark.spread(3, among="readers")
def test_a_changed_file_is_read_anew(native: NativeSet, root: Path) -> None:
    before = native.read(root, cache=True)
    edit(root / native.main, native.change("changed"))
    after = native.read(root, cache=True)
    assert after != before
    assert after == native.read(root)


@pytest.mark.spread(3, among="readers")
def test_a_lost_file_is_noticed(native: NativeSet, root: Path) -> None:
    before = native.read(root, cache=True)
    (root / native.main).unlink()
    if native.sole:
        with pytest.raises(DatasetNotFoundError, match=re.escape(native.main)):
            native.read(root, cache=True)
    else:
        assert native.read(root, cache=True) != before


@pytest.mark.spread(3, among="readers")
def test_verify_sees_a_change_of_content_alone(native: NativeSet, root: Path) -> None:
    native.read(root, cache=True)
    path = root / native.main
    status = path.stat()
    edit(path, native.change("same_size"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    assert native.read(root, cache=True, verify=True) == native.read(root)


@pytest.mark.spread(3, among="readers")
def test_a_damaged_cache_is_read_anew(native: NativeSet, root: Path, tmp_path: Path) -> None:
    fresh = native.read(root, cache=True)
    kept = [path for path in (tmp_path / "home").rglob("*.parquet") if path.stat().st_size]
    assert kept
    for path in kept:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(bytes(data))
    assert native.read(root, cache=True) == fresh


def test_reading_runs_nothing_and_opens_nothing_else(clean_roots: dict[str, Path], tmp_path: Path) -> None:
    warm, watched = [], []
    for name, root in clean_roots.items():
        places = [root, damage.packed(root, tmp_path / f"{name}.zip")]
        warm.append([name, str(copied(root, tmp_path / name)), SETS[name].options])
        watched += [[name, str(place), SETS[name].options] for place in places]
    script = str(Path(damage.__file__).with_name("watched.py"))
    answers = json.loads(_python(script, json.dumps({"warm": warm, "watched": watched})))
    for (name, place, _), answer in zip(watched, answers, strict=True):
        assert (answer["ended"], answer["seen"]) == ("read", []), (name, place)


def test_a_damaged_side_file_costs_no_video(native: NativeSet, root: Path, clean: Scenes) -> None:
    for name in native.others:
        damaged = copied(root, root.parent / name.replace("/", "-"))
        edit(damaged / name, lambda data: data[: len(data) // 2])
        scenes = native.read(damaged)
        assert scenes.videos["video"].equals(clean.videos["video"])
        same_rows(scenes, clean, but=("rejected", "frames", "tubes", "boxes", "videos"))
        assert len(scenes.boxes) == len(clean.boxes)
        files = scenes.rejected.filter(table="files")
        assert files["file"].to_list() == [name]
        rows_add_up(scenes)


def test_a_zip_holds_no_more_open_files_than_itself(native: NativeSet, root: Path, tmp_path: Path) -> None:
    archive = damage.packed(root, tmp_path / "set.zip")
    before = set(Path("/proc/self/fd").iterdir())
    native.read(archive)
    assert set(Path("/proc/self/fd").iterdir()) <= before
    assert zipfile.is_zipfile(archive)
