"""Every image: what it states is true, it is accessible, inert, and the same bytes for the same data."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from drawn_examples import DRAWN
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from report_examples import PAYLOADS, SURROGATE
from sklearn.metrics import average_precision_score, precision_recall_curve

from roadaware.reports.bars import (
    MOST_POINTS,
    Difference,
    Estimate,
    compute_curve,
    plot_coverage,
    plot_forest,
    plot_precision_recall,
    plot_reliability,
    plot_scenarios,
    plot_shares,
    score_over_time,
)
from roadaware.reports.evaluation import plot_risk_regions
from roadaware.reports.page import Picture

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    PAYLOADS["attribute"],
    PAYLOADS["broken formula"] + PAYLOADS["end of data"] + PAYLOADS["comment"],
    PAYLOADS["terminal"][:6]
    + PAYLOADS["direction"]
    + PAYLOADS["nothing"]
    + SURROGATE
    + PAYLOADS["not in XML"],
    PAYLOADS["long"],
)
EVERY = pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN.keys())


def _tree(picture: Picture, key: str = "k") -> etree._Element:
    return etree.fromstring(picture.svg(key).encode())


def _texts(tree: etree._Element) -> list[str]:
    return [str(element.text) for element in tree.iter(f"{SVG}text")]


@pytest.mark.slow
@EVERY
def test_a_picture_says_in_words_what_it_shows(draw: Callable[[str], Picture]) -> None:
    picture = draw("name")
    tree = _tree(picture)
    assert tree.get("role") == "img"
    labels = str(tree.get("aria-labelledby")).split()
    found = {
        element.get("id"): element.text for element in tree if element.tag in (f"{SVG}title", f"{SVG}desc")
    }
    assert [found[label] for label in labels] == [picture.title, picture.caption]
    assert picture.title
    assert picture.caption.endswith(".")


@pytest.mark.slow
@EVERY
def test_the_same_data_give_the_same_bytes(draw: Callable[[str], Picture]) -> None:
    picture = draw("name")
    assert picture.svg() == picture.svg() == draw("name").svg()


@pytest.mark.slow
@EVERY
def test_ids_begin_with_the_key_and_links_stay_inside(draw: Callable[[str], Picture]) -> None:
    tree = _tree(draw("name"), "fig7")
    ids = [element.get("id") for element in tree.iter() if "id" in element.attrib]
    assert len(ids) == len(set(ids))
    assert all(str(one).startswith("fig7-") for one in ids)
    for element in tree.iter():
        for attribute, value in element.attrib.items():
            if str(attribute).endswith("href"):
                assert str(value)[1:] in ids
            if "url(" in str(value):
                assert str(value).split("url(#")[1].split(")")[0] in ids


@pytest.mark.slow
@EVERY
@pytest.mark.spread(2)
@pytest.mark.parametrize("payload", HOSTILE)
def test_labels_from_data_never_act(draw: Callable[[str], Picture], payload: str) -> None:
    tree = _tree(draw(payload))
    tags = {str(element.tag).removeprefix(SVG) for element in tree.iter() if isinstance(element.tag, str)}
    assert tags <= {"svg", "title", "desc", "defs", "g", "path", "use", "text", "clipPath", "rect", "pattern"}
    for element in tree.iter():
        assert not [name for name in element.attrib if str(name).lower().startswith("on")]
        for name, value in element.attrib.items():
            assert "javascript:" not in str(value)
            assert not str(name).endswith("href") or str(value).startswith("#k-")
    shown = "".join(_texts(tree))
    assert not set(shown) & {"\x1b", "\u202e", "\u2028", "\x00"}


def test_a_formula_is_shown_as_it_was_written() -> None:
    assert any("$x^2$ <b>" in text for text in _texts(_tree(DRAWN["precision_recall"]("$x^2$ <b>"))))


def test_settings_of_the_user_do_not_reach_the_picture() -> None:
    import matplotlib as mpl

    plain = DRAWN["forest"]("name").svg()
    with mpl.rc_context(
        {"font.size": 30, "text.parse_math": True, "svg.fonttype": "path", "axes.facecolor": "red"}
    ):
        assert DRAWN["forest"]("name").svg() == plain


@pytest.mark.slow
def test_bytes_do_not_depend_on_the_process(tmp_path: Path) -> None:
    code = (
        "import sys; from drawn_examples import DRAWN\n"
        "names = ('precision_recall', 'reliability', 'coverage')\n"
        "sys.stdout.write(''.join(DRAWN[name]('name').svg() for name in names))\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    (tmp_path / "matplotlibrc").write_text("font.size: 22\n")
    pages = set()
    for seed, folder in (("1", tmp_path), ("77", Path(__file__).parent)):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent)}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            cwd=folder,
            env=environment,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        pages.add(done.stdout)
    assert len(pages) == 1


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=40).filter(
        lambda rows: any(hit for _, hit in rows)
    )
)
def test_curves_agree_with_scikit_learn(rows: list[tuple[int, bool]]) -> None:
    scores = np.array([score / 6 for score, _ in rows])
    truth = np.array([hit for _, hit in rows])
    ours = compute_curve("a", scores, truth)
    precision, recall, _ = precision_recall_curve(truth, scores, drop_intermediate=False)
    assert ours.precision[::-1] == pytest.approx(precision[:-1])
    assert ours.recall[::-1] == pytest.approx(recall[:-1])
    assert ours.average_precision == pytest.approx(average_precision_score(truth, scores))
    assert ours.no_skill == pytest.approx(truth.mean())


def test_a_curve_without_positive_samples_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        compute_curve("a", np.array([0.5]), np.array([False]))


def test_long_curves_are_thinned() -> None:
    rng = np.random.default_rng(0)
    long = compute_curve("a", rng.random(50_000), rng.random(50_000) < 0.3)
    assert len(plot_precision_recall([long]).svg()) < 60_000
    assert len(long.recall) > MOST_POINTS


def test_reliability_names_the_tendency() -> None:
    counts = np.array([50, 50, 0])
    said = {
        name: plot_reliability(np.array([0.6, 0.9, 0.1]), np.array(accuracy), counts).caption
        for name, accuracy in {"over": [0.4, 0.8, 1], "under": [0.7, 1, 0], "even": [0.6, 0.9, 0]}.items()
    }
    assert "over-confident by 0.150" in said["over"]
    assert "under-confident by 0.100" in said["under"]
    assert "as sure as it is right" in said["even"]
    assert all("100 samples" in caption for caption in said.values())


def test_reliability_shows_intervals_whole_and_gaps_above_them() -> None:
    ends = np.array([[0.37, 0.65], [0.71, 0.99]])
    picture = plot_reliability(np.array([0.56, 0.98]), np.array([0.51, 0.93]), np.array([65, 181]), ends=ends)
    axes = picture.figure.axes[0]
    assert axes.get_ylim()[0] < 0.37
    spans, gaps = axes.collections
    assert gaps.get_zorder() > spans.get_zorder()


def test_scores_over_time_state_both_ends() -> None:
    tte = np.array([30, 30, 30, 90, 90, 90])
    scores = np.array([0.9, 0.8, 0.7, 0.3, 0.2, 0.1])
    caption = score_over_time(tte, scores, np.ones(6, int), {1: "crossing", 0: "other"}, bins=2).caption
    assert "crossing: 0.20 at 2.5 s, 0.80 at 1.5 s." in caption
    assert "other" not in caption.split("Median score:")[1]


def test_one_moment_is_enough_for_scores_over_time() -> None:
    picture = score_over_time(np.array([60, 60]), np.array([0.2, 0.4]), np.array([0, 1]), {0: "a", 1: "b"})
    assert "a: 0.20 at 2.0 s" in picture.caption


def test_scenarios_print_why_a_value_is_missing() -> None:
    texts = _texts(_tree(plot_scenarios([Estimate("x", None, n=3, reason="no sample of class 1")], "AP")))
    assert "undefined: no sample of class 1" in texts
    assert "3" in texts


def test_regions_print_their_numbers_and_symmetric_classes() -> None:
    values = [0.88, 0.46, 0.42, 0.47, 0.31, 0.27, 0.39, 0.47, 0.23, None, 0.25, 0.77]
    picture = plot_risk_regions(values, list(range(12)))
    texts = _texts(_tree(picture))
    assert [text for text in texts if text.startswith("class ")] == [
        f"class {k}" for k in (5, 4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 5)
    ]
    assert {"0.88", "0.77", "n = 11", "–"} <= set(texts)
    assert "Highest in region 0 (0.880), lowest in region 8 (0.230)" in picture.caption


def test_a_forest_says_the_verdict_in_words() -> None:
    rows = [Difference("AP", 0.05, 0.02, 0.08, -0.01, 0.1, "not different")]
    picture = plot_forest(rows, "A", "B")
    assert {"+0.050", "not different"} <= set(_texts(_tree(picture)))
    assert "not different in 1" in picture.caption


def test_the_grid_counts_every_status() -> None:
    cells = [("Table II", "m", "match")] * 3 + [("Table II", "m", "differs")]
    assert "Of 4 cells: 3 match, 1 differs." in plot_coverage(cells).caption


def test_pictures_of_nothing_are_drawn_too() -> None:
    empty = np.array([])
    drawn = [
        plot_scenarios([], "AP"),
        plot_forest([], "A", "B"),
        plot_shares([]),
        plot_coverage([]),
        plot_risk_regions([], []),
        plot_reliability(empty, empty, empty.astype(int)),
        score_over_time(empty.astype(int), empty, empty.astype(int), {0: "a"}),
        plot_precision_recall([]),
    ]
    assert all(picture.svg().startswith("<svg") for picture in drawn)


def test_a_pixel_version_is_at_hand() -> None:
    assert DRAWN["forest"]("name").png(dpi=50).startswith(b"\x89PNG")
