"""Draw the pictures of predictors away from home again: `docs/pictures_away.py STUDY DOUBT MODEL`."""

from __future__ import annotations

import sys
from pathlib import Path

from roadaware.protocols.cross_dataset.results import CrossResults
from roadaware.reports.cross_dataset_cells import Study
from roadaware.reports.cross_dataset_figures import heat_maps
from roadaware.reports.cross_dataset_figures import by_test_set, together
from roadaware.reports.cross_dataset_sections import Resamples, effects, pretraining_picture
from roadaware.reports.cross_dataset_figures import rank_picture
from roadaware.reports.cross_dataset_figures import reliability_by_test_set
from roadaware.reports.picture import Picture
from roadaware.io.files import atomic_write


def main(folder: Path, doubt: Path, model: str) -> None:
    """Draw what there is, and print the caption of each.

    Args:
        folder: that `roadaware cross` wrote.
        doubt: that it wrote of a study with ways to doubt.
        model: whose reliability and doubt are drawn.
    """
    study, doubted = (Study(CrossResults.open(each)) for each in (folder, doubt))
    pictures: dict[str, Picture | str | None] = {
        "away_test_sets": by_test_set(study, "auc"),
        "away_matrix": heat_maps(study, "auc"),
        "away_together": together(study, ("auc", "ece")),
        "away_reliability": reliability_by_test_set(study, model),
        "away_ranks": rank_picture(study, "auc"),
        "away_doubt": together(doubted, ("auc", "ece"), model=model),
        "away_pretraining": pretraining_picture(study, "ece", effects(Resamples(study), "ece")),
    }
    for name, picture in pictures.items():
        if not isinstance(picture, Picture):
            print(f"{name}: {picture or 'nothing to draw'}")
            continue
        path = Path(__file__).parent / "images" / f"{name}.svg"
        atomic_write(path, picture.svg(name).encode())
        print(f"{path.name} ({path.stat().st_size / 1000:.0f} kB): {picture.caption}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
