"""`roadaware enforce`: scores of detections corrected so that their labels satisfy logical requirements."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from roadaware.analysis.evaluation import event_inputs
from roadaware.analysis.evaluation.event_inputs import NETWORK_SIZE
from roadaware.cli import console, outputs
from roadaware.cli.options import Outcome, Output, Overwrite, Several
from roadaware.cli.results import Images, ImageSize
from roadaware.config import to_dict
from roadaware.linking.enforcement import EnforcementConfig, Method, enforce_requirements
from roadaware.reports import terminal
from roadaware.reports.tracking_text import format_enforcement
from roadaware.scenes.requirements import open_requirements
from roadaware.scenes.store import save

_DETECTIONS = (
    "The detections: tables as `predict` saves them, a folder of per-frame pickles, or COCO results. Not linked: "
    "tubes are made of what comes out."
)
_REQUIREMENTS = "The requirements, ROAD-R's in either form or your own; two files have to say the same."
_TRUTH = "Annotations that name labels, videos and their sizes, where the detections do not."
_OUT = "Where the tables go."
_THRESHOLD = "A label is predicted where its score is at least this; requirements hold there, and only there."
_METHOD = (
    "`nearest` changes least; `propagation` goes over the labels once, is faster and changes more; `maxsat` is the "
    "solver of python-sat (pip install 'roadaware[logic]'), which finds what `nearest` finds."
)
_BOXES = "Which boxes have to satisfy them: those whose own score reaches the threshold, or all."
_MARGIN = "Scores that change come to lie within so much of the threshold, in their order."


def enforce(
    detections: Annotated[Path, Parameter(help=_DETECTIONS)],
    /,
    *,
    requirements: Annotated[tuple[Path, ...], Parameter(help=_REQUIREMENTS), Several],
    out: Annotated[Path, Output, Parameter(help=_OUT), outputs.TABLES],
    threshold: Annotated[float, Parameter(help=_THRESHOLD)] = 0.5,
    method: Annotated[Method, Parameter(help=_METHOD)] = "nearest",
    boxes: Annotated[Literal["predicted", "all"], Parameter(help=_BOXES)] = "predicted",
    margin: Annotated[float, Parameter(help=_MARGIN)] = 1e-3,
    truth: Annotated[Path | None, Parameter(help=_TRUTH)] = None,
    images: Images = None,
    size: ImageSize = NETWORK_SIZE,
    overwrite: Overwrite = False,
) -> Outcome:
    """Correct the scores of detections so that the labels of each box satisfy logical requirements.

    The requirements of ROAD-R say, for example, that who pushes an object is a pedestrian and that a traffic light is
    not on the pavement. A box that violates one gets the nearest scores that violate none: as little as can be moves
    across the threshold, and everything else stays. `link` makes tubes of the result, `evaluate road` judges it.

    For example:

        roadaware enforce runs/found/predictions --requirements requirements_dimacs.txt -o runs/found/consistent

        roadaware enforce detections-30-08-50 --truth road_trainval_v1.0.json \\
            --requirements requirements_readable.txt --threshold 0.3 -o consistent
    """
    config = EnforcementConfig(threshold, method, boxes, margin)
    size_px = event_inputs.parse_size(size)
    rules = open_requirements(requirements)
    scenes = None if truth is None else event_inputs.open_truth(truth)
    predictions = event_inputs.open_predictions(detections, scenes, size_px, images=images)
    with console.log_step("requirements"):
        found, counts = enforce_requirements(event_inputs.add_dense_scores(predictions.tables), rules, config)
    save(found, out, overwrite=overwrite)
    console.print_note(f"wrote {out}")
    data = {
        **asdict(counts),
        "requirements": len(rules),
        "file": rules.name,
        "config": to_dict(config),
        "dropped": predictions.dropped,
    }
    dropped = [f"{count:,} {terminal.format_cell(what)}" for what, count in predictions.dropped.items()]
    next_one = f"next: roadaware link {terminal.format_cell(out)} --output TUBES"
    return Outcome("\n".join([format_enforcement(counts, config), *dropped, "", next_one]), data)
