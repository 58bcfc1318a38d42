"""Asks whether anything is known against the versions in constraints.txt: `make release-check`.

pip-audit asks the advisory service of PyPI, over the network. Exit code 0: it was asked and knows nothing; 1:
it knows something; 2: it could not be asked, which is no answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

LOCK = Path(__file__).resolve().parents[1] / "constraints.txt"
_LIMIT_S = 600


def main() -> int:
    """Ask, and say what came of it."""
    if find_spec("pip_audit") is None:
        return _unasked("pip-audit is not installed; `python -m pip install pip-audit`")
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(LOCK), "--no-deps", "--disable-pip"]
    command += ["--format", "json", "--progress-spinner", "off"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)  # noqa: S603
        asked = json.loads(done.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        return _unasked(f"no answer within {_LIMIT_S} s")
    except (ValueError, KeyError, TypeError):
        return _unasked((done.stderr.strip().splitlines() or [f"pip-audit ended with {done.returncode}"])[-1])
    skipped = [each for each in asked if "skip_reason" in each]
    if skipped:
        first = f"{skipped[0]['name']}: {skipped[0]['skip_reason']}"
        return _unasked(f"{len(skipped)} of {len(asked)} packages have no answer; the first, {first}")
    known = [(each, fault) for each in asked for fault in each["vulns"]]
    for each, fault in known:
        print(f"{each['name']} {each['version']}: {fault['id']}, mended in {fault['fix_versions'] or 'none'}")
    print(f"asked about {len(asked)} packages: {len(known)} advisories")
    return 1 if known else 0


def _unasked(why: str) -> int:
    print(f"the advisory service could NOT be asked, so nothing is known: {why}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
