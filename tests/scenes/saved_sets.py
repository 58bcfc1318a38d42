"""Folders of tables for tests: what is in them, and how to forge one."""

import hashlib
import io
import json
from dataclasses import asdict

from roadaware.scenes.store import encode
from roadaware.scenes.tables import Meta


def parquet(frame):
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def digest(data):
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def forged(folder, held, *, entries=None, **content):
    """A folder in the documented format, written without the store: anything can be put into it."""
    folder.mkdir(exist_ok=True)
    listed = {}
    for name, frame in held.items():
        data = frame if isinstance(frame, bytes) else parquet(frame)
        rows = 1 if isinstance(frame, bytes) else len(frame)
        file = f"{name}-{digest(data)[:16]}.parquet"
        (folder / file).write_bytes(data)
        listed[name] = {"file": file, "rows": rows, "bytes": len(data), "blake2b": digest(data)}
        listed[name].update((entries or {}).get(name, {}))
    meta = asdict(Meta())
    whole = {
        "format": "roadaware-tables",
        "version": 1,
        "kind": "Scenes",
        "meta": meta,
        "tables": listed,
        **content,
    }
    whole["blake2b"] = digest(json.dumps(whole).encode())
    (folder / "meta.json").write_text(json.dumps(whole))
    return folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def files_of(tables):
    return sorted([*encode(tables)[0], "meta.json"])
