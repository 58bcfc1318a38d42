"""The words of a folder of transformers: what makes tokens of texts, of parts that always come to an end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import transformers
from tokenizers import Tokenizer

from roadaware.errors import InputError
from roadaware.models.folder_configs import inside, parsed
from roadaware.scenes.readers.json import decode, parse
from roadaware.scenes.readers.source import read_file, shown

TOKENIZER, VOCABULARY, WORDS, MERGES = "tokenizer.json", "vocab.json", "vocab.txt", "merges.txt"
_MOST_BYTES = 1 << 26
_COPY = "copy it from where the model was published"
_MOST_PATTERN = 400
_AHEAD = re.compile(r"\(\?[!=]\\[sS]\)|\(\?i:[^()*+{}|]*\)")
_ATOM = re.compile(r"\\.|\[(?:\\.|\[:\w+:\]|[^\\\]])*\]")


def tokenizer_in(folder: Path) -> Tokenizer:
    """What makes tokens of words, without padding and without cutting off.

    Args:
        folder: with tokenizer.json; or with vocab.txt, or vocab.json and merges.txt, as older ones have it.

    Raises:
        InputError: if it is not there, is none, or looks for patterns that could take forever.
    """
    path = next((folder / name for name in (TOKENIZER, WORDS, VOCABULARY) if (folder / name).exists()), None)
    if path is None:
        raise InputError(f"there is no {TOKENIZER}, so texts cannot be read", where=str(folder), hint=_COPY)
    where = shown(str(path))
    with _typed("no tokenizer", where):
        found = _read(path, where) if path.name == TOKENIZER else _older(path, where)
        found.no_padding()
        found.no_truncation()
    return found


def encodings(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Any]:
    """Tokens of texts with their places.

    Args:
        tokenizer: as `tokenizer_in` makes it.
        texts: any.

    Raises:
        InputError: if it cannot make tokens of them, such as one that lacks its mark for unknown words.
    """
    with _typed("the tokenizer of the model cannot read these texts", None):
        return list(tokenizer.encode_batch(list(texts)))


@contextmanager
def _typed(what: str, where: str | None) -> Iterator[None]:
    """Within: whatever the library raises is an error of its file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{what}: {error.message}", where=error.where, hint=error.hint) from error
    except BaseException as error:  # plain exceptions, and panics, which are none
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        told = shown(" ".join(str(error).split()) or type(error).__name__)
        raise InputError(f"{what}: {told}", where=where) from error


def _read(path: Path, where: str) -> Tokenizer:
    """The tokenizer that a file describes."""
    text = decode(read_file(inside(path), where, _MOST_BYTES), where)
    for pattern in _patterns(parse(text, where)):
        if not ends_soon(pattern):
            raise InputError(f"a pattern that could take forever: {shown(str(pattern), 80)}", where=where)
    return Tokenizer.from_str(text)


def ends_soon(pattern: Any) -> bool:
    """Whether a regular expression has no group and at most one repetition in each of its alternatives.

    So the time that it takes grows with the text and no faster than its square.

    Args:
        pattern: as tokenizer.json holds it.
    """
    if not isinstance(pattern, str) or len(pattern) > _MOST_PATTERN:
        return False
    plain = _ATOM.sub("x", _AHEAD.sub("x", pattern))
    return "(" not in plain and all(len(re.findall(r"[*+{]", part)) <= 1 for part in plain.split("|"))


def _patterns(value: Any) -> Iterator[Any]:
    """Every regular expression of a description, wherever it stands but in its vocabulary."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name == "Regex":
                yield each
            elif name not in ("vocab", "merges", "added_tokens"):
                yield from _patterns(each)
    elif isinstance(value, list):
        for each in value:
            yield from _patterns(each)


def _older(path: Path, where: str) -> Tokenizer:
    """The tokenizer of a vocabulary as older versions kept it: of BERT, or of CLIP."""
    folder = path.parent
    if path.name == WORDS:
        words = _lines(path)
        low = _settings(folder).get("do_lower_case", True) is not False
        held = {word: n for n, word in enumerate(words)}
        made: Any = transformers.BertTokenizer(vocab=held, do_lower_case=low)
    else:
        found = parse(decode(read_file(inside(path), where, _MOST_BYTES), where), where)
        if not isinstance(found, dict) or not all(type(n) is int and n >= 0 for n in found.values()):
            raise InputError("expected words with their numbers", where=where)
        pairs: Any = [tuple(line.split(" ")) for line in _lines(folder / MERGES) if line and line[0] != "#"]
        if any(len(pair) != 2 for pair in pairs):
            raise InputError("expected two parts of words in each line", where=str(folder / MERGES))
        made = transformers.CLIPTokenizer(vocab=found, merges=pairs)
    return Tokenizer.from_str(made.backend_tokenizer.to_str())


def _lines(path: Path) -> list[str]:
    where = shown(str(path))
    text = decode(read_file(inside(path), where, _MOST_BYTES), where)
    return re.split(r"\r\n|\r|\n", text.rstrip("\r\n"))  # words of vocabularies hold other breaks of lines


def _settings(folder: Path) -> dict[str, Any]:
    """What tokenizer_config.json says; nothing where there is none."""
    path = folder / "tokenizer_config.json"
    return parsed(path) if path.exists() else {}
