"""Marks of intervals that are to be taken with caution, and the name of the method before the draws."""

import pytest

from roadaware.cli.options import parse_resamples
from roadaware.reports import runs, terminal
from roadaware.reports import text as words
from roadaware.reports.page import Mark, Section, Table
from roadaware.statistics.cautions import AT_END, FEW, MEANINGS
from roadaware.statistics.intervals import PercentileResamples, select_interval_method


class Given:
    """What cyclopts gives a converter."""

    def __init__(self, value):
        self.value = value


def test_a_mark_stands_behind_an_interval_and_a_line_says_what_it_means():
    row = {"low_video": 0.481, "high_video": 0.667, "caution_video": FEW, "low_pedestrian": None}
    assert terminal.format_row_interval(row) == "[0.481, 0.667]?"
    assert terminal.format_row_interval(row, "pedestrian") == "-"
    assert terminal.format_interval(0.56, 0.667, 2, AT_END, sign="+") == "[+0.56, +0.67]!"
    assert terminal.format_interval(0.56, 0.667, 2) == "[0.56, 0.67]"
    shown = terminal.format_table(["metric", "95 %"], [["map", terminal.format_row_interval(row)]])
    assert shown.splitlines()[-1] == f"? {MEANINGS[FEW]}"
    both = terminal.format_table(["metric", "95 %"], [["a", "[0, 1]!"], ["b", "[0, 1]?"]])
    assert both.splitlines()[-2:] == [f"? {MEANINGS[FEW]}", f"! {MEANINGS[AT_END]}"]
    assert MEANINGS[FEW] not in terminal.format_table(["why?"], [["really!"], ["[0, 1]"]])


def test_pages_mark_them_too():
    row = {"low_video": 0.5, "high_video": 0.6, "caution_video": AT_END}
    assert words.format_row_interval(row, digits=2) == "0.50 to 0.60 ‡"
    assert words.format_interval(None, 0.1, 3, FEW) == "–"
    cell = Mark("0.5", "", words.format_row_interval(row))
    assert Table(("a",), ((cell,),), "l").cautions == f"‡ {MEANINGS[AT_END]}"
    assert Table(("a",), (("0.5 to 0.6 †",),), "l").cautions == f"† {MEANINGS[FEW]}"
    assert Table(("a",), (("0.5 to 0.6",),), "l").cautions == ""
    assert Section("t", ("AP 0.5 (0.1 to 0.6 †).",)).cautions == f"† {MEANINGS[FEW]}"
    assert Section("t", ("AP 0.5.",)).cautions == ""


@pytest.mark.parametrize(
    ("given", "resamples", "name"),
    [("1000", 1000, "jackknife"), ("jackknife:5", 5, "jackknife"), ("percentile:200", 200, "percentile")],
)
def test_resamples_name_their_method(given, resamples, name):
    found = parse_resamples(int, [Given(given)])
    assert (found, select_interval_method(found), runs.get_interval_method(found)) == (resamples, name, name)


@pytest.mark.parametrize("given", ["", "ten", "-5", "1.5", "bca:100", "percentile:", "percentile:x", "²"])
def test_other_resamples_are_refused(given):
    with pytest.raises(ValueError, match="percentile:1000"):
        parse_resamples(int, [Given(given)])


def test_a_run_that_names_no_method_is_read_with_percentiles():
    assert isinstance(runs.get_resamples({"resamples": 100}), PercentileResamples)
    assert isinstance(runs.get_resamples({"resamples": 100, "interval": "percentile"}), PercentileResamples)
    assert not isinstance(
        runs.get_resamples({"resamples": 100, "interval": "jackknife"}), PercentileResamples
    )
