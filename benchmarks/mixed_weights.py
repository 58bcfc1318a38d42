"""A detector between two of the same network: each weight a mean of theirs.

    python -m benchmarks.mixed_weights FORMER TUNED --share 0.7 --write OUT

Tuning on new scenes forgets some of the former ones; a mean of both knows most of either (Wortsman et al.,
"Robust fine-tuning of zero-shot models", CVPR 2022).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from roadaware.errors import UsageError
from roadaware.models.weights import open_network, save_detector


def mix(former: Path, tuned: Path, share: float, target: Path) -> None:
    """Write the mean of two detectors; counters of batches are those of the second.

    Args:
        former: file of ours.
        tuned: another, of the same network.
        share: of the second, 0 to 1.
        target: where to; its notes are those of the second, and say what it is a mean of.

    Raises:
        UsageError: if they are of different networks or labels, or the share is none.
    """
    one, facts = open_network(former)
    other, more = open_network(tuned)
    if not 0 <= share <= 1:
        raise UsageError(f"--share is 0 to 1, not {share:g}")
    if any(facts[name] != more[name] for name in ("config", "kinds", "av_labels")):
        raise UsageError(f"{former} and {tuned} are of different networks: mix detectors of one")
    held, wanted = one.state_dict(), other.state_dict()
    other.load_state_dict(
        {
            name: held[name].lerp(tensor, share) if tensor.is_floating_point() else tensor
            for name, tensor in wanted.items()
        }
    )
    kinds = {str(kind): tuple(labels) for kind, labels in dict(more["kinds"]).items()}
    mean = {"share": share, "former": facts["digest"], "tuned": more["digest"]}
    save_detector(target, other, kinds, tuple(more["av_labels"]), {**more["notes"], "mean": mean})


def main() -> None:
    """Mix two files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("former", type=Path)
    parser.add_argument("tuned", type=Path)
    parser.add_argument("--share", type=float, default=0.7, help="of the second, 0 to 1")
    parser.add_argument("--write", type=Path, required=True)
    asked = parser.parse_args()
    mix(asked.former, asked.tuned, asked.share, asked.write)


if __name__ == "__main__":
    main()
