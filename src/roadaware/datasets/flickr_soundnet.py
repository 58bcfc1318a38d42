"""Flickr-SoundNet: sound sources in images, boxes of several annotators on a 256 x 256 grid.

Senocak, Oh, Kim, Yang and Kweon, "Learning to localize sound source in visual scenes", CVPR 2018;
github.com/ardasnck/learning_to_localize_sound_source; annotations for research use.

Takes a folder or zip of XML files, one for each image, or one of them. Inside the root lies a block for
each annotator; a block's `bbox` has an index and then the four corners. Images and sounds are not needed.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from lxml import etree

from roadaware.datasets import READERS, Progress
from roadaware.datasets.issues import Findings, read_each_file
from roadaware.datasets.sound_tables import Heard, build_no_sounds_error, build_sound_tables
from roadaware.errors import InputError
from roadaware.io.json import escape_surrogates, parse_corners
from roadaware.io.sources import Source, find_source, to_printable
from roadaware.io.xml import get_local_name, parse
from roadaware.scenes.tables import Scenes

VERSION = 1
GRID = 256
"""Width and height of the images that boxes are drawn on."""
_WANTED = "Flickr-SoundNet needs its annotations, files '*.xml',"
_HINT = "Point at the folder or zip that holds them, usually 'Annotations/'."
_BOX, _ROOTS = "bbox", ("annotations", "annotation")
_NAMED = ("annotator", "name", "id")


def find(path: Path) -> Source:
    """The annotations at `path`: an XML file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(path, lambda source: bool(source.files("", ".xml")), _WANTED, _HINT, suffix=".xml")


def inputs(source: Source) -> list[str]:
    """Names of the files that `read` would read."""
    return source.files("", ".xml")


def read(source: Source, *, processes: int | None = None, progress: Progress | None = None) -> Scenes:
    """All images as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    An annotator is called by the block's attribute or name, else by its place from 1.

    Raises:
        InputError: if no file can be read.
    """
    findings = Findings()
    sounds: dict[str, Heard] = {}
    names = inputs(source)

    def take(name: str, part: Findings) -> None:
        heard = _heard(parse(source.read(name), source.where(name)), name, source.where(name), part)
        if to_printable(heard.name, 255) in sounds:
            raise InputError("shows as another file does", where=source.where(name))
        sounds[to_printable(heard.name, 255)] = heard

    errors = read_each_file(names, take, findings, progress)
    if not sounds:
        raise build_no_sounds_error(errors)
    tables, vocabularies = build_sound_tables(list(sounds.values()), (GRID, GRID), findings)
    return Scenes(
        **tables,
        rejected=findings.table(),
        meta=findings.build_meta(READERS["flickr_soundnet"], vocabularies, source.contents(names)),
    )


def _heard(root: etree._Element, file: str, where: str, findings: Findings) -> Heard:
    """The boxes of one image with their annotators.

    Raises:
        InputError: if no block has a box and the root is not called `annotations`: no file of the set.
    """
    name = escape_surrogates(PurePosixPath(file).name.removesuffix(".xml"))
    lists: list[list[object]] = []
    drawn: list[str] = []
    for place, block in enumerate(root, 1):
        for element in block:
            if get_local_name(element) == _BOX:
                # The first child numbers the box; its corners follow.
                texts = [(child.text or "").strip() for child in element][1:]
                lists.append([_number(text) for text in texts])
                # Name of the annotator of a block
                held = [block.get(name) for name in _NAMED]
                held += [child.text for child in block if get_local_name(child) in _NAMED]
                given = next((text.strip() for text in held if text and text.strip()), "")
                tag = get_local_name(block)
                drawn.append(escape_surrogates(given or (tag if tag[-1:].isdecimal() else str(place))))
    if not lists and get_local_name(root) not in _ROOTS:
        message = f"there is no <{_BOX}> in a block of an annotator inside <{to_printable(get_local_name(root), 40)}>"
        raise InputError(message, where=where, hint=_HINT)
    corners, bad = parse_corners(lists, sized=False)
    for number, reason in bad.items():
        findings.reject("boxes", file, f"{name}, frame 0, annotator {drawn[number]}", reason)
    kept = [n for n in range(len(lists)) if n not in bad]
    beyond = (corners[kept] < 0).any(axis=1) | (corners[kept] > GRID).any(axis=1)
    findings.warn("boxes that reach out of the grid of 256, kept as they are", name, int(beyond.sum()))
    findings.warn("images without a box, kept", name, int(not kept))
    return Heard(name, corners[kept], tuple(drawn[n] for n in kept))


def _number(text: str) -> object:
    """A number as the file has it; a text that is none stays one."""
    try:
        return float(text) if len(text) < 40 and text.isascii() and "_" not in text else text
    except ValueError:
        return text
