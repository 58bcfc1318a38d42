"""`roadaware evaluate`: how good are these claims, one command per subject."""

from __future__ import annotations

from cyclopts import App

from roadaware.cli.evaluate_pedestrians import pedestrians
from roadaware.cli.text import paragraphs

evaluate = App(
    name="evaluate",
    alias=["eval"],
    help=paragraphs("""
        Score what a model claims against the truth, as published (--config reference) or as we recommend.

        `roadaware evaluate SUBJECT --help` explains a subject. All of them take --config, --draws for
        95 % intervals, --fail-under for pipelines, -o for a run folder with a report, and --json.

        For example:

            roadaware evaluate pedestrians --scores model.csv \\
                --samples samples.csv --task action --draws 1000
        """),
    help_format="plaintext",
)
for _place, _subject in enumerate((pedestrians,)):
    evaluate.command(_subject, help=paragraphs(_subject.__doc__ or ""), sort_key=_place)
