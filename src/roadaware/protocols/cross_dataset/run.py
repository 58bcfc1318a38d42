"""Run: a study out of domain, cell by cell, so that nothing done is lost and a failure stays alone."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from roadaware import __version__
from roadaware import config as configs
from roadaware.errors import DamagedError, DiskError, InputError, RoadawareError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.folders import hold_folder
from roadaware.io.parallel import HERE, Ledger, Workers, map_parts
from roadaware.protocols.cross_dataset import cells, domains
from roadaware.protocols.cross_dataset.config import AwayStudy, Plan, Unit, build_plan
from roadaware.protocols.cross_dataset.results import AGAIN, STUDY, Cell, CrossResults, read_study_json

_log = logging.getLogger("roadaware")
Progress = Callable[[int, int, str], None]
Failures = dict[Cell, str]
_EVERY_S = 60.0


def run(
    study: AwayStudy,
    out: Path,
    *,
    data: Path | None = None,
    workers: Workers = HERE,
    progress: Progress | None = None,
) -> CrossResults:
    """Run a study, or its unfinished part, and collect its results.

    A folder may be asked for more models, domains, seeds or uncertainty methods than before; what it holds is kept.

    Args:
        study: what is wanted.
        out: its folder.
        data: folder that holds jaad/ and pie/.
        workers: where models learn, and how many side by side, on one thread each.
        progress: called with the number of cells done.

    Returns:
        the results; `study["failed"]` and `study["skipped"]` say what is missing, and why.

    Raises:
        UsageError: if the folder holds a study that learns otherwise, a domain is unknown, or another process
            is at work in the folder.
        InputError: if the path of a domain does not exist, or no domain can be used.
        DiskError: if the folder cannot be written to.
    """
    with hold_folder(out):
        return _run(study, out, data, workers, progress)


def _run(
    study: AwayStudy, out: Path, data: Path | None, workers: Workers, progress: Progress | None
) -> CrossResults:
    wanted = [domains.parse_domain(name, study.roots.get(name), data) for name in study.names]
    domains.refuse_absent(wanted, out)
    # Refuse a folder whose fits were made otherwise
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DiskError(f"{out} could not be made: {error.strerror or error}") from error
    if (out / STUDY).exists():
        config = read_study_json(out / STUDY).get("config")
        if not isinstance(config, dict):
            raise DamagedError("not whole: it says no config", where=str(out / STUDY), hint=AGAIN)
        differ = [key for key, value in study.fixed.items() if config.get(key) != value]
        if differ:
            raise UsageError(
                f"{out} holds a study with another {', '.join(differ)}; name another folder with --out"
            )
    facts, skipped = _prepare_domains(study, out, wanted, workers, progress)
    kept = _Kept(study, out, build_plan(study, tuple(facts)), facts, skipped)
    try:
        _run_units(kept, workers, progress)
        _join_ensembles(kept)
    finally:
        kept.write()
    return CrossResults.open(out)


def _prepare_domains(
    study: AwayStudy, out: Path, wanted: Sequence[domains.Domain], workers: Workers, progress: Progress | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Facts of the domains that can be used, and why the others cannot."""
    facts: dict[str, Any] = {}
    skipped: dict[str, str] = {}
    for domain in wanted:
        try:
            facts[domain.name] = domains.prepare(domain, out, study.config, study.scenes, workers, progress)
        except InputError as error:
            skipped[domain.name] = domains.describe_error(error)
            _log.warning("%s is left out: %s", domain.name, skipped[domain.name])
    if not facts:
        raise InputError("no domain can be used: " + "; ".join(f"{k}: {v}" for k, v in skipped.items()))
    return facts, skipped


def _run_units(kept: _Kept, workers: Workers, progress: Progress | None) -> None:
    """Make the fits and ask them; failures are noted and leave the others."""
    plan, out = kept.plan, kept.out
    whole = sum(len(unit.cells) for units in plan.rounds for unit in units)
    done = 0
    for units in plan.rounds:
        due = [unit for unit in units if any(not cells.is_covered(cell, out) for cell in unit.cells)]
        done += sum(len(unit.cells) for unit in units) - sum(len(unit.cells) for unit in due)
        with Ledger(out, "fits", len(units), len(units) - len(due)) as ledger:
            for unit, found in _side_by_side(due, kept.study, out, workers):
                kept.failed |= found
                done += len(unit.cells)
                for why in set(found.values()):
                    _log.warning("%s: %s", unit.fit, why)
                ledger.note(str(unit.fit), next(iter(found.values()), None))
                kept.now_and_then()
                if progress is not None:
                    progress(done, whole, "cells")


def _side_by_side(
    units: Sequence[Unit], study: AwayStudy, out: Path, workers: Workers
) -> Iterator[tuple[Unit, Failures]]:
    """Each unit with what failed of it, as they are done."""
    run_one = cells.run_unit if workers.is_inline(len(units)) else cells.run_single_threaded
    with closing(map_parts(partial(_run_unit, run_one, study, out), units, workers)) as results:
        for each in results:
            unit = units[each.place]
            lost = None if each.failure is None else dict.fromkeys(unit.cells, each.failure)
            yield unit, lost or each.value or {}


def _run_unit(
    run_one: Callable[[Unit, AwayStudy, Path], Failures], study: AwayStudy, out: Path, unit: Unit
) -> Failures:
    return run_one(unit, study, out)


def _join_ensembles(kept: _Kept) -> None:
    for each in kept.plan.joined:
        try:
            cells.join(each, kept.study, kept.out)
        except RoadawareError as error:
            kept.failed[each.cell] = domains.describe_error(error)


@dataclass
class _Kept:
    """What a run knows, written into the folder now and then.

    Args:
        study: what is wanted.
        out: its folder.
        plan: what there is to do.
        facts: of the domains.
        skipped: domains that cannot be used, and why.
        failed: cells, and why.
    """

    study: AwayStudy
    out: Path
    plan: Plan
    facts: dict[str, Any]
    skipped: dict[str, str]
    failed: Failures = field(default_factory=dict)
    _last_s: float = field(default_factory=time.monotonic)

    def now_and_then(self) -> None:
        """Write if the last time is a while ago, so that results can be read while a study runs."""
        if time.monotonic() - self._last_s > _EVERY_S:
            self.write()
            self._last_s = time.monotonic()

    def write(self) -> None:
        """The table of what is done, and what is known of the study."""
        done = [cell for cell in self.plan.cells if cells.is_done(cell, self.out)]
        cells.write_table(done, self.out)
        record = {
            "config": configs.to_dict(self.study),
            "digest": configs.digest(self.study),
            "domains": self.facts,
            "skipped": self.skipped,
            "failed": {cells.describe_cell(cell): why for cell, why in self.failed.items()},
            "unfinished": len(self.plan.cells) - len(done) - len(self.failed),
            "versions": {
                "roadaware": __version__,
                **{name: version(name) for name in ("torch", "numpy", "scikit-learn")},
            },
        }
        write_atomically(self.out / STUDY, (json.dumps(record, indent=2) + "\n").encode())
