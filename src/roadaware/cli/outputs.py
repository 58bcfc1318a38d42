"""What options write, said beside them: every output is checked before a command does anything."""

from __future__ import annotations

import importlib
import itertools
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints
from urllib.parse import unquote

from roadaware.addresses import PORTS, STORES
from roadaware.errors import DiskError, InputError, RoadawareError, UsageError
from roadaware.io.files import check_room, describe_unreachable, is_stream
from roadaware.io.folders import (
    check_result,
    is_damaging,
    is_vacant,
    list_other_names,
    list_result_files,
    read_marker,
)
from roadaware.io.storage import SCHEMES, Publication, fetch_path, is_store_url

Rule = Callable[[Path, bool], None]
"""Raises a UsageError where something in a folder may not be replaced, or only by `--overwrite`."""


@dataclass(frozen=True)
class Output:
    """Marks an option as a path that its command writes.

    Args:
        folder: whether it is a folder; else a file, or a device or pipe.
        rule: of a folder that holds something already; None where a command only adds to it.
        replaced: whether a file that stands there is replaced without `--overwrite`.
        stream: whether a device, a pipe or an open descriptor does as well as a file.
    """

    folder: bool = False
    rule: Rule | None = None
    replaced: bool = True
    stream: bool = False

    def check(self, path: Path, *, overwrite: bool = False) -> None:
        """Fail early where the output cannot be written.

        Args:
            path: as it was given.
            overwrite: whether `--overwrite` was.

        Raises:
            UsageError: if a file stands where a folder is due or the other way round, or if something stands
                there that may not be replaced.
            DiskError: if the disk does not take it.
        """
        if is_stream(path):
            if self.stream:
                return
            wanted = "a folder to write into" if self.folder else "a file to write"
            raise UsageError(f"{path} is a device, a pipe or an open descriptor; name {wanted}")
        if self.folder and path.exists() and not path.is_dir():
            raise UsageError(f"{path} is a file; name a folder to write into")
        if not self.folder and path.is_dir():
            raise UsageError(f"{path} is a folder; name the file to write in it")
        if not self.folder and path.exists() and not (self.replaced or overwrite):
            raise UsageError(f"{path} is there already; say --overwrite to replace it, or name another file")
        check_room(path, is_folder=self.folder)
        if self.rule is not None and path.is_dir() and not is_vacant(path):
            self.rule(path, overwrite)


def _record(name: str, form: str) -> Rule:
    """A folder of work that goes on: it holds a file that says so, whose settings are compared later."""

    def rule(folder: Path, overwrite: bool) -> None:
        if read_marker(folder / name, form) is None:
            raise UsageError(
                f"{folder} holds other things ({list_other_names(folder)}); name a new or empty folder"
            )

    return rule


def mark_study(form: str) -> Output:
    """The folder of a study, which goes on; `form` is what its study.json says it is."""
    return Output(folder=True, rule=_record("study.json", form))


def _names(what: str, names: Iterable[str], *, whole: str = "", again: bool = False) -> Rule:
    """A folder that holds nothing but what these names stand for.

    Args:
        what: it holds then, in messages.
        names: of its files and folders.
        whole: the one without which it is only begun, and goes on; any of them where empty.
        again: whether it is replaced without `--overwrite`.
    """
    ours = frozenset(names)

    def rule(folder: Path, overwrite: bool) -> None:
        if others := list_other_names(folder, ours):
            raise UsageError(f"{folder} holds other things ({others}); name a new or empty folder")
        if not (again or overwrite) and (not whole or (folder / whole).exists()):
            raise UsageError(f"{folder} holds {what}; say --overwrite to replace it, or name another folder")

    return rule


def _tables(folder: Path, overwrite: bool) -> None:
    store = importlib.import_module("roadaware.scenes.store")  # which takes a while, and only here
    store.check_target(folder, overwrite=overwrite)


def _other_results(folder: Path, overwrite: bool) -> None:
    """A folder that files are added to: none of theirs may be those of another command."""
    if (
        list_result_files(folder) is not None
        or read_marker(folder / "meta.json", "roadaware-tables") is not None
    ):
        raise UsageError(f"{folder} holds a result of another command; name another folder")


@dataclass(frozen=True)
class Either(Output):
    """A new file, or a new or empty folder: which of them hangs on another option."""

    def check(self, path: Path, *, overwrite: bool = False) -> None:
        """Fail early where neither can be written; see `Output.check`."""
        if not path.is_dir():
            super().check(path, overwrite=overwrite)
            return
        check_room(path, is_folder=True)
        if not is_vacant(path) and not overwrite:
            raise UsageError(f"{path} holds other things; name a new or empty folder, or say --overwrite")


FILE = Output(stream=True)
NEW_FILE = Output(replaced=False)
CONVERTED = Either(replaced=False)
MODEL = Output()
FOLDER = Output(folder=True, rule=_other_results)
RESULT = Output(folder=True, rule=lambda folder, overwrite: check_result(folder, overwrite=overwrite))
TABLES = Output(folder=True, rule=_tables)
DEMO = Output(folder=True, rule=_record("demo.json", "roadaware-demo"))
SIMULATION = Output(folder=True, rule=_record("simulation.json", "roadaware-simulation"))
PROPOSALS = Output(folder=True, rule=_record("proposals.json", "roadaware-proposals"))
ABLATION = Output(folder=True, rule=_record("ablation.json", "roadaware-ablation"))
STUDY = Output(folder=True)
"""Of one of several studies, whose own rule, `mark_study`, is asked once it is known which."""
MASKS = Output(folder=True, rule=_record("masks.json", "roadaware-masks"))
POSES = Output(folder=True, rule=_record("poses.json", "roadaware-poses"))
PRELABELS = Output(folder=True, rule=_record("prelabels.json", "roadaware-prelabels"))
WATCHES = Output(folder=True, rule=_record("watches.json", "roadaware-watches"))
PREDICTIONS = Output(folder=True, rule=_record("run.json", "roadaware-predictions"))
WATCH = Output(
    folder=True,
    rule=_names(
        "an earlier watch",
        (
            "watch.json",
            "events.jsonl",
            "predictions",
            "predictions.parts",
            "timing.parquet",
            "crossing.parquet",
            "crossing.parts",
            "video.mp4",
            "crowd",
            "timing.json",
            "summary.json",
            "report.html",
            "heard.parquet",
            "standing.parquet",
            "speed.parquet",
            "obstacles.parquet",
        ),
        whole="summary.json",  # which is written when all else is there
    ),
)
TASKS = Output(
    folder=True,
    rule=_names(
        "an earlier export",
        ("sent", "pictures", "tasks.json", "labelling.xml", "tasks.coco.json", "tasks.parquet"),
        whole="sent/meta.json",  # which is written last
    ),
)
ROUNDS = Output(
    folder=True,
    rule=_names("an example", ("original", "round1", "round2", "words.txt", "planted.json"), again=True),
)
STREETS = Output(
    folder=True,
    rule=_names(
        "an example", ("pictures", "scenes", "proposals", "corrected.json", "planted.json"), again=True
    ),
)

# The paths of a command before it runs: inputs can be looked up, outputs be written, and none is another.

_RUNS = ("a", "b", "folders")
"""Inputs that are run folders, or folders of such: they own no more than what they list."""
_CLOSED = ("truth", "detections", "predictions", "original", "round1", "round2", "dataset", "drives", "paths")
"""Inputs into whose folders nothing is written, not even something new."""
INPUTS_IN_WORDS = ("source", "data", "semantics", "detections", "domains")
"""Options that name inputs in words: an address or a path, NAME=PATH, or several with commas between."""
_ONE_PATH = ("source",)
"""Those of them that are one path, whatever letters are in it."""
_SPELT = {"folder": "--output", "page": "--output", "out": "--output"}
"""Outputs whose option is not called as their parameter is."""


@dataclass(frozen=True)
class _Given:
    """A path among the arguments of a command: what it is called, and its mark where it is an output."""

    name: str
    path: Path
    output: Output | None = None


def check_paths(command: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Fail before anything is read or written where an output cannot be made, or would damage an input.

    Args:
        command: whose parameters, and fields of groups of options, say by an `Output` what they write.
        arguments: of the command, by the names of its parameters. Every path that is no output is an input.

    Raises:
        UsageError: if an output is or lies in an input or another output, or something stands in its place.
        InputError: if an input has a name that cannot be looked up.
        DiskError: if an output cannot be written.
    """
    found = list(_paths(get_type_hints(command, include_extras=True), arguments))
    overwrite = any(_is_overwrite(value) for value in (arguments, *arguments.values()))
    written = [
        (each, mark)
        for each in found
        if (mark := each.output) is not None
        and not (mark.stream and (str(each.path) == "-" or is_stream(each.path)))
    ]
    read = [each for each in found if each.output is None]
    for each in read:
        if reason := describe_unreachable(each.path):
            raise InputError(
                f"expected a readable path: {reason}", where=str(each.path), hint="Check the path."
            )
    for each, _ in written:
        if reason := describe_unreachable(each.path):
            raise DiskError(f"{each.path} cannot be written: {reason}; choose another path")
    # Every output against every input: what is written must not be what is read.
    for (output, _), given in itertools.product(written, read):
        real, source = (Path(os.path.realpath(path)) for path in (output.path, given.path))
        if is_damaging(real, source, whole=given.name not in _RUNS):
            reason = f"would be written over the input {given.path}"
        elif given.name in _CLOSED and real.is_relative_to(source):
            reason = f"lies inside the input {given.path}"
        elif overwrite and real.is_dir() and source.is_relative_to(real):
            reason = f"would be replaced and holds the input {given.path}"
        else:
            continue
        raise UsageError(f"{output.path} {reason}; name another place for it")
    for (one, _), (other, _) in itertools.permutations(written, 2):
        if Path(os.path.realpath(one.path)).is_relative_to(os.path.realpath(other.path)):
            raise UsageError(
                f"{one.name} {one.path} is, or lies in, {other.name} {other.path}; name a place outside it"
            )
    for each, mark in written:
        mark.check(each.path, overwrite=overwrite)


@contextmanager
def open_stores(
    command: Callable[..., Any], arguments: MutableMapping[str, Any], words: Sequence[str]
) -> Iterator[None]:
    """Put paths in the place of addresses of stores among arguments; what is written to them is committed at the end.

    Args:
        command: as of `check_paths`.
        arguments: of the command, by the names of its parameters; changed.
        words: of the command line, since a path has forgotten how its address was written.

    Raises:
        UsageError: if an output cannot be written to, or would damage an input, or an address is of no store.
        InputError: if an input is not there.
        DiskError: if the store does not take an output.
    """
    given = {part for word in words for part in (word, word.partition("=")[2])}
    given |= {url for word in words for url in _IN_WORDS.findall(word)}
    urls = {str(Path(url)): url for url in given if is_store_url(url)}
    others = {str(Path(url)): url for url in given if _OTHER.match(url) and not is_store_url(url)}
    if not urls and not others:
        yield
        return
    if arguments.get("watches", "") is None and (url := urls.get(str(arguments.get("out")))):
        # By default they lie beside the result: in its store, too, where another machine can go on from them.
        url = f"{url.rstrip('/')}-watches"
        arguments["watches"] = Path(url)
        urls[str(Path(url))] = url
    hints = get_type_hints(command, include_extras=True)
    for each in _paths(hints, arguments):
        # As a path it would be a folder of that name here; whatever it holds is not said.
        if str(each.path) in others:
            scheme = others[str(each.path)].partition("://")[0]
            known = ", ".join(f"{name}://" for name in SCHEMES)
            raise UsageError(f"{each.name} begins with {scheme}://, which is none of the stores: {known}")
    found = [(each, urls[str(each.path)]) for each in _paths(hints, arguments) if str(each.path) in urls]
    overwrite = any(_is_overwrite(value) for value in (arguments, *arguments.values()))
    for (output, target), (other, source) in itertools.permutations(found, 2):
        to, of = _normalize_address(target), _normalize_address(source)
        inside = f"{to}/".startswith(f"{of}/")
        if output.output is None or "://" not in to + of:  # of the disk `check_paths` says it
            continue
        if other.output is not None and inside:
            reason = f"is, or lies in, {other.name} {source}"
        elif other.output is None and (to == of or (overwrite and of.startswith(f"{to}/"))):
            reason = f"is, or holds, the input {source}"
        elif other.output is None and inside and other.name in _CLOSED:
            reason = f"lies inside the input {source}"
        else:
            continue
        raise UsageError(f"{output.name} {target} {reason}; name another place for it")
    opened: dict[str, Path] = {}
    made: list[Publication] = []
    try:
        for each, url in found:
            if each.output is not None and url not in opened and not url.lower().startswith("file:"):
                made.append(Publication(url, folder=each.output.folder))
                opened[url] = made[-1].path
        opened |= {url: fetch_path(url) for _, url in found if url not in opened}
        for name, value in list(arguments.items()):
            # Where the name of a dataset is left out, its address stands in its place: there http is no camera.
            whole = name == "dataset" and isinstance(value, str) and is_store_url(value)
            arguments[name] = str(fetch_path(value)) if whole else _enter_paths(value, urls, opened)
        yield
    finally:
        failure = sys.exception()
        for publication in made:
            try:
                publication.close()
            except RoadawareError as error:
                if failure is not None:
                    logging.getLogger("roadaware").error("%s", error)
                failure = failure or error
        if failure is not None and sys.exception() is None:
            raise failure


_OTHER = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,15}://")
_IN_WORDS = re.compile(rf"(?<![\w+.-])(?:{'|'.join(STORES)})://[^,\s]+")
"""An address within an option that names inputs in words; of http it would be a camera."""


def _normalize_address(url: str) -> str:
    """The same text for every spelling of an address; the real path of one of this machine's files.

    Of what lies in an archive it is the address of the archive.

    >>> [_normalize_address(url) for url in ("S3://Bucket/a/../b//c/", "zip://x::http://HOST:80/a%20b.zip?key=1")]
    ['s3://bucket/b/c', 'http://host/a b.zip']
    """
    scheme, _, rest = url.rpartition("::")[2].partition("://")
    scheme = scheme.lower()
    if scheme == "file":
        return os.path.realpath(unquote(f"/{rest.partition('/')[2]}"))
    plain = unquote(rest.partition("?")[0] if scheme in PORTS else rest)
    host, _, path = plain.lstrip("/").partition("/")
    host = host.lower().removesuffix(f":{PORTS.get(scheme, '')}")
    return f"{scheme}://{host}{os.path.normpath(f'/{path}')}".rstrip("/")


def _enter_paths(value: Any, urls: Mapping[str, str], opened: MutableMapping[str, Path]) -> Any:
    """A value of an argument with paths in the place of addresses."""
    if isinstance(value, Path):
        return opened.get(urls.get(str(value), ""), value)
    if isinstance(value, str):
        return _IN_WORDS.sub(lambda found: str(opened.get(found[0]) or fetch_path(found[0])), value)
    if isinstance(value, tuple | list):
        return type(value)(_enter_paths(each, urls, opened) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        inner = {name: _enter_paths(each, urls, opened) for name, each in vars(value).items()}
        return replace(value, **inner) if inner != vars(value) else value
    return value


def _is_overwrite(value: Any) -> bool:
    return bool(value.get("overwrite") if isinstance(value, Mapping) else getattr(value, "overwrite", False))


def _paths(hints: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterator[_Given]:
    """The paths among arguments, those in groups of options too."""
    for name, value in arguments.items():
        if is_dataclass(value) and not isinstance(value, type):
            yield from _paths(get_type_hints(type(value), include_extras=True), vars(value))
            continue
        mark = _mark(hints.get(name))
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, Path):
                yield _Given(name if mark is None else _SPELT.get(name, f"--{name}"), item, mark)
            elif isinstance(item, str) and name in INPUTS_IN_WORDS and "://" in item:
                yield from (_Given(name, Path(url)) for url in _IN_WORDS.findall(item))
            elif isinstance(item, str) and name in INPUTS_IN_WORDS:
                for part in item.split(","):
                    if place := part.partition("=")[2] or part:
                        yield _Given(name, Path(place))
                if name in _ONE_PATH:
                    yield _Given(name, Path(item))


def _mark(hint: Any) -> Output | None:
    """What an annotation says of an output."""
    if get_origin(hint) is Annotated:
        for mark in hint.__metadata__:
            if isinstance(mark, Output):
                return mark
    return next((mark for each in get_args(hint) if (mark := _mark(each)) is not None), None)
