"""`roadaware evaluate`: how good are these predictions, one command per subject."""

from __future__ import annotations

from roadaware.cli.corner_cases import corner_cases
from roadaware.cli.events import road, ucf24
from roadaware.cli.options import add_commands, create_app
from roadaware.cli.pedestrians import pedestrians
from roadaware.cli.scenes import actions, grounding, relations, sound

evaluate = create_app(
    "evaluate",
    """
    Score predictions against ground truth, as published (--config reference) or as we recommend.

    `roadaware evaluate SUBJECT --help` explains a subject. All of them take --config, --resamples for
    95 % intervals, --fail-under for pipelines, -o for a run folder with a report, and --json.

    For example:

        roadaware evaluate pedestrians --scores model.csv \\
            --samples samples.csv --task action --resamples 1000

        roadaware evaluate road --truth road_trainval_v1.0.json --split val_3 \\
            --predictions detections --config reference --json result.json

        roadaware evaluate ucf24 --truth pyannot_with_class_names.pkl \\
            --predictions linked --config reference -o runs/mine
    """,
)
add_commands(evaluate, (pedestrians, road, ucf24, actions, relations, grounding, sound, corner_cases))
