"""Models of the hub of huggingface.co, fetched by its own client: safetensors and JSON alone."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from roadaware.errors import DamagedError, InputError
from roadaware.models.catalogue.entries import HubSource
from roadaware.scenes.disk import disk_error
from roadaware.scenes.readers.source import open_file, shown

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
_PART = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
_BESIDE = (
    CONFIG,
    INDEX,
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "added_tokens.json",
    "roadaware.json",
)
_CODE = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".h5", ".msgpack", ".onnx", ".py")
_MOST_TEXT_BYTES = 1 << 26
_CHUNK = 1 << 22
_VARIABLE = "ROADAWARE_OFFLINE"
_FROM = "name a folder that was fetched elsewhere with --from"
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def wanted_files(names: Sequence[str], where: str) -> list[str]:
    """The files of a repository or folder that make a model, of all that it holds.

    Args:
        names: of its files; those in folders of it are passed over.
        where: names it in errors.

    Raises:
        InputError: if it has no config or no safetensors; names the pickles and code that it has instead.
    """
    weights = [WEIGHTS] if WEIGHTS in names else sorted(name for name in names if _PART.fullmatch(name))
    if CONFIG not in names or not weights or (weights != [WEIGHTS] and INDEX not in names):
        odd = [name for name in names if name.endswith(_CODE)][:4]
        told = f"; it holds {', '.join(shown(name, 60) for name in odd)}" if odd else ""
        raise InputError(
            f"expected {CONFIG} and {WEIGHTS}{told}",
            where=where,
            hint="pickles and code are not taken; `save_pretrained` writes safetensors",
        )
    unneeded = (INDEX,) if weights == [WEIGHTS] else ()
    return [*(name for name in _BESIDE if name in names and name not in unneeded), *weights]


def fetch_repository(
    source: HubSource, downloads: Path, most: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Bring the files of a repository into a folder; what a break left there goes on.

    Args:
        source: of the model.
        downloads: exists; the files come to lie in it.
        most: bytes that all files may have together.
        tell: is told what is being done.

    Returns:
        What is known of it: `revision`, the commit; and `sha256` of each file.

    Raises:
        InputError: if there is no client, no network, no such repository, or nothing in it that is taken.
        DamagedError: if a file is not the one that the hub lists.
        DiskError: if the disk refuses.
    """
    where = f"huggingface.co/{source.repository}"
    if os.environ.get(_VARIABLE, "") not in ("", "0"):
        raise InputError(f"{_VARIABLE} is set, so nothing is fetched", where=where, hint=_FROM)
    if find_spec("huggingface_hub") is None:
        raise InputError(
            "huggingface_hub is needed to fetch it, and is not installed",
            where=where,
            hint="`pip install roadaware[models]` brings it; or name a folder with --from",
        )
    from huggingface_hub import HfApi, hf_hub_download

    endpoint = os.environ.get("HF_ENDPOINT") or None
    try:
        found = HfApi(endpoint=endpoint).model_info(
            source.repository, revision=source.revision, files_metadata=True, timeout=30
        )
        listed = {each.rfilename: each for each in found.siblings or []}
        names = wanted_files(list(listed), where)
        size = sum(listed[name].size or 0 for name in names)
        if size > most:
            raise InputError(f"{size:,} bytes, and at most {most:,} are fetched", where=where)
        tell(f"fetching {source.repository} at {str(found.sha)[:12]}: {size / 1e6:,.0f} MB")
        for name in names:
            hf_hub_download(
                source.repository, name, revision=found.sha, local_dir=downloads, endpoint=endpoint
            )
    except (InputError, KeyboardInterrupt):
        raise
    except Exception as error:  # the client raises whatever its parts do
        raise _refused(error, where, downloads) from error
    digests = {name: file_digest(downloads / name) for name in names}
    for name in names:
        said = getattr(listed[name].lfs, "sha256", None)
        if said is not None and said != digests[name]:
            (downloads / name).unlink(missing_ok=True)
            message = f"the digest of {name} is not the one that the hub says"
            raise DamagedError(message, where=where, hint="fetch it again")
    return {"revision": str(found.sha), "sha256": digests}


def _refused(error: Exception, where: str, downloads: Path) -> Exception:
    """Why the client failed, in one line."""
    from huggingface_hub import errors

    told = shown((str(error).strip().splitlines() or [type(error).__name__])[0], 160)
    if isinstance(error, OSError) and error.errno in _DISK:
        return disk_error(downloads / "files", 0, error)
    if isinstance(error, errors.GatedRepoError):
        hint = "accept their terms there, then `hf auth login`"
        return InputError("its authors ask for a login", where=where, hint=hint)
    if isinstance(error, errors.RevisionNotFoundError | errors.RepositoryNotFoundError):
        return InputError("the hub has no such model, or not this revision", where=where, hint=_FROM)
    if isinstance(error, errors.OfflineModeIsEnabled):
        return InputError("HF_HUB_OFFLINE is set, so nothing is fetched", where=where, hint=_FROM)
    return InputError(
        f"it could not be fetched: {told}",
        where=where,
        hint=f"check the network, after which the same command goes on; or {_FROM}",
    )


def copy_folder(given: Path, made: Path, most: int) -> dict[str, Any]:
    """Copy the files of a model from a folder of transformers.

    Args:
        given: the folder, or a snapshot in the hub's cache.
        made: where they go.
        most: bytes that one file may have.

    Raises:
        InputError: if it is no such folder, holds no safetensors, or a link leads out of it.
    """
    from roadaware.models.folder_configs import inside

    if not given.is_dir():
        raise InputError("expected the folder of a model", where=str(given))
    names = wanted_files(sorted(each.name for each in given.iterdir() if not each.is_dir()), str(given))
    for name in names:
        limit = most if name.endswith(".safetensors") else _MOST_TEXT_BYTES
        with (
            open_file(inside(given / name), str(given / name), limit) as file,
            (made / name).open("xb") as copy,
        ):
            shutil.copyfileobj(file, copy, _CHUNK)
    return {"sha256": {name: file_digest(made / name) for name in names}}


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal.

    Args:
        path: of the file.
    """
    whole = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            whole.update(chunk)
    return whole.hexdigest()


def check_model(folder: Path, task: str) -> None:
    """Refuse a folder whose config is that of a model for something else, or asks for code.

    Args:
        folder: of a model.
        task: that it is for.

    Raises:
        InputError: says which type it is and which are known.
    """
    from roadaware.models.folder_configs import check_config, parsed, refuse_adapter

    said: Mapping[str, Any] = parsed(folder / CONFIG)
    families = _families(task)
    if said.get("model_type") not in families:
        kind = shown(repr(said.get("model_type")), 60)
        raise InputError(
            f"a model of type {kind}, and models for {task} are {', '.join(families)}", where=CONFIG
        )
    refuse_adapter(folder)
    check_config(said, CONFIG)


def _families(task: str) -> tuple[str, ...]:
    """Types of models of transformers that a task takes."""
    from roadaware.models import object_folders, segmenters
    from roadaware.models.open_vocabulary import clip, opening

    known: Mapping[str, tuple[str, ...]] = {
        "objects": object_folders.FAMILIES,
        "zero-shot": opening.FAMILIES,
        "segmentation": segmenters.FAMILIES,
        "image-text": clip.FAMILIES,
    }
    return known[task]
