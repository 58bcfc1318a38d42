"""Whatever tables, files of joints and sound tracks say: an answer or an error that is told, and nothing from outside."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numbered import FRAMES, Open
from overlaid import make_overlaid_predictions, make_overlaid_truth, place_joints, write_sounding, write_watch

from roadaware.errors import InputError, RoadawareError
from roadaware.scenes.store import save
from roadaware.scenes.tables import Meta
from roadaware.viewer.films import FilmFinder, Waveforms
from roadaware.viewer.index import Index
from roadaware.viewer.opening import open_paths
from roadaware.viewer.overlays import LAYERS, Overlays

HIDDEN = "a secret that nobody may read"
EVIL = '<img src=x onerror=alert(1)><script>alert(2)</script>"\u202e\u2028{{7*7}}'


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "cache"))


def test_what_is_asked_wrongly_is_said_and_never_a_fault_of_ours(tmp_path: Path, viewed: Open) -> None:
    save(make_overlaid_truth(), tmp_path / "truth")
    write_watch(tmp_path / "watch")
    client = viewed(tmp_path / "truth", tmp_path / "watch")
    window, wave = "/api/layers?video=0&first=0&end=9&layers=", "/api/waveform?video=0&"
    late = "/api/latency?video=0&side=a&"
    asked = [
        *(f"/api/overlays?video={value}" for value in ("x", "-1", "2", "", "%D9%A1", "9" * 300)),
        *(window + value for value in ("", "x", "joints,", "joints,x", "JOINTS", "joints%00", "../joints")),
        *(
            f"/api/layers?video=0&layers=risk&first={a}&end={b}"
            for a, b in ((0, 0), (9, 3), (0, 1025), (0, 1 << 39))
        ),
        *(f"/api/map?video=0&side={side}&sound=0" for side in ("truth", "a", "z", "", "..")),
        "/api/map?video=0&side=truth&sound=-1",
        *(
            wave + value
            for value in ("", "first=1&end=1&bars=4", "first=0&end=1&bars=0", "first=0&end=1&bars=4097")
        ),
        *(wave + f"first={value}&end=2&bars=4" for value in ("nan", "-1", "1e3", "inf", "1" * 20)),
        *(
            late + value
            for value in ("", "first=0&end=0&bars=1", "first=0&end=9&bars=4097", "first=0&end=9&bars=0")
        ),
        "/api/latency?video=0&side=truth&first=0&end=9&bars=1",
        "/api/latency?video=0&side=../a&first=0&end=9&bars=1",
    ]
    for path in asked:
        status, headers, body = client.ask(path)
        if path.startswith("/api/waveform") and status == 200:
            assert json.loads(body)["state"] == "none"  # there is no sound to be wrong about
            continue
        assert status == 422, (path, status, body[:200])
        assert headers["content-type"] == "application/json"
        assert b"Traceback" not in body
    repeated = ",".join(["joints"] * 900)
    assert json.loads(client.ask(window + repeated)[2]).keys() == {"truth"}


def test_names_in_tables_stay_texts(tmp_path: Path, viewed: Open) -> None:
    truth = make_overlaid_truth()
    meta = Meta(vocabularies={**truth.meta.vocabularies, "predicate": (EVIL, "x"), "sound": (EVIL, "y")})
    save(truth.with_tables(meta=meta), tmp_path / "truth")
    client = viewed(tmp_path / "truth")
    for path in ("/api/overlays?video=0", "/api/layers?video=0&first=0&end=40&layers=relations"):
        status, headers, body = client.ask(path)
        assert (status, headers["content-type"]) == (200, "application/json")
        assert json.dumps(EVIL, ensure_ascii=False).encode() in body
    assert EVIL not in client.ask("/")[2].decode()


def forge(tmp_path: Path, table: str, rows: pl.DataFrame, *, predicted: bool = False) -> Overlays:
    """The overlays of a set one of whose tables breaks what is checked when tables are made, as a file of others may."""
    tables = make_overlaid_predictions() if predicted else make_overlaid_truth()
    folder = tmp_path / "forged"
    save(tables, folder)
    opened = open_paths([folder])
    side = next(iter(opened.sides))
    opened.sides[side].tables[table] = rows.lazy()
    return Overlays(opened, Index(opened))


def ask_all(found: Overlays) -> str:
    """Everything that a page can ask about a set, as JSON that browsers read; errors of ours by their words."""
    told: list[object] = []
    for ask in (
        lambda: found.describe("one"),
        *(lambda layer=layer: found.window("one", 0, 90, [layer]) for layer in LAYERS),
        *(lambda side=side: found.sound_map("one", side, 0) for side in ("truth", "a")),
    ):
        try:
            told.append(ask())
        except RoadawareError as error:
            told.append(str(error))
        except (
            pl.exceptions.PolarsError,
            ArithmeticError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
        ):
            told.append("a table is not as roadaware writes it")  # as the page is answered
    return json.dumps(told, allow_nan=False)


@pytest.mark.parametrize(
    "change",
    [
        pl.lit(1 << 62, pl.Int64).alias("subject"),
        pl.lit(-5, pl.Int64).alias("object"),
        pl.lit(99, pl.Int64).alias("predicate"),
        pl.lit(-1, pl.Int64).alias("predicate"),
        pl.lit(None, pl.Int64).alias("predicate"),
        pl.lit(None, pl.Int64).alias("start_frame"),
        pl.lit((1 << 63) - 1, pl.Int64).alias("end_frame"),
        pl.lit(float("nan")).alias("score"),
        pl.lit("x").alias("start_frame"),
        pl.lit("x").alias("predicate"),
    ],
)
def test_forged_relations_are_an_answer(tmp_path: Path, change: pl.Expr) -> None:
    ask_all(forge(tmp_path, "relations", make_overlaid_truth().relations.with_columns(change)))


@pytest.mark.parametrize(
    "joints",
    [
        [float("nan")] * 51,
        [float("inf")] * 51,
        [1e300] * 51,
        [],
        [1.0] * 50,
        [None] * 51,
    ],
)
def test_forged_joints_are_an_answer(tmp_path: Path, joints: list[float | None]) -> None:
    boxes = make_overlaid_truth().boxes.drop("joints")
    column = pl.Series("joints", [joints] * len(boxes), dtype=pl.List(pl.Float64))
    ask_all(forge(tmp_path, "boxes", boxes.with_columns(column)))
    ragged = pl.Series("joints", [joints, [1.0] * 34] * (len(boxes) // 2), dtype=pl.List(pl.Float64))
    ask_all(forge(tmp_path / "ragged", "boxes", boxes.with_columns(ragged)))
    ask_all(forge(tmp_path / "texts", "boxes", boxes.with_columns(joints=pl.lit("x"))))


@pytest.mark.parametrize(
    ("cells", "width"),
    [
        ([], 4),
        ([1.0] * 7, 4),
        ([1.0] * 8, 0),
        ([1.0] * 8, -4),
        ([1.0] * 8, 1 << 62),
        ([float("nan")] * 8, 4),
        ([float("inf"), *[0.0] * 7], 4),
        ([1.7e308, -1.7e308, *[0.0] * 6], 4),
        ([None, 1.0], 2),
    ],
)
def test_forged_maps_are_an_answer(tmp_path: Path, cells: list[float | None], width: int) -> None:
    rows = pl.DataFrame(
        {"sound": [0], "video": "one", "map": [cells], "map_width": [width]},
        schema_overrides={"map": pl.List(pl.Float64), "map_width": pl.Int64},
    )
    text = ask_all(forge(tmp_path, "sounds", rows, predicted=True))
    found = json.loads(text)[-1]
    assert isinstance(found, str) or all(0 <= cell <= 255 for cell in found["cells"])


def test_sets_without_rows_and_tables_without_columns_have_no_layers(tmp_path: Path) -> None:
    empty = {
        "relations": pl.DataFrame(),
        "sounds": pl.DataFrame({"sound": []}),
        "boxes": pl.DataFrame({"video": ["one"]}),
    }
    for table, rows in empty.items():
        ask_all(forge(tmp_path / table, table, rows))


def test_forecasts_of_a_foreign_watch_are_an_answer(tmp_path: Path) -> None:
    write_watch(tmp_path / "watch")
    table = pl.read_parquet(tmp_path / "watch" / "crossing.parquet")
    for number, change in enumerate(
        (
            pl.lit(float("nan")).alias("crossing"),
            pl.lit(1e30).alias("crossing"),
            pl.lit(-(1 << 62), pl.Int64).alias("frame"),
            pl.lit("x").alias("tube"),
            pl.lit([float("inf")] * 3, pl.List(pl.Float64)).alias("regions"),
            pl.lit([], pl.List(pl.Float64)).alias("regions"),
            pl.lit("x").alias("frame"),
        )
    ):
        table.with_columns(change).write_parquet(tmp_path / "watch" / "crossing.parquet")
        opened = open_paths([tmp_path / "watch"])
        assert ask_all(Overlays(opened, Index(opened))), number
    (tmp_path / "watch" / "crossing.parquet").write_bytes(b"PAR1 and nothing else")
    (tmp_path / "watch" / "timing.parquet").write_bytes(b"")
    opened = open_paths([tmp_path / "watch"])
    found = Overlays(opened, Index(opened))
    assert "not as roadaware" in ask_all(found)
    with pytest.raises(RoadawareError):
        found.latency("one", "a", 0, 9, 3)


def test_joints_are_read_from_the_named_folder_alone(tmp_path: Path) -> None:
    outside = tmp_path / "outside.parquet"
    joints = [place_joints(0, 10.0, 5.0)]
    pl.DataFrame({"video": "one", "frame": [0], "joints_px": joints, "name": HIDDEN}).write_parquet(outside)
    save(make_overlaid_truth(), tmp_path / "truth")
    folder = tmp_path / "poses"
    folder.mkdir()
    (folder / "poses.json").write_text("{}")
    (folder / "poses.parquet").symlink_to(outside)
    with pytest.raises(InputError):
        open_paths([tmp_path / "truth", folder])
    (folder / "poses.parquet").unlink()
    for forged in (b"", b"PAR1", HIDDEN.encode()):
        (folder / "poses.parquet").write_bytes(forged)
        opened = open_paths([tmp_path / "truth", folder])
        with pytest.raises(InputError, match="joints") as caught:
            Overlays(opened, Index(opened)).describe("one")
        assert HIDDEN not in str(caught.value)
    pl.DataFrame({"video": "one", "frame": [0]}).write_parquet(folder / "poses.parquet")
    opened = open_paths([tmp_path / "truth", folder])
    with pytest.raises(InputError, match="joints_px"):
        Overlays(opened, Index(opened)).window("one", 0, 9, ["joints"])


def test_a_waveform_is_of_the_film_that_was_found_and_of_nothing_put_in_its_place(
    tmp_path: Path, viewed: Open
) -> None:
    save(make_overlaid_truth(), tmp_path / "truth")
    (tmp_path / "films").mkdir()
    film = tmp_path / "films" / "one.mp4"
    write_sounding(film)
    client = viewed(tmp_path / "truth", media=[tmp_path / "films"])
    assert client.json("/api/film?video=0")["sound"] is True
    other = tmp_path / "other.mp4"
    film.rename(other)
    film.symlink_to(other)
    assert client.ask("/api/waveform?video=0&first=0&end=2&bars=4")[0] == 409
    film.unlink()
    assert client.ask("/api/waveform?video=0&first=0&end=2&bars=4")[0] == 409


def test_a_sound_track_whose_times_make_no_sense_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.mp4"
    path.write_bytes(b"x")
    block = np.full((8_000, 2), 0.5, np.float32)
    blocks = [
        (-(10**15), block),
        (-4_000, block),
        (10**15, block),
        (8_000 * 3600 * 24, block),
        (16_000, block),
        (12_000, block * np.nan),
    ]
    monkeypatch.setattr("roadaware.viewer.films.iterate_sound", lambda *_: iter(blocks))
    found = Waveforms()
    for _ in range(300):
        told = found.describe(path, 0.0, 4.0, 8)
        if told["state"] != "reading":
            break
        time.sleep(0.02)
    assert [high > 0 for high in told["high"]] == [True, False, False, False, True, True, False, False]
    track = next(iter(found._tracks.values()))
    assert len(track.peaks) < 1000


@pytest.mark.slow
def test_a_film_with_damaged_or_foreign_sound_still_gets_its_copy(tmp_path: Path) -> None:
    save(make_overlaid_truth(), tmp_path / "truth")
    media = tmp_path / "media"
    media.mkdir()
    write_sounding(media / "one.mkv", codec="mpeg4", sound="libopus", rate=48_000)
    data = bytearray((media / "one.mkv").read_bytes())
    data[len(data) // 2 : len(data) // 2 + 400] = bytes(400)
    (media / "one.mkv").write_bytes(data)
    finder = FilmFinder(open_paths([tmp_path / "truth"], [media]))
    for _ in range(1200):
        film = finder.film("one")
        if film.state != "encoding":
            break
        time.sleep(0.05)
    assert (film.state, film.sound, len(film.times_s)) == ("ready", True, FRAMES), film.message
