"""`roadaware evaluate actions`, `relations`, `grounding` and `sound`: the four tasks on scenes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from roadaware.cli import bars, console, scene_inputs, scene_runs
from roadaware.cli.options import USUAL, Common, Draws, Outcome, Seed, Several, Switch
from roadaware.cli.reader_options import OPTION
from roadaware.cli.scene_categories import with_categories
from roadaware.cli.scene_inputs import Reading
from roadaware.cli.scene_output import NOWHERE, Kept, told
from roadaware.cli.scene_tasks import TASKS, SceneTask, config_named, evaluated, with_fields

if TYPE_CHECKING:
    from roadaware.cli.scene_inputs import Given
    from roadaware.cli.scene_runs import SceneRun

_TRUTH = "The annotations: a native file or folder, or tables that `read -o` saved."
_PREDICTIONS = "What is claimed: a native file or folder, or Predictions that were saved."
_CONFIG = "How it is judged: `default`, as we recommend, or as a published evaluator does; see above."
_READER = "Whose annotations they are; found from what is in them unless told."
_SET = "FIELD=VALUE: change single fields of the config, such as setting=predcls."
_BY = "Also by slice: category, density, ..., as the page of the task lists them."
_CATEGORIES = "What happens in each video, to slice by: csv with video and category."
_BARS = "METRIC=VALUE, as fractions: exit with 1 if a metric is lower, or undefined."
_STRICT = "Exit with 1 if truth or claims were refused, or claims are about what the truth lacks."
_LABELS = "The list of labels that numbers in the csv files stand for (.pbtxt, .txt or .csv)."
_EXCLUDE = "The timestamps that are not judged: csv with video and time."

Truth = Annotated[Path, Parameter(help=_TRUTH)]
Predicted = Annotated[Path, Parameter(help=_PREDICTIONS)]


@Parameter(name="*")
@dataclass(frozen=True)
class Judging:
    """How a task on scenes is judged."""

    config: Annotated[str, Parameter(help=_CONFIG)] = "default"
    fields: Annotated[tuple[str, ...], Parameter(name="--set", help=_SET), Several] = ()
    reader: Annotated[str | None, Parameter(help=_READER)] = None
    option: Annotated[tuple[str, ...], Parameter(help=OPTION), Several] = ()
    by: Annotated[tuple[str, ...], Parameter(help=_BY), Several] = ()
    categories: Annotated[Path | None, Parameter(help=_CATEGORIES)] = None
    draws: Draws = 0
    seed: Seed = 0
    fail_under: Annotated[tuple[str, ...], Parameter(help=_BARS), Several] = ()
    strict: Annotated[bool, Parameter(help=_STRICT), Switch] = False


AS_USUAL = Judging()


def actions(
    *,
    truth: Truth,
    predictions: Predicted,
    labels: Annotated[Path | None, Parameter(help=_LABELS)] = None,
    exclude: Annotated[Path | None, Parameter(help=_EXCLUDE)] = None,
    judging: Judging = AS_USUAL,
    kept: Kept = NOWHERE,
    common: Common = USUAL,
) -> Outcome:
    """Score who does what: frame-mAP of actions, as on AVA and Chaotic World.

    Needs the annotations (AVA csv, or Chaotic World's with a header) and claims with a score in the last
    column. --config is `default`, `ava-official` (the code of the ActivityNet challenge), `mmaction2` or
    `paper` (average precision without interpolation). Numbers of two configs are not comparable.

    For example:

        roadaware evaluate actions --truth ava_val_v2.2.csv --predictions claims.csv \\
            --labels action_list.pbtxt --exclude excluded.csv --config ava-official --json result.json

        roadaware evaluate actions --truth AR_ava_format/annotation --predictions claims.csv \\
            --draws 1000 --by category density -o runs/mine
    """
    how = Reading(judging.reader, judging.option, labels, exclude)
    return _evaluated(TASKS["actions"], (truth, predictions, how), judging, kept)


def relations(
    *,
    truth: Truth,
    predictions: Predicted,
    judging: Judging = AS_USUAL,
    kept: Kept = NOWHERE,
    common: Common = USUAL,
) -> Outcome:
    """Score who does what to whom: relations between tubes, as on VidVRD, and frame by frame.

    Needs the annotations (VidVRD or VidOR JSON, one file a video) and claims in the form of the VidVRD
    challenge. --config is `default`, `vidvrd` (tubelets), or `frame-sg-with`, `frame-sg-semi`,
    `frame-sg-no` (frame by frame, with one, some or all predicates per pair). Claims are judged with their
    own boxes; `--set setting=predcls` judges predicates on the true tubes.

    For example:

        roadaware evaluate relations --truth VidVRD/test --predictions claims.json \\
            --config vidvrd --json result.json

        roadaware evaluate relations --truth truth --predictions claims.json \\
            --set setting=predcls --draws 1000 -o runs/mine
    """
    return _evaluated(TASKS["relations"], (truth, predictions, None), judging, kept)


def grounding(
    *,
    truth: Truth,
    predictions: Predicted,
    judging: Judging = AS_USUAL,
    kept: Kept = NOWHERE,
    common: Common = USUAL,
) -> Outcome:
    """Score when and where a sentence happens: overlap in time, and of boxes in space and time.

    Needs the annotations (HC-STVG or VidSTG, raw or as TubeDETR prepares them) and claims in the form of
    TubeDETR's results or of the HC-STVG challenge. --config is `default`, `tubedetr-hcstvg`,
    `tubedetr-vidstg` or `hcstvg-official`.

    For example:

        roadaware evaluate grounding --truth test_proc.json --predictions claims.json \\
            --config tubedetr-hcstvg --json result.json

        roadaware evaluate grounding --truth val_annotations.json --predictions claims.json \\
            --draws 1000 --by sentence_kind -o runs/mine
    """
    return _evaluated(TASKS["grounding"], (truth, predictions, None), judging, kept)


def sound(
    *,
    truth: Truth,
    predictions: Predicted,
    judging: Judging = AS_USUAL,
    kept: Kept = NOWHERE,
    common: Common = USUAL,
) -> Outcome:
    """Score where a sound comes from: consensus IoU of localisation maps, beside the whole image.

    Needs the annotations (VGG-SS JSON, Flickr-SoundNet XML, or Chaotic World's csv of sounds) and a map for
    each picture: a folder of .npy files, an .npz archive, or JSON. --config is `default`, `vggss`,
    `flickr` or `paper`. What the whole image and a box in its centre would score stands beside.

    For example:

        roadaware evaluate sound --truth vggss.json --predictions maps.npz \\
            --config vggss --json result.json

        roadaware evaluate sound --truth flickr_test_xml --predictions maps --config flickr \\
            --draws 1000 --by sound_class -o runs/mine
    """
    return _evaluated(TASKS["sound"], (truth, predictions, None), judging, kept)


def _evaluated(
    task: SceneTask, given: tuple[Path, Path, Reading | None], judging: Judging, kept: Kept
) -> Outcome:
    from roadaware.cli.scene_tables import run_text

    lowest = bars.parsed(judging.fail_under, bars.FRACTIONS)
    config = with_fields(task, config_named(task, judging.config), judging.fields)
    truth, predictions, how = given
    both = scene_inputs.opened(task, truth, predictions, how or Reading(judging.reader, judging.option))
    if judging.categories is not None:
        both = replace(both, scenes=with_categories(both.scenes, judging.categories))
    run = scene_run(task, both, config, judging, predictions, details=kept.wanted)
    return told(run, kept, lowest, strict=judging.strict, text=run_text)


def scene_run(
    task: SceneTask, given: Given, config: object, judging: Judging, predictions: Path, *, details: bool
) -> SceneRun:
    """Truth and claims judged.

    Args:
        task: what is asked.
        given: truth and claims.
        config: how they are judged.
        judging: what else is asked for.
        predictions: where the claims lie, for their name.
        details: whether pictures are wanted.
    """
    from roadaware.cli.scene_pages import pictures_of

    with console.working("scoring"):
        result = evaluated(
            task,
            given.predictions,
            given.scenes,
            config,
            by=judging.by,
            draws=judging.draws,
            seed=judging.seed,
        )
    metrics = [value for value in result.values().values() if value is not None]
    if metrics and not any(metrics):
        from roadaware.analysis.doctor.overlap import explain_zero

        asked = task.name if task.name in TASKS else None
        explain_zero(asked, given.predictions, given.scenes, str(predictions))
    pictures = {}
    if details:
        with console.working("pictures"):
            pictures = pictures_of(task, given, result)
    return scene_runs.SceneRun(
        predictions.stem or str(predictions),
        task,
        ", ".join([judging.config, *judging.fields]),
        result,
        judging.draws,
        judging.seed,
        {
            "lacking": list(given.lacking),
            "truth": {
                "dataset": given.scenes.meta.dataset,
                "digest": scene_runs.truth_digest(given.scenes),
                "notes": list(given.notes),
            },
            "claims": [predictions.name],
            "by": list(judging.by),
            "findings": given.findings,
        },
        pictures,
    )
