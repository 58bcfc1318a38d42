"""`evaluate corner-cases` and `stats coda` on a small synthetic set; every command of the page runs."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import polars as pl
import pytest
from small_files import Command

from roadaware.demo_data.corner_files import CornerFacts, write_corner_demo
from roadaware.formats.coda import read_corner_cases
from roadaware.scenes.store import save

PAGE = Path(__file__).resolve().parents[2] / "docs" / "corner_cases_evaluation.md"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CornerFacts]:
    folder = tmp_path_factory.mktemp("coda")
    return folder, write_corner_demo(folder, pictures=24)


def words(folder: Path, predictions: str = "bdd100k.json", truth: str = "corner_case.json") -> list[object]:
    files = ["--truth", folder / truth, "--predictions", folder / predictions]
    return ["evaluate", "corner-cases", *files]


@pytest.mark.slow
def test_the_commands_of_the_page_run(
    roadaware: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_corner_demo(Path("data/coda"))
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) == 7
    for line in lines:
        done = roadaware(*shlex.split(line.removeprefix("$ "))[1:])
        assert done.code == 0, f"{line}: {done.err}"
        assert done.out
    proposals = json.loads(Path("data/proposals-result.json").read_text())
    assert proposals["summary"]["corner_ar"] > proposals["baselines"]["random boxes"]["corner_ar"]
    assert proposals["summary"]["common_ar"] is None
    challenge = json.loads(Path("data/challenge-result.json").read_text())["summary"]
    parts = ("common_ap", "all_ap", "all_ar", "corner_ar")
    assert challenge["total"] == pytest.approx(sum(challenge[part] for part in parts))
    assert 0 < challenge["total"] < 4


def test_the_json_says_what_was_judged_and_how(roadaware: Command, demo: tuple[Path, CornerFacts]) -> None:
    folder, facts = demo
    how = ["--trained-on", "soda10m", "--by", "weather", "--resamples", "20", "--json"]
    done = roadaware(*words(folder, "soda10m.json"), *how)
    assert done.code == 0, done.err
    data = done.data
    assert data["facts"]["pictures"] == facts.pictures
    assert data["facts"]["objects"] == data["facts"]["corner_cases"] == facts.corner_cases
    assert data["summary"]["novel_ar"] is None
    assert "soda10m names no novel object" in data["run"]["undefined"]["novel_ar"]
    assert {group.partition(": ")[0] for group in data["groups"]} == {"weather"}
    assert data["facts"]["trivial_answers_in_slices"].keys() == data["groups"].keys()
    low, high = data["intervals"]["corner_ar"]
    assert low <= data["summary"]["corner_ar"] <= high
    assert data["run"]["routing"]["predictions are"] == "classes of soda10m"
    assert "animal" in data["per_class"]
    assert {row["trained_on"] for row in data["run"]["printed"]} == {"soda10m"}


@pytest.mark.slow
def test_text_and_page_put_print_and_trivial_answers_beside(
    roadaware: Command, demo: tuple[Path, CornerFacts], tmp_path: Path
) -> None:
    folder, _ = demo
    page = tmp_path / "page.html"
    done = roadaware(*words(folder), "--trained-on", "bdd100k", "--by", "period", "--html", page)
    assert done.code == 0, done.err
    for told in ("random boxes", "period: Night", "Sparse R-CNN, bdd100k", "0.128"):
        assert told in done.out, told
        assert told in page.read_text(), told


def test_saved_tables_give_the_same_numbers(
    roadaware: Command, demo: tuple[Path, CornerFacts], tmp_path: Path
) -> None:
    folder, _ = demo
    save(read_corner_cases(folder / "corner_case.json"), tmp_path / "truth")
    how = ["--trained-on", "waymo", "--categories", folder / "names.json", "--json"]
    names = [{"id": 1, "name": "pedestrian"}, {"id": 2, "name": "cyclist"}, {"id": 3, "name": "vehicle"}]
    names += [{"id": n, "name": f"sign {n}"} for n in range(4, 9)]
    (folder / "names.json").write_text(json.dumps({"categories": names}))
    native = roadaware(*words(folder), *how).data
    tables = ["--truth", tmp_path / "truth", "--predictions", folder / "bdd100k.json"]
    saved = roadaware("evaluate", "corner-cases", *tables, *how).data
    assert saved["summary"] == native["summary"]
    assert native["summary"]["novel_ar"] is not None, "vehicles of Waymo are predicted for novel objects, too"


@pytest.mark.slow
@pytest.mark.parametrize("on", ["local", "ray://local"])
def test_two_workers_find_what_one_process_does(
    roadaware: Command, demo: tuple[Path, CornerFacts], tmp_path: Path, on: str
) -> None:
    if on != "local":
        pytest.importorskip("ray")
    how = ["--trained-on", "bdd100k", "--by", "period", "--resamples", "percentile:150"]
    for name, more in (("one", []), ("two", ["--processes", "2", "--on", on])):
        done = roadaware(*words(demo[0]), *how, "--output", tmp_path / name, *more)
        assert done.code == 0, done.err
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.*")} for name in ("one", "two")
    )
    assert one == two
    assert "report.html" in one


@pytest.mark.slow
def test_bars_and_findings(roadaware: Command, demo: tuple[Path, CornerFacts], tmp_path: Path) -> None:
    folder, _ = demo
    done = roadaware(*words(folder), "--trained-on", "bdd100k", "--fail-under", "corner_ar=0.99")
    assert done.code == 1
    assert "corner_ar is" in done.err
    rows = json.loads((folder / "bdd100k.json").read_text())
    (tmp_path / "odd.json").write_text(json.dumps([*rows, {**rows[0], "category_id": 99}]))
    odd = ["--truth", folder / "corner_case.json", "--predictions", tmp_path / "odd.json"]
    done = roadaware("evaluate", "corner-cases", *odd, "--trained-on", "bdd100k", "--strict")
    assert done.code == 1
    assert "category_id 99 is none of the categories" in done.err
    truth = json.loads((folder / "corner_case.json").read_text())
    truth["annotations"][0]["bbox"][2] = 1e5
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    odd = ["--truth", tmp_path / "truth.json", "--predictions", folder / "bdd100k.json"]
    done = roadaware("evaluate", "corner-cases", *odd, "--trained-on", "bdd100k", "--strict")
    assert done.code == 1
    assert "a box reaches out of its image" in done.err


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ([], "--trained-on soda10m|bdd100k|waymo"),
        (["--trained-on", "kitti"], "--trained-on is one of soda10m"),
        (["--agnostic", "--categories", "x.json"], "leave --categories away"),
        (["--agnostic", "--config", "coda2021"], "did you mean coda2022?"),
        (["--agnostic", "--by", "colour"], "nothing to slice by in 'colour'"),
        (["--agnostic", "--set", "ignored=everything"], "marked, crowds"),
    ],
)
def test_refusals(roadaware: Command, demo: tuple[Path, CornerFacts], more: list[str], told: str) -> None:
    done = roadaware(*words(demo[0]), *more)
    assert done.code == 2
    assert told in re.sub(r"\s+", " ", done.err)


def test_a_truth_of_which_nothing_can_be_taken_says_why(
    roadaware: Command, demo: tuple[Path, CornerFacts], tmp_path: Path
) -> None:
    held = json.loads((demo[0] / "corner_case.json").read_text())
    for row in held["annotations"]:
        del row["id"]
    path = tmp_path / "nameless.json"
    path.write_text(json.dumps(held))
    done = roadaware(*words(demo[0], truth=str(path)), "--trained-on", "bdd100k")
    assert done.code == 3
    assert "nameless.json: not one of its annotations can be taken" in done.err
    assert "annotation 0" in done.err


def test_a_file_that_is_not_there(roadaware: Command, demo: tuple[Path, CornerFacts]) -> None:
    done = roadaware(*words(demo[0], truth="nothing.json"), "--agnostic")
    assert done.code != 0
    assert "there is no such file" in done.err


def test_the_composition_counts_what_the_files_hold(
    roadaware: Command, demo: tuple[Path, CornerFacts], tmp_path: Path
) -> None:
    folder, facts = demo
    done = roadaware("stats", "coda", folder / "corner_case.json", "--json", "-o", tmp_path / "run")
    assert done.code == 0, done.err
    whole = done.data["parts"][-1]
    assert (whole["scenes"], whole["instances"]) == (facts.pictures, facts.corner_cases)
    assert whole["printed_instances"] == 5937
    scenes = read_corner_cases(folder / "corner_case.json")
    named = scenes.labels.filter(pl.col("kind") == "corner")["label"]
    assert sum(row["objects"] for row in done.data["classes"]) == len(named)
    assert sum(part["scenes"] for part in done.data["parts"][:-1]) == facts.pictures
    cone = next(row for row in done.data["classes"] if row["label"] == "traffic_cone")
    assert (cone["common"], cone["super_class"], cone["bdd100k"]) == (None, "traffic facility", False)
    bicycle = next(row for row in done.data["classes"] if row["label"] == "bicycle")
    assert (bicycle["common"], bicycle["bdd100k"], bicycle["soda10m"]) == (None, True, False)
    assert all(row["share"] <= 1 for row in done.data["top"])
    assert "Objects of each class" in (tmp_path / "run" / "report.html").read_text()
    assert roadaware("stats", "road", folder / "corner_case.json", "--corner", "x.json").code == 2


@pytest.mark.slow
def test_classes_count_the_objects_of_each_group(
    roadaware: Command, demo: tuple[Path, CornerFacts], tmp_path: Path
) -> None:
    folder, _ = demo
    done = roadaware(*words(folder), "--trained-on", "bdd100k", "-o", tmp_path / "run")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("class "))
    assert re.findall(r"\w+ objects", lines[start]) == ["corner objects", "common objects"]
    table = {line.split()[0]: line.split() for line in lines[start + 1 :] if line.strip()}
    truth = json.loads((folder / "corner_case.json").read_text())
    above = {row["id"]: row["supercategory"] for row in truth["categories"]}
    vehicles = sum(above[row["category_id"]] == "vehicle" for row in truth["annotations"])
    names = {row["id"]: row["name"] for row in truth["categories"]}
    merged = {"car", "truck", "tram", "tricycle"}
    common = sum(names[row["category_id"]] in merged for row in truth["annotations"])
    assert table["vehicle"][1:3] == [str(vehicles), str(common)]
    assert vehicles != common, "a super-class has other objects than the common class of its name"
    assert table["animal"][2] == "-"
    assert "corner objects" in (tmp_path / "run" / "report.html").read_text()


def test_the_two_files_of_2022_and_the_version_of_classes(
    roadaware: Command, demo: tuple[Path, CornerFacts]
) -> None:
    folder, facts = demo
    pair = ["--corner", folder / "instance_val_agnostic_corner.json", "--trained-on", "coda", "--json"]
    ask = words(folder, "challenge.json", "instance_val_common.json")
    whole = roadaware(*ask, *pair).data
    assert (whole["facts"]["objects"], whole["facts"]["corner_cases"]) == (facts.objects, facts.corner_cases)
    assert whole["run"]["routing"]["common classes as in"].startswith("2022")
    assert whole["summary"]["common_ap"] is not None, "more than corner cases is annotated"
    base = roadaware(*ask, *pair, "--classes", "base").data
    held = {name: data["per_class"]["vehicle"] for name, data in (("2022", whole), ("base", base))}
    assert held["2022"]["common_ar"] != held["base"]["common_ar"], "buses are vehicles in 2022 alone"
