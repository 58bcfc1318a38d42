"""The index of boxes says what the tables say, is kept beside them, and is never believed against them."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import shutil
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numbered import FRAMES, Open, make_predictions, make_truth

from roadaware.formats.proposal_tasks import SENT
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.store import save
from roadaware.scenes.tables import Meta, Predictions
from roadaware.viewer import box_index, opening
from roadaware.viewer.box_index import FILE, BoxIndex, name_tubes
from roadaware.viewer.index import Index
from roadaware.viewer.opening import open_paths


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "cache"))


def make_crowd(seed: int = 0) -> Predictions:
    """Scored boxes in 60 videos: some with scored tubes, some with tubes without a score, some without a tube."""
    rng = np.random.default_rng(seed)
    n, tubes = 4000, 180
    tube = rng.integers(0, tubes, n)
    video = tube // 3
    loose = rng.random(n) < 0.2
    boxes = pl.DataFrame(
        {
            "video": [f"v{number:02d}" for number in video],
            "frame": rng.integers(0, 50, n),
            "tube": pl.Series([None if free else int(each) for free, each in zip(loose, tube, strict=True)]),
            "score": pl.Series(rng.integers(0, 1001, n) / 1000, dtype=pl.Float32),
            **{
                name: np.full(n, value, np.float32)
                for name, value in zip(CORNERS, (1, 2, 30, 40), strict=True)
            },
        }
    )
    boxes = boxes.unique(["video", "frame", "tube"], maintain_order=True).sort(
        "video", "frame", maintain_order=True
    )
    boxes = boxes.with_row_index("box").cast({"box": pl.Int64})
    scores = [None if number % 4 == 0 else float(rng.integers(0, 101)) / 100 for number in range(tubes)]
    facts = pl.DataFrame(
        {"tube": range(tubes), "video": [f"v{k // 3:02d}" for k in range(tubes)], "score": scores}
    )
    labels = pl.DataFrame({"tube": range(tubes), "kind": "agent", "label": rng.integers(0, 3, tubes)})
    words = {"agent": ("Ped", "Car", "Bus")}
    own = boxes.filter(pl.col("tube").is_null()).select("box", kind=pl.lit("agent"), label=pl.lit(2))
    return Predictions(
        boxes=boxes, tubes=facts, tube_labels=labels, labels=own, meta=Meta(vocabularies=words)
    )


def count_plainly(found: Predictions, score: float, hidden: set[str]) -> Counter[str]:
    """Video to boxes that the page would draw, box by box."""
    words = found.meta.vocabularies["agent"]
    label = dict(found.tube_labels.select("tube", "label").rows())
    scores = dict(found.tubes.select("tube", "score").rows())
    counted: Counter[str] = Counter()
    for row in found.boxes.iter_rows(named=True):
        tube = row["tube"]
        word = words[2] if tube is None else words[label[tube]]
        own = row["score"] if tube is None or scores[tube] is None else scores[tube]
        if word not in hidden and round(own, 3) >= score:
            counted[row["video"]] += 1
    return counted


@pytest.mark.parametrize("order", ["sorted", "scattered"])
@pytest.mark.parametrize("chunk", [1 << 18, 97])
def test_counts_are_those_of_the_boxes_one_by_one(
    tmp_path: Path, order: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(box_index, "_CHUNK", chunk)
    monkeypatch.setattr(box_index, "_MOST_RUNS", 8)
    found = make_crowd()
    if order == "scattered":
        found = found.with_tables(boxes=found.boxes.sample(fraction=1, shuffle=True, seed=1))
    save(found, tmp_path / "found")
    index = Index(open_paths([tmp_path / "found"]))
    for hundredth, hidden in ((0, set()), (1, set()), (30, {"Car"}), (57, {"Ped", "Bus"}), (100, set())):
        told = index.counts(hundredth, hidden)["a"]
        plain = count_plainly(found, hundredth / 100, hidden)
        assert dict(zip(index.videos, told["videos"], strict=True)) == {
            name: plain[name] for name in index.videos
        }
        assert told["passed"] == sum(plain.values())
        assert told["total"] == len(found.boxes)
    some = index.videos[7]
    rows = index.boxes(some, 0, 50)["a"]
    assert sorted(rows["box"]) == sorted(found.boxes.filter(pl.col("video") == some)["box"].to_list())


def test_truth_passes_whatever_the_score(sets: Path) -> None:
    told = Index(open_paths([sets / "truth", sets / "found"])).counts(65, {"Car"})
    assert (told["truth"]["passed"], told["truth"]["total"]) == (60 + 20 + 30, 60 + 80 + 20 + 30)
    assert (told["a"]["passed"], told["a"]["total"]) == (60, 60 + 80 + 20 + 20)
    assert told["a"]["classes"] == {"Car": 100, "Ped": 60}


def test_a_tube_is_called_by_its_weightiest_label_of_the_first_kind() -> None:
    tubes = pl.DataFrame(
        {
            "tube": [0, 1, 2, 3],
            "parent": [None, 0, 0, None],
            "start_frame": [0, 0, 0, 5],
            "end_frame": [10, 10, 10, 9],
            "score": [0.9, 0.5, 0.4, 0.3],
            "spans": [None, [[0, 4]], [[4, 10]], None],
        },
        schema_overrides={"parent": pl.Int64, "spans": pl.List(pl.List(pl.Int64))},
    )
    rows = [
        (0, "action", "Mov", 1.0),
        (1, "agent", "Bus", None),
        (2, "agent", "Car", None),
        (3, "agent", "Ped", 0.2),
    ]
    rows += [(3, "agent", "Cyc", 0.1)]
    labels = pl.DataFrame(
        rows,
        schema={"tube": pl.Int64, "kind": pl.String, "word": pl.String, "score": pl.Float64},
        orient="row",
    )
    # 0.5 x 4 frames of Bus, 0.4 x 6 of Car; an action never names what has an agent.
    assert dict(name_tubes(tubes, labels).rows()) == {0: "Car", 3: "Ped"}


def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the sets that are gone through from now on."""
    names: list[str] = []
    build = box_index._build

    def noted(source: Any, *rest: Any) -> BoxIndex:
        names.append(source.name)
        return build(source, *rest)

    monkeypatch.setattr(box_index, "_build", noted)
    return names


def ask(folder: Path) -> dict[str, Any]:
    index = Index(open_paths([folder]))
    return {"counts": index.counts(0, set()), "boxes": index.boxes(index.videos[0], 0, 90)}


def test_it_is_made_once_and_kept_beside_the_tables(sets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = made(monkeypatch)
    first = ask(sets / "found")
    assert names == ["found"]
    assert (sets / "found" / FILE).is_file()
    assert ask(sets / "found") == first
    assert names == ["found"]
    save(make_predictions(shift=30.0), sets / "found", overwrite=True)
    assert (sets / "found" / FILE).is_file()
    changed = ask(sets / "found")
    assert names == ["found", "found"]
    assert changed["boxes"] != first["boxes"]


def forge(path: Path, rows: int, change: Any) -> None:
    """An index whose digests are right and whose content is not."""
    magic, line, body = path.read_bytes().split(b"\n", 2)
    facts = json.loads(line)
    ends = np.cumsum([0, *facts["sizes"]])
    tables = [pl.read_parquet(io.BytesIO(body[a:b])) for a, b in itertools.pairwise(ends)]
    parts = []
    for table in change(*tables):
        buffer = io.BytesIO()
        table.write_parquet(buffer)
        parts.append(buffer.getvalue())
    body = b"".join(parts)
    facts |= {
        "sizes": [len(part) for part in parts],
        "blake2b": hashlib.blake2b(body, digest_size=32).hexdigest(),
    }
    path.write_bytes(magic + b"\n" + json.dumps(facts | {"rows": rows}).encode() + b"\n" + body)


DAMAGES: dict[str, Any] = {
    "cut": lambda data: data[: len(data) // 2],
    "flipped": lambda data: data[:-40] + bytes([data[-40] ^ 1]) + data[-39:],
    "header": lambda data: data.split(b"\n", 1)[0] + b"\n{}\n",
    "nothing behind": lambda data: data.split(b"\n", 1)[0] + b"\n",
    "deep": lambda data: data.split(b"\n", 1)[0] + b"\n" + b"[" * 100_000,
}


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_index_is_made_anew(sets: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    right = ask(sets / "found")
    path = sets / "found" / FILE
    whole = path.read_bytes()
    path.write_bytes(DAMAGES[how](whole))
    names = made(monkeypatch)
    assert ask(sets / "found") == right
    assert names == ["found"]
    assert path.read_bytes() == whole


def test_a_forged_index_is_made_anew_or_shows_no_box_of_another_video(
    sets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sets / "truth" / FILE
    right = ask(sets / "truth")
    whole = path.read_bytes()
    names = made(monkeypatch)
    impossible = (
        lambda runs, spans, tallies: (runs.with_columns(length=pl.col("length") + 5), spans, tallies),
        lambda runs, spans, tallies: (runs.with_columns(start=pl.col("start") - 1), spans, tallies),
        lambda runs, spans, tallies: (runs.head(1), spans, tallies),
        lambda runs, spans, tallies: (runs, spans, tallies.with_columns(n=pl.col("n") * 2)),
        lambda runs, spans, tallies: (runs, spans, tallies.with_columns(hundredth=pl.lit(30_000, pl.Int16))),
        lambda runs, spans, tallies: (runs, spans, tallies.with_columns(word=pl.lit(None, pl.String))),
        lambda runs, spans, tallies: (runs, spans.rename({"first": "f"}), tallies),
        lambda runs, spans, tallies: (runs, spans, tallies.cast({"n": pl.Float64})),
    )
    for number, change in enumerate(impossible, 1):
        path.write_bytes(whole)
        forge(path, 190, change)
        assert ask(sets / "truth") == right, number
        assert len(names) == number
    path.write_bytes(whole)
    swapped = {"one": "two", "two": "one"}
    forge(
        path,
        190,
        lambda runs, spans, tallies: (runs.with_columns(pl.col("video").replace(swapped)), spans, tallies),
    )
    assert ask(sets / "truth")["boxes"]["truth"]["box"] == []


def test_where_the_folder_cannot_be_written_to_the_cache_keeps_it(
    sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sets / "found"
    write = box_index.write_and_rename

    def refuse(path: Path, data: bytes) -> None:
        if path.parent == folder:
            raise PermissionError(13, "Permission denied")
        write(path, data)

    monkeypatch.setattr(box_index, "write_and_rename", refuse)
    names = made(monkeypatch)
    first = ask(folder)
    assert not (folder / FILE).exists()
    assert len(list((tmp_path / "cache" / "viewer").glob("*.index"))) == 1
    assert ask(folder) == first
    assert names == ["found"]
    shutil.copytree(folder, sets / "copy")
    assert ask(sets / "copy") == {**first}
    assert names == ["found", "copy"]


def test_what_is_no_index_is_never_replaced(sets: Path, tmp_path: Path) -> None:
    path, victim = sets / "found" / FILE, tmp_path / "victim.txt"
    path.write_text("notes of mine")
    ask(sets / "found")
    assert path.read_text() == "notes of mine"
    path.unlink()
    victim.write_text("precious")
    path.symlink_to(victim)
    ask(sets / "found")
    assert (victim.read_text(), path.is_symlink()) == ("precious", True)
    path.unlink()
    path.mkdir()
    ask(sets / "found")
    assert stat.S_ISDIR(path.stat().st_mode)


def test_frames_of_tubes_that_tell_none_are_those_of_their_boxes(sets: Path, tmp_path: Path) -> None:
    truth = make_truth()
    save(truth.with_tables(tubes=truth.tubes.drop("start_frame", "end_frame")), tmp_path / "truth")
    paths = Index(open_paths([tmp_path / "truth"])).describe_video("one")["truth"]["paths"]
    assert [path[2:4] for path in paths] == [[0, 60], [10, FRAMES], [70, FRAMES]]


def test_a_table_without_rows_has_an_index_too(tmp_path: Path) -> None:
    found = make_predictions()
    save(found.with_tables(boxes=found.boxes.clear()), tmp_path / "found")
    index = Index(open_paths([tmp_path / "found"]))
    assert index.counts(0, set())["a"] == {"videos": [0, 0], "classes": {}, "passed": 0, "total": 0}
    assert index.boxes("one", 0, 9)["a"]["box"] == []
    assert Index(open_paths([tmp_path / "found"])).counts(0, set())["a"]["total"] == 0


def test_counts_are_asked_for_in_hundredths(sets: Path, viewed: Open) -> None:
    client = viewed(sets / "truth", sets / "found")
    assert client.json("/api/counts?hundredth=30&hide=Car&hide=x")["a"]["classes"] == {"Car": 100, "Ped": 80}
    for value in ("101", "-1", "", "x", "9" * 30, "1.5", "nan"):
        assert client.ask(f"/api/counts?hundredth={value}")[0] == 422
    assert client.ask("/api/counts?hundredth=30", known=False)[0] == 403
    names = "&".join(f"hide={number}" for number in range(900))
    assert client.ask(f"/api/counts?hundredth=30&{names}")[0] == 414 or len(names) < 8000


def test_tables_of_sent_proposals_are_looked_for_where_they_are_written() -> None:
    assert SENT in opening._INNER
