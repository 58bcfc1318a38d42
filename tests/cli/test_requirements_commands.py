"""Requirements on the command line: `audit`, `evaluate road` and `enforce` say what the library finds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from event_files import Events
from small_files import Command

from roadaware.linking.enforcement import EnforcementConfig, enforce_requirements
from roadaware.metrics.requirements import evaluate_requirements
from roadaware.reports.event_pages import load_event_run
from roadaware.scenes.requirements import format_dimacs, parse_requirements
from roadaware.scenes.store import open_predictions, save

RULES = "not Ped not Car\nnot Red not Green\nPed Car Cyc TL OthTL\nPed not PushObj\nnot Mov not Stop\n"


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.txt"
    path.write_text(RULES, encoding="utf-8")
    return path


class TestEnforce:
    def test_it_writes_what_the_library_finds(
        self, roadaware: Command, events: Events, rules, tmp_path
    ) -> None:
        done = roadaware("enforce", events.saved, "--requirements", rules, "-o", tmp_path / "out", "--json")
        assert done.code == 0, done.err
        found, counts = enforce_requirements(events.predictions, parse_requirements(RULES))
        assert open_predictions(tmp_path / "out") == found
        assert done.data["violating"] == counts.violating > 0
        assert done.data["raised"] == counts.raised
        assert done.data["lowered"] == counts.lowered
        assert done.data["config"]["threshold"] == 0.5
        text = roadaware(
            "enforce", events.saved, "--requirements", rules, "-o", tmp_path / "out", "--overwrite"
        )
        assert f"{counts.violating:,}" in text.out
        assert "roadaware link" in text.out

    def test_pickles_and_thresholds(self, roadaware: Command, events: Events, rules, tmp_path) -> None:
        words = (
            "--threshold",
            "0.3",
            "--method",
            "propagation",
            "--truth",
            events.truth,
            "-o",
            tmp_path / "out",
        )
        done = roadaware("enforce", events.folder, "--requirements", rules, *words, "--json")
        assert done.code == 0, done.err
        assert done.data["config"]["method"] == "propagation"
        result = evaluate_requirements(
            parse_requirements(RULES), open_predictions(tmp_path / "out"), None, events.scenes
        )
        assert result.value(0.3) == 0
        assert result.value(0.8) > 0

    def test_link_says_that_they_were_enforced(
        self, roadaware: Command, events: Events, rules, tmp_path
    ) -> None:
        found, counts = enforce_requirements(
            events.predictions, parse_requirements(RULES), EnforcementConfig(0.4)
        )
        save(found, tmp_path / "found")
        done = roadaware("link", tmp_path / "found", "-o", tmp_path / "linked")
        assert done.code == 0, done.err
        assert f"requirements enforced at 0.4: {counts.violating:,} of" in done.out

    def test_wrong_requests(self, roadaware: Command, events: Events, rules, tmp_path) -> None:
        out = ("-o", tmp_path / "out")
        others = tmp_path / "others.txt"
        others.write_text("walks not runs\n", encoding="utf-8")
        clash = tmp_path / "clash.txt"
        clash.write_text("Ped\nCar\nnot Ped not Car\n", encoding="utf-8")
        assert roadaware("link", events.saved, "-o", tmp_path / "tubes").code == 0
        for words, code, said in (
            (
                (events.saved, "--requirements", rules, "--threshold", "0", *out),
                2,
                "a threshold lies above 0",
            ),
            ((events.saved, "--requirements", tmp_path / "none.txt", *out), 3, "none.txt"),
            ((events.saved, "--requirements", others, *out), 3, "does not have: walks, runs"),
            ((events.saved, "--requirements", clash, *out), 3, "these 3 together"),
            ((tmp_path / "tubes", "--requirements", rules, *out), 3, "found tubes"),
            ((events.saved, "--requirements", rules, "-o", events.saved), 2, "would be"),
            ((events.saved, *out), 2, "requirements"),
        ):
            done = roadaware("enforce", *words)
            assert done.code == code, (words, done.err)
            assert said in done.err
            assert not (tmp_path / "out").exists()


class TestEvaluate:
    @pytest.mark.slow
    def test_violations_stand_in_text_json_page_and_run(
        self, roadaware: Command, events: Events, rules, tmp_path
    ) -> None:
        words = (
            "--truth",
            events.truth,
            "--predictions",
            events.saved,
            "--resamples",
            "20",
            "--kinds",
            "agent",
        )
        both = tmp_path / "rules.cnf"
        both.write_text(format_dimacs(parse_requirements(RULES)), encoding="utf-8")
        asked = ("--requirements", rules, both, "--clips", "0", "-o", tmp_path / "run")
        done = roadaware("evaluate", "road", *words, *asked)
        assert done.code == 0, done.err
        assert "requirements of rules.txt: 5 judged" in done.out
        assert "line 3: one of Ped, Car, Cyc, TL and OthTL" in done.out
        run = load_event_run(tmp_path / "run")
        held = run.facts["requirements"]
        expected = evaluate_requirements(
            parse_requirements(RULES), events.predictions, None, events.scenes, resamples=20
        )
        for row in held["rows"]:
            if row["level"] == "boxes" and row["metric"] == "violating":
                assert row["value"] == expected.value(row["threshold"])
        assert {row["level"] for row in held["rows"]} == {"boxes", "tubes"}
        page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
        assert "Violations of requirements" in page
        assert "line 3: one of Ped, Car, Cyc, TL and OthTL" in page
        again = roadaware("report", tmp_path / "run", "-o", tmp_path / "again.html")
        assert again.code == 0, again.err
        told = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
        assert told["requirements"]["judged"] == 5
        shown = roadaware("evaluate", "road", *words, "--requirements", rules, "--json")
        of = {
            (row["level"], row["threshold"], row["metric"], row["name"]): row
            for row in shown.data["requirements"]["rows"]
        }
        share = of["boxes", 0.5, "violating", None]
        assert share["value"] == pytest.approx(100 * expected.value(0.5))
        assert share["low"] <= share["value"] <= share["high"]

    @pytest.mark.slow
    def test_damaged_runs_are_refused(self, roadaware: Command, events: Events, rules, tmp_path) -> None:
        words = (
            "--truth",
            events.truth,
            "--predictions",
            events.saved,
            "--resamples",
            "0",
            "--kinds",
            "agent",
        )
        assert (
            roadaware("evaluate", "road", *words, "--requirements", rules, "-o", tmp_path / "run").code == 0
        )
        path = tmp_path / "run" / "results.json"
        whole = json.loads(path.read_text(encoding="utf-8"))
        whole["requirements"]["rows"][0]["value"] = "half"
        path.write_text(json.dumps(whole), encoding="utf-8")
        done = roadaware("report", tmp_path / "run", "-o", tmp_path / "page.html")
        assert done.code == 3
        assert not (tmp_path / "page.html").exists()

    def test_files_that_differ_are_refused_before_anything_is_written(
        self, roadaware: Command, events: Events, rules, tmp_path
    ) -> None:
        other = tmp_path / "other.txt"
        other.write_text(RULES.replace("not Mov not Stop", "not Mov not Xing"), encoding="utf-8")
        words = ("--truth", events.truth, "--predictions", events.saved, "-o", tmp_path / "run")
        done = roadaware("evaluate", "road", *words, "--requirements", rules, other)
        assert done.code == 3
        assert "rules.txt:5 (not Mov or not Stop) is not in other.txt" in done.err
        assert not (tmp_path / "run").exists()


class TestAudit:
    def test_it_counts_clause_by_clause(self, roadaware: Command, events: Events, rules, tmp_path) -> None:
        page = tmp_path / "audit.html"
        done = roadaware("audit", "road", events.truth, "--requirements", rules, "--html", page, "--json")
        assert done.code == 0, done.err
        names = [finding["name"] for finding in done.data["findings"]]
        assert "requirements-violated" in names
        assert done.data["protocol"]["requirements"] == 5
        assert "held against" in page.read_text(encoding="utf-8")
        strict = roadaware("audit", "road", events.truth, "--requirements", rules, "--strict")
        assert strict.code == 1
        assert "1 warning, " in strict.out

    def test_a_task_has_no_requirements(self, roadaware: Command, events: Events, rules) -> None:
        done = roadaware("audit", "road", events.truth, "--requirements", rules, "--task", "action")
        assert done.code == 2
