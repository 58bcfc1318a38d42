"""`roadaware label`: corner cases by people: what to look at, tasks out, corrections in, agreement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from roadaware.cli import outputs, text
from roadaware.cli.label_agree import agree
from roadaware.cli.label_export import export
from roadaware.cli.label_import import import_labels
from roadaware.cli.label_select import select
from roadaware.cli.options import USUAL, WHOLE_SEED, Common, Outcome
from roadaware.cli.text import paragraphs

label = App(
    name="label",
    help=paragraphs("""
        Bring proposals of corner cases to people, and back: select, export, import, agree.

        For example:

            roadaware label example runs/streets

            roadaware label select runs/streets/proposals --truth runs/streets/scenes -o runs/list

            roadaware label export runs/streets/proposals --videos runs/streets/scenes --all --out runs/tasks

            roadaware label import runs/tasks runs/streets/corrected.json -o runs/labels

            roadaware label agree runs/labels -o runs/consensus
        """),
    help_format="plaintext",
)


_EXAMPLE = "A new or empty folder; an earlier example is replaced."


def example(
    folder: Annotated[Path, Parameter(help=_EXAMPLE), outputs.STREETS],
    /,
    *,
    seed: Annotated[int, Parameter(help="Where chance comes from.", validator=WHOLE_SEED)] = 0,
    common: Common = USUAL,
) -> Outcome:
    """Write made-up pictures with truth, proposals and what three annotators made of them, to try `label` on.

    It has pictures, scenes (the truth, as tables), proposals, corrected.json (a Label Studio export of
    three annotators with stated errors) and planted.json (what was planted).

    For example:

        roadaware label example runs/streets
    """
    from dataclasses import asdict

    from roadaware.scenes.demo.labelling import EXPORT, PROPOSALS, SCENES, write_labelling_demo

    facts = write_labelling_demo(folder, seed=seed)
    shown = text.cell(str(folder))
    said = (
        f"wrote {shown}: {facts.pictures} pictures, {facts.with_a_case} with {facts.cases} corner cases, "
        f"{facts.proposals} proposals, and what {len(facts.annotators)} annotators left\n"
        f"$ roadaware label select {shown}/{PROPOSALS} --truth {shown}/{SCENES}\n"
        f"$ roadaware label export {shown}/{PROPOSALS} --videos {shown}/{SCENES} --all --out TASKS\n"
        f"$ roadaware label import TASKS {shown}/{EXPORT} -o LABELS\n"
        f"$ roadaware label agree LABELS -o CONSENSUS"
    )
    return Outcome(said, {"folder": str(folder), "seed": seed, **asdict(facts)})


_VERBS: dict[str, Callable[..., Outcome]] = {
    "example": example,
    "select": select,
    "export": export,
    "import": import_labels,
    "agree": agree,
}
for _place, (_name, _verb) in enumerate(_VERBS.items()):
    label.command(_verb, name=_name, help=paragraphs(_verb.__doc__ or ""), sort_key=_place)
