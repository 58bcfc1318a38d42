"""`check`: what it prints, writes and refuses, and that every native form is taken."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from small_files import Command


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's folder; nobody writes into it."""
    from roadaware.cli import main

    folder = tmp_path_factory.mktemp("rounds") / "example"
    assert main(["check", "example", str(folder), "-q"]) == 0
    return folder


def versions(folder: Path) -> list[Path]:
    return [folder / name for name in ("original", "round1", "round2")]


def test_json_holds_every_item_with_status_reasons_and_differences(roadaware: Command, rounds: Path) -> None:
    words = ("--forbidden-words", rounds / "words.txt")
    done = roadaware("check", "annotations", *versions(rounds), *words, "--json")
    assert done.code == 0
    summary, items = done.data["summary"], done.data["items"]
    assert summary["items"] == len(items) == summary["pass"] + summary["fail"] + summary["disputed"]
    planted = json.loads((rounds / "planted.json").read_text())["planted"]
    for fault in planted:
        keys = ("what", "video", "name", "frame", "status")
        held = [item for item in items if all(item[key] == fault[key] for key in keys)]
        assert any(fault["rule"] in item["rules"] or fault["rule"] == "limit" for item in held), fault
    assert done.data["config"]["edge_px"] == 8.0
    assert {"level", "pair", "mean_iou", "share_edges"} <= set(done.data["agreement"][0])


def test_one_round_never_disputes(roadaware: Command, rounds: Path) -> None:
    done = roadaware("check", "annotations", *versions(rounds)[:2], "--json")
    assert done.data["summary"]["disputed"] == 0
    assert {item["round2"] for item in done.data["items"]} == {None}


@pytest.mark.slow
def test_strict_and_limits(roadaware: Command, rounds: Path) -> None:
    original, first, _ = versions(rounds)
    strict = roadaware("check", "annotations", original, first, "--strict")
    assert strict.code == 1
    assert "--strict:" in strict.err
    wide = ("--edge-px", 1e4, "--frames", 1e4, "--any-reviewer", "--dictionary", "none")
    rules = roadaware("check", "annotations", original, first, *wide, "--json").data["summary"]["by_rule"]
    assert not {"box moved", "time moved", "same reviewer", "label unknown"} & set(rules)
    narrow = roadaware("check", "annotations", original, first, "--edge-px", 0, "--json").data["summary"]
    assert narrow["by_rule"]["box moved"] > 500
    same = roadaware(
        "check", "annotations", first, first, "--any-reviewer", "--resolution", "320x180", "--json"
    )
    assert same.data["config"]["resolution"] == [320, 180]


@pytest.mark.slow
def test_the_folder_holds_items_and_a_page_that_runs_nothing(
    roadaware: Command, rounds: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    assert roadaware("check", "annotations", *versions(rounds), "-o", folder).code == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "default-src &#39;none&#39;" in page
    assert page.count("<script") == 1
    for heading in ("Result", "Items that did not pass", "Agreement between annotators"):
        assert f">{heading}</h2>" in page
    assert 'type="radio"' in page
    items = pl.read_parquet(folder / "items.parquet")
    assert len(pl.read_csv(folder / "items.csv", infer_schema_length=None)) == len(items)
    assert roadaware("check", "annotations", *versions(rounds), "-o", folder).code == 2
    assert roadaware("check", "annotations", *versions(rounds), "-o", folder, "--overwrite").code == 0
    again = (folder / "report.html").read_text(encoding="utf-8")
    assert again == page


def test_a_dictionary_of_ones_own(roadaware: Command, rounds: Path, tmp_path: Path) -> None:
    path = tmp_path / "words.json"
    path.write_text('{"action": ["teleporting"], "colour": ["red"]}')
    found = roadaware("check", "annotations", *versions(rounds), "--dictionary", path, "--json").data
    assert found["facts"]["kinds_not_looked_up"] == ["event", "predicate", "sound"]
    assert found["facts"]["dictionary"] == "words.json"
    unknown = [item for item in found["items"] if "label unknown" in item["rules"]]
    assert {item["what"] for item in unknown} == {"box"}
    assert not any(
        "action: teleporting" in label for item in unknown for label in item["original_labels"] or ()
    )


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["absent", "ROUND1"], 3, "no such file"),
        (["ORIGINAL", "ROUND1", "--resolution", "big"], 2, "resolution: expected a list such as"),
        (["ORIGINAL", "ROUND1", "--set", "frame_rate=fast"], 2, "frame_rate: expected a number, null"),
        (["ORIGINAL", "ROUND1", "--frames", "-1"], 2, "frames should be 0 or more"),
        (["ORIGINAL", "ROUND1", "--forbidden-words", "empty.txt"], 3, "empty.txt"),
        (["ORIGINAL", "ROUND1", "--dictionary", "empty.txt"], 3, "empty.txt"),
        (["ORIGINAL", "ROUND1", "--dictionary", "list.json"], 3, "lists of labels by kind"),
        (["ORIGINAL", "ROUND1", "--html", "ORIGINAL/meta.json"], 2, "over the input"),
        (["ORIGINAL", "empty.txt"], 3, "empty.txt"),
        (["ORIGINAL", "list.json", "--reader", "labelstudio"], 2, "label_studio"),
        (["ORIGINAL", "list.json", "--reader", "vggss", "--labels", "empty.txt"], 2, "--labels"),
        (["ORIGINAL", "ROUND1", "--kinds", "action"], 2, "CONTROL=KIND"),
    ],
)
def test_wrong_requests(
    roadaware: Command,
    rounds: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    code: int,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("\n# nothing\n")
    (tmp_path / "list.json").write_text('["running"]')
    named = {"ORIGINAL": str(rounds / "original"), "ROUND1": str(rounds / "round1")}
    filled = [
        word.replace("ORIGINAL", named["ORIGINAL"]).replace("ROUND1", named["ROUND1"]) for word in words
    ]
    done = roadaware("check", "annotations", *filled)
    assert done.code == code, done.err
    assert says in done.err
    assert done.out == ""
