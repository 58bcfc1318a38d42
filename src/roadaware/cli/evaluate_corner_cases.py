"""`roadaware evaluate corner-cases`: what detectors find of the objects that nobody taught them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.cli import bars
from roadaware.cli.corner_inputs import Classes, Routing, opened
from roadaware.cli.evaluate_scenes import Judging, scene_run
from roadaware.cli.options import USUAL, Common, Draws, Outcome, Seed, Several, Switch
from roadaware.cli.scene_output import NOWHERE, Kept, told
from roadaware.cli.scene_tasks import CORNER_CASES, config_named, with_fields

if TYPE_CHECKING:
    from roadaware.scenes.tables import Scenes

_TRUTH = "The annotations: a COCO file, tables that `read -o` saved, or made-up scenes."
_CORNER = "COCO annotations of the corner cases, where they are in a file of their own (CODA 2022)."
_PREDICTIONS = "What is claimed: COCO results (.json), or Predictions that were saved."
_TRAINED_ON = (
    "What the detector learnt on, which tells what its classes answer: soda10m, bdd100k, waymo, coda (the "
    "classes of the truth), or a csv with id, label, common and novel."
)
_AGNOSTIC = "The claims are proposals: leave their classes aside."
_CATEGORIES = "A COCO file whose categories tell what the numbers in the results stand for."
_CLASSES = (
    "Which classes are common: base (buses are novel) or 2022 (buses are common); told from the truth "
    "unless given."
)
_CONFIG = "How it is judged: default, reference, coda2022 or coco; see above."
_SET = "FIELD=VALUE: change single fields of the config, such as precision=always."
_BY = "Also by slice: period, weather, domain, density, or another column of the pictures."
_BARS = "METRIC=VALUE, as fractions: exit with 1 if a metric is lower, or undefined."
_STRICT = "Exit with 1 if annotations or claims were refused, or something is odd about them."

Truth = Annotated[Path, Parameter(help=_TRUTH)]
Predicted = Annotated[Path, Parameter(help=_PREDICTIONS)]


@Parameter(name="*")
@dataclass(frozen=True)
class Claimed:
    """What the claims' classes mean."""

    trained_on: Annotated[str | None, Parameter(help=_TRAINED_ON)] = None
    agnostic: Annotated[bool, Parameter(help=_AGNOSTIC), Switch] = False
    categories: Annotated[Path | None, Parameter(help=_CATEGORIES)] = None
    classes: Annotated[Classes | None, Parameter(help=_CLASSES)] = None


@Parameter(name="*")
@dataclass(frozen=True)
class CornerJudging:
    """How corner cases are judged."""

    config: Annotated[str, Parameter(help=_CONFIG)] = "default"
    fields: Annotated[tuple[str, ...], Parameter(name="--set", help=_SET), Several] = ()
    by: Annotated[tuple[str, ...], Parameter(help=_BY), Several] = ()
    draws: Draws = 0
    seed: Seed = 0
    fail_under: Annotated[tuple[str, ...], Parameter(help=_BARS), Several] = ()
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False


ANYTHING = Claimed()
AS_USUAL = CornerJudging()


def corner_cases(
    *,
    truth: Truth,
    corner: Annotated[Path | None, Parameter(help=_CORNER)] = None,
    predictions: Predicted,
    claimed: Claimed = ANYTHING,
    judging: CornerJudging = AS_USUAL,
    kept: Kept = NOWHERE,
    common: Common = USUAL,
) -> Outcome:
    """Score detectors on corner cases, as on CODA: average recall of corner, common and novel objects.

    Needs COCO annotations and COCO results. --trained-on says what the detector's classes answer, --agnostic
    that it has none, as a region proposal network. --config is `default`, `reference` (crowds alone are
    ignored, as pycocotools does), `coda2022` (the four numbers of the challenge) or `coco` (all classes, AP
    too). What the whole picture and random boxes would score stands beside every number.

    For example:

        roadaware evaluate corner-cases --truth corner_case.json --predictions results.json \\
            --trained-on soda10m --draws 1000 --by weather domain -o runs/mine

        roadaware evaluate corner-cases --truth instance_val_common.json \\
            --corner instance_val_agnostic_corner.json --predictions results.json \\
            --trained-on coda --config coda2022 --json result.json
    """
    from roadaware.cli.corner_text import corner_text

    lowest = bars.parsed(judging.fail_under, bars.FRACTIONS)
    config = with_fields(CORNER_CASES, config_named(CORNER_CASES, judging.config), judging.fields)
    routing = Routing(
        claimed.trained_on,
        claimed.agnostic,
        claimed.categories,
        claimed.classes or ("2022" if config.total else None),
        merged=not config.total,
        risk=config.risk == "blocking",
    )
    routing.check()
    given, version = opened(truth, corner, predictions, routing)
    how = Judging(
        config=judging.config, fields=judging.fields, by=judging.by, draws=judging.draws, seed=judging.seed
    )
    run = scene_run(CORNER_CASES, given, config, how, predictions, details=False)
    run = replace(run, facts={**run.facts, **_beside(given.scenes, routing, version)})
    return told(run, kept, lowest, strict=judging.strict, text=corner_text, odd=given.notes)


def _beside(scenes: Scenes, routing: Routing, version: str) -> dict[str, Any]:
    """How claims were routed, and the printed rows that may stand beside, JSON-ready."""
    from roadaware.protocols.coda import TRAINING_SETS
    from roadaware.protocols.printed_coda import beside

    known = routing.trained_on if routing.trained_on in TRAINING_SETS else None
    domains = set(scenes.videos["domain"]) if "domain" in scenes.videos.columns else {None}
    told = "proposals without classes" if routing.agnostic else f"classes of {routing.trained_on}"
    common = f"{version}, {'vehicles merged' if routing.merged else 'each vehicle a class of its own'}"
    return {
        "routing": {"claims are": told, "common classes as in": common},
        "printed": beside(known, classes=not routing.agnostic, domains=domains) if routing.merged else [],
    }
