"""Files of graphs: safetensors with the steps beside the weights; imports torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save

from roadaware import __version__
from roadaware.errors import DamagedError, InputError
from roadaware.io.files import write_atomically
from roadaware.io.sources import to_printable
from roadaware.models.detector import FACTS
from roadaware.models.graphs.graph import Graph, parse_graph
from roadaware.models.tensor_files import parse_facts, read_about, read_safetensors

FORMAT = "roadaware-graph-1"
_HALF = np.float16


def save_graph(path: Path, graph: Graph, facts: Mapping[str, Any]) -> None:
    """Write a graph as one file; weights that half precision holds exactly take two bytes each.

    Args:
        path: of the file; `.safetensors` by custom.
        graph: the network.
        facts: JSON-ready: `decoder`, `classes`, and `notes` with its advice.

    Raises:
        DiskError: if it cannot be written; what stood there before still stands.
    """
    tensors = {}
    for name, array in graph.weights.items():
        # What is beyond the range of a half becomes infinite there, and is thus not equal.
        with np.errstate(over="ignore"):
            half = array.astype(_HALF)
        exact = np.array_equal(half.astype(np.float32), array)
        tensors[name] = torch.from_numpy(np.array(half if exact else array, order="C"))
    said = {"format": FORMAT, "version": __version__, "graph": graph.as_plain(), **facts}
    write_atomically(path, save(tensors, {FACTS: json.dumps(said)}))


def is_graph_file(path: Path) -> bool:
    """Whether a file says that it holds a graph; False for one that cannot be read.

    Args:
        path: of any file or folder.
    """
    if not path.is_file() or path.suffix != ".safetensors":
        return False
    try:
        return parse_facts(read_about(path), FACTS, str(path)).get("format") == FORMAT
    except InputError:  # whoever opens it says what is wrong
        return False


def open_graph(path: Path) -> tuple[Graph, dict[str, Any]]:
    """The graph in a file, and what the file says of it.

    Args:
        path: of the file.

    Raises:
        InputError: if it cannot be read, or holds something else.
        DamagedError: if it is not whole.
    """
    tensors, about = read_safetensors(path)
    facts = parse_facts(about, FACTS, str(path))
    if facts.get("format") != FORMAT:
        raise InputError(
            f"a file of format {to_printable(repr(facts.get('format')), 60)}, and this version reads {FORMAT}",
            where=str(path),
        )
    if any(not tensor.is_floating_point() for tensor in tensors.values()):
        raise DamagedError("its weights are no floating numbers", where=str(path))
    weights = {name: tensor.float().numpy() for name, tensor in tensors.items()}
    return parse_graph(facts.get("graph"), weights, str(path)), facts
