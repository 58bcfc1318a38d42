"""What is ours beside a library that could take its place, in CPU seconds: `python -m benchmarks.libraries [NAME ...]`.

Names are xml, pickles, recipes, loop, inference and compile; both ways are called in turn in one process. What was
decided, and why, stands in docs/decisions.md.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import resource
import sys
import time
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import psutil
from lxml import etree

from roadaware.errors import InputError
from roadaware.io import pickles
from roadaware.io.xml import Document, Record, decode, scan_records

_ROOT = Path(__file__).resolve().parents[1]
Ways = Mapping[str, Callable[[], object]]
_MEMORY, _SECONDS = 2 << 30, 3
"""What a process may take beyond what it has when it begins to read an attack."""


def _cpu_s() -> float:
    """Of this process and its ended children."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def compare(what: str, ways: Ways, rounds: int = 3, calls: int = 1, unit: str = "") -> None:
    """Call each way in turn, and print the least CPU time that a call of each took."""
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            before = _cpu_s()
            for _ in range(calls):
                way()
            least[name] = min(least[name], (_cpu_s() - before) / calls)
    told = "; ".join(f"{name} {1000 * took:,.4g}" for name, took in least.items())
    print(f"{what}, CPU ms{unit}: {told}", flush=True)


# XML: the scanner of regular records beside parsers that show each element.


def xml() -> None:
    """Every eighth of JAAD's files, to columns of text."""
    sets = list(_load_jaad(every=8))
    size = sum(len(document.text) for _, _, documents in sets for document in documents)
    ways = {
        "ours": lambda: [_scan(*each) for each in sets],
        "lxml, the tree alone": lambda: [_parse(*each) for each in sets],
        "lxml.iterparse": lambda: [_iterate(*each) for each in sets],
        "expat": lambda: [_call_back(*each) for each in sets],
    }
    compare(f"{size / 1e6:.0f} MB of JAAD", ways, rounds=2)


def _load_jaad(every: int) -> Iterator[tuple[Record, str, list[Document]]]:
    from roadaware.datasets import jaad

    kinds = {"annotations": (jaad.BOX, "annotations")}
    kinds |= {f"annotations_{kind}": jaad.SIDES[kind] for kind in ("attributes", "traffic", "vehicle")}
    with jaad.find(Path(os.environ["ROADAWARE_DATA_DIR"]) / "jaad") as source:
        for folder, (record, root) in kinds.items():
            names = source.files(folder, ".xml")[::every]
            yield record, root, [Document(name, name, decode(source.read(name), name)) for name in names]


def _scan(record: Record, root: str, documents: Sequence[Document]) -> list[pl.DataFrame]:
    return [
        scan_records(documents[start : start + 24], record, root=root).rows
        for start in range(0, len(documents), 24)
    ]


def _parse(record: Record, root: str, documents: Sequence[Document]) -> None:
    for document in documents:
        etree.fromstring(document.text.encode(), etree.XMLParser(resolve_entities=False, no_network=True))


def _iterate(record: Record, root: str, documents: Sequence[Document]) -> list[pl.DataFrame]:
    found = []
    for document in documents:
        rows = []
        file = io.BytesIO(document.text.encode())
        for _, element in etree.iterparse(file, tag=record.element, resolve_entities=False, no_network=True):
            row = dict(element.attrib)
            for child in element:
                row[child.get("name")] = child.text or ""
            rows.append(row)
            element.clear()
        found.append(pl.DataFrame(rows, schema=dict.fromkeys(record.names, pl.String)))
    return found


def _call_back(record: Record, root: str, documents: Sequence[Document]) -> list[pl.DataFrame]:
    from xml.parsers import expat  # in `decode` DOCTYPE and entities were refused

    found = []
    for document in documents:
        rows: list[dict[str, str]] = []
        text: list[str] = []
        parser = expat.ParserCreate()

        def start(
            name: str, given: dict[str, str], rows: list[dict[str, str]] = rows, text: list[str] = text
        ) -> None:
            if name == record.element:
                rows.append(given)
            elif name == "attribute":
                text[:] = [given.get("name", "")]

        def end(name: str, rows: list[dict[str, str]] = rows, text: list[str] = text) -> None:
            if name == "attribute" and rows:
                rows[-1][text[0]] = "".join(text[1:])

        parser.StartElementHandler = start
        if record.tags:
            parser.EndElementHandler, parser.CharacterDataHandler = end, text.append
        parser.Parse(document.text, True)
        found.append(pl.DataFrame(rows, schema=dict.fromkeys(record.names, pl.String)))
    return found


# Pickles: Python's own reader with four names, with and without a look at the words before, beside ours.


class _Unpickler(pickle.Unpickler):
    """Python's reader; the only names are stand-ins that check their arguments, as those of ours do."""

    def find_class(self, module: str, name: str) -> Any:
        """A stand-in for one of the four names."""
        if (module, name) not in pickles.NAMES:
            raise pickles.RefusalError(f"the name {module}.{name}")
        return _Called(pickles.NAMES[module, name])


class _Called(pickles.Named):
    __slots__ = ()

    def __call__(self, *arguments: Any) -> Any:
        made = pickles.call(self.name, tuple(map(_as_ours, arguments)))
        if isinstance(made, pickles.Array):
            return _Array()
        return _Type(made.code) if isinstance(made, pickles.Type) else made

    def __setstate__(self, state: Any) -> None:
        raise pickles.RefusalError("an object of a Python class")


class _Type(pickles.Type):
    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        self.build(state)


class _Array(pickles.Array):
    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        self.build(tuple(map(_as_ours, state)))


def _as_ours(value: Any) -> Any:
    """A stand-in as the class of ours, which is asked for exactly."""
    if isinstance(value, _Called):
        return pickles.Named(value.name)
    if not isinstance(value, _Type):
        return value
    made = pickles.Type(value.code)
    made.order = value.order
    return made


def _unpickle(data: bytes, where: str, *, look: bool = False) -> Any:
    if look:
        _look_at_words(data)
    file = io.BytesIO(data)
    value = _Unpickler(file, encoding="latin-1").load()
    if file.tell() != len(data):
        raise pickles.RefusalError("bytes behind its end")
    value = _unpack(value, {}, 0)
    pickles._weigh(value, {}, 0, pickles._FREE_WEIGHT + 64 * len(data))
    return value


def _unpack(value: Any, seen: dict[int, Any], depth: int) -> Any:
    """The arrays for their stand-ins, and a refusal of depth and of what holds itself."""
    if isinstance(value, _Array):
        if value.value is None:
            raise pickles.RefusalError("an array that is used before it is there")
        return value.value
    if isinstance(value, pickles.Named | pickles.Type):
        raise pickles.RefusalError("a name where a value is due")
    if not isinstance(value, list | tuple | dict):
        return value
    if id(value) in seen:
        if seen[id(value)] is None:
            raise pickles.RefusalError("a container within itself")
        return seen[id(value)]
    if depth == 32:
        raise pickles.RefusalError("containers too deep in each other")
    seen[id(value)] = None
    made: Any
    if isinstance(value, dict):
        made = {key: _unpack(each, seen, depth + 1) for key, each in value.items()}
    else:
        made = type(value)(_unpack(each, seen, depth + 1) for each in value)
    seen[id(value)] = made
    return made


def _look_at_words(data: bytes) -> None:
    """Refuse words that make objects, far memos, long numbers and more containers than bytes explain."""
    import pickletools

    made, last, room = 0, -1, (1 << 18) + len(data) // 4
    for word, argument, _ in pickletools.genops(data):
        name = word.name
        if name in _OBJECTS:
            raise pickles.RefusalError(f"the word {name}")
        made += name in _CONTAINERS
        if name == "MEMOIZE":
            last += 1
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            if argument > last + 2:
                raise pickles.RefusalError("a memo that jumps")
            last = max(last, argument)
        elif name in ("INT", "LONG", "LONG1", "LONG4") and abs(argument) >> 127:
            raise pickles.RefusalError("a long number")
        if made > room or last > room:
            raise pickles.RefusalError("more containers or memos than its size explains")


_OBJECTS = {
    "PERSID", "BINPERSID", "EXT1", "EXT2", "EXT4", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "DUP", "NEXT_BUFFER",
    "READONLY_BUFFER", "BYTEARRAY8", "EMPTY_SET", "ADDITEMS", "FROZENSET", "POP", "POP_MARK",
}  # fmt: skip
_CONTAINERS = {
    "EMPTY_LIST", "EMPTY_TUPLE", "EMPTY_DICT", "LIST", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "DICT",
}  # fmt: skip


def read_pickles() -> None:
    """The published file of UCF101-24, then what each reader does with the attacks of the tests."""
    data = (Path(os.environ["ROADAWARE_DATA_DIR"]) / "ucf24" / "pyannot_with_class_names.pkl").read_bytes()
    readers: dict[str, Callable[[bytes, str], Any]] = {
        "ours": pickles.load,
        "pickle.Unpickler": _unpickle,
        "after a look at the words": lambda data, where: _unpickle(data, where, look=True),
    }
    ways = {name: (lambda reader=reader: reader(data, "x")) for name, reader in readers.items()}
    compare(f"a pickle of {len(data) / 1e6:.1f} MB", ways)
    sys.path[:0] = [str(_ROOT / "tests" / "attacks"), str(_ROOT / "tests" / "data")]
    from test_pickle_attacks import ATTACKS

    for name, reader in readers.items():
        ends = {attack: _end(reader, make("true")) for attack, (make, _) in ATTACKS.items()}
        failed = [f"{attack} ({end})" for attack, end in ends.items() if end != "refused"]
        print(f"{name}: {len(ends) - len(failed)} of {len(ends)} attacks refused; {', '.join(failed)}")


def _end(reader: Callable[[bytes, str], Any], data: bytes) -> str:
    """How reading an attack ends, in a process of its own with bounds on memory and time."""
    kinds = ("refused", "read", "out of memory", "another error")
    child = os.fork()
    if not child:
        memory = psutil.Process().memory_info().vms + _MEMORY
        seconds = int(time.process_time()) + _SECONDS
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        try:
            reader(data, "x")
            code = 1
        except MemoryError:
            code = 2
        except (InputError, pickles.RefusalError, pickle.UnpicklingError, EOFError, ValueError):
            code = 0
        except (TypeError, KeyError, IndexError, AttributeError, OverflowError):
            code = 0
        except BaseException:
            code = 3
        os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return kinds[code] if code >= 0 else f"killed by signal {-code}"


# Recipes: our reader of dataclasses beside validators, on the recipes that ship.


def recipes() -> None:
    """Every recipe of a detector that ships, from plain data to the dataclass."""
    from roadaware.training.recipe import Recipe
    from roadaware.training.recipe_files import parse_recipe, read_yaml

    given = [read_yaml(path) for path in sorted((_ROOT / "configs").glob("*.yaml"))]
    for each in given:  # texts that look like numbers, which the validators refuse
        if "precision" in each.get("machine", {}):
            each["machine"]["precision"] = str(each["machine"]["precision"])
    ways: dict[str, Callable[[], object]] = {"ours": lambda: [parse_recipe(each) for each in given]}
    for name, build in (("pydantic", _validate_by_pydantic), ("msgspec", _validate_by_msgspec)):
        before = _cpu_s()
        try:
            parse = build(Recipe)
        except ModuleNotFoundError:
            print(f"{name} is not installed")
            continue
        print(f"{name}: import and build, CPU ms: {1000 * (_cpu_s() - before):.0f}")
        ways[name] = lambda parse=parse: [parse(each) for each in given]
    compare(f"{len(given)} recipes", ways, calls=10)


def _validate_by_pydantic(kind: Any) -> Callable[[object], object]:
    import pydantic

    def configure(kind: Any) -> None:
        kind.__pydantic_config__ = pydantic.ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
        for hint in typing.get_type_hints(kind).values():
            if is_dataclass(hint):
                configure(hint)

    configure(kind)
    adapter = pydantic.TypeAdapter(kind)
    return lambda given: adapter.validate_json(json.dumps(given))


def _validate_by_msgspec(kind: Any) -> Callable[[object], object]:
    import msgspec

    return lambda given: msgspec.convert(given, kind, strict=True)


# Training: the fit of pedestrians' networks beside Lightning's Trainer, and whether that resumes to the same bits.


def loop() -> None:
    """Steps of a small fit by both, and a fit by the Trainer that is ended and goes on."""
    import inspect
    import tempfile

    import torch

    sys.path[:0] = [str(_ROOT / "tests" / name) for name in ("training/pedestrians", "tasks", "data", "")]
    import test_predictor_stops as made

    torch.set_num_threads(1)
    folds = inspect.unwrap(made.folds)()
    one = made.fitter(folds)
    steps, each = one.steps, one.drawn.steps

    def fit() -> None:
        ours = made.fitter(folds)
        ours._judged = lambda state: (0.0, {})
        ours.fit()

    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "at.ckpt")
        train = _build_trainer(lambda: made.fitter(folds))
        compare(f"a fit of {steps} steps", {"ours": fit, "Trainer": lambda: train(steps)})
        whole = train(steps)
        for end in (each, each + 1):
            train(end, save=file)
            again = train(steps, resume=file)
            same = all(torch.equal(value, again[name]) for name, value in whole.items())
            place = "at the end" if end == each else "inside"
            print(f"Trainer, ended {place} of an epoch and resumed: same bits {same}", flush=True)


def _build_trainer(build: Callable[[], Any]) -> Callable[..., dict[str, Any]]:
    """A function that trains by the Trainer to so many steps, and gives the weights."""
    import logging
    import warnings

    import torch
    from lightning.pytorch import LightningModule, Trainer

    from roadaware.models.crossing.predictor import compute_kl_divergence
    from roadaware.training.loop import Average, compute_learning_rate

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Batches(torch.utils.data.IterableDataset[Any]):
        def __init__(self, fitter: Any) -> None:
            self.fitter, self.epoch, self.done = fitter, 0, 0

        def __iter__(self) -> Iterator[Any]:
            epoch, done = self.epoch, self.done
            self.epoch, self.done = epoch + 1, 0
            if not done:
                torch.manual_seed(self.fitter.seed * 1_000_003 + epoch)
            for rows, x in self.fitter.drawn.epoch(epoch, done):
                yield torch.from_numpy(rows), x

    class Module(LightningModule):
        def __init__(self, fitter: Any) -> None:
            super().__init__()
            self.fitter, self.network, self.batches = fitter, fitter.network, Batches(fitter)
            self.average = Average(self.network.state_dict(), fitter.recipe.schedule.ema)
            self.held: dict[str, Any] | None = None

        def configure_optimizers(self) -> Any:
            schedule, steps = self.fitter.recipe.schedule, self.fitter.steps
            rate = torch.optim.lr_scheduler.LambdaLR(
                self.fitter.optimizer,
                lambda step: compute_learning_rate(schedule, step, steps) / schedule.lr,
            )
            return [self.fitter.optimizer], [{"scheduler": rate, "interval": "step"}]

        def training_step(self, batch: Any, index: int) -> Any:
            _, loss = self.fitter._loss(*batch)
            prior = compute_kl_divergence(self.network)
            return loss if prior is None else loss + prior / len(self.fitter.train)

        def on_train_batch_end(self, *given: Any) -> None:
            self.average.follow(self.network.state_dict(), self.trainer.global_step - 1)

        # What the Trainer does not keep: the mean of weights, both generators, the place in the epoch.
        def on_save_checkpoint(self, held: dict[str, Any]) -> None:
            held |= {"average": self.average.state, "step": self.trainer.global_step}
            held |= {"chance": torch.get_rng_state(), "turns": self.fitter.chance.get_state()}

        def on_load_checkpoint(self, held: dict[str, Any]) -> None:
            self.average.load(held["average"])
            self.held = held
            self.batches.epoch, self.batches.done = divmod(held["step"], self.fitter.drawn.steps)

        def on_train_batch_start(self, batch: Any, index: int) -> None:
            if self.held is not None:
                self.fitter.chance.set_state(self.held["turns"])
                if self.held["step"] % self.fitter.drawn.steps:
                    torch.set_rng_state(self.held["chance"])
                self.held = None

    def train(steps: int, *, resume: str | None = None, save: str | None = None) -> dict[str, Any]:
        module = Module(build())
        module.network.train()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trainer = Trainer(
                accelerator="cpu", max_steps=steps, max_epochs=-1, logger=False, enable_progress_bar=False,
                enable_checkpointing=False, enable_model_summary=False,
                gradient_clip_val=module.fitter.recipe.schedule.clip_norm or None,
            )  # fmt: skip
            trainer.fit(
                module, torch.utils.data.DataLoader(module.batches, batch_size=None), ckpt_path=resume
            )
        if save:
            trainer.save_checkpoint(save)
        return dict(module.network.state_dict())

    return train


# Inference on a CPU: ours beside ONNX Runtime and torch.compile, one thread, streams of the compact network.


def inference(*, compiled: bool = False) -> None:
    """A new frame of 256 x 320 in a stream, boxes chosen from what the network gives included."""
    import torch

    from benchmarks.retinanet import _network, clip, passing
    from roadaware.models import exporting
    from roadaware.models.retinanet3d.config import compact
    from roadaware.models.retinanet3d.detector import DetectRule, LazyNetwork, select_detections

    torch.set_num_threads(1)
    x, network, rule = clip((256, 320)), _network(compact()), DetectRule()
    passing(network, 0.01, x)
    lazy, frame = LazyNetwork(network, streaming=True), x[:, :, :1].contiguous()
    with torch.no_grad():
        stream = exporting._Stream(network, frame).eval()
    step = (_compile_stream if compiled else _open_onnx_stream)(stream, frame)

    def run() -> object:
        with torch.no_grad():
            boxes, scores = step()
            return select_detections(scores[..., 0], lambda frames, places: boxes[frames, places], rule)

    before = _cpu_s()
    run()
    print(f"the first frame, CPU s: {_cpu_s() - before:.1f}")
    ways = {
        "ours": lambda: lazy.detect(frame, rule),
        "torch.compile" if compiled else "ONNX Runtime": run,
    }
    compare("a frame of 256 x 320", ways, calls=16, rounds=4)


def _open_onnx_stream(stream: Any, frame: Any) -> Callable[[], tuple[Any, Any]]:
    """A step of the exported stream, which keeps its memories; gives boxes and scores."""
    import torch

    from roadaware.models import exporting
    from roadaware.models.offline import import_onnxruntime

    zeros = stream.zeros()
    with torch.no_grad():
        proto, names = exporting._convert_to_onnx(stream, frame, zeros)
    runtime = import_onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    data = proto.SerializeToString()
    session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    held = {name: tensor.numpy() for name, tensor in zeros.items()}

    def step() -> tuple[Any, Any]:
        given = dict(zip(names, session.run(names, {"pictures": frame.numpy(), **held}), strict=True))
        held.update({name: given[f"next_{name}"] for name in held})
        return torch.from_numpy(given["boxes"][0]), torch.from_numpy(given["scores"][0])

    return step


def _compile_stream(stream: Any, frame: Any) -> Callable[[], tuple[Any, Any]]:
    """The same of the compiled network."""
    import torch

    network, memories = torch.compile(stream, dynamic=False), list(stream.zeros().values())

    def step() -> tuple[Any, Any]:
        given = network(frame, *memories)
        memories[:] = [tensor.clone() for tensor in given[-len(memories) :]]
        return given[0][0], given[1][0]

    return step


BENCHMARKS = {
    "xml": xml,
    "pickles": read_pickles,
    "recipes": recipes,
    "loop": loop,
    "inference": inference,
    "compile": partial(inference, compiled=True),
}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[chosen]()
