"""A detector between two others is their mean, weight by weight."""

from __future__ import annotations

from pathlib import Path

import pytest

from roadaware.errors import UsageError

torch = pytest.importorskip("torch")


@pytest.mark.slow
def test_a_mean_lies_between_and_ends_are_the_detectors(tmp_path: Path) -> None:
    from benchmarks.mixed_weights import mix

    from roadaware.models.detector import read_notes
    from roadaware.models.weights import open_network, save_detector
    from roadaware.online.setup import find_bundled_weights

    former = find_bundled_weights()
    network, facts = open_network(former)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(1.0)
    kinds = {str(kind): tuple(labels) for kind, labels in dict(facts["kinds"]).items()}
    tuned = tmp_path / "tuned.safetensors"
    save_detector(tuned, network, kinds, tuple(facts["av_labels"]), {"name": "tuned"})
    held = dict(open_network(former)[0].named_parameters())
    for share in (0.0, 0.25, 1.0):
        mix(former, tuned, share, tmp_path / "mean.safetensors")
        for name, weight in open_network(tmp_path / "mean.safetensors")[0].named_parameters():
            torch.testing.assert_close(weight, held[name] + share, rtol=0, atol=1e-5)
    assert read_notes(tmp_path / "mean.safetensors")["mean"]["share"] == 1.0
    with pytest.raises(UsageError, match="0 to 1"):
        mix(former, tuned, 1.5, tmp_path / "no.safetensors")
