"""Train small networks that see pixels or joints beside twins that see boxes, and write docs/pixels.md.

    roadaware simulate --preset kerb@1 --scenes 260 --output synthetic/kerb
    python docs/pixels.py synthetic/kerb runs/pixels

A network whose folder is there is not trained again. Names of rows after the folders train these alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_suffix(".md")
RECIPE = Path(__file__).parents[1] / "configs/pedestrians/kerb.yaml"
BEGIN, END = "<!-- of the runs: begin -->", "<!-- of the runs: end -->"
RESAMPLES = 2000
CROP, POSE, MAPS, BOXES = "crop:box@64", "pose", "maps@32", "boxes"


@dataclass(frozen=True)
class Case:
    """One row.

    Args:
        network: in the registry.
        inputs: that it reads.
        twin: name of the row that sees boxes alone; empty for such a row.
        changes: of the recipe, as `--set` takes them.
    """

    network: str
    inputs: tuple[str, ...]
    twin: str = ""
    changes: tuple[str, ...] = ()


LATE = ("schedule.epochs=30", "schedule.lr=0.002")
"""Sequences are cheap, and learnt over more steps."""
CLIPS = ("schedule.epochs=8",)
"""Networks on all eight crops take longer for an epoch."""
SETTLED = (*CLIPS, "network.fields={settled: true}", "schedule.lr=2.0e-4")
"""Behind VGG16 as it is drawn gates stay shut, and faster steps end it before it has learnt anything."""
RAW = (*CLIPS, "network.fields={trunk: [], kernel: 3, gate: sigmoid}", "schedule.lr=0.01")
"""Without VGG16 the published kernel of 1 sees colours and no shapes."""
CASES = {
    "single-rnn": Case("single-rnn", (BOXES,), changes=LATE),
    "sfgru": Case("sfgru", (BOXES,), changes=LATE),
    "pcpa": Case("pcpa", (BOXES,), changes=LATE),
    "biped": Case("biped", (BOXES,), changes=LATE),
    "pedformer": Case("pedformer", (BOXES,), changes=LATE),
    "vgg16 + crops": Case("vgg16", (CROP,), "single-rnn"),
    "resnet50 + crops": Case("resnet50", (CROP,), "single-rnn"),
    "convlstm + crops": Case("convlstm", (CROP,), "single-rnn", SETTLED),
    "convlstm, no trunk + crops": Case("convlstm", (CROP,), "single-rnn", RAW),
    "c3d + crops": Case("c3d", (CROP,), "single-rnn", CLIPS),
    "i3d + crops": Case("i3d", (CROP,), "single-rnn"),
    "two-stream + crops": Case("two-stream", (CROP,), "single-rnn", CLIPS),
    "sfgru + crops": Case("sfgru", (CROP, BOXES), "sfgru", SETTLED),
    "pcpa + crops": Case("pcpa", (CROP, BOXES), "pcpa"),
    "biped + maps": Case("biped", (BOXES, MAPS), "biped", LATE),
    "pedformer + maps": Case("pedformer", (BOXES, MAPS), "pedformer", LATE),
    "spi-net + pose": Case("spi-net", (POSE, BOXES), "single-rnn", LATE),
    "trouspi-net + pose": Case("trouspi-net", (POSE, BOXES), "single-rnn", LATE),
    "sfgru + pose": Case("sfgru", (POSE, BOXES), "sfgru", LATE),
    "pcpa + pose": Case("pcpa", (POSE, BOXES), "pcpa", LATE),
    "biped + pose": Case("biped", (POSE, BOXES), "biped", LATE),
    "pedformer + pose": Case("pedformer", (POSE, BOXES), "pedformer", LATE),
}


def run(name: str, made: Path, out: Path) -> None:
    """Train one row, unless its facts are there: parameters, CPU seconds and scores on test.

    Args:
        name: of the row.
        made: folder of the scenes.
        out: of all rows.
    """
    from roadaware.metrics.pedestrians import collect_sample_scores
    from roadaware.training.pedestrians.run import evaluate_run, train_predictors
    from roadaware.training.recipe_files import read_recipe

    folder = _folder(out, name)
    if (folder / "facts.json").exists():
        return
    case = CASES[name]
    inputs = f"[{', '.join(case.inputs)}]"
    changes = [
        f"network.name={case.network}",
        f"network.inputs={inputs}",
        f"samples.root={made}",
        "threads=1",
    ]
    recipe: Any = read_recipe(RECIPE, [*changes, "threads=1", *case.changes])
    trained = train_predictors(recipe, folder)
    spent = sum(json.loads(path.read_text())["cpu_s"] for path in folder.glob("seed-*/timing.json"))
    judged = evaluate_run(trained, "test")
    predictor = next(iter(trained.predictors.values()))
    state, _ = collect_sample_scores(next(iter(judged.predictions.values())), judged.scenes, "action")
    facts = {
        "case": name,
        "inputs": case.inputs,
        "parameters": sum(p.numel() for p in predictor.network.parameters()),
        "cpu_s": spent,
        "validation": trained.validation[recipe.seeds[0]],
        "best_epoch": predictor.facts["best_epoch"],
        "scores": state.scores.ravel().tolist(),
        "truth": state.truth.tolist(),
        "pedestrian": state.pedestrian.tolist(),
        "video": [] if state.video is None else state.video.tolist(),
    }
    (folder / "facts.json").write_text(json.dumps(facts))


def known(out: Path) -> dict[str, dict[str, Any]]:
    """What is known of each row that was trained, in the order of CASES."""
    found = {name: _folder(out, name) / "facts.json" for name in CASES}
    return {name: json.loads(path.read_text()) for name, path in found.items() if path.exists()}


def _folder(out: Path, name: str) -> Path:
    return out / name.replace(" + ", "-with-").replace(", ", "-").replace(" ", "-")


def table(rows: dict[str, dict[str, Any]]) -> str:
    """One line for each row, and what becomes of the difference to its twin."""
    from roadaware.analysis.compare import compare
    from roadaware.metrics.pedestrians import PedestrianConfig, evaluate_samples

    config = PedestrianConfig.default("action")
    lines = [
        "| network | inputs | parameters | CPU s | AUC | over its twin | AP | over its twin | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, facts in rows.items():
        state, twin = _state(facts), CASES[name].twin
        judged = evaluate_samples(state, config, resamples=RESAMPLES).of_group(None)
        alone = {row["metric"]: row for row in judged.iter_rows(named=True)}
        cells = {metric: [_told(alone[metric], "value"), ""] for metric in ("auc", "average_precision")}
        verdict = "" if twin else "boxes alone"
        if twin in rows:
            found = compare(state, _state(rows[twin]), config, resamples=RESAMPLES)
            paired = {row["metric"]: row for row in found.table.iter_rows(named=True)}
            for metric, cell in cells.items():
                cell[1] = _told(paired[metric], "difference", "+")
            better = all(found.verdict(metric) == "better" for metric in cells)
            verdict = f"beats {twin}" if better else f"**fails** against {twin}"
        inputs = ", ".join(f"`{each}`" for each in facts["inputs"])
        told = [name, inputs, f"{facts['parameters']:,}", f"{facts['cpu_s']:.0f}"]
        lines.append(f"| {' | '.join([*told, *cells['auc'], *cells['average_precision'], verdict])} |")
    return "\n".join(lines)


def _state(facts: dict[str, Any]) -> Any:
    import numpy as np

    from roadaware.metrics.scores import SampleScores

    names = [np.array(facts[key], dtype=np.str_) for key in ("pedestrian", "video")]
    return SampleScores(np.array(facts["scores"]), np.array(facts["truth"]), *names)


def _told(row: dict[str, Any], key: str, sign: str = "") -> str:
    """A number with its interval over videos, which is the wider one: people of a scene share its street."""
    return f"{row[key]:{sign}.3f} [{row['low_video']:{sign}.3f}, {row['high_video']:{sign}.3f}]"


def write(out: Path) -> None:
    """Put the table into the page."""
    from roadaware.io.files import write_atomically

    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    page = f"{before}{BEGIN}\n\n{table(known(out))}\n\n{END}{rest.split(END)[1]}"
    write_atomically(PAGE, page.encode())


def sheet(made: Path) -> None:
    """Draw crops of people who will cross, and below them of people who will not.

    Args:
        made: folder of the scenes.
    """
    import numpy as np
    from PIL import Image

    from roadaware.tasks.pedestrians import build_examples
    from roadaware.training.pedestrians.samples import build_fold, load_samples
    from roadaware.training.recipe_files import read_recipe

    recipe: Any = read_recipe(RECIPE, [f"samples.root={made}"])
    material = load_samples(recipe.samples, "action")
    given = build_fold(material, "test", (CROP,), recipe).inputs
    truth = build_examples(material.cut, "test").truth
    lines = [np.flatnonzero(truth == label)[:16] for label in (1, 0)]
    shown = [given.take(rows)[CROP][:, -1, :, 12:52] for rows in lines]
    picture = np.concatenate([np.concatenate(list(crops), axis=1) for crops in shown])
    Image.fromarray(picture).save(PAGE.parent / "images" / "kerb.png", optimize=True)


def main(words: Sequence[str]) -> None:
    """Train what is not there, then write the page."""
    made, out = Path(words[0]), Path(words[1])
    for name in words[2:] or CASES:
        run(name, made, out)
    sheet(made)
    write(out)


if __name__ == "__main__":
    main(sys.argv[1:])
