"""Where a run on scenes goes: a folder, a page, the terminal, and what makes it fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from roadaware.cli import bars, console, folders, outputs, scene_runs
from roadaware.cli.options import Html, Outcome, OutputFolder, Overwrite
from roadaware.cli.output import write_text

if TYPE_CHECKING:
    from roadaware.cli.scene_runs import SceneRun

_FOLDER = "Write the run here: settings, results, state, instances, report."


@Parameter(name="*")
@dataclass(frozen=True)
class Kept:
    """Where a run is kept."""

    html: Html = None
    folder: Annotated[Path | None, Parameter(help=_FOLDER), OutputFolder, outputs.RESULT] = None
    overwrite: Overwrite = False

    @property
    def wanted(self) -> bool:
        """Whether the run is kept at all, and so needs a page."""
        return self.html is not None or self.folder is not None

    def write(self, run: SceneRun) -> None:
        """Write the run to its folder and its page, those of them that were asked for."""
        from roadaware.cli.scene_pages import run_page

        if not self.wanted:
            return
        page = run_page([run])
        if self.folder is not None:
            folders.put_folder(self.folder, scene_runs.files_of(run, page), overwrite=self.overwrite)
            console.note(f"wrote {self.folder} (report: {self.folder / 'report.html'})")
        if self.html is not None:
            write_text(self.html, page)
            console.note(f"wrote {self.html}")


NOWHERE = Kept()


def told(
    run: SceneRun,
    kept: Kept,
    lowest: Mapping[str, float],
    *,
    strict: bool,
    text: Callable[[SceneRun], str],
    odd: Sequence[str] = (),
) -> Outcome:
    """Write a run where it is kept, and tell of it.

    Args:
        run: what was judged.
        kept: where it is written.
        lowest: metric to the lowest value that passes.
        strict: whether what was refused is a failure.
        text: the run for people.
        odd: what else is a failure then, in words.

    Raises:
        UsageError: if a metric with a bar is unknown.
        DiskError: if a file cannot be written.
    """
    from roadaware.metrics.judged import as_json

    metrics = run.result.values()
    bars.check(lowest, metrics)
    kept.write(run)
    failed = bars.failure(metrics, lowest)
    if failed is None and strict:
        failed = _findings(run.facts["findings"], odd)
    return Outcome(text(run), {**as_json(run.result), "run": scene_runs.facts_of(run)}, failed)


def _findings(found: Mapping[str, int], odd: Sequence[str]) -> str | None:
    """What `--strict` turns into exit code 1, in words."""
    told = [*(f"{count:,} {what}" for what, count in found.items()), *odd]
    return f"--strict: {'; '.join(told)}" if told else None
