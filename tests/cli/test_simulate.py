"""Simulating from the command line: the same scenes again, going on after a stop, and what is refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from roadaware.cli import main
from roadaware.datasets import read
from roadaware.errors import DiskError, UsageError
from roadaware.io.images import MaskReader
from roadaware.io.video import VideoReader
from roadaware.simulator.config import DOMAINS, PRESETS, build_scene_config
from roadaware.simulator.generate import Order, generate_scenes
from roadaware.simulator.make import make_episode

TINY = ["--size", "64x48", "--fps", "4", "--seconds", "1.5", "--processes", "1"]
SHORT = replace(build_scene_config("road"), seconds=0.5)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def finish(room: Path, text: str = "") -> None:
    """What a scene has at least."""
    (room / "tables").mkdir()
    for name in ("done", "scene.json", "tables/meta.json"):
        (room / name).write_text("{}" if name == "scene.json" else text)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("simulated") / "made"
    assert main(["simulate", "--out", str(out), "--scenes", "2", *TINY, "-q"]) == 0
    return out


def test_the_result_opens_and_has_what_was_asked_for(made: Path) -> None:
    scenes = read("simulator", made, cache=False)
    assert scenes.videos["video"].to_list() == ["road-0000", "road-0001"]
    assert scenes.videos["n_frames"].to_list() == [6, 6]
    folder = made / "scenes" / "road-0000"
    with VideoReader(folder / "video.mp4") as film_, MaskReader(folder / "instances.zip") as masks:
        assert len(film_) == len(masks) == 6
        assert film_.frame(0).shape == (48, 64, 3)
        assert masks.frame(0).shape == (48, 64)


@pytest.mark.slow
@pytest.mark.parametrize("on", ["local", "ray://local"])
def test_the_same_seed_makes_the_same_bytes_by_two_workers(made: Path, tmp_path: Path, on: str) -> None:
    if on != "local":
        pytest.importorskip("ray")
    again = tmp_path / "again"
    words = ["--size", "64x48", "--fps", "4", "--seconds", "1.5", "--processes", "2", "--on", on]
    assert main(["simulate", "--out", str(again), "--scenes", "2", *words, "-q"]) == 0
    assert contents(again) == contents(made)


def test_another_seed_makes_another_scene() -> None:
    one, other = make_episode(SHORT, 0, 0), make_episode(SHORT, 1, 0)
    assert len(one.ego.position) == len(other.ego.position)
    assert not np.array_equal(one.ego.position, other.ego.position)


@pytest.mark.slow
def test_a_stopped_run_goes_on_and_leaves_nothing_behind(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = Order(SHORT, 0, 2)
    folder = tmp_path / "made"
    shots: list[str] = []

    def shoot(episode, room, *, kept=None, progress=None):
        if len(shots) == 1:
            raise KeyboardInterrupt
        shots.append(episode.name)
        finish(room, episode.name)

    monkeypatch.setattr("roadaware.simulator.generate.render_scene", shoot)
    with pytest.raises(KeyboardInterrupt):
        generate_scenes(order, folder)
    unfinished = folder / "scenes" / ".road-0001.unfinished-999999999"
    unfinished.mkdir()
    shots.append("")
    assert generate_scenes(order, folder) == 1
    assert sorted(p.name for p in (folder / "scenes").iterdir() if ".unfinished-9" in p.name) == []
    assert (folder / "scenes" / "road-0001" / "done").read_text() == "road-0001"


@pytest.mark.slow
@pytest.mark.parametrize("ending", [KeyboardInterrupt, MemoryError, ValueError])
def test_no_half_scene_is_left_however_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: type[BaseException]
) -> None:
    def shoot(episode, room, *, kept=None, progress=None):
        (room / "half").write_text("")
        raise ending

    monkeypatch.setattr("roadaware.simulator.generate.render_scene", shoot)
    # What is wrong with one scene leaves the others, and is our fault; who interrupts means all.
    with pytest.raises(ending if ending is KeyboardInterrupt else RuntimeError):
        generate_scenes(Order(SHORT, 0, 1), tmp_path / "made")
    assert list((tmp_path / "made" / "scenes").iterdir()) == []


def test_what_another_run_finished_first_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shoot(episode, room, *, kept=None, progress=None):
        theirs = room.parent / episode.name
        theirs.mkdir()
        (theirs / "theirs").write_text("")
        finish(room)

    monkeypatch.setattr("roadaware.simulator.generate.render_scene", shoot)
    assert generate_scenes(Order(SHORT, 0, 1), tmp_path / "made") == 1
    assert [p.name for p in (tmp_path / "made" / "scenes").rglob("*")] == ["road-0000", "theirs"]


def test_a_scene_that_fails_is_named_the_others_are_made_and_the_same_command_adds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def shoot(episode, room, *, kept=None, progress=None):
        if episode.name.endswith("1"):
            raise ZeroDivisionError("a wheel without a rim")
        finish(room)

    words = ["simulate", "--scenes", "3", *TINY, "--out", str(tmp_path / "made")]
    monkeypatch.setattr("roadaware.simulator.generate.render_scene", shoot)
    assert main(words) == 70
    told = capsys.readouterr().err
    assert (
        "1 of 3 scenes failed; the others are done and stay, and the same command tries these again" in told
    )
    assert "road-0001 failed: a fault of roadaware, ZeroDivisionError: a wheel without a rim" in told
    assert sorted(p.name for p in (tmp_path / "made" / "scenes").iterdir()) == ["road-0000", "road-0002"]
    monkeypatch.setattr("roadaware.simulator.generate.render_scene", lambda _, room, **__: finish(room))
    assert main(words) == 0
    assert len(list((tmp_path / "made" / "scenes").iterdir())) == 3


def test_where_the_work_is_done_is_checked_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["simulate", *TINY, "--out", str(tmp_path / "made")]
    for more, said in (
        (["--on", "slurm"], "--on is local, ray, ray://auto, ray://local or ray://HOST:PORT, not 'slurm'"),
        (["--part-seconds", "0"], "a number of seconds above 0, not 0"),
    ):
        assert main([*words, *more]) == 2
        assert said in capsys.readouterr().err
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main([*words, "--on", "ray"]) == 2
    assert "pip install 'roadaware[scale]'" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_a_full_disk_keeps_the_finished_scenes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shoot(episode, room, *, kept=None, progress=None):
        if episode.name.endswith("1"):
            raise OSError(28, "No space left on device")
        finish(room)

    monkeypatch.setattr("roadaware.simulator.generate.render_scene", shoot)
    with pytest.raises(DiskError, match="1 of 2 scenes are finished and stay; the same command"):
        generate_scenes(Order(SHORT, 0, 2), tmp_path / "made")
    assert [p.name for p in (tmp_path / "made" / "scenes").iterdir()] == ["road-0000"]


def test_scenes_of_another_order_and_halves_of_scenes_are_not_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roadaware.simulator.generate.render_scene", lambda _, room, **__: finish(room))
    orders = [Order(SHORT, seed, 2) for seed in (0, 1)]
    for seed, order in enumerate(orders):
        assert generate_scenes(order, tmp_path / str(seed)) == 2
    room, first = tmp_path / "0" / "scenes", orders[0].names[0]
    (tmp_path / "0" / "simulation.json").write_bytes((tmp_path / "1" / "simulation.json").read_bytes())
    with pytest.raises(UsageError, match=f"made for another order: {', '.join(orders[1].names)}; remove"):
        generate_scenes(orders[1], tmp_path / "0")
    for name in orders[1].names:
        shutil.rmtree(room / name)
    shutil.copytree(tmp_path / "1" / "scenes" / first, room / first)
    assert generate_scenes(orders[1], tmp_path / "0") == 1, "the one that is of this order stays"
    (room / first / "tables" / "meta.json").unlink()
    with pytest.raises(UsageError, match="not whole"):
        generate_scenes(orders[1], tmp_path / "0")
    shutil.rmtree(room / first)
    (room / first).mkdir()
    assert generate_scenes(orders[1], tmp_path / "0") == 1, "an empty folder is no scene"


def test_other_things_and_other_scenes_are_not_touched(made: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["simulate", "--out", str(tmp_path), *TINY]) == 2
    assert "holds other things (notes.txt)" in capsys.readouterr().err
    assert main(["simulate", "--out", str(made), "--seed", "7", "--scenes", "2", *TINY]) == 2
    assert "holds scenes of another seed (0 there, 7 here)" in capsys.readouterr().err
    assert main(["simulate", "--out", str(made), "--depth", *TINY]) == 2
    assert "holds scenes of other files (depth is False there, True here)" in capsys.readouterr().err
    assert main(["simulate", "--out", str(made), *TINY, "--weather", "rain"]) == 2
    assert "holds scenes of another config (conditions is None there" in capsys.readouterr().err
    assert sorted(p.name for p in (made / "scenes").iterdir()) == ["road-0000", "road-0001"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--preset", "roads"], "did you mean road"),
        (["--domain", "city-z"], "no domain 'city-z'"),
        (["--size", "33x48"], "even size"),
        (["--size", "big"], "WIDTHxHEIGHT"),
        (["--time", "noon"], 'for --time. Choose from: "day", "dusk", "night"'),
        (["--weather", "hail"], 'for --weather. Choose from: "clear"'),
        (["--seconds", "0"], "seconds should lie in"),
        (["--seconds=-1"], "seconds should lie in"),
        (["--seconds", "nan"], "seconds should lie in"),
        (["--fps", "0"], "fps should lie in"),
        (["--preset", "road@3"], "did you mean road@2"),
        (["--domain", "city-a@2"], "did you mean city-a@1"),
        (["--time", "night", "--weather", "low-sun"], "the sun is not low at night"),
        (["--scenes", "0"], "scenes"),
    ],
)
def test_what_cannot_be_made_is_refused(words: list[str], says: str, tmp_path: Path, capsys) -> None:
    assert main(["simulate", "--out", str(tmp_path / "made"), *words]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_presets_and_domains_carry_a_version_and_fit_together() -> None:
    for preset in PRESETS:
        for domain in (None, *DOMAINS):
            config = build_scene_config(preset, domain)
            assert config.name == (preset if domain is None else f"{preset}+{domain}")
            assert config.camera.width_px == PRESETS[preset].camera.width_px
    assert build_scene_config("road") == PRESETS["road@1"]
    with pytest.raises(UsageError, match="no preset 'road@9'"):
        build_scene_config("road@9")


def test_the_seed_is_said_to_be_that_of_the_scenes(capsys) -> None:
    assert main(["simulate", "--help"]) == 0
    told = capsys.readouterr().out
    assert "Of the scenes: the same seed" in told
    assert "resamples" not in told


@pytest.mark.slow
def test_films_and_sheets_are_drawn(made: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "drawn"
    assert main(["draw", str(made), "--out", str(out), "--frames", "3", "--json=-", "-q"]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert files == ["road-0000.mp4", "road-0000.png", "road-0001.mp4", "road-0001.png"]
    with VideoReader(out / "road-0000.mp4") as drawn:
        assert len(drawn) == 6
        # Twice as large, and below the image a strip for what is heard.
        assert drawn.frame(0).shape == (96 + 80, 128, 3)
    assert main(["draw", str(made), "--videos", "road-0009", "--out", str(out)]) == 2
    assert "no video ['road-0009']" in capsys.readouterr().err
