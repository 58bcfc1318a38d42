"""`roadaware models`: trained models of others, fetched, looked at, removed; `export` writes a detector as ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from roadaware.analysis.evaluation.event_inputs import parse_size
from roadaware.cli import console, outputs
from roadaware.cli.options import Outcome, Output, Overwrite, Switch, add_commands, create_app
from roadaware.errors import UsageError
from roadaware.io.folders import make_folder
from roadaware.models.catalogue.entries import (
    BUNDLED,
    describe_entry,
    find_bundled_path,
    find_entry,
    read_catalogue,
    remove_model,
    resolve_weights,
)
from roadaware.reports import terminal
from roadaware.reports.prediction_text import format_export

models = create_app(
    "models",
    """
    List, fetch, show and remove trained models of others, in the cache folder.

    Their names stand wherever a command takes weights. Nothing of them is part of roadaware, and each has
    a licence of its own.

    For example:

        roadaware models list

        roadaware models get street-small

        roadaware watch drive.mp4 --weights street-small
    """,
)
_NAME = "As `models list` shows it."
_FROM = "What was fetched elsewhere: the archive of the package, the folder of the hub, or the file."


def list_models() -> Outcome:
    """List the bundled detectors and the models of the catalogue, what each is for, and which are installed.

    For example:

        roadaware models list
    """
    found = [describe_entry(entry) for entry in read_catalogue().values()]
    bundled = [
        {"name": name, "about": about, "size_mb": path.stat().st_size / 1e6, "path": str(path)}
        for name, about in BUNDLED.items()
        if (path := find_bundled_path(name))
    ]
    rows = [(each["name"], "watch", "bundled", each["about"], f"{each['size_mb']:,.0f}") for each in bundled]
    rows += [
        (
            each["name"],
            each["task"],
            "yes" if each["installed"] else "",
            each["about"],
            f"{each['size_mb']:,.0f}",
        )
        for each in found
    ]
    table = terminal.format_table(["name", "for", "installed", "what", "MB"], rows, left=4)
    lines = [table, "", "`roadaware models show NAME` says licence, source and scores"]
    return Outcome("\n".join(lines), {"models": found, "bundled": bundled})


def get(
    name: Annotated[str, Parameter(help=_NAME)],
    /,
    *,
    given: Annotated[Path | None, Parameter(name="--from", help=_FROM)] = None,
    overwrite: Overwrite = False,
) -> Outcome:
    """Fetch a model into the cache folder, check it and make it ready; it is there whole or not at all.

    Packages come by npm, models of the hub by huggingface_hub, both as they are configured. After a break the
    same command goes on. No code of a model is run, and no pickle is opened.

    For example:

        roadaware models get street-small

        roadaware models get street-small --from vladmandic-human-3.3.6.tgz
    """
    entry = find_entry(name)
    from roadaware.models.catalogue.get import get_model  # with numpy, which a list need not wait for

    folder = get_model(entry, given, overwrite=overwrite, tell=console.print_note)
    data = {**describe_entry(entry), "folder": str(folder)}
    return Outcome(f"{name}: {terminal.format_cell(str(folder))}\n  licence: {entry.licence}", data)


def show(name: Annotated[str, Parameter(help=_NAME)], /) -> Outcome:
    """Print all that is known of a model: classes, licence, source, digest, scores; of a bundled one its card.

    For example:

        roadaware models show street-small
    """
    path = find_bundled_path(name)
    if path is not None:
        card = path.with_suffix(".md").read_text(encoding="utf-8")
        return Outcome(card, {"name": name, "path": str(path), "card": card})
    facts = describe_entry(find_entry(name))
    rows = [
        (field.replace("_", " "), _cell(value))
        for field, value in facts.items()
        if value not in ("", None, 0)
    ]
    return Outcome(terminal.format_table(["what", "found"], rows, left=2), facts)


def remove(name: Annotated[str, Parameter(help=_NAME)], /) -> Outcome:
    """Remove an installed model from the cache folder.

    For example:

        roadaware models remove street-small
    """
    size = remove_model(name)
    text = f"removed {name}: {terminal.format_bytes(size)}" if size else f"{name} was not installed"
    return Outcome(text, {"name": name, "bytes": size})


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_cell(each)}" for name, each in value.items() if each not in ("", None))
    return terminal.format_cell(str(value))


add_commands(models, (list_models, get, show, remove), list_models="list")


# `roadaware export`: a detector as an ONNX file, checked against PyTorch.

_DETECTOR = "The detector, as `train` writes it (model.safetensors), or the name of a bundled one."
_CLIP = "Frames of a clip. [default: 8, of a network with no stream form]"
_STREAM = "Take one frame after another, the memories as inputs and outputs; causal networks where they can."
_SIZE = "Width and height of the images that will be fitted to the network."


def export(
    weights: Annotated[Path, Parameter(help=_DETECTOR)],
    /,
    *,
    out: Annotated[Path, Output, Parameter(help="The file, such as model.onnx."), outputs.NEW_FILE],
    clip: Annotated[int | None, Parameter(help=_CLIP)] = None,
    stream: Annotated[bool, Parameter(help=_STREAM), Switch] = False,
    size: Annotated[str, Parameter(help=_SIZE)] = "1280x960",
    overwrite: Overwrite = False,
) -> Outcome:
    """Write a detector as ONNX, for runtimes without PyTorch; labels and normalisation stand in the file.

    The file is run beside PyTorch before it is written, and refused where the two differ.

    For example:

        roadaware export model.safetensors --output model.onnx --stream --size 320x240

        roadaware export model.safetensors --output model.onnx --clip 8
    """
    if clip is not None and (stream or not 1 <= clip <= 1024):
        raise UsageError("give --stream, or --clip with a number of frames from 1 to 1024, not both")
    picture_px = parse_size(size)
    from roadaware.models import exporting
    from roadaware.models.weights import open_network

    with console.log_step("opening the detector"):
        network, facts = open_network(resolve_weights(weights))
    why = exporting.find_stream_obstacle(network)
    as_stream = stream or (clip is None and why is None)
    make_folder(out.absolute().parent)
    with console.log_step("exporting"):
        done = exporting.export(
            network,
            facts,
            out,
            form="stream" if as_stream else "clip",
            frames=clip or 8,
            picture_px=picture_px,
        )
    data = {
        "file": str(out),
        "form": done.form,
        "inputs": {name: list(shape) for name, shape in done.inputs.items()},
        "outputs": {name: list(shape) for name, shape in done.outputs.items()},
        "difference": done.difference,
        "bytes": done.n_bytes,
    }
    return Outcome(format_export(done, out, why if clip is None else None), data)
