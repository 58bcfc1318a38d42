"""`roadaware models`: trained models of others: which there are, fetched, looked at, removed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console
from roadaware.cli.options import Outcome, Overwrite, add_commands, create_app
from roadaware.models.catalogue.entries import describe_entry, find_entry, read_catalogue, remove_model
from roadaware.reports import terminal

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
    """List the models of the catalogue, what each is for, and which are installed.

    For example:

        roadaware models list
    """
    found = [describe_entry(entry) for entry in read_catalogue().values()]
    rows = [
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
    return Outcome("\n".join(lines), {"models": found})


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
    """Print all that is known of a model: classes, licence, source, digest, scores.

    For example:

        roadaware models show street-small
    """
    facts = describe_entry(find_entry(name))
    rows = [
        (field.replace("_", " "), _cell(value)) for field, value in facts.items() if value not in ("", None)
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
