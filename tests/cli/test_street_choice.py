"""Which detector looks: the bundled one at synthetic videos, a real one at real videos, or what is named."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sys.path.append(str(Path(__file__).parent.parent / "models"))

from plain_graph_model import HEAT, PICTURE, SIDES, tiny_centernet
from small_files import Command

from roadaware.cli import console, networks
from roadaware.cli.networks import AS_IT_SUITS, Looks, select_detector
from roadaware.errors import InputError, UsageError
from roadaware.io.video import VideoWriter
from roadaware.models.catalogue.entries import COCO, RECORD, Entry, find_entry, get_models_folder
from roadaware.models.graphs.graph import convert
from roadaware.models.graphs.runner import save_graph
from roadaware.models.graphs.views import Views
from roadaware.models.weights import read_checkpoint_facts
from roadaware.online.setup import find_bundled_weights


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def _install(name: str = "street-small") -> Path:
    folder = get_models_folder() / name
    folder.mkdir(parents=True)
    graph = convert(*tiny_centernet().files(), PICTURE, {"heat": HEAT, "sides": SIDES}, "tiny")
    save_graph(folder / "model.safetensors", graph, {"decoder": "centernet", "classes": list(COCO)})
    (folder / RECORD).write_text("{}")
    return folder / "model.safetensors"


def _files(
    *named: str, synthetic: bool = False, live: bool = False, looks: Looks = AS_IT_SUITS, crowd: bool = False
) -> list[Path]:
    paths = [Path(name) for name in named]
    return select_detector(paths, synthetic=synthetic, live=live, looks=looks, crowd=crowd).files


def test_a_real_film_is_looked_at_by_a_real_detector_where_one_is_installed() -> None:
    assert _files() == [find_bundled_weights()]
    real = _install()
    assert _files() == [real]
    assert _files(synthetic=True) == [find_bundled_weights()]
    assert _files("street-small", synthetic=True) == [real]


def test_a_crowd_is_looked_at_by_the_bundled_detector_of_people() -> None:
    people = find_bundled_weights(crowd=True)
    assert (people.name, find_bundled_weights().name) == (
        "crowd-people.safetensors",
        "compact-road.safetensors",
    )
    assert _files(crowd=True) == _files(crowd=True, synthetic=True) == [people]
    assert _files("compact-road", crowd=True) == [find_bundled_weights()]
    assert _files("crowd-people") == [people]
    assert _files() == _files(synthetic=True) == [find_bundled_weights()]
    real = _install()
    assert _files(crowd=True) == [real]
    assert _files(crowd=True, synthetic=True) == [people]


def test_bundled_detectors_have_names_and_cards(roadaware: Command) -> None:
    listed = roadaware("models", "list", "--json").data["bundled"]
    assert [each["name"] for each in listed] == ["compact-road", "crowd-people"]
    for each in listed:
        path = Path(each["path"])
        card = roadaware("models", "show", each["name"]).out
        assert card.startswith(f"# {each['name']}\n")
        assert f"{path.stat().st_size / 1e6:.1f} MB" in card
        facts = read_checkpoint_facts(path)
        assert facts["notes"]["trained_on"] in card
        assert f"at or above {facts['notes']['min_score']:g}" in card
    assert listed[1]["size_mb"] < 4
    with pytest.raises(UsageError, match="did you mean the model 'crowd-people'"):
        _files("crowd-peopl")


def test_of_several_the_best_looks_at_a_video_and_the_cheapest_at_a_camera_without_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cheap, good = _install(), _install("dfine-n")
    found = {"street-small": cheap, "dfine-n": good}
    monkeypatch.setattr("roadaware.online.setup.find_installed_path", lambda entry: found.get(entry.name))
    assert _files() == [good]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert _files(live=True) == [cheap]
    monkeypatch.setattr("roadaware.models.devices.select_device", lambda *asked: (torch.device("cuda"), None))
    assert _files(live=True) == [good]


def test_sizes_suit_the_source() -> None:
    _install()

    def views(*, live: bool = False, looks: Looks = AS_IT_SUITS) -> Views | None:
        return select_detector([], synthetic=False, live=live, looks=looks).views

    assert views() == Views(1024)
    assert views(live=True) == Views(640)
    assert views(looks=Looks(tiles=True)) == Views(1024, True)
    assert views(looks=Looks(size=512)) == Views(512)
    with pytest.raises(UsageError, match="multiple of 32"):
        views(looks=Looks(size=500))
    assert select_detector([], synthetic=True, live=False, looks=AS_IT_SUITS).views is None


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "fetched"), [("y\n", True), ("yes\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_at_a_terminal_it_offers_to_fetch_one(
    answer: str, fetched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def get_model(entry: Entry, **more: object) -> None:
        asked.append(entry.name)
        _install()

    monkeypatch.setattr("roadaware.cli.networks.get_model", get_model)
    monkeypatch.setattr(console, "is_quiet", lambda: False)  # whatever command ran before in this process
    monkeypatch.setattr(sys, "stdin", _Terminal(answer))
    monkeypatch.setattr(sys, "stderr", _Terminal())
    assert (_files() != [find_bundled_weights()]) is fetched
    assert asked == ["street-small"] * fetched


def test_where_it_cannot_be_fetched_the_work_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def get_model(entry: Entry, **more: object) -> None:
        raise InputError("npm cannot reach its registry")

    monkeypatch.setattr("roadaware.cli.networks.get_model", get_model)
    monkeypatch.setattr(networks, "_asks", lambda entry: True)
    assert _files() == [find_bundled_weights()]
    assert "cannot reach" in capsys.readouterr().err


def test_names_on_the_command_line(roadaware: Command, tmp_path: Path) -> None:
    done = roadaware("watch", tmp_path / "none.mp4", "--weights", "street-small")
    assert done.code != 0
    (tmp_path / "films").mkdir()
    done = roadaware("predict", "street-small", "--videos", tmp_path / "films", "--out", tmp_path / "out")
    assert done.code == 2
    assert "models get street-small" in done.err
    done = roadaware("predict", "clip-b32", "--videos", tmp_path / "films", "--out", tmp_path / "out")
    assert "is a model for image-text" in done.err
    assert not (tmp_path / "out").exists()


def test_the_catalogue_is_listed_shown_and_tidied(roadaware: Command) -> None:
    _install()
    listed = roadaware("models", "list", "--json").data
    found = {each["name"]: each for each in listed["models"]}
    assert found["street-small"]["installed"]
    assert not found["rtdetr-r18"]["installed"]
    shown = roadaware("models", "show", "street-small").out
    for words in (find_entry("street-small").licence, "sha512-", "3.3.6"):
        assert words in shown
    assert "removed street-small" in roadaware("models", "remove", "street-small").out
    assert "was not installed" in roadaware("models", "remove", "street-small").out
    assert roadaware("models", "show", "street-smal").code == 2


@pytest.mark.slow
def test_predict_and_watch_look_with_the_detector_that_is_installed(
    roadaware: Command, tmp_path: Path
) -> None:
    _install()
    (tmp_path / "films").mkdir()
    with VideoWriter(tmp_path / "films" / "drive.mp4", 96, 64, 12.0) as writer:
        for number in range(6):
            picture = np.full((64, 96, 3), 90, np.uint8)
            picture[20:40, number : number + 30] = 200
            writer.write(picture)
    done = roadaware("predict", "--videos", tmp_path / "films", "--size", "128", "--out", tmp_path / "found")
    assert done.code == 0, done.err
    assert "looking with street-small" in done.err
    said = json.loads((tmp_path / "found" / "run.json").read_text())["settings"]
    assert said["views"]["size_px"] == 128
    done = roadaware("predict", "--videos", tmp_path / "films", "--tiles", "--out", tmp_path / "found")
    assert done.code == 2
    assert "other settings (views)" in done.err
    film = tmp_path / "films" / "drive.mp4"
    asked = ("--size", "128", "--tiles", "--crossing", "none", "--no-video")
    done = roadaware("watch", film, "--out", tmp_path / "watched", *asked)
    assert done.code == 0, done.err
    assert "not validated" not in done.err
    assert json.loads((tmp_path / "watched" / "summary.json").read_text())["frames"] == 6
    done = roadaware("watch", film, "--weights", find_bundled_weights(), *asked)
    assert done.code == 2
    assert "has its own" in done.err
