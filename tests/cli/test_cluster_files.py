"""The script for SLURM on stand-ins for its programs, and the manifest for KubeRay against the fields that it knows."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from roadaware.io.yaml import read_yaml

FILES = Path(__file__).parents[2] / "docs/cluster"
STAND_INS = {
    "scontrol": "printf 'n1\\nn2\\nn3\\n'",
    # What follows the options is what runs on a node.
    "srun": """while [[ $1 == --* ]]; do given+=" $1"; shift; done
echo "srun$given: $*" >> log
[[ $1 == hostname ]] && { echo '10.0.0.1 fd00::1'; exit; }
exec "$@" """,
    "ray": """echo "ray $*" >> log
[[ $1 == health-check ]] && { [[ -e up ]]; exit; }
[[ -e broken ]] && exit 1
touch up
echo $$ >> nodes
exec sleep 600""",
    "roadaware": """echo "roadaware $* at $RAY_ADDRESS" >> log
trap 'echo whole >> log; exit 130' TERM
[[ $1 == wait ]] && { touch at_work; for _ in {1..600}; do sleep 0.05; done; }
# The nodes of the workers start beside it, on a busy machine after it.
for _ in {1..600}; do [[ $(wc -l < nodes) == 2 ]] && exit 7; sleep 0.05; done""",
}


def run(folder: Path, *words: str) -> subprocess.Popen[str]:
    """The script, with stand-ins before everything else in the path."""
    for name, text in STAND_INS.items():
        program = folder / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/bash\n{text}\n")
        program.chmod(0o755)
    given = {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "SLURM_CPUS_PER_TASK": "8",
        "SLURM_JOB_NODELIST": "n[1-3]",
    }
    return subprocess.Popen(
        ["bash", str(FILES / "slurm.sh"), *words], cwd=folder, env=given, stderr=subprocess.PIPE, text=True
    )


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_the_script_starts_a_cluster_runs_the_command_and_ends_the_cluster(tmp_path: Path) -> None:
    assert run(tmp_path, "simulate", "--output", "a b").wait(60) == 7
    log = (tmp_path / "log").read_text()
    assert "roadaware simulate --output a b --on ray://auto --processes 24 at 10.0.0.1:6379\n" in log
    step = "srun --overlap --ntasks-per-node=1 --cpus-per-task=8"
    start = "ray start --num-cpus=8 --disable-usage-stats --block"
    head = "--head --node-ip-address=10.0.0.1 --port=6379 --include-dashboard=false"
    assert f"{step} --nodes=1 --ntasks=1 --nodelist=n1: {start} {head}\n" in log
    assert f"{step} --nodes=2 --ntasks=2 --nodelist=n2,n3: {start} --address=10.0.0.1:6379\n" in log
    assert not any(map(is_alive, map(int, (tmp_path / "nodes").read_text().split())))


def test_a_command_whose_job_ends_makes_whole_what_it_has(tmp_path: Path) -> None:
    script = run(tmp_path, "wait")
    until = time.monotonic() + 60
    while not (tmp_path / "at_work").exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    script.send_signal(signal.SIGTERM)
    assert script.wait(60) == 130
    assert "whole" in (tmp_path / "log").read_text()
    assert not any(map(is_alive, map(int, (tmp_path / "nodes").read_text().split())))


@pytest.mark.parametrize(
    ("words", "code", "said"), [([], 2, "expected a command"), (["simulate"], 1, "RAY_PORT")]
)
def test_a_cluster_that_cannot_be_is_said(tmp_path: Path, words: list[str], code: int, said: str) -> None:
    (tmp_path / "broken").touch()
    script = run(tmp_path, *words)
    assert script.wait(60) == code
    assert script.stderr is not None
    assert said in script.stderr.read()


# Of the fields of KubeRay's RayJob, ray.io/v1, those that a manifest may use, and of a pod those that ours does.
CONTAINER = {"name", "image", "workingDir", "env", "envFrom", "resources", "volumeMounts"}
POD = {"spec": {"containers": [dict.fromkeys(CONTAINER)], "volumes": None}}
RAY_JOB: dict[str, Any] = {
    "apiVersion": None,
    "kind": None,
    "metadata": {"generateName": None},
    "spec": {
        **dict.fromkeys(
            ("entrypoint", "backoffLimit", "shutdownAfterJobFinishes", "ttlSecondsAfterFinished")
        ),
        "rayClusterSpec": {
            "rayVersion": None,
            "headGroupSpec": {"rayStartParams": None, "template": POD},
            "workerGroupSpecs": [
                {
                    **dict.fromkeys(
                        ("groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams")
                    ),
                    "template": POD,
                }
            ],
        },
    },
}


def compare(found: Any, known: Any, where: str) -> None:
    if isinstance(known, dict):
        assert isinstance(found, dict), where
        assert set(found) == set(known), where
        for name, inner in known.items():
            compare(found[name], inner, f"{where}.{name}")
    elif isinstance(known, list):
        assert isinstance(found, list), where
        assert found, where
        for each in found:
            compare(each, known[0], where)


def test_the_manifest_has_the_fields_of_a_ray_job() -> None:
    manifest = read_yaml(FILES / "kuberay.yaml")
    compare(manifest, RAY_JOB, "manifest")
    assert (manifest["apiVersion"], manifest["kind"]) == ("ray.io/v1", "RayJob")
    cluster = manifest["spec"]["rayClusterSpec"]
    (group,) = cluster["workerGroupSpecs"]
    pods = [each["template"]["spec"] for each in (cluster["headGroupSpec"], group)]
    # The same folders and settings everywhere, and mounts that exist.
    for name in ("workingDir", "env", "envFrom", "volumeMounts", "image"):
        assert pods[0]["containers"][0][name] == pods[1]["containers"][0][name], name
    for pod in pods:
        mounted = {each["name"] for each in pod["containers"][0]["volumeMounts"]}
        assert mounted == {each["name"] for each in pod["volumes"]}
    # Parameters of `ray start` and values of the environment are strings; as many workers as processors.
    assert all(isinstance(value, str) for value in cluster["headGroupSpec"]["rayStartParams"].values())
    assert all(isinstance(each["value"], str) for each in pods[0]["containers"][0]["env"])
    processors = int(pods[1]["containers"][0]["resources"]["limits"]["cpu"]) * group["replicas"]
    assert f"--processes {processors} " in manifest["spec"]["entrypoint"]


def test_the_machines_of_a_cloud_are_as_many_and_alike() -> None:
    config = read_yaml(FILES / "aws.yaml")
    head, workers = (config["available_node_types"][name] for name in ("head", "workers"))
    assert config["head_node_type"] == "head"
    assert head["resources"] == {"CPU": 0}
    assert config["max_workers"] == workers["max_workers"]
    for name in ("ImageId", "IamInstanceProfile"):
        assert head["node_config"][name] == workers["node_config"][name]
    processors = workers["resources"]["CPU"] * workers["max_workers"]
    assert f"--processes {processors}" in (FILES / "aws.yaml").read_text()
    version = read_yaml(FILES / "kuberay.yaml")["spec"]["rayClusterSpec"]["rayVersion"]
    assert f"ray[default]=={version}" in config["setup_commands"][0]


@pytest.mark.slow
def test_ray_takes_the_file_of_a_cloud() -> None:
    util = pytest.importorskip("ray.autoscaler._private.util")
    pytest.importorskip("jsonschema")
    config = read_yaml(FILES / "aws.yaml")
    util.validate_config(util.prepare_config(config))
    with pytest.raises(Exception, match="max_worker'"):
        util.validate_config(util.prepare_config({**config, "max_worker": 1}))
