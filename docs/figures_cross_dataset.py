"""Draw the images of predictors out of domain again: `docs/figures_cross_dataset.py STUDY DOUBT MODEL`."""

from __future__ import annotations

import sys
from pathlib import Path

from roadaware.io.files import write_atomically
from roadaware.protocols.cross_dataset.config import CrossResults
from roadaware.reports.cross_dataset_cells import Study
from roadaware.reports.cross_dataset_figures import (
    plot_heat_maps,
    plot_reliability_by_set,
    plot_summary,
    plot_test_sets,
    rank_picture,
)
from roadaware.reports.cross_dataset_sections import Resamples, compute_effects, plot_pretraining
from roadaware.reports.page import Picture


def main(folder: Path, doubt: Path, model: str) -> None:
    """Draw what there is, and print the caption of each.

    Args:
        folder: that `roadaware cross-dataset` wrote.
        doubt: that it wrote of a study with uncertainty methods.
        model: whose reliability and doubt are drawn.
    """
    study, doubted = (Study(CrossResults.open(each)) for each in (folder, doubt))
    pictures: dict[str, Picture | str | None] = {
        "away_test_sets": plot_test_sets(study, "auc"),
        "away_matrix": plot_heat_maps(study, "auc"),
        "away_together": plot_summary(study, ("auc", "ece")),
        "away_reliability": plot_reliability_by_set(study, model),
        "away_ranks": rank_picture(study, "auc"),
        "away_doubt": plot_summary(doubted, ("auc", "ece"), model=model),
        "away_pretraining": plot_pretraining("ece", compute_effects(Resamples(study), "ece")),
    }
    for name, picture in pictures.items():
        if not isinstance(picture, Picture):
            print(f"{name}: {picture or 'nothing to draw'}")
            continue
        path = Path(__file__).parent / "images" / f"{name}.svg"
        write_atomically(path, picture.svg(name).encode())
        print(f"{path.name} ({path.stat().st_size / 1000:.0f} kB): {picture.caption}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
