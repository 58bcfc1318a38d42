"""Which fits and cells a study is made of, before anything is fitted."""

import pytest

from roadaware.errors import UsageError
from roadaware.models import CROSSING, MODELS, create, get_crossing_entry, load_model_class
from roadaware.models.crossing.predictor import find_dropout_layers
from roadaware.protocols.cross_dataset.config import (
    ASKED,
    UNASKED,
    AwayStudy,
    Cell,
    build_plan,
    parse_training_sets,
)

SETS = ("jaad-all", "crossing@1", "crossing@1+city-b")


def planned(**changes):
    study = AwayStudy(**{"models": ("steady",), "domains": SETS, "seeds": 2, **changes})
    return build_plan(study, SETS)


def test_every_model_learns_everywhere_and_is_asked_everywhere_with_every_seed():
    units = planned(models=("steady", "logistic")).rounds[0]
    cells = [cell for unit in units for cell in unit.cells]
    assert len(cells) == len(set(cells)) == 2 * 3 * 3 * 2
    assert {(cell.trained_on, cell.tested_on) for cell in cells} == {(a, b) for a in SETS for b in SETS}


def test_what_draws_nothing_is_fitted_once_for_all_seeds():
    units = planned(models=("steady", "logistic")).rounds[0]
    assert sum(unit.fit.model == "steady" for unit in units) == 6
    assert sum(unit.fit.model == "logistic" for unit in units) == 3


def test_training_sets_are_joined_with_and_without_the_one_that_is_tested_on():
    joined = {each.cell.trained_on for each in planned().joined if each.cell.tested_on == "crossing@1"}
    assert {"jaad-all+crossing@1+crossing@1+city-b", "jaad-all+crossing@1+city-b"} <= joined
    for name in joined:
        assert set(parse_training_sets(name, SETS)) <= set(SETS)


def test_an_ensemble_over_seeds_is_the_mean_of_what_answers_as_it_is():
    plan = planned(models=("steady", "logistic"))
    over = [each for each in plan.joined if each.cell.doubt == "ensemble"]
    assert {each.cell.model for each in over} == {"steady"}
    assert all(each.cell.seed == -1 and [part.seed for part in each.parts] == [0, 1] for each in over)
    assert {part.doubt for each in over for part in each.parts} == {"deterministic"}


def test_parts_are_put_together_before_what_is_made_of_them():
    known = {cell for units in planned(doubted=("steady",)).rounds for unit in units for cell in unit.cells}
    for each in planned(doubted=("steady",)).joined:
        assert set(each.parts) <= known
        known.add(each.cell)


def test_only_doubts_of_the_last_layer_are_trained_for():
    units = planned(doubted=("steady",)).rounds[0]
    kinds = {unit.fit.kind: {cell.doubt for cell in unit.cells} for unit in units}
    assert kinds == {
        "none": {"deterministic", "temperature", "mc-dropout"},
        "last-dropout": {"last-dropout"},
        "last-flipout": {"last-flipout"},
    }


def test_what_goes_on_from_another_domain_comes_in_a_later_round():
    plan = planned(pretrained=("steady",), pretraining=("crossing@1>jaad-all",))
    onward = plan.rounds[1]
    assert {unit.fit.trained_on for unit in onward} == {"crossing@1>jaad-all"}
    first = {unit.fit for unit in plan.rounds[0]}
    assert all(unit.fit.before in first and unit.fit.domain == "jaad-all" for unit in onward)
    assert Cell("steady", "crossing@1>jaad-all", "crossing@1", -1, "ensemble") in plan.cells


def test_a_domain_that_is_missing_takes_its_cells_along_and_no_others():
    study = AwayStudy(models=("steady",), domains=SETS, seeds=1, pretrained=("steady",),
                      pretraining=("crossing@1>jaad-all",))  # fmt: skip
    plan = build_plan(study, SETS[::2])
    assert len(plan.rounds) == 1
    assert {cell.tested_on for cell in plan.cells} == set(SETS[::2])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"models": ("stedy",)}, "models are of"),
        ({"models": ("steady", "steady")}, "each once"),
        ({"seeds": 0}, "seeds is 1 or more"),
        ({"doubted": ("pcpa",)}, "doubted are some of the models"),
        ({"models": ("logistic",), "pretrained": ("logistic",)}, "tabular models begin anew"),
        ({"pretraining": ("jaad-all",)}, "pretraining looks like"),
        ({"pretraining": ("pie>jaad-all",)}, "from one of the domains"),
        ({"domains": ("jaad-all", "jaad-all=there")}, "each once"),
        ({"domains": ("jaad-all", "crossing@1=")}, "NAME=PATH"),
        ({"models": ("vgg16",)}, "vgg16 looks at images"),
        ({"models": ("steady", "constant-velocity")}, "constant-velocity tells where somebody will be"),
        ({"fields": {"stedy": {}}}, "stedy is none of them"),
        ({"fields": {"steady": 3}}, "such as fields="),
        ({"fields": {"steady": 3}, "doubted": ("steady",)}, "such as fields="),
        ({"pretrained": ("steady",)}, "pretrained without pretraining .* pretraining from"),
        ({"pretraining": ("crossing@1>jaad-all",)}, "pretraining without pretrained .* pretrained says"),
        ({"doubted_on": ("jaad-all",)}, "doubted_on without doubted does nothing"),
        ({"doubts": ("mc-dropout",)}, r"doubts \(mc-dropout\) without doubted do nothing"),
        ({"models": ("logistic",), "doubted": ("logistic",)}, r"need a network.*doubts=\[temperature\]"),
        (
            {"models": ("steady", "logistic"), "doubted": ("logistic", "steady"), "doubts": ("mc-dropout",)},
            "logistic can be doubted by temperature alone",
        ),
        ({"models": ("sfgru",), "doubted": ("sfgru",)}, "sfgru drops nothing"),
        ({"doubted": ("steady",), "fields": {"steady": {"dropout": 0}}}, "steady drops nothing"),
    ],
)
def test_a_study_that_cannot_be_run_is_refused(changes, told):
    with pytest.raises(UsageError, match=told):
        planned(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"models": ("logistic",), "doubted": ("logistic",), "doubts": ("temperature",)},
        {"models": ("steady", "logistic"), "doubted": ("steady", "logistic")},
        {"models": ("sfgru",), "doubted": ("sfgru",), "doubts": ("last-dropout",)},
        {"doubts": ("deterministic",)},
    ],
)
def test_what_has_an_effect_is_taken(changes):
    assert planned(**changes).cells


def test_every_model_that_is_told_who_crosses_by_boxes_alone_can_be_asked_and_no_other():
    assert set(ASKED) | set(UNASKED) == {*CROSSING, *MODELS}
    shapes = {"boxes": (16, 4), "centre": (16, 8)}
    for name in CROSSING:
        kind = get_crossing_entry(name).config_class
        config = kind.small() if hasattr(kind, "small") else kind()
        if name in ASKED:
            assert create(name, config=config, shapes=shapes, labels=2).sequences == ["boxes", "centre"]
        else:
            with pytest.raises(UsageError, match=name):
                create(name, config=config, shapes=shapes, labels=2)
    for name in MODELS:
        assert ("action" in load_model_class(name).card.tasks) == (name in ASKED)


@pytest.mark.parametrize("size", ["small", "published"])
def test_networks_that_drop_nothing_are_not_asked_by_mc_dropout(size):
    for name in set(ASKED) & set(CROSSING):
        kind = get_crossing_entry(name).config_class
        config = kind.small() if size == "small" and hasattr(kind, "small") else kind()
        network = create(name, config=config, shapes={"boxes": (16, 4), "centre": (16, 8)}, labels=2)
        asked = {"models": (name,), "doubted": (name,), "doubts": ("mc-dropout",), "size": size}
        if find_dropout_layers(network):
            assert planned(**asked).cells
        else:
            with pytest.raises(UsageError, match=f"{name} drops nothing"):
                planned(**asked)


def test_where_a_domain_lies_is_no_part_of_its_name():
    study = AwayStudy(domains=("jaad-all=/data/a=b", "crossing@1"))
    assert study.names == ("jaad-all", "crossing@1")
    assert study.roots == {"jaad-all": "/data/a=b"}
