"""Configs as plain data and back."""

import math
from dataclasses import dataclass, replace
from typing import Literal

import pytest

from roadaware.analysis.quality import QualityConfig
from roadaware.analysis.scene_tasks import TASKS, get_config
from roadaware.config import (
    change_fields,
    check_flags,
    check_limits,
    check_not_negative,
    check_range,
    check_words,
    digest,
    from_dict,
    to_dict,
)
from roadaware.datasets.loading import parse_reader_options
from roadaware.errors import UsageError


@dataclass(frozen=True)
class Cut:
    """A config with every kind of field."""

    size: int
    name: str = "x"
    edges: tuple[float, ...] = (0.5, 1.0)
    pairs: tuple[tuple[int, int], ...] = ((1, 2), (3, 4))
    limit: int | None = None


def test_a_config_comes_back_equal():
    cut = Cut(3, limit=7)
    assert to_dict(cut)["type"] == "Cut"
    assert from_dict(Cut, to_dict(cut)) == cut
    assert hash(from_dict(Cut, to_dict(cut))) == hash(cut)


def test_defaults_fill_what_is_not_said():
    assert from_dict(Cut, {"size": 3}) == Cut(3)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"size": 3, "sise": 4}, "Cut has no field sise; it has edges, limit, name, pairs, size"),
        ({"type": "Other", "size": 3}, "expected a Cut config, got Other"),
        ({"name": "y"}, r"Cut cannot be made of \['name'\]: .*size"),
    ],
)
def test_fields_that_do_not_fit_are_refused(fields, told):
    with pytest.raises(UsageError, match=told):
        from_dict(Cut, fields)


def test_what_is_no_config_is_refused():
    for wrong in (Cut, {"size": 3}):
        with pytest.raises(TypeError, match="dataclass instance"):
            to_dict(wrong)


def test_the_digest_changes_with_every_field_and_only_then():
    cut = Cut(3)
    changes = {"size": 4, "name": "y", "edges": (0.5,), "pairs": (), "limit": 0}
    digests = {digest(replace(cut, **{name: value})) for name, value in changes.items()} | {digest(cut)}
    assert len(digests) == len(changes) + 1
    assert digest(Cut(3)) == digest(cut)
    assert len(digest(cut)) == 12


@dataclass(frozen=True)
class Judging:
    """A config that checks itself."""

    how: Literal["greedy", "best"] = "greedy"
    strict: bool = False
    most: int | None = None
    offset: float = 0.0
    size: float = 3

    def __post_init__(self):
        check_words(self)
        check_flags(self)
        check_limits(self, "most")
        check_not_negative(self, "offset")
        check_range("size", self.size, 1, 10)


@pytest.mark.parametrize(
    "fields", [{"how": "best"}, {"strict": True}, {"most": 1}, {"offset": 2}, {"size": 10}]
)
def test_fields_within_their_limits_are_taken(fields):
    assert to_dict(Judging(**fields)).items() >= fields.items()


@pytest.mark.parametrize(
    ("field", "wrong", "told"),
    [
        ("how", ("worst", None), "how should be one of greedy, best; got "),
        ("strict", (1, "yes"), "strict should be true or false; got "),
        ("most", (0, True, 1.5), "most should be at least 1, or None for all; got "),
        ("offset", (-1.0, math.inf, math.nan), "offset should be 0 or more; got "),
        ("size", (0.5, 11, True, "3", math.nan), "size should lie in 1 to 10, not "),
    ],
)
def test_a_field_beyond_its_limits_is_named_with_what_it_may_be(field, wrong, told):
    for value in wrong:
        with pytest.raises(UsageError, match=told):
            Judging(**{field: value})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recall_at", "--set needs FIELD=VALUE, such as judges=VALUE; got 'recall_at'"),
        ("recall_at=", "--set needs FIELD=VALUE, such as judges=VALUE; got 'recall_at='"),
        ("recall=[5]", "--set: the config of relations has no field 'recall'; did you mean recall_at?"),
        (
            "xyz=1",
            "--set: the config of relations has no field 'xyz'; there are judges, setting, recall_at, ",
        ),
    ],
)
def test_fields_that_are_not_there_are_named(text, message):
    task, owner = TASKS["relations"], "the config of relations"
    with pytest.raises(UsageError) as told:
        change_fields(get_config(task, "default"), ["iou_threshold=0.7", text, "viou_threshold=high"], owner)
    assert str(told.value).startswith(message)


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        ("hcstvg", "first_frame", "--option needs OPTION=VALUE, such as first_frame=0; got 'first_frame'"),
        (
            "hcstvg",
            "frst=0",
            "--option: the reader of hcstvg has no option 'frst'; did you mean first_frame?",
        ),
        ("hcstvg", "fps=25", "--option: the reader of hcstvg has no option 'fps'; it has first_frame"),
        ("vidvrd", "fps=25", "--option: the reader of vidvrd has no option 'fps'; it has none"),
    ],
)
def test_options_that_a_reader_lacks_are_named(reader, text, message):
    with pytest.raises(UsageError) as told:
        parse_reader_options(reader, [text])
    assert str(told.value) == message


def test_of_fields_and_options_that_are_given_twice_the_last_counts():
    task = TASKS["relations"]
    changed = change_fields(
        get_config(task, "default"), ["recall_at=[5]", "judges=frames", "recall_at=[1, 2]"], "relations"
    )
    size = change_fields(QualityConfig(), ["resolution=320x180", "frame_rate=null"], "the check")
    assert change_fields(QualityConfig(), ["resolution=320X180"], "the check").resolution == size.resolution
    with pytest.raises(UsageError, match="edge_px should be 0 or more, not inf"):
        change_fields(QualityConfig(), ["edge_px=" + "9" * 400], "the check")
    assert (size.resolution, size.frame_rate) == ((320, 180), None)
    with pytest.raises(UsageError, match="--set resolution: expected a list"):
        change_fields(QualityConfig(), ["resolution=[1]"], "the check")
    assert (changed.recall_at, changed.judges) == ((1, 2), "frames")
    assert parse_reader_options("hcstvg", ["first_frame=1", "first_frame=0"]) == {"first_frame": 0}
