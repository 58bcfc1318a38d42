"""`roadaware export`: a detector as an ONNX file, checked against PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from roadaware.analysis.evaluation.event_inputs import parse_size
from roadaware.cli import console, outputs
from roadaware.cli.options import Outcome, Output, Overwrite, Switch
from roadaware.errors import UsageError
from roadaware.io.folders import make_folder
from roadaware.reports.prediction_text import format_export

if TYPE_CHECKING:
    pass

_WEIGHTS = "The detector, as `train` writes it (model.safetensors)."
_CLIP = "Frames of a clip. [default: 8, of a network with no stream form]"
_STREAM = "Take one frame after another, the memories as inputs and outputs; causal networks where they can."
_SIZE = "Width and height of the images that will be fitted to the network."


def export(
    weights: Annotated[Path, Parameter(help=_WEIGHTS)],
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
        network, facts = open_network(weights)
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
