"""The command line as a whole: groups, hints for words of other tools, former names, completion, plain words."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App
from cyclopts.completion.detect import ShellDetectionError
from small_files import Command

from roadaware.cli import app

GROUPS = (*("Data", "Simulate", "Train", "Predict and track", "Corner cases", "Evaluate", "Show", "Options"),)
WRONG_VERBS = {
    "detect": "roadaware predict ",
    "track": "roadaware link ",
    "datasets": "roadaware read ",
    "visualize": "roadaware view ",
    "Eval-Road": "roadaware evaluate road ",
    "evaluate_corner_cases": "roadaware evaluate corner-cases ",
    "infer": "roadaware predict ",
    "annotate": "roadaware label ",
    "benchmark": "roadaware evaluate road ",
    "info": "roadaware doctor",
    "list": "roadaware models list",
}
DIALECT = re.compile(
    r"unless (told|said|given)|\bclaim(s|ed)?\b|\bma(d|k)es? up\b|made-up|\bmended\b|\bdraws of\b|--draws|\bfilms?\b|"
    r"\bpictures?\b|\bknobs?\b|away from home|turn the",
    re.IGNORECASE,
)
"""Words that the field has others for; names of options and files are left out before they are sought."""


def every_command(group: App, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], App]]:
    for name in group:
        if name.startswith("-"):
            continue
        below = group[name]
        yield (*before, name), below
        yield from every_command(below, (*before, name))


def options(command: App) -> set[str]:
    if command.default_command is None:
        return set()
    return {name for argument in command.assemble_argument_collection() for name in argument.names}


KNOWN = dict(every_command(app.build_app("*")))


def test_the_help_lists_every_command_once_in_the_order_of_work(roadaware: Command) -> None:
    text = roadaware("--help").out
    places = [text.index(f"─ {title} ─") for title in GROUPS]
    assert places == sorted(places)
    listed = re.findall(r"^│ ([a-z][a-z-]+)(?: \(eval\))?  ", text, re.MULTILINE)
    assert tuple(listed) == app.NAMES
    assert len(set(listed)) == len(listed)


@pytest.mark.parametrize("word", WRONG_VERBS)
def test_a_word_of_another_tool_gets_a_line_to_copy(roadaware: Command, word: str) -> None:
    done = roadaware(word, "drive.mp4")
    assert (done.code, done.out) == (2, "")
    message, line = done.err.splitlines()
    assert message.startswith(f'roadaware: unknown command "{word}": ')
    assert line.startswith(f"  {WRONG_VERBS[word]}")
    words = shlex.split(line)[1:]
    command = max((name for name in KNOWN if tuple(words[: len(name)]) == name), key=len)
    given = {each for each in words if each.startswith("-") and each != "--help"}
    assert given <= options(KNOWN[command])


def test_other_wrong_words_get_the_nearest_command_and_option(roadaware: Command) -> None:
    assert 'Did you mean "predict"' in roadaware("predct").err
    assert "Did you mean --resamples?" in roadaware("compare", "a", "b", "--resample", "5").err
    assert "`roadaware compare --help`" in roadaware("compare", "a", "b", "--resample", "5").err
    assert 'Command "link" needs --output.' in roadaware("link", "nowhere").err
    assert "parameter --output requires" in roadaware("link", "nowhere", "--output").err
    assert "`doctor videos PATH`" in roadaware("doctor", ".").err
    assert roadaware("evaluate-nothing").code == 2


def test_a_former_command_works_and_says_the_new_name(roadaware: Command) -> None:
    done = roadaware("cross", "--help")
    assert done.code == 0
    assert done.err == "roadaware: `cross` is now called `cross-dataset`\n"
    assert done.out == roadaware("cross-dataset", "--help").out
    assert "cross" not in KNOWN


def test_former_options_stand_for_the_new_ones_of_their_command_and_for_no_other() -> None:
    for verb, former in app._FORMER_OPTIONS.items():
        held = [options(command) for name, command in KNOWN.items() if verb in ("", name[0])]
        assert not any(set(former) & each for each in held), verb
        assert {new.partition(" ")[0] for new in former.values() if new} <= set().union(*held), verb
    words = ["compare", "a", "--draws", "5", "--draws=6", "--drawsx", "draws", "--model", "--", "--draws"]
    assert app.prepare_words(words) == [
        *(
            "compare",
            "a",
            "--resamples",
            "5",
            "--resamples=6",
            "--drawsx",
            "draws",
            "--model",
            "--",
            "--draws",
        ),
    ]
    assert app.prepare_words(["baseline", "jaad", "--model=x"]) == ["baseline", "jaad", "--models=x"]


@pytest.mark.parametrize(
    ("words", "new"),
    [
        ("check annotations a --frames 3 --any-reviewer b", "b --set frames=3 --set reviewers_differ=false"),
        ("link found --jump-gap=-1 --edge iou", "--set jump_gap=-1 --set cost=iou"),
        ("read jaad a --cache --appearance", "--option appearance=true"),
        ("view a --browser", ""),
        ("link found --trim", "--set"),
        ("reproduce iv2024 --no-baselines", "--set baselines=false"),
        # What was a flag took no value: the parser refuses it.
        ("reproduce iv2024 --baselines=false", "--baselines=false"),
        ("read jaad --cache=false --appearance=false", "--cache=false --appearance=false"),
    ],
)
def test_a_former_option_may_be_a_field_of_set_or_nothing(words: str, new: str) -> None:
    command = words.partition(" --")[0]
    assert app.prepare_words(words.split()) == f"{command} {new}".split()


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("label agree a b --most 3", "--most"),
        ("label import a --least-score=0.3", "--least-score"),
        ("evaluate road --truth a --predictions b --tasks crossing", "--tasks"),
        ("doctor --draws 5", "--draws"),
    ],
)
def test_an_error_names_the_option_that_was_written(roadaware: Command, words: str, option: str) -> None:
    assert app.prepare_words(words.split()) == words.split()
    done = roadaware(*words.split())
    assert done.code == 2
    assert option in done.err


def test_values_with_spaces_and_empty_ones_stay_as_they_are() -> None:
    words = ["link", "", "a b", "--output", "--set x=1"]
    assert app.prepare_words(words) == words


def test_options_may_stand_before_the_command(roadaware: Command) -> None:
    assert roadaware("--help", "stats").out == roadaware("stats", "--help").out
    assert roadaware("-h", "evaluate", "road").out == roadaware("evaluate", "road", "--help").out


def test_an_option_without_values_is_called_as_it_is_written(roadaware: Command, tmp_path: Path) -> None:
    assert "--models takes one value" in roadaware("baseline", "jaad", tmp_path, "--models").err


def test_shared_options_have_one_spelling() -> None:
    for name, command in KNOWN.items():
        held = options(command)
        if held & {"--output", "--out", "-o"}:
            assert {"--output", "--out", "-o"} <= held, name
        assert not held & {"--draws", "--ground-truth", "--pred", "--bootstrap"}, name


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_written_with_every_command(roadaware: Command, tmp_path: Path, shell: str) -> None:
    script = tmp_path / "roadaware.script"
    done = roadaware("--install-completion", "--shell", shell, "--output", script)
    assert done.code == 0
    text = script.read_text(encoding="utf-8")
    assert [name for name in app.NAMES if not re.search(rf"\b{name}\b", text)] == []
    for option in ("resamples", "output", "tracking"):
        assert re.search(rf"(--|-l ){option}\b", text)


@pytest.mark.slow
def test_completion_is_installed_at_home(
    roadaware: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    path = Path(roadaware("--install-completion", "--shell", "bash", "--json").data["path"])
    assert path.is_relative_to(tmp_path)
    assert str(path) in (tmp_path / ".bashrc").read_text()


def test_completion_asks_for_the_shell_where_it_is_not_known(
    roadaware: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown() -> str:
        raise ShellDetectionError("no shell")

    monkeypatch.setattr("cyclopts.completion.detect.detect_shell", unknown)
    done = roadaware("--install-completion")
    assert done.code == 2
    assert "--shell bash" in done.err


def test_completion_loads_no_heavy_library() -> None:
    code = (
        "import sys; from roadaware.cli.app import build_app; build_app('*').generate_completion(shell='bash'); "
        "print(sorted({'torch', 'transformers', 'numba', 'matplotlib', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", [(), *KNOWN], ids=" ".join)
def test_help_speaks_the_words_of_the_field(roadaware: Command, name: tuple[str, ...]) -> None:
    text = roadaware(*name, "--help").out
    text = re.sub(r"\[choices: [^]]*\]", "", text)
    plain = re.sub(r"--?[\w-]+|`[^`]*`|[\w./-]*/[\w./-]+", " ", text)
    assert DIALECT.findall(plain) == []
    assert "[default: ()]" not in text


@pytest.mark.parametrize(
    "words", [["read", ""], ["read", "jaad", ""], ["read", "jaad", "x", "-o", ""], ["read", "x", "--output="]]
)
def test_an_empty_word_is_not_the_folder_that_one_is_in(
    roadaware: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    (tmp_path / "x").mkdir()
    monkeypatch.chdir(tmp_path / "x")
    done = roadaware(*words)
    assert done.code == 2
    assert "a word of the command is empty" in done.err
    assert list(tmp_path.rglob("*")) == [tmp_path / "x"]


@pytest.mark.parametrize(
    ("command", "option", "default"),
    [
        ("stats", "--kinds", "all"),
        ("evaluate road", "--kinds", "all that both sides know"),
        ("triage", "--detector", "as of `watch`"),
        ("simulate", "--fps", "the preset's"),
        ("cross-dataset", "--seeds", "5"),
    ],
)
def test_help_says_what_happens_without_an_option(
    roadaware: Command, command: str, option: str, default: str
) -> None:
    text = re.sub(r"[\s│]+", " ", roadaware(*command.split(), "--help").out)
    said = re.search(rf"{option} [A-Z]+[. ]+.*?\[default: ([^]]*)\]", text)
    assert said is not None
    assert said[1] == default


def test_words_that_are_no_text_are_refused_and_paths_may_be_what_they_like(
    roadaware: Command, tmp_path: Path
) -> None:
    done = roadaware(
        "label", "export", tmp_path, "--videos", tmp_path, "-o", tmp_path / "o", "--classes", "dog", "\udcff"
    )
    assert done.code == 2
    assert "expected text in UTF-8" in done.err
    assert roadaware("watch", str(tmp_path / "no\udcff.mp4")).code == 3
    assert roadaware("read", "jaad", str(tmp_path / "no\udcff")).code == 3
