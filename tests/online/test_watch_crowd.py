"""`roadaware watch --crowd`: a tiny network of crowds beside a watch, what it writes and says, and what it refuses."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import polars as pl
import pytest
import torch

from roadaware.cli import main
from roadaware.cli import watch as command
from roadaware.errors import DiskError, InputError, UsageError
from roadaware.io.video import VideoReader, VideoWriter, iterate_sound, read_sound
from roadaware.metrics.sound import CONFIGS
from roadaware.metrics.sound import evaluate as evaluate_sound
from roadaware.models.crowd.config import CrowdConfig, Vocabulary
from roadaware.models.crowd.grounding import build_words
from roadaware.models.crowd.network import IntelliCare, save_crowd
from roadaware.models.crowd.sound import hear
from roadaware.models.detector import FrameDetections
from roadaware.online import crowd
from roadaware.online.crowd import check_crowd_source, describe_crowd, hear_film, open_crowd_questions
from roadaware.scenes.store import open_predictions
from roadaware.scenes.tables import Scenes

WIDTH, HEIGHT, FRAMES, FPS = 96, 64, 30, 10
VOCABULARY = Vocabulary(
    ("walking", "kneeling"),
    ("following after", "watching"),
    ("shouting", "siren"),
    build_words(["a man walks", "a woman kneels"]),
)


def find_people(frame: int, count: int) -> np.ndarray[Any, Any]:
    """(count, 4) people beside each other who walk to the right."""
    x = np.arange(count) * 84 / max(count, 2) + frame * 0.2
    return np.stack([x, x * 0 + 10, x + 12, x * 0 + 50], axis=1).astype(np.float32)


class Stub:
    """Finds people where they are drawn."""

    kinds, av_labels, delay = {"agent": ("Ped", "Car")}, (), 0

    def __init__(self, count: int = 2) -> None:
        self.count, self.frame = count, 0

    def reset(self) -> None:
        self.frame = 0

    def step(self, picture: object) -> list[FrameDetections]:
        self.frame += 1
        boxes = find_people(self.frame - 1, self.count)
        score = np.tile(np.array([[0.9, 0.1]], np.float32), (self.count, 1))
        return [FrameDetections(self.frame - 1, boxes, score[:, 0], score, np.zeros(0, np.float32))]

    def finish(self) -> list[FrameDetections]:
        return []


def write_film(path: Path, *, rate: int | None = 16_000, sound_s: float = FRAMES / FPS) -> Path:
    """Two pale people on grey, with a tone where there is a rate."""
    with VideoWriter(path, WIDTH, HEIGHT, FPS, sound_rate=rate) as writer:
        for frame in range(FRAMES):
            picture = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
            for x1, y1, x2, y2 in find_people(frame, 2).astype(int):
                picture[y1:y2, x1:x2] = 200
            writer.write(picture)
        if rate:
            t = np.arange(round(sound_s * rate)) / rate
            writer.write_sound(np.stack([np.sin(2 * np.pi * 700 * t)] * 2, axis=1).astype(np.float32) * 0.4)
    return path


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("network")
    network = IntelliCare(CrowdConfig.tiny(), VOCABULARY).eval()
    save_crowd(folder / "model.safetensors", network, {"data": "a test", "fps": 5.0, "size_px": [64, 96]})
    return folder / "model.safetensors"


@pytest.fixture(autouse=True)
def stub(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.setattr(command, "load_detector", lambda *given: Stub())


def watch(film: Path, out: Path, *more: object) -> int:
    words = ["watch", film, "--out", out, "--crossing", "none", "--no-events", *more]
    return main([str(word) for word in words])


@pytest.mark.slow
def test_the_bundled_network_answers_where_none_is_named(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    film, out = write_film(tmp_path / "square.mp4"), tmp_path / "run"
    monkeypatch.setattr(crowd, "BUNDLED", tmp_path / "none.safetensors")
    assert watch(film, out, "--crowd") == 2
    assert "no network of crowds came with this installation" in capsys.readouterr().err
    monkeypatch.setattr(crowd, "BUNDLED", weights)
    assert watch(film, out, "--crowd", "--listen", "siren") == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["models"][-1]["licence"] == "Apache-2.0, comes with roadaware"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("named", "road"), [((), False), (("--crossing", "auto"), True), (("--weights", "compact-road"), True)]
)
def test_a_crowd_alone_is_told_nothing_of_roads(
    weights: Path, tmp_path: Path, named: tuple[str, ...], road: bool
) -> None:
    film, out = write_film(tmp_path / "square.mp4"), tmp_path / "run"
    assert main(["watch", str(film), "--out", str(out), "--crowd", str(weights), "--no-video", *named]) == 0
    models = json.loads((out / "summary.json").read_text())["models"]
    people = "--weights" not in named
    assert models[0]["name"] == ("crowd-people.safetensors" if people else "compact-road.safetensors")
    assert (out / "crossing.parquet").exists() == road
    assert ("events" in [row["task"] for row in models]) == (not people)


@pytest.mark.slow
def test_sounds_alone_leave_the_road_as_it_is(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    film, out = write_film(tmp_path / "square.mp4"), tmp_path / "run"
    monkeypatch.setattr(crowd, "BUNDLED", weights)
    assert main(["watch", str(film), "--out", str(out), "--listen", "siren", "--no-video"]) == 0
    models = json.loads((out / "summary.json").read_text())["models"]
    assert models[0]["name"] == "compact-road.safetensors"
    assert {"events", "crowd"} <= {row["task"] for row in models}
    assert (out / "crossing.parquet").exists()


def test_a_word_stands_for_all_kinds_of_a_sound(tmp_path: Path) -> None:
    sounds = ("siren (police)", "siren (ambulance)", "shouting", "shouting for help")
    network = IntelliCare(CrowdConfig.tiny(tasks=("sound",)), Vocabulary(sounds=sounds))
    save_crowd(tmp_path / "sounds.safetensors", network)
    asked = open_crowd_questions(tmp_path / "sounds.safetensors", (), ("shouting", "siren", "siren (police)"))
    assert asked.sounds == ("shouting", "siren (police)", "siren (ambulance)")


def test_a_network_of_crowds_answers_beside_a_watch(
    weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    film, out = write_film(tmp_path / "square.mp4"), tmp_path / "run"
    asked = ["--find", "a man walks", "--find", "日本語 🚀", "--listen", "siren", "--listen", "shouting"]
    assert watch(film, out, "--crowd", weights, *asked) == 0
    said = capsys.readouterr().out
    summary = json.loads((out / "summary.json").read_text())
    found = summary["crowd"]
    assert found["people"] == 2
    assert all(says.split(":")[0] in said for says in found["says"])
    assert "crowd" in summary["files"]
    assert [row["task"] for row in summary["models"]][-1] == "crowd"
    assert found["sentences"][1]["unknown"] == 1
    assert not found["sentences"][1]["found"]  # however high its score
    assert "not found, since the network has learnt none of its words" in " ".join(found["says"])
    actions = open_predictions(out / "crowd/actions")
    watched = open_predictions(out / "predictions").boxes.filter(pl.col("tube").is_not_null())
    assert set(actions.boxes["box"]) == set(watched["box"])
    assert actions.meta.vocabularies["action"] == VOCABULARY.actions
    relations = open_predictions(out / "crowd/relations")
    assert set(relations.relations["subject"]) <= set(relations.boxes["tube"])
    queries = open_predictions(out / "crowd/grounding").queries
    assert queries["text"].to_list() == ["a man walks", "日本語 🚀"]
    assert (queries["start_frame"] < queries["end_frame"]).all()
    sounds = open_predictions(out / "crowd/sound").sounds
    assert sounds["name"].to_list() == ["siren", "shouting"]
    assert len(pl.read_parquet(out / "crowd/moments.parquet")) == 6  # two sounds, three seconds
    # The evaluators take the sets: here of a sound that comes from the first person.
    frame = int(sounds["frame"][0])
    x1, y1, x2, y2 = (float(side) for side in find_people(frame, 2)[0])
    truth = Scenes(
        videos=pl.DataFrame({"video": ["square"], "width_px": [WIDTH], "height_px": [HEIGHT]}),
        boxes=pl.DataFrame(
            {"box": [0], "video": ["square"], "frame": [frame], "sound": [0]}
            | {"x1_px": [x1], "y1_px": [y1], "x2_px": [x2], "y2_px": [y2]}
        ),
        sounds=pl.DataFrame({"sound": [0], "video": ["square"], "frame": [frame]}),
    )
    judged = evaluate_sound(open_predictions(out / "crowd/sound"), truth, CONFIGS["default"]())
    assert any(row["value"] is not None for row in judged.whole())
    assert "The crowd" in (out / "report.html").read_text(encoding="utf-8")
    with VideoReader(out / "video.mp4") as drawn:
        assert len(drawn) == FRAMES
        assert drawn.height_px > 8 * HEIGHT  # a strip for sentences stands below
    assert len(read_sound(out / "video.mp4", 0.0, 1.0)[0]) > 10_000


@pytest.mark.slow
def test_a_disk_that_fills_while_the_network_looks_ends_with_4(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(*given: object, **more: object) -> None:
        raise DiskError("no room for crowd/actions")

    monkeypatch.setattr(command, "watch_crowd", fill)
    assert watch(write_film(tmp_path / "square.mp4"), tmp_path / "run", "--crowd", weights) == 4
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert "no room for crowd/actions" in " ".join(summary["crowd"]["says"])
    assert len(open_predictions(tmp_path / "run" / "predictions").boxes)


@pytest.mark.slow
def test_what_a_watch_is_asked_belongs_to_its_record(weights: Path, tmp_path: Path) -> None:
    film, out = write_film(tmp_path / "square.mp4"), tmp_path / "run"
    assert watch(film, out, "--crowd", weights.parent, "--no-video", "--find", "a man walks") == 0
    whole = {path.name: path.read_bytes() for path in (out / "crowd").rglob("*.parquet")}
    # Killed before its summary: the same command begins anew, another one does not.
    (out / "summary.json").unlink()
    assert watch(film, out, "--crowd", weights.parent, "--no-video", "--find", "a woman kneels") == 2
    assert watch(film, out, "--crowd", weights.parent, "--no-video", "--find", "a man walks") == 0
    assert {path.name: path.read_bytes() for path in (out / "crowd").rglob("*.parquet")} == whole


@pytest.mark.parametrize(
    ("count", "rate", "sound_s", "says"),
    [
        (0, 16_000, 3.0, "No person was found"),
        (2, None, 0.0, "no sound track"),
        pytest.param(2, 8_000, 3.0, "siren: ", marks=pytest.mark.slow),
        pytest.param(2, 96_000, 0.5, "siren: ", marks=pytest.mark.slow),
        (60, 16_000, 3.0, "Of 60 people"),
    ],
)
def test_films_of_all_kinds_are_answered(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    count: int, rate: int | None, sound_s: float, says: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(command, "load_detector", lambda *given: Stub(count))
    monkeypatch.setattr(crowd, "_PART_SLOTS", 6)
    film = write_film(tmp_path / "square.mp4", rate=rate, sound_s=sound_s)
    words = ["--crowd", weights, "--listen", "siren", "--find", "a man " * 250, "--no-video", "--iou", "0.3"]
    assert watch(film, tmp_path / "run", *words) == 0
    told = " ".join(json.loads((tmp_path / "run/summary.json").read_text())["crowd"]["says"])
    assert says in told or (count == 60 and "people" in told)
    assert "too long" in told


def test_what_is_found_is_said_as_it_is() -> None:
    sentence = {
        "sentence": "a man warks", "found": True, "least": 0.5, "score": 0.9, "begin_s": 0.0, "end_s": 1.0,
        "unknown": 0.6, "cut": 0,
    }  # fmt: skip
    found: dict[str, Any] = {
        "least": {"action": 0.5, "relation": 0.5, "sound": 0.5}, "people": 1, "tasks": ["actions", "relations"],
        "actions": [], "relations": [], "pairs_left_out": 0, "sentences": [sentence], "sounds": [],
    }  # fmt: skip
    said = describe_crowd(found)
    assert said[0] == "No action of one person scores 0.5 or more."
    assert said[2].startswith("'a man warks': 0:00.0 to 0:01.0, score 0.900. 60%")
    assert said[2].endswith("take the answer for a guess.")
    late = sentence | {"begin_s": 59.96, "end_s": 60.04}
    (said,) = describe_crowd(found | {"tasks": ["grounding"], "sentences": [late]})
    assert said.startswith("'a man warks': 1:00.0 to 1:00.0")
    strange = sentence | {"sentence": "человек", "found": False, "unknown": 1.0}
    (said,) = describe_crowd(found | {"tasks": ["grounding"], "sentences": [strange]})
    assert said == "'человек': not found, since the network has learnt none of its words."


def test_what_cannot_be_asked_is_refused(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for sound in ("sirens", "Siren"):
        with pytest.raises(UsageError, match="did you mean 'siren'"):
            open_crowd_questions(weights, (), (sound,))
    with pytest.raises(UsageError, match=r"no word in the sentence '\?\!'"):
        open_crowd_questions(weights, ("?!",))
    with pytest.raises(UsageError, match="--find is empty"):
        open_crowd_questions(weights, ("  ",))
    with pytest.raises(InputError, match="found none"):
        open_crowd_questions(tmp_path / "missing.safetensors")
    other = Path(crowd.__file__).resolve().parents[1] / "weights" / "compact-road.safetensors"
    with pytest.raises(InputError, match=r"no crowd network[\s\S]*another kind of model"):
        open_crowd_questions(other)
    only = IntelliCare(CrowdConfig.tiny(tasks=("actions",)), Vocabulary(VOCABULARY.actions))
    save_crowd(tmp_path / "actions.safetensors", only)
    for more in ({"sentences": ["a man walks"]}, {"sounds": ["siren"]}):
        with pytest.raises(UsageError, match="needs a network with the task"):
            open_crowd_questions(tmp_path / "actions.safetensors", **more)
    monkeypatch.setattr(crowd, "BUNDLED", tmp_path / "none.safetensors")
    with pytest.raises(UsageError, match="name its weights"):
        open_crowd_questions(None, ("a man walks",))

    class Live:
        live, path = True, None

    with pytest.raises(UsageError, match="camera"):
        check_crowd_source(Live())  # type: ignore[arg-type]
    Live.live = False
    with pytest.raises(UsageError, match="these are images"):
        check_crowd_source(Live())  # type: ignore[arg-type]


def test_hearing_alone_scores_each_second_by_the_three_around_it(weights: Path, tmp_path: Path) -> None:
    questions = open_crowd_questions(weights, sounds=("siren", "shouting"))
    film = write_film(tmp_path / "film.mp4", sound_s=1.6)
    found = hear_film(questions, film)
    assert found["t_s"].to_list() == [0.0, 0.0, 1.0, 1.0]
    assert found["name"].to_list() == ["siren", "shouting"] * 2
    wave, rate = read_sound(film, 0.0, 2.5)
    head: Any = questions.network.heads["sound"]
    with torch.no_grad():
        logits = head.classify(hear(wave, rate)[None])[0]
    known = questions.network.vocabulary.find("sounds", ["siren", "shouting"])
    # The coder's last block ends a little later.
    assert found["score"].to_list()[2:] == pytest.approx(logits[known].sigmoid().tolist(), abs=1e-3)
    silent = write_film(tmp_path / "silent.mp4", rate=None)
    assert hear_film(questions, silent).schema == found.schema
    assert not len(hear_film(questions, silent))


def write_long(
    path: Path, sound_s: tuple[float, float], begins_s: float, ends_s: float, rises_s: float = 0.0
) -> Path:
    """Grey images between two times on the clock of the file, and a tone in another part of it that rises from then on."""
    with av.open(str(path), "w") as file:
        image, sound = (
            file.add_stream("mpeg4", rate=2),
            file.add_stream("pcm_s16le", rate=16_000, layout="stereo"),
        )
        image.width, image.height, image.pix_fmt = 64, 48, "yuv420p"
        for place in range(round(begins_s * 2), round(ends_s * 2)):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 90, np.uint8))
            frame.pts, frame.time_base = place, Fraction(1, 2)
            file.mux(image.encode(frame))
        file.mux(image.encode(None))
        for place in range(round(sound_s[0] * 16_000), round(sound_s[1] * 16_000), 1600):
            since = place - round(rises_s * 16_000)
            tone = 9000 * np.sin(2 * np.pi * (300 + since / 1000) * np.arange(since, since + 1600) / 16_000)
            block = av.AudioFrame.from_ndarray(np.repeat(tone, 2).astype(np.int16)[None], "s16", "stereo")
            block.sample_rate, block.pts, block.time_base = 16_000, place, Fraction(1, 16_000)
            file.mux(sound.encode(block))
        file.mux(sound.encode(None))
    return path


def test_sounds_are_heard_when_they_are_whatever_the_track_and_the_file_begin_with(
    weights: Path, tmp_path: Path
) -> None:
    questions = open_crowd_questions(weights, sounds=("siren",))
    whole = hear_film(questions, write_long(tmp_path / "whole.mkv", (0.0, 30.0), 0.0, 30.0))
    assert whole["t_s"].to_list() == list(range(30))
    part = hear_film(questions, write_long(tmp_path / "part.mkv", (12.0, 20.0), 0.0, 30.0))
    # Within 1.5 s of the track something of it is heard.
    assert part["t_s"].to_list() == list(range(11, 20))
    same = [14.0, 15.0, 16.0, 17.0, 18.0]
    scores = dict(whole.select("t_s", "score").iter_rows())
    assert part.filter(pl.col("t_s").is_in(same))["score"].to_list() == pytest.approx(
        [scores[t] for t in same], abs=1e-6
    )
    late = hear_film(questions, write_long(tmp_path / "late.mkv", (12.0, 20.0), 10.0, 30.0))
    assert late["t_s"].to_list() == list(range(1, 10))
    assert late["score"].to_list() == pytest.approx(part["score"].to_list(), abs=1e-6)


def test_a_watch_hears_each_moment_when_it_is_whatever_time_its_file_begins_with(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "load_detector", lambda *given: Stub())
    waves = []
    for begins_s in (0.0, 20.0):
        film = write_long(
            tmp_path / f"{begins_s}.mkv", (begins_s + 1, begins_s + 3), begins_s, begins_s + 4, begins_s
        )
        out = tmp_path / f"run-{begins_s}"
        words = ["--crowd", weights, "--listen", "siren", "--no-video", "--iou", "0.3"]
        assert watch(film, out, *words) == 0
        waves.append(pl.read_parquet(out / "crowd" / "moments.parquet")["score"].to_list())
    assert waves[0] == pytest.approx(waves[1], abs=1e-6)
    assert max(waves[0]) - min(waves[0]) > 1e-4  # silence before the tone, and the tone


def test_samples_that_are_not_finite_are_silence(tmp_path: Path) -> None:
    path = tmp_path / "odd.mkv"
    with av.open(str(path), "w") as file:
        sound = file.add_stream("pcm_f32le", rate=16_000, layout="mono")
        wave = np.full((1, 1600), 0.5, np.float32)
        wave[0, 800:810] = [np.nan, np.inf] * 5
        block = av.AudioFrame.from_ndarray(wave, "flt", "mono")
        block.sample_rate, block.pts, block.time_base = 16_000, 0, Fraction(1, 16_000)
        file.mux(sound.encode(block))
        file.mux(sound.encode(None))
    heard = np.concatenate([held for _, held in iterate_sound(path, 16_000, 1.0)])
    assert np.isfinite(heard).all()
    assert heard[:700].min() > 0.3


def test_of_a_damaged_track_what_comes_before_is_heard(weights: Path, tmp_path: Path) -> None:
    questions = open_crowd_questions(weights, sounds=("siren",))
    data = write_long(tmp_path / "whole.mkv", (0.0, 30.0), 0.0, 30.0).read_bytes()
    (tmp_path / "cut.mkv").write_bytes(data[: len(data) // 2])
    heard = hear_film(questions, tmp_path / "cut.mkv")["t_s"].to_list()
    assert heard == list(range(len(heard)))
    assert 10 <= len(heard) < 20
