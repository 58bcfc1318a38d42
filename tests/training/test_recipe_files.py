"""Recipes: files say everything, and what they may not say is refused by name."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from roadaware.config import digest, from_dict, to_dict
from roadaware.errors import InputError, UsageError
from roadaware.training.pedestrians.recipe import PedestrianRecipe
from roadaware.training.recipe import MachineRecipe, Recipe
from roadaware.training.recipe_files import find_recipe, parse_recipe, read_fields, read_recipe

CONFIGS = sorted(Path(__file__).parents[2].joinpath("configs").glob("*.yaml"))
LEAST = {"data": {"roots": ["somewhere"]}}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_config_that_ships_is_a_recipe(path: Path) -> None:
    recipe = read_recipe(path)
    assert recipe.name
    assert recipe.data.roots


@pytest.mark.parametrize(
    "path", sorted(CONFIGS[0].parent.glob("pedestrians/*.yaml")), ids=lambda path: path.stem
)
def test_every_config_of_a_predictor_that_ships_is_a_recipe(path: Path) -> None:
    recipe = read_recipe(path)
    assert isinstance(recipe, PedestrianRecipe)
    assert recipe.name == path.stem


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"shedule": {}}, "did you mean 'schedule'?"),
        ({"schedule": {"learning_rate": 1}}, "no field 'schedule.learning_rate'"),
        ({"clips": {"frame": 8}}, "did you mean 'frames'?"),
        ({"clips": {"frames": "eight"}}, "clips.frames is a whole number, not 'eight'"),
        ({"clips": {"frames": True}}, "clips.frames is a whole number"),
        ({"clips": {"shift": 1}}, "clips.shift is true or false"),
        ({"schedule": {"optimizer": "adam"}}, "one of sgd, adamw"),
        ({"schedule": {"betas": [0.9]}}, "schedule.betas holds 2 values"),
        ({"schedule": {"lr": "fast"}}, "schedule.lr is a number"),
        ({"schedule": {"lr": float("nan")}}, "schedule.lr is a number"),
        ({"schedule": {"lr": 0}}, "schedule.lr is above 0"),
        ({"schedule": {"milestones": [3, 2]}}, "schedule.milestones rise"),
        ({"clips": {"batch": 0}}, "at least 1"),
        ({"augment": {"flip": 2}}, "chances"),
        ({"clips": []}, "clips holds fields"),
        ({"clips": {"balance_most": 0.5}}, "balance_most at least 1"),
        ({"schedule": {"warmup_steps": -1}}, "warmup_steps, weight_decay and clip_norm are 0 or more"),
        ({"model": {"likeliest": -1}}, "model.likeliest is 0 or more"),
        ({"validation": {"min_agentness": 2}}, "validation.min_agentness and nms_iou"),
        ({"validation": {"top": 0}}, "top at least 1"),
        ({"validation": {"linking": {"nearness": 1}}}, "validation.linking: "),
        ({"validation": {"linking": {"min_iou": 2}}}, "validation.linking: min_iou should be"),
        ({"validation": {"link_iou": -1}}, "validation.linking: min_iou should be"),
    ],
)
def test_what_a_recipe_may_not_say_is_refused_by_name(given: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_recipe({**LEAST, **given})
    assert says in str(caught.value)


def test_other_samples_take_the_place_of_those_of_a_recipe_before_anything_is_changed(tmp_path: Path) -> None:
    recipe, on = tmp_path / "mine.yaml", tmp_path / "there.yaml"
    recipe.write_text("name: mine\ntask: risk\nsamples: {root: here, dense: true}\nbatch: 7\n")
    on.write_text("samples: {root: there, reader: pie}\n")
    found = read_recipe(recipe, ["samples.root=elsewhere"], on=on)
    assert isinstance(found, PedestrianRecipe)
    assert (found.name, found.task, found.batch) == ("mine-on-there", "risk", 7)
    assert (found.samples.root, found.samples.reader, found.samples.dense) == ("elsewhere", "pie", False)
    on.write_text("task: action\nsamples: {root: there}\n")
    assert read_recipe(recipe, ["name=other"], on=on).name == "other"
    assert read_recipe(recipe, on=on).task == "action"
    assert digest(read_recipe(recipe)) == digest(read_recipe(recipe, ["name=mine"]))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("samples: {root: there}\nbatch: 3\nloss: {}\n", "and not batch, loss, such as those in"),
        ("task: action\n", "--on takes a file with samples"),
        ("samples: there\n", "--on takes a file with samples"),
        ("samples: {rot: there}\n", "no field 'samples.rot'; did you mean 'root'?"),
    ],
)
def test_files_that_hold_more_or_less_than_samples_are_refused(tmp_path: Path, text: str, says: str) -> None:
    recipe, on = tmp_path / "mine.yaml", tmp_path / "there.yaml"
    recipe.write_text("task: action\nsamples: {root: here}\n")
    on.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_recipe(recipe, on=on)
    assert says in str(caught.value)
    recipe.write_text("data: {roots: here}\n")
    with pytest.raises(UsageError, match="is one of a detector"):
        read_recipe(recipe, on=on)


def test_a_recipe_without_data_is_refused() -> None:
    with pytest.raises(UsageError, match=r"data\.roots"):
        Recipe()


def test_numbers_are_read_as_people_write_them(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("data: {roots: here}\nschedule: {lr: 1e-3, betas: [0, 1], milestones: 6}\nname: 7\n")
    recipe = read_recipe(file)
    assert recipe.schedule.lr == 0.001
    assert recipe.schedule.betas == (0.0, 1.0)
    assert recipe.schedule.milestones == (6.0,)
    assert (recipe.data.roots, recipe.name) == (("here",), "7")


def test_changes_replace_what_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("data: {roots: [a]}\nclips: {batch: 2}\n")
    recipe = read_recipe(file, ["clips.batch=3", "data.roots=[b,c]", "model.fields.width=32", "seed=5"])
    assert (recipe.clips.batch, recipe.data.roots, recipe.seed) == (3, ("b", "c"), 5)
    assert recipe.model.fields == {"width": 32}


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("my films #1/films", "my films #1/films"),
        (" März & co #2 ", "März & co #2"),
        ("'a #b'  # remark", "a #b"),
        ("a#b", "a#b"),
    ],
)
def test_a_path_keeps_what_a_file_would_take_for_a_remark(tmp_path: Path, said: str, wanted: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("data: {roots: [a]}\n")
    recipe = read_recipe(file, [f"data.media={said}", "seed=3 # of the day"])
    assert (recipe.data.media, recipe.seed) == (wanted, 3)


@pytest.mark.parametrize("change", ["clips.batch", "=3", "clips.batch=[", "seed.x=1", "clips.bach=1"])
def test_changes_that_mean_nothing_are_refused(tmp_path: Path, change: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("data: {roots: [a]}\nseed: 1\n")
    with pytest.raises(UsageError):
        read_recipe(file, [change])


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a: [", b"- 1\n", b""])
def test_files_that_are_no_recipe_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_recipe(file)
    assert str(file) in str(caught.value)
    with pytest.raises(InputError, match="no such file"):
        read_recipe(tmp_path / "none.yaml")


TRAPS = (
    "yes", "No", "on", "OFF", "y", "n", "1:30", "1:30:00.5", "0755", "010", "0x1F", "0o17", "0b11", "1_000",
    ".nan", "-.inf", "2001-01-01", "2001-01-01T00:00:00Z", "=",
)  # fmt: skip
TAGS = (
    "!!bool maybe", "!!timestamp foo", '!!int ""', "!!float x", "!!binary x", "!!set {a}", "!!omap [a: 1]",
    "!!null x", "!!python/object/apply:os.system [x]", "!!python/name:os.system", "!mine x", "! 1",
    "!<tag:yaml.org,2002:int> 1",
)  # fmt: skip


def test_plain_values_are_those_of_which_all_parsers_say_the_same(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(
        "a: [1, -3, +7, 0, 0.5, 1., .5, 1e-4, 1E5, true, False, null, ~, no-one, 1.2.3, '010', \"yes\"]\nb:\n"
    )
    said = [1, -3, 7, 0, 0.5, 1.0, 0.5, 1e-4, 1e5, True, False, None, None, "no-one", "1.2.3", "010", "yes"]
    assert read_fields(file) == {"a": said, "b": None}
    assert [type(each) for each in read_fields(file)["a"]] == [type(each) for each in said]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[" * 100_000, "line 1, column 52: nested more than 50 deep"),
        ("- " * 1000, "nested more than 50 deep"),
        ("a: 1\nb: 2\na: 3\n", "line 3, column 1: the key 'a' stands twice, first in line 1"),
        ("data:\n  roots: [a]\n  roots: [b]\n", "line 3, column 3: the key 'roots' stands twice"),
        ("a: 1\nb: *x\n", "line 2, column 4: a reference"),
        ("a: &x [*x]\n", "line 1, column 4: an anchor"),
        ("a: &x 1\n", "an anchor"),
        ("seed: " + "9" * 5000, "is no YAML"),
        ("name: 2024-02-31\n", "line 1, column 7: '2024-02-31' means different things"),
        *((f"a: {said}\n", "means different things to different parsers") for said in TRAPS),
        *((f"seed: {tag}\n", "line 1, column 7: a tag (!name) is not taken") for tag in TAGS),
        ("<<: {seed: 1}\n", "a key << is not taken"),
        ("? [a]\n: 1\n", "a key is a text"),
        ("1: 2\n", "a key is a text"),
        ("yes: 2\n", "'yes' means different things"),
        ("a: 1e400\n", "1e400 is no finite number"),
        ('a: "\\0"\n', "no control characters"),
        ("a: \u202ex\n", "no control characters"),
        ("---\na: 1\n---\nb: 1\n", "another document"),
        ("a: \x01\n", "is no YAML"),
        ("name: " + "x" * (1 << 18), "files of at most 262144 bytes are read"),
    ],
)
def test_a_recipe_is_strict_yaml_of_bounded_size_and_depth(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(content)
    with pytest.raises(InputError) as caught:
        read_recipe(file)
    assert says in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_recipe_is_a_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for path in (tmp_path / "pipe.yaml", Path("/dev/zero")):
        with pytest.raises(InputError, match="not a regular file"):
            read_recipe(path)


def test_a_change_is_as_strict_as_a_file(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("data: {roots: [a]}\n")
    for change, says in (("seed=" + "[" * 5000, "50 deep"), ("clips={batch: 1, batch: 2}", "stands twice")):
        with pytest.raises(UsageError, match=says):
            read_recipe(file, [change])


def test_an_unknown_field_is_named_before_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"no field 'zzz'\. There are name, "):
        parse_recipe({**LEAST, "zzz": 1})


def test_a_recipe_survives_being_written() -> None:
    recipe = parse_recipe({**LEAST, "machine": {"workers": 2}})
    written = to_dict(recipe)
    written.pop("type")
    assert parse_recipe(written) == recipe
    assert from_dict(MachineRecipe, written["machine"]) == recipe.machine
    assert digest(recipe) != digest(parse_recipe(LEAST))


@pytest.mark.parametrize("name", ["simulator", "crossing-jaad", "grounding"])
def test_the_recipe_that_a_run_keeps_is_trained_again(tmp_path: Path, name: str) -> None:
    recipe = read_recipe(find_recipe(Path(name)))
    (tmp_path / "recipe.json").write_text(json.dumps(to_dict(recipe), indent=2))
    assert read_recipe(tmp_path / "recipe.json") == recipe
