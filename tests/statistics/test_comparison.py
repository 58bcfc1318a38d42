"""Methods over datasets: ranks, Friedman's test, signed ranks, Holm's correction against plain oracles."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from roadaware.statistics.comparison import (
    compare,
    friedman_test,
    holm_correction,
    rank_methods,
    wilcoxon_test,
)


def plain_friedman(values: np.ndarray) -> float:
    """Without ties: 12 / (n k (k + 1)) sum R^2 - 3 n (k + 1), sums and ranks by counting."""
    n, k = values.shape
    place = [[1 + sum(other > one for other in row) for one in row] for row in values]
    totals = [sum(row[j] for row in place) for j in range(k)]
    return 12 / (n * k * (k + 1)) * sum(total**2 for total in totals) - 3 * n * (k + 1)


def plain_signed_rank(difference: np.ndarray) -> float:
    """All choices of signs, one by one; zeros are ranked and then left out."""
    size = [abs(one) for one in difference]
    place = [
        1 + sum(other < one for other in size) + (sum(other == one for other in size) - 1) / 2 for one in size
    ]
    kept = [(rank, one > 0) for rank, one in zip(place, difference, strict=True) if one]
    middle = sum(rank for rank, _ in kept) / 2
    off = abs(sum(rank for rank, above in kept if above) - middle)
    as_far = [
        abs(sum(rank for (rank, _), sign in zip(kept, signs, strict=True) if sign) - middle) >= off - 1e-9
        for signs in product((0, 1), repeat=len(kept))
    ]
    return sum(as_far) / len(as_far)


def plain_holm(p: list[float]) -> list[float]:
    """The largest, over this p and all smaller ones, of p times how many are not smaller."""
    return [
        min(1.0, max(other * sum(third >= other for third in p) for other in p if other <= one)) for one in p
    ]


def test_friedmans_statistic_is_that_of_the_textbook_and_of_scipy() -> None:
    values = np.random.default_rng(0).random((9, 5))
    statistic, p = friedman_test(rank_methods(values))
    assert statistic == pytest.approx(plain_friedman(values))
    theirs = stats.friedmanchisquare(*values.T)
    assert (statistic, p) == pytest.approx((theirs.statistic, theirs.pvalue))
    tied = values.round(1)
    theirs = stats.friedmanchisquare(*tied.T)
    assert friedman_test(rank_methods(tied)) == pytest.approx((theirs.statistic, theirs.pvalue))


def test_equals_share_their_ranks_and_tell_nothing() -> None:
    assert rank_methods([[3.0, 1.0, 3.0, 0.0]])[0].tolist() == [1.5, 3, 1.5, 4]
    assert rank_methods([[3.0, 1.0]], higher_is_better=False)[0].tolist() == [2, 1]
    assert friedman_test(rank_methods(np.ones((4, 3)))) == (0.0, 1.0)
    assert wilcoxon_test([0.0, 0.0]) == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_signed_ranks_are_exact_with_ties_and_zeros(seed: int) -> None:
    difference = np.random.default_rng(seed).integers(-3, 5, size=9).astype(float)
    assert wilcoxon_test(difference) == pytest.approx(plain_signed_rank(difference))
    assert wilcoxon_test(-difference) == pytest.approx(wilcoxon_test(difference))


def test_differences_of_printed_numbers_tie() -> None:
    first = np.array([0.90, 0.85, 0.80, 0.79, 0.77, 0.30])
    second = np.array([0.85, 0.80, 0.85, 0.70, 0.68, 0.10 + 0.20])
    assert len({*np.abs(first - second)[:3].tolist()}) > 1
    assert wilcoxon_test(first - second) == wilcoxon_test(np.array([5, 5, -5, 9, 9, 0]))
    # 0.01 / 10.24 lies on a half of any number of digits up to the tenth, 0.03 - 0.02 beside it.
    assert wilcoxon_test([0.01, 0.03 - 0.02, 10.24, -0.01]) == wilcoxon_test([1, 1, 1024, -1])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_differences_are_finite(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        wilcoxon_test([0.1, value])


def test_signed_ranks_without_ties_are_those_of_scipy_and_many_are_nearly_normal() -> None:
    rng = np.random.default_rng(5)
    few, many = rng.normal(0.3, 1, 20), rng.normal(0.1, 1, 300)
    assert wilcoxon_test(few) == pytest.approx(stats.wilcoxon(few, method="exact").pvalue)
    assert wilcoxon_test(many) == pytest.approx(stats.wilcoxon(many, method="asymptotic").pvalue)
    assert wilcoxon_test(many[:200]) == pytest.approx(
        stats.wilcoxon(many[:200], method="asymptotic").pvalue, rel=0.02
    )


def test_two_hundred_differences_are_exact_and_one_more_is_normal() -> None:
    many = np.random.default_rng(5).normal(0.1, 1, 201)
    exact, normal = (stats.wilcoxon(many[:200], method=method).pvalue for method in ("exact", "asymptotic"))
    assert wilcoxon_test(many[:200]) == pytest.approx(exact, rel=1e-9)
    assert wilcoxon_test(many[:200]) != pytest.approx(normal, rel=1e-5)
    assert wilcoxon_test(many) == pytest.approx(stats.wilcoxon(many, method="asymptotic").pvalue, rel=1e-9)


def test_holms_correction_is_that_of_its_definition() -> None:
    p = np.random.default_rng(6).random(7) / 5
    assert holm_correction(p) == pytest.approx(plain_holm(p.tolist()))
    assert holm_correction([0.6, 0.9]).tolist() == [1.0, 1.0]
    assert holm_correction([0.02]).tolist() == [0.02]
    assert holm_correction([0.01, 0.01]).tolist() == [0.02, 0.02]


def table(sets: int = 12) -> np.ndarray:
    """Two methods that are alike, and two that are worse, alike too."""
    rng = np.random.default_rng(1)
    return np.array([0.9, 0.5, 0.9, 0.5]) + 0.05 * rng.normal(size=(sets, 4))


def test_groups_of_methods_that_do_not_differ() -> None:
    found = compare(table(), ["a", "x", "b", "y"])
    assert found.some_differ
    assert {frozenset(group) for group in found.cliques} == {frozenset("ab"), frozenset("xy")}
    assert set(list(found.ranks)[:2]) == {"a", "b"}
    assert sum(found.ranks.values()) == pytest.approx(10)
    differing = {frozenset((pair.first, pair.second)) for pair in found.pairs if pair.differ}
    assert differing == {frozenset(pair) for pair in product("ab", "xy")}


def test_groups_may_overlap_and_hold_no_pair_that_differs() -> None:
    values = np.random.default_rng(2).normal(size=(12, 6)) + 0.5 * np.arange(6)
    found = compare(values, list("abcdef"))
    differing = {frozenset((pair.first, pair.second)) for pair in found.pairs if pair.differ}
    assert differing
    for group in found.cliques:
        assert not any(frozenset(pair) in differing for pair in combinations(group, 2))
        for other in set("abcdef") - set(group):  # none could be added
            assert any(frozenset((other, one)) in differing for one in group)


def test_the_order_of_methods_and_of_sets_does_not_matter() -> None:
    values, names = table(), ["a", "x", "b", "y"]
    first, second = compare(values, names), compare(values[::-1, ::-1], names[::-1])
    assert first.ranks == second.ranks
    assert first.p == pytest.approx(second.p)
    assert {frozenset(group) for group in first.cliques} == {frozenset(group) for group in second.cliques}


def test_without_friedmans_leave_no_pair_differs() -> None:
    found = compare(table(2)[:, [0, 2]], ["a", "b"])
    assert not found.some_differ
    assert found.cliques == (tuple(found.ranks),)


def test_the_level_is_a_tenth_and_a_p_that_reaches_it_tells_nothing() -> None:
    """The first of two is better on all sets: Wilcoxon's p is 2 / 2^n, Friedman's that of chi2 = n."""
    few, many = (compare([[1.0 + at, 0.0] for at in range(n)], ["a", "b"]) for n in (5, 12))
    assert (few.alpha, few.some_differ, few.pairs[0].differ) == (0.1, True, True)
    assert (few.p, few.pairs[0].adjusted) == pytest.approx((stats.chi2.sf(5, 1), 2 / 2**5))
    assert few.p < few.pairs[0].adjusted
    at_pair = compare([[1.0 + at, 0.0] for at in range(5)], ["a", "b"], alpha=few.pairs[0].adjusted)
    assert (at_pair.some_differ, at_pair.pairs[0].differ) == (True, False)
    assert many.p > many.pairs[0].adjusted
    at_all = compare([[1.0 + at, 0.0] for at in range(12)], ["a", "b"], alpha=many.p)
    assert (at_all.some_differ, at_all.pairs[0].differ) == (False, False)


def test_a_method_that_differs_from_all_others_is_in_no_group() -> None:
    found = compare([[3.0 + at, 2.0, 2.0] for at in range(12)], ["best", "a", "b"])
    assert found.cliques == (("a", "b"),)
    assert compare([[1.0 + at, 0.0] for at in range(12)], ["a", "b"]).cliques == ()


@pytest.mark.parametrize("alpha", [-0.1, 0.0, 1.0, 1.5, np.nan])
def test_a_level_lies_between_0_and_1(alpha: float) -> None:
    with pytest.raises(ValueError, match=r"alpha should lie in \(0, 1\)"):
        compare([[1.0, 2.0]] * 2, ["a", "b"], alpha=alpha)


@pytest.mark.parametrize(
    ("values", "names", "message"),
    [
        ([[1.0, np.nan], [1.0, 2.0]], ["a", "b"], "b lack"),
        ([[1.0, 2.0]], ["a", "b"], "should be"),
        ([[1.0, 2.0]] * 2, ["a", "a"], "name"),
    ],
)
def test_what_cannot_be_compared_is_refused(values: list, names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(values, names)
