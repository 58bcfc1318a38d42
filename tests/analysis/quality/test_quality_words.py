"""Forbidden words are found whole, in any case and script, and nothing else is; kappa and alpha by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from roadaware.analysis.quality.agreement import cohen_kappa, krippendorff_alpha
from roadaware.analysis.quality.differences import ForbiddenWords
from roadaware.errors import InputError


@pytest.mark.parametrize(
    ("word", "text", "there"),
    [
        ("lady", "an old Lady runs", True),
        ("lady", "two ladies run", True),
        ("lady", "a ladybird", False),
        ("scar", "a man with scars", True),
        ("scar", "a red scarf", False),
        ("cap", "the escape", False),
        ("boss", "both BOSSES shout", True),
        ("John Smith", "it is john  smith's car", True),
        ("John Smith", "John Smithson", False),
        ("naïve", "a nai\u0308ve boy", True),
        ("straße", "in der STRASSE", True),
        ("İstanbul", "i\u0307stanbul", True),
        ("word", "w\u00adord, wo\u200brd", True),
        ("ｗｉｄｅ", "a wide man", True),
        ("негр", "два НЕГРА", False),
        ("黑人", "一个黑人男子", True),
        ("a.b", "axb", False),
        ("a.b", "say a.b now", True),
        ("(x)", "see (x)", True),
        ("half-caste", "a half-caste", True),
        ("under_score", "under_score", True),
    ],
)
def test_words(word: str, text: str, there: bool) -> None:
    assert ForbiddenWords([word]).found_in(text) == ([word] if there else [])


def test_each_word_is_named_once_in_the_order_of_the_text() -> None:
    words = ForbiddenWords(["red", "old man", "man", " ", "RED"])
    assert words.found_in("An OLD MAN in red, a man in Red") == ["old man", "RED", "man"]


@pytest.mark.parametrize("words", [[], ["", "  "], [str(k) for k in range(20_001)]])
def test_a_list_is_neither_empty_nor_endless(words: list[str]) -> None:
    with pytest.raises(InputError, match="forbidden words"):
        ForbiddenWords(words)


def test_kappa_is_that_of_another_implementation() -> None:
    rng = np.random.default_rng(0)
    for classes in (2, 3, 7):
        one = rng.integers(0, classes, 200)
        two = np.where(rng.random(200) < 0.6, one, rng.integers(0, classes, 200))
        assert cohen_kappa(one, two) == pytest.approx(cohen_kappa_score(one, two))


def test_a_row_that_stands_for_many_counts_as_many() -> None:
    raters, times = [[0, 0, 1, 2], [0, 1, 1, -1], [0, 1, 0, 2]], [3, 2, 4, 1]
    many = [np.repeat(labels, times) for labels in raters]
    assert cohen_kappa(raters[0], raters[2], times) == pytest.approx(cohen_kappa(many[0], many[2]))
    assert krippendorff_alpha(raters, times) == pytest.approx(krippendorff_alpha(many))


def test_kappa_and_alpha_where_nothing_can_be_said() -> None:
    assert cohen_kappa([], []) is None
    assert cohen_kappa([1, 1], [1, 1]) is None
    assert cohen_kappa([0, 1], [1, 0]) == -1.0
    assert krippendorff_alpha([[], []]) is None
    assert krippendorff_alpha([[1, -1], [-1, 1]]) is None
    assert krippendorff_alpha([[1, 1], [1, 1]]) is None
    assert krippendorff_alpha([[0, 1], [0, 1], [0, 1]]) == 1.0


def test_alpha_of_the_published_example() -> None:
    # Krippendorff, "Computing Krippendorff's alpha-reliability", 2011, section C: nominal data, 0.743.
    raters = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, -1, -1, -1],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, -1, 3],
        [-1, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, -1],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, -1],
    ]
    assert krippendorff_alpha(raters) == pytest.approx(0.743, abs=5e-4)
