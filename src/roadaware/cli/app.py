"""The commands, and the one place where an outcome or an error becomes output and an exit code."""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib
import os
import re
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

from cyclopts import App, CycloptsError, Group, Parameter
from cyclopts.exceptions import MissingArgumentError, UnusedCliTokensError

from roadaware import __version__
from roadaware.addresses import is_address_like, keep_secret, reset_secrets
from roadaware.cli import console
from roadaware.cli.options import MAY_STAND_ALONE, USUAL, Common, Outcome, Output, add_command, create_app
from roadaware.cli.outputs import FILE, INPUTS_IN_WORDS, check_paths, open_stores
from roadaware.errors import RoadawareError, Terminated, UsageError, find_interrupt
from roadaware.io import folders
from roadaware.io.interrupts import handle_interrupts, stop_children
from roadaware.io.sources import to_printable

# 70 is EX_SOFTWARE of sysexits.h; 130, 141 and 143 are 128 and the number of SIGINT, SIGPIPE and SIGTERM.
USAGE, DISK, INTERNAL, PIPE, INTERRUPTED, TERMINATED = 2, 4, 70, 141, 130, 143
_SHELL = "The shell to complete in. [default: the one this runs in]"
_SCRIPT = "Write the script to this file and install nothing; /dev/stdout prints it."
_DISK_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}
_PACKAGE_AND_EXTRA = {
    **{
        name: (name, "models")
        for name in ("torch", "transformers", "lightning", "safetensors", "tensorboard")
    },
    **{name: (name, "models") for name in ("huggingface_hub", "tokenizers")},
    "yaml": ("PyYAML", "models"),
    **{name: (name, "viewer") for name in ("starlette", "uvicorn")},
    **{name: (name, "export") for name in ("onnx", "onnxruntime", "onnxscript")},
}
"""Module that only an extra brings, to the package that has it and the name of the extra."""

COMMANDS = {
    "Data": {
        "read": "Read a dataset and say what is inside: videos, boxes, pedestrians, splits, refused rows.",
        "stats": "Count boxes and tubes by class and split, and draw the counts.",
        "audit": "Find what is wrong with a dataset or its published samples: counts, reasons, examples.",
        "check": "Check annotations: against a second annotator, dictionaries, and rules that always hold.",
    },
    "Simulate": {
        "simulate": "Simulate road scenes: what camera, LiDAR and microphone record, with exact ground truth.",
    },
    "Train": {
        "train": "Train what a recipe names: a detector of road events, or a predictor of pedestrians.",
        "baseline": "Train simple models on boxes and vehicle actions alone, and evaluate them.",
        "models": "List, fetch, show and remove trained models of others.",
    },
    "Predict and track": {
        "predict": "Detect road events in every frame of videos, as tables.",
        "enforce": "Correct scores so that the labels of each box satisfy logical requirements.",
        "link": "Link detections to tubes and label them, as published or as we recommend.",
        "watch": "Watch a video or a camera: tubes of agents, their actions and locations, as they happen.",
        "crossing": "Say who will cross, of the tracks of any tracker, dataset, watch or video.",
        "triage": "Rank the moments of many drives by how much somebody should look at them.",
        "poses": "Find the 17 joints of each person, as a table that predictors of pedestrians read.",
        "export": "Write a detector as ONNX, for runtimes without PyTorch.",
    },
    "Corner cases": {
        "propose": "Propose boxes around what stands on the road and no detector knows.",
        "rescore": "Rank proposals of corner cases by how unlike known objects they are.",
        "segment": "Segment images, as masks that `propose --semantics` reads.",
        "prelabel": "Name proposals with CLIP, as a help for annotators.",
        "label": "Send proposals of corner cases to annotators, and read their work back.",
        "ablate": "Ablate the proposals, one parameter at a time.",
    },
    "Evaluate": {
        "evaluate": "Score predictions against ground truth, as published or as we recommend.",
        "calibration": "Ask whether a pedestrian model's probabilities are right: is 0.9 nine times of ten?",
        "compare": "Compare two models on the same samples: differences with intervals, and a verdict.",
        "reproduce": "Repeat a published experiment and set every printed cell beside what comes out.",
        "cross-dataset": "Train predictors on each of several domains, test each on all.",
    },
    "Show": {
        "status": "Say how far a long run is: parts done, failed and left, rate and time left.",
        "view": "Look at runs and datasets on a local page: video, tubes, errors behind a number.",
        "report": "Make the HTML report of run folders: one file, offline, printable.",
        "convert": "Write runs and datasets as the file of another tool, a recording of Rerun.",
        "draw": "Draw boxes, agents, actions and locations on synthetic videos.",
        "submit": "Check tubes and write the zip for a server of the ROAD challenges.",
        "doctor": "Find out why something does not work, or why a number is 0.",
        "demo": "Watch videos, judge what was found, show it on a page; --all takes every step.",
    },
}
"""By group, in the order of work: the name of each command and what it does."""
_MODULES = {
    "ablate": "propose", "audit": "check", "baseline": "train", "calibration": "evaluate", "draw": "simulate",
    "enforce": "link", "export": "models", "poses": "images", "prelabel": "images", "report": "compare",
    "segment": "images", "submit": "link", "view": "convert",
}  # fmt: skip
"""Where a command lies that has no module of its own name; `demo`, which runs others, stands above the command line."""
_GROUPS = {title: Group(title, sort_key=place) for place, title in enumerate(COMMANDS)}
NAMES = tuple(name for commands in COMMANDS.values() for name in commands)


@functools.cache
def build_app(loaded: str = "") -> App:
    """The command line.

    Args:
        loaded: the command whose module is imported, with all it needs; the others are names and lines of help
            alone. `*` for all of them.
    """
    app = create_app(
        "roadaware",
        """
        Turn road video into road events, and know how far to trust them.

        First time here? `roadaware demo` watches videos, judges what was found and shows it, in a minute or two.
        `roadaware COMMAND --help` explains a command, with an example.

        Exit codes: 0 fine, 1 findings under --strict or --fail-under, 2 wrong request, 3 unreadable
        input, 4 output could not be written, 70 a fault of roadaware, 130 interrupted, 141 closed pipe,
        143 terminated.
        """,
        version=__version__,
    )
    for title, commands in COMMANDS.items():
        group = _GROUPS[title]
        for at, (name, about) in enumerate(commands.items()):
            if loaded in (name, "*"):
                python_name = name.replace("-", "_")
                place = f"roadaware.cli.{_MODULES.get(name, python_name)}"
                module = importlib.import_module("roadaware.demo.command" if name == "demo" else place)
                add_command(app, getattr(module, python_name), name, group, at)
            else:
                app.command(create_app(name, about, group=group, sort_key=at))
    app.command(install_completion, name="--install-completion", help_format="plaintext")
    options = Group("Options", sort_key=len(COMMANDS))
    for option in ("--help", "--version", "--install-completion"):
        app[option].group = (options,)
    return app


def install_completion(
    *,
    shell: Annotated[Literal["bash", "zsh", "fish"] | None, Parameter(help=_SHELL)] = None,
    output: Annotated[Path | None, Output, Parameter(help=_SCRIPT), FILE] = None,
    common: Common = USUAL,
) -> Outcome:
    """Install completion of commands and options for bash, zsh or fish.

    For example:

        roadaware --install-completion

        roadaware --install-completion --shell zsh --output ~/.zfunc/_roadaware
    """
    from cyclopts.completion.detect import ShellDetectionError, detect_shell

    name = shell
    if name is None:
        with contextlib.suppress(ShellDetectionError):
            found = detect_shell()
            name = found if found != "powershell" else None
    if name is None:
        raise UsageError("it is not known which shell this is; add --shell bash, zsh or fish")
    if output is None:
        path = build_app("*").install_completion(shell=name)
        return Outcome(f"installed {path}; open a new shell to use it", {"shell": name, "path": str(path)})
    script = build_app("*").generate_completion(shell=name)
    folders.write_text(output, script)
    console.print_note(f"wrote {output}")
    return Outcome("", {"shell": name, "path": str(output)})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: the words after `roadaware`; those of the process where None.
    """
    console.configure_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Let no output show what is secret in addresses among the words, whatever comes of the command
    reset_secrets()
    for word in words:
        for given in {word, word.partition("=")[2] if word.startswith("-") else word}:
            if is_address_like(given) and not os.path.lexists(given.replace("\0", "")):
                keep_secret(given)
    try:
        with handle_interrupts():
            code = _run_guarded(words)
    except (KeyboardInterrupt, Terminated) as error:  # a signal as we begin or stop to listen for them
        code = _report_interrupt(error)
    if code in (INTERRUPTED, TERMINATED):
        stop_children()
        if arguments is None:
            # Workers' queues would be joined on the way out; after an interruption nobody waits for them.
            os._exit(code)
    if arguments is None:
        with contextlib.suppress(ValueError):  # not the main thread, where no signal arrives
            # Only callbacks of libraries are left, which would end in a traceback of theirs.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    return code


_FORMER_VERBS = {"cross": "cross-dataset"}
"""Commands that have another name now; the old one works for one version, and says the new one."""
_FORMER_OPTIONS = {
    "baseline": {"--model": "--models"},
    "check": {
        "--edge-px": "--set edge_px=", "--resolution": "--set resolution=", "--frames": "--set frames=",
        "--frame-rate": "--set frame_rate=", "--any-reviewer": "--set reviewers_differ=false",
    },
    "cross-dataset": {
        "--jobs": "--processes", "--doubted": "--set doubted=", "--pretrained": "--set pretrained=",
        "--pretraining": "--set pretraining=",
    },
    "draw": {"--sheet-only": "--no-video"},
    "evaluate": {"--tasks": "--task"},
    "label": {
        "--least-score": "--min-score", "--root": "--media", "--most": "--top", "--look-s": "--set look_s=",
        "--judge-s": "--set judge_s=", "--correct-s": "--set correct_s=", "--draw-s": "--set draw_s=",
        "--repeat": "--set repeat=",
    },
    "link": {
        "--edge": "--set cost=", "--assignment": "--set assignment=", "--trim": "--set trim=",
        "--jump-gap": "--set jump_gap=",
    },
    "propose": {"--knob": "--set", "--most": "--top"},
    "read": {"--cache": "", "--appearance": "--option appearance=true"},
    "reproduce": {
        "--steps": "--set steps=", "--memory": "--set memory=", "--budget": "--set budget=", "--towns": "--set towns=",
        "--baselines": "--set baselines=true", "--no-baselines": "--set baselines=false",
    },
    "rescore": {
        "--pictures": "--media", "--min-iou": "--iou", "--form": "--set form=", "--temperature": "--set temperature=",
        "--neighbours": "--set neighbours=",
    },
    "view": {"--browser": ""},
    "": {"--draws": "--resamples"},
}  # fmt: skip
"""By command, options that are written otherwise now, of all commands under no name; the old ones work for one version.

What ends in `=` takes the value that follows; nothing stands for what holds by default."""
_PREDICT = ("roadaware predict street-small --videos drive.mp4 -o found", "`predict` detects in each frame")
_SHOW = ("roadaware view run", "`view` shows what a command found, on a local page")
_READ = ("roadaware read jaad JAAD -o tables", "`read` takes a dataset in its own format and saves tables")
_WRONG_VERBS = {
    "detect": _PREDICT,
    "infer": _PREDICT,
    "inference": _PREDICT,
    "track": ("roadaware link found/predictions -o tubes", "`link` joins detections to tubes over time"),
    "visualize": _SHOW,
    "visualise": _SHOW,
    "plot": _SHOW,
    "import": _READ,
    "datasets": ("roadaware read --help", "`read` names the datasets"),
    "annotate": ("roadaware label --help", "`label` brings proposals to annotators and back"),
    "benchmark": (
        "roadaware evaluate road --truth TRUTH --predictions PREDICTIONS",
        "`evaluate` scores predictions",
    ),
    "info": ("roadaware doctor", "`doctor` looks at the installation, `stats` and `read` at a dataset"),
    "list": ("roadaware models list", "`models list` lists the models"),
}
"""What people type, from other tools: a line to copy, and what it does."""


def prepare_words(words: Sequence[str]) -> list[str]:
    """The words as the commands know them: former names replaced, a bare `--json` written out.

    A bare `--json`, and `--json -`, become `--json=-`: standard output.

    Raises:
        UsageError: if the command is one of another tool; names ours.

    >>> prepare_words(["doctor", "--json", "-", "-v"]), prepare_words(["doctor", "--json"])
    (['doctor', '--json=-', '-v'], ['doctor', '--json=-'])
    """
    found: list[str] = []
    late: list[str] = []
    rest = list(words)
    if rest[:1] == ["eval"]:
        rest[0] = "evaluate"
    if rest and rest[0] in _FORMER_VERBS:
        console.print_error(f"roadaware: `{rest[0]}` is now called `{_FORMER_VERBS[rest[0]]}`")
        rest[0] = _FORMER_VERBS[rest[0]]
    if rest and rest[0] not in NAMES:
        # Raise a UsageError with a line to copy where we know what a word of another tool asks for
        word = rest[0]
        line, what = _WRONG_VERBS.get(word.lower(), ("", ""))
        subject = re.fullmatch("eval(?:uate)?[-_](.+)", word.lower())
        if subject and (name := subject[1].replace("_", "-")) in build_app("evaluate")["evaluate"]:
            line, what = (
                f"roadaware evaluate {name} --help",
                "`evaluate` takes the subject as a word of its own",
            )
            if name == "road":
                line = "roadaware evaluate road --truth TRUTH --predictions PREDICTIONS"
        if line:
            raise UsageError(f'unknown command "{word}": {what}\n  {line}')
    former = _FORMER_OPTIONS[""] | _FORMER_OPTIONS.get(_find_command(rest), {})
    if any(word.partition("=")[0] in former for word in rest):
        # Of what the command does not take the error names what was written, not what it would be called elsewhere.
        known = _list_options(rest)
        former = {old: new for old, new in former.items() if not new or new.partition(" ")[0] in known}
    while rest:
        word = rest.pop(0)
        if word == "--":  # what follows are values, whatever they look like
            return [*found, *late, word, *rest]
        option, equals, value = word.partition("=")
        written = former.get(option)
        if written is not None and equals and (not written or (" " in written and not written.endswith("="))):
            written = None  # what was a flag takes no value
        if written == "":
            continue
        if written is not None and " " in written:
            # Behind all others, since `--set` would take the paths that follow for values of its own.
            new, _, given = written.partition(" ")
            late.append(new)
            if not given.endswith("="):
                late.append(given)
            elif equals or rest:
                late.append(given + (value if equals else rest.pop(0)))
            continue
        if written is not None:
            word = f"{written}{equals}{value}"
        if word == "--json" and (not rest or rest[0].startswith("-")):
            word = "--json=-"
            if rest and rest[0] == "-":
                rest.pop(0)
        found.append(word)
    return found + late


def _find_command(words: Sequence[str]) -> str:
    """The command among the words, which options such as `--help` may stand before; empty if there is none."""
    first = next((word for word in words if not word.startswith("-")), "")
    return first if first in NAMES else ""


def _list_options(words: Sequence[str]) -> set[str]:
    """The options of the command, or of its subcommand, among the words; none if there is none."""
    command = _find_command(words)
    if not command:
        return set()
    app = build_app(command)[command]
    for word in words[words.index(command) + 1 :]:
        if word.startswith("-") or word not in app:
            break
        app = app[word]
    if app.default_command is None:
        return set()
    return {name for argument in app.assemble_argument_collection() for name in argument.names}


def _run_guarded(words: list[str]) -> int:
    """Run, and turn whatever is raised into a message and an exit code."""
    console.configure(quiet=False, verbosity=0)  # until the words are parsed: as in a process of its own
    try:
        code = _run(prepare_words(words))
        sys.stdout.flush()
    except CycloptsError as error:
        said = str(error)
        if isinstance(error, UnusedCliTokensError):
            said = f"no argument or option takes {' '.join(map(repr, error.unused_tokens or []))}"
        elif isinstance(error, MissingArgumentError) and error.keyword is None and not error.tokens_so_far:
            # Not named at all: that it "requires an argument" would be said of an option without its value.
            said = re.sub(r" parameter (\S+) requires an argument\.$", r" needs \1.", said)
        command = " ".join(["roadaware", *(error.command_chain or ())])
        return _complain(said, USAGE, hint=f"`{command} --help` says what there is.")
    except RoadawareError as error:
        # Our own line breaks are followed by two spaces; any other stands in a name.
        return _complain(re.sub("\n(?!  )", r"\\n", str(error)), error.exit_code)
    except (KeyboardInterrupt, Terminated) as error:
        return _report_interrupt(error)
    except BrokenPipeError:
        return _closed_pipe()
    except SystemExit as error:  # rich, which prints the help, ends the process over a closed pipe
        if isinstance(error.__context__, BrokenPipeError):
            return _closed_pipe()
        raise
    except OSError as error:
        if error.errno in _DISK_ERRNOS:
            _drop_output()
            return _complain(f"the output could not be written: {error}", DISK)
        if error.errno in (
            errno.ENAMETOOLONG,
            errno.ELOOP,
        ):  # of words that may be paths, which are tried as such
            name = to_printable(str(error.filename or ""), 80)
            return _complain(f"{(error.strerror or '').lower()}: {name}", USAGE)
        return _internal(error)
    except ModuleNotFoundError as error:
        # One that is there lacks a part of itself, which is no extra that was left out.
        if error.name not in _PACKAGE_AND_EXTRA or find_spec(error.name) is not None:
            return _internal(error)
        package, extra = _PACKAGE_AND_EXTRA[error.name]
        return _complain(f"{package} is not installed: pip install 'roadaware[{extra}]'", USAGE)
    except BaseException as error:  # the last line of defence: a fault of ours is one line, not a traceback
        interrupt = find_interrupt(error)
        if interrupt is not None:
            return _report_interrupt(interrupt)
        # A panic of a library in Rust is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        return _internal(error)
    return code


def _report_interrupt(error: KeyboardInterrupt | Terminated) -> int:
    text, code = ("terminated", TERMINATED) if isinstance(error, Terminated) else ("interrupted", INTERRUPTED)
    return _complain(f"{text}; nothing half-written remains", code)


def _run(words: list[str]) -> int:
    if any("\0" in word for word in words):
        raise UsageError("a word of the command holds a NUL character, which no path or address can")
    # As a path it would be the folder that one is in.
    if any(not word or re.fullmatch("--[a-z-]+=", word) for word in words):
        raise UsageError("a word of the command is empty: is a variable of the shell not set?")
    app = build_app(_find_command(words))
    command, bound, _ = app.parse_args(words, print_error=False, exit_on_error=False)
    ours = command.__module__.startswith("roadaware.")  # not so --help and --version
    if ours:
        # Refuse an option that takes several values and is given none
        hints = get_type_hints(command, include_extras=True)
        for name, value in bound.arguments.items():
            if isinstance(value, tuple | list) and not value:
                if MAY_STAND_ALONE in get_args(hints[name]):
                    continue
                known = [
                    option
                    for each in get_args(hints[name])
                    if isinstance(each, Parameter) and each.name
                    for option in each.name
                ]
                option = known[0] if known else f"--{name.strip('_').replace('_', '-')}"
                raise UsageError(f"{option} takes one value or several; it has none")
        _require_text(bound.arguments)
    bound.apply_defaults()
    common: Common = bound.arguments.get("common", USUAL)
    console.configure(quiet=common.quiet, verbosity=common.verbose)
    if not ours:
        command(*bound.args, **bound.kwargs)
        return 0
    with open_stores(command, bound.arguments, words):
        check_paths(command, bound.arguments)
        outcome: Any = command(*bound.args, **bound.kwargs)
        if not isinstance(outcome, Outcome):
            return 0
        common = bound.arguments.get("common", USUAL)  # with paths in the place of addresses
        if common.json is None and outcome.text:
            console.print_result(outcome.text)
        elif str(common.json) in ("-", "/dev/stdout"):
            console.print_result(folders.encode_json(outcome.data), concealed=True)
        elif common.json is not None:
            folders.write_text(common.json, folders.encode_json(outcome.data))
            console.print_result(outcome.text)
        if outcome.look and common.json is None:
            console.print_note(f"to look at it: {outcome.look}")
        if outcome.failed is None:
            return 0
        console.print_error(f"roadaware: {outcome.failed}")
        return 1


def _require_text(given: Mapping[str, Any]) -> None:
    """Refuse words that are no text, such as bytes that are not UTF-8; paths may be what they like.

    Raises:
        UsageError: naming the word.
    """
    for name, value in given.items():
        if name in INPUTS_IN_WORDS:
            continue
        if is_dataclass(value):
            _require_text(vars(value))
            continue
        for word in value if isinstance(value, tuple | list) else (value,):
            if isinstance(word, str) and any("\ud800" <= letter <= "\udfff" for letter in word):
                raise UsageError(f"expected text in UTF-8, found {to_printable(word, 60)!r} for {name}")


def _complain(message: str, code: int, hint: str | None = None) -> int:
    if console.get_verbosity() >= 2:
        console.print_trace(traceback.format_exc())
    console.print_error(f"roadaware: {message}")
    if hint is not None:
        console.print_error(f"  {hint}")
    return code


def _internal(error: BaseException) -> int:
    name = type(error).__name__
    hint = "This is a fault of roadaware, not of your data; run it again with -vv and report what it prints."
    if isinstance(error, MemoryError):
        hint = "There was not enough memory; use fewer resamples or a smaller part of the data."
    if isinstance(error, ImportError):
        hint = "A library could not be loaded: too little memory, or a broken installation (see `pip check`)."
    lines = str(error).splitlines()
    return _complain(f"internal error: {name}: {lines[0] if lines else ''}", INTERNAL, hint=hint)


def _closed_pipe() -> int:
    """Whoever read our output has gone: end quietly."""
    _drop_output()
    return PIPE


def _drop_output() -> None:
    """Point standard output to nowhere, so that the interpreter's last flush does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
