"""How far a long run is: what its ledger, or the file of a finished one, says of its parts."""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from roadaware.errors import InputError, RoadawareError
from roadaware.io.files import read_regular
from roadaware.io.folders import is_held, read_marker
from roadaware.io.parallel import Ledger
from roadaware.io.storage import is_mirror

_MOST_BYTES = 1 << 24


def read_run_state(run: Path) -> dict[str, Any]:
    """How far a run in parts is: parts done, failed and left, with reasons, rate and time left, JSON-ready.

    Args:
        run: its folder, of this machine or copied from a store.

    Returns:
        `state` is `finished` (then `kind` alone stands beside), `at work`, `stopped`, or `unknown` where another machine
        is or was at work.

    Raises:
        InputError: if the folder holds no such run, or what it says is damaged.
    """
    path = run / Ledger.NAME
    said = read_marker(path, Ledger.FORMAT)
    if said is None:
        if path.is_file() or not (kind := _read_kind(run)):
            raise InputError(
                f"expected a run in parts (a {Ledger.NAME}, or the file of a finished one), found none",
                where=str(run),
                hint="Name the folder that `--output` of the command names, of `triage` that of `--watches`.",
            )
        return {"folder": str(run), "state": "finished", "kind": kind}
    try:
        # What a ledger says, with the rate and the time left
        held = is_held(run)
        local = not is_mirror(run)
        now_s = time.time()
        total, before, done, failed = (int(said[name]) for name in ("total", "before", "done", "failed"))
        began_s, updated_s = float(said["began_s"]), float(said["updated_s"])
        if min(total, before, done, failed) < 0 or not (math.isfinite(began_s) and math.isfinite(updated_s)):
            raise ValueError("counts are below 0, or times are no times")
        reasons = {str(name): str(why) for name, why in said["reasons"].items()}
        # The same host has the lock of the folder; of another one the last word is all that is known.
        here = local and str(said["host"]) == os.uname().nodename
        state = "at work" if held else "stopped" if here else "unknown"
        over = done + failed
        seconds = max(updated_s - began_s, 1e-9)
        rate = over / seconds if over and seconds > 1e-3 else None
        left = max(total - before - over, 0)
        groups = Counter(_generalize(name, why) for name, why in reasons.items())
        first = {_generalize(name, why): name for name, why in reversed(reasons.items())}
        return {
            "folder": str(run),
            "state": state,
            "what": str(said["what"]),
            "total": total,
            "done": before + done,
            "failed": failed,
            "left": left,
            "parts_per_s": rate,
            "left_s": None if rate is None or state == "stopped" else left / rate,
            "age_s": max(now_s - updated_s, 0.0),
            "process": int(said["process"]),
            "host": str(said["host"]),
            "reasons": [
                {"reason": why, "parts": count, "first": first[why]} for why, count in groups.most_common()
            ],
            "failures": reasons,
        }
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"expected how far a run is, found damage: {error}", where=str(path)) from error


def _read_kind(run: Path) -> str:
    """The format of a run of which every part is done; empty where the folder holds none."""
    if not run.is_dir():
        return ""
    for path in sorted(run.glob("*.json")):
        with suppress(RoadawareError, OSError, ValueError, RecursionError):
            held = json.loads(read_regular(path, limit=_MOST_BYTES))
            if isinstance(held, dict) and str(held.get("format")).startswith("roadaware-"):
                return str(held["format"])
    return ""


def _generalize(name: str, why: str) -> str:
    """A reason without what differs from part to part: its name, paths and numbers."""
    # A name that is a word may stand in any reason: of a film called "cut" none was PART off.
    text = why if name.isalpha() or len(name) < 3 else why.replace(name, "PART")
    return re.sub(r"(?<![A-Za-z])\d+(?:\.\d+)?", "N", re.sub(r"\S*/\S*", "PATH", text))[:200]
