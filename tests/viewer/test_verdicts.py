"""What people say of tubes is on the disk at once, survives cuts and other viewers, and comes back as corrections."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import polars as pl
import pytest
from numbered import Open

from roadaware.cli import main
from roadaware.errors import DiskError, UsageError
from roadaware.formats.corrections import DRAWN
from roadaware.viewer.app import FILE, Verdict, VerdictFile, build_corrections
from roadaware.viewer.opening import open_paths


def say(tube: int | None, word: str, box: int | None = None, who: str = "ann", note: str = "") -> Verdict:
    return Verdict(who, "one", tube, box, 5, word, note)


def test_the_last_verdict_of_a_person_on_a_thing_counts(tmp_path: Path) -> None:
    file = VerdictFile(tmp_path)
    assert file.read() == []
    for each in (say(1, "right"), say(2, "wrong"), say(1, "wrong"), say(1, "right", who="ben"), say(2, "")):
        file.add(each)
    assert [(v.annotator, v.tube, v.verdict) for v in file.read()] == [
        ("ann", 1, "wrong"),
        ("ben", 1, "right"),
    ]
    assert len((tmp_path / FILE).read_bytes().splitlines()) == 5


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path: Path) -> None:
    file = VerdictFile(tmp_path)
    file.add(say(1, "right"))
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes() + b'{"annotator": "ann", "vid')
    file.add(say(2, "wrong"))
    assert [v.tube for v in file.read()] == [1, 2]
    path.write_bytes(path.read_bytes() + b'null\n[]\n{"x": 1}\n\xff\n' + b"[" * 5000 + b"\n")
    assert [v.tube for v in file.read()] == [1, 2]


def test_verdicts_on_a_set_that_was_replaced_do_not_count(tmp_path: Path) -> None:
    VerdictFile(tmp_path, "one").add(say(1, "right"))
    VerdictFile(tmp_path, "two").add(say(1, "wrong"))
    assert [v.verdict for v in VerdictFile(tmp_path, "one").read()] == ["right"]
    assert [v.verdict for v in VerdictFile(tmp_path, "two").read()] == ["wrong"]
    assert VerdictFile(tmp_path, "three").read() == []


def test_two_viewers_lose_none(tmp_path: Path) -> None:
    def work(who: str) -> None:
        file = VerdictFile(tmp_path)
        for tube in range(50):
            file.add(say(tube, "right", who=who))

    people = [threading.Thread(target=work, args=(name,)) for name in ("ann", "ben", "cem")]
    for each in people:
        each.start()
    for each in people:
        each.join()
    assert len(VerdictFile(tmp_path).read()) == 150


def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DiskError):
        VerdictFile(tmp_path / "run").add(say(1, "right"))
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    "wrong", [{"tube": None}, {"box": 1}, {"frame": -1}, {"verdict": "maybe"}, {"note": "x" * 3000}]
)
def test_a_verdict_is_of_one_thing(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Verdict(
            **(
                {"annotator": "a", "video": "one", "tube": 1, "box": None, "frame": 0, "verdict": "right"}
                | wrong
            )
        )  # type: ignore[arg-type]


def test_images_that_are_judged_whole_become_corrections(sets: Path) -> None:
    source = open_paths([sets / "found"]).sides["a"]
    # Tubes 0 and 1 share frames 10 to 59, where tube 3 stands from 20 to 39; before 10 tube 0 is alone.
    rows, left = build_corrections(source, [say(0, "right"), say(1, "wrong"), say(3, "unsure")])
    assert rows.schema == pl.Schema(DRAWN)
    assert sorted(set(rows["frame"].to_list())) == [*range(20), *range(40, 70)]
    assert left == {"images with boxes that are not judged": 40}
    kept = rows.filter(pl.col("proposal").is_not_null())
    boxes = pl.read_parquet(next((sets / "found").glob("boxes-*.parquet")))
    assert set(kept["proposal"].to_list()) <= set(boxes.filter(pl.col("tube") == 0)["box"].to_list())
    emptied = rows.filter(pl.col("proposal").is_null())
    assert sorted(emptied["frame"].to_list()) == list(range(60, 70))
    assert emptied["x1_px"].null_count() == len(emptied)


def test_verdicts_are_asked_for_undone_and_kept_by_the_server(sets: Path, viewed: Open) -> None:
    client = viewed(sets / "truth", sets / "found")
    verdict = {
        "side": "a",
        "video": "one",
        "tube": 1,
        "box": None,
        "frame": 30,
        "verdict": "wrong",
        "note": "ünder",
    }
    status, held = client.post("/api/verdicts", verdict)
    assert status == 200
    assert held == [
        {
            "annotator": "ann",
            "video": "one",
            "tube": 1,
            "box": None,
            "frame": 30,
            "verdict": "wrong",
            "note": "ünder",
        }
    ]
    assert json.loads((sets / "found" / FILE).read_bytes())["verdict"] == "wrong"
    again = viewed(sets / "found", annotator="ben")
    assert again.json("/api/verdicts?side=a") == held
    assert client.post("/api/verdicts", verdict | {"verdict": "", "note": ""}) == (200, [])
    assert client.post("/api/verdicts", verdict | {"video": "three"})[0] == 422
    before = {path for path in sets.parent.rglob("*") if path.is_file()}
    client.post("/api/verdicts", verdict)
    after = {path for path in sets.parent.rglob("*") if path.is_file()}
    assert after - before == set()


@pytest.mark.slow
def test_label_import_reads_what_the_viewer_exports(
    tmp_path: Path, viewed: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "streets"
    for line in (
        f"label example {root}",
        f"label export {root}/proposals --videos {root}/scenes --all --classes cone dog -o {root}/tasks",
    ):
        assert main([*line.split(), "-q"]) == 0
    client = viewed(root / "tasks")
    told = client.json("/api/index")
    boxes = pl.read_parquet(next((root / "tasks" / "sent").glob("boxes-*.parquet")))
    image = (
        boxes.group_by("video", "frame").len().sort("len", "video", "frame").filter(pl.col("len") >= 2).row(0)
    )
    held = boxes.filter((pl.col("video") == image[0]) & (pl.col("frame") == image[1]))["box"].to_list()
    assert image[0] in told["videos"]["name"]
    for place, box in enumerate(held):
        word = "wrong" if place == 0 else "right"
        verdict = {
            "side": "a",
            "video": image[0],
            "tube": None,
            "box": box,
            "frame": image[1],
            "verdict": word,
            "note": "",
        }
        assert client.post("/api/verdicts", verdict)[0] == 200
    status, headers, data = client.ask("/api/corrections?side=a")
    assert status == 200
    assert "attachment" in headers["content-disposition"]
    assert pl.read_parquet(io.BytesIO(data))["proposal"].to_list() == held[1:]
    (tmp_path / "corrections.parquet").write_bytes(data)
    capsys.readouterr()
    words = f"label import {root}/tasks {tmp_path}/corrections.parquet -o {tmp_path}/labels --json -"
    assert main(words.split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pictures"]["done"] == 1
    assert [row["annotator"] for row in found["annotators"]] == ["ann"]
