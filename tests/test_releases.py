"""What a release says of its parts: a version of each in constraints.txt, and a list of what is needed."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def wanted() -> list[Requirement]:
    """All that pyproject.toml asks for with the extra `dev`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [
        *project["dependencies"],
        *(line for name in ("models", "export", "viewer", "dev") for line in extras[name]),
    ]
    return [each for each in map(Requirement, lines) if each.name != "roadaware"]


def locked() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [Requirement(line) for line in lines if not line.startswith("#")]


def on(python: str) -> dict[str, str]:
    """What markers see on a Linux machine with that Python."""
    seen = {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"}
    return {**default_environment(), **seen, "python_version": python, "python_full_version": f"{python}.1"}


@pytest.mark.parametrize("python", PYTHONS)
def test_every_requirement_has_one_version_that_it_allows(python: str) -> None:
    held: dict[str, list[str]] = {}
    for line in locked():
        if line.marker is None or line.marker.evaluate(on(python)):
            held.setdefault(canonicalize_name(line.name), []).append(str(line.specifier).removeprefix("=="))
    for requirement in wanted():
        versions = held.get(canonicalize_name(requirement.name), [])
        assert len(versions) == 1, f"{requirement.name} on {python}: {versions}; run `make lock`"
        assert requirement.specifier.contains(versions[0]), (
            f"{requirement} and {versions[0]}; run `make lock`"
        )


def test_the_lock_holds_versions_alone() -> None:
    for line in locked():
        assert line.url is None
        assert [each.operator for each in line.specifier] == ["=="], str(line)
    text = (ROOT / "constraints.txt").read_text()
    assert not any(sign in text for sign in ("://", "--", "file:", "@"))


def test_what_pip_took_here_is_within_the_requirements() -> None:
    """What stands in this environment would also be taken by the list of parts."""
    from importlib.metadata import version

    for requirement in wanted():
        if not requirement.name.endswith("-stubs"):
            found = version(requirement.name)
            assert requirement.specifier.contains(found.partition("+")[0]), f"{requirement}, found {found}"


@pytest.fixture(scope="module")
def parts() -> dict[str, Any]:
    command = [sys.executable, str(ROOT / "tools" / "sbom.py")]
    first, again = (subprocess.run(command, capture_output=True, check=True).stdout for _ in range(2))
    assert first == again
    return json.loads(first)


def test_the_list_of_parts_is_closed_and_names_no_place(parts: dict[str, Any]) -> None:
    known = {each["bom-ref"] for each in parts["components"]} | {parts["metadata"]["component"]["bom-ref"]}
    assert {each["ref"] for each in parts["dependencies"]} == known
    assert {name for each in parts["dependencies"] for name in each["dependsOn"]} <= known
    names = {each["name"] for each in parts["components"]}
    asked = {canonicalize_name(line.name) for line in wanted()}
    own = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {canonicalize_name(Requirement(line).name) for line in own} <= names
    assert "torch" in names
    assert "pytest" in asked - names, "what only tests need is no part of a release"
    text = json.dumps(parts)
    assert str(ROOT) not in text
    assert "file:" not in text


def test_the_list_of_parts_follows_its_schema(parts: dict[str, Any]) -> None:
    validation = pytest.importorskip(
        "cyclonedx.validation.json", reason="`pip install -e '.[release]'` has it"
    )
    from cyclonedx.schema import SchemaVersion

    assert validation.JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(parts)) is None
    broken = json.dumps({**parts, "components": [{"type": "library"}]})
    assert validation.JsonStrictValidator(SchemaVersion.V1_6).validate_str(broken) is not None


def test_advisories_that_cannot_be_asked_for_are_no_answer(tmp_path: Path) -> None:
    """Without the tool, or with one that reaches nobody, the check does not pass."""
    (tmp_path / "pip_audit.py").write_text("import sys; sys.exit('no network')\n")
    command = [sys.executable, str(ROOT / "tools" / "audit.py")]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path)}, check=False
    )
    assert done.returncode == 2
    assert "could NOT be asked" in done.stderr
    assert "no network" in done.stderr
    (tmp_path / "pip_audit.py").write_text(
        "import json; print(json.dumps({'dependencies': [{'name': 'a', 'version': '1', 'vulns': "
        "[{'id': 'X-1', 'fix_versions': ['2']}]}]}))\n"
    )
    done = subprocess.run(
        command, capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path)}, check=False
    )
    assert done.returncode == 1
    assert "X-1" in done.stdout
