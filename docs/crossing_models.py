"""Write what the cards say into docs/crossing_models.md again: `python docs/crossing_models.py`."""

from __future__ import annotations

from pathlib import Path

from roadaware.io.files import write_atomically
from roadaware.models import CROSSING, get_crossing_entry
from roadaware.models.crossing.entries import Entry
from roadaware.models.crossing.inputs import parse_input_name

PAGE = Path(__file__).with_suffix(".md")
BEGIN, END = "<!-- of the cards: begin -->", "<!-- of the cards: end -->"
HEAVY = ("crop", "maps", "pose")
"""Inputs of networks whose published sizes a GPU has to train."""
UNTRAINED = "not trained here; see [what the small ones learn](pixels.md)"


def entries() -> dict[str, Entry]:
    """Every network for pedestrians, in the order of the registry."""
    return {name: get_crossing_entry(name) for name in CROSSING}


def table() -> str:
    """One line for each network."""
    lines = ["| name | inputs of its paper | also tells | parameters |", "|---|---|---|---|"]
    for name, entry in entries().items():
        reads = ", ".join(f"`{read}`" for read in entry.reads)
        count = entry.card.parameters.split(" ")[0]
        lines.append(f"| [`{name}`](#{name}) | {reads} | {', '.join(entry.also_tells)} | {count} |")
    return "\n".join(lines)


def sections() -> str:
    """All facts of each network."""
    parts = []
    for name, entry in entries().items():
        card = entry.card
        facts = {
            "Paper": card.paper,
            "Diagram": card.diagram,
            "Parameters": card.parameters,
            "Inputs": card.inputs,
            "Weights": card.weights,
            "Licence": card.licence,
            "Published": card.published,
            "Published size": UNTRAINED
            if any(parse_input_name(read).kind in HEAVY for read in entry.reads)
            else "",
        }
        told = "\n".join(f"- {what}: {said}" for what, said in facts.items() if said)
        parts.append(f"### {name}\n\n{told}")
    return "\n\n".join(parts)


def whole(page: str) -> str:
    """The page with what the cards say between its marks."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{table()}\n\n{sections()}\n\n{END}{after}"


if __name__ == "__main__":
    write_atomically(PAGE, whole(PAGE.read_text("utf-8")).encode())
