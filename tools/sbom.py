"""Prints what is installed for roadaware as a CycloneDX document: `make sbom`.

Packages that roadaware needs, with its extras `models`, `export` and `viewer`, as they stand in this environment:
names, versions, licences as they state them, and who needs whom. No times and no paths, so that the same
environment gives the same bytes. https://cyclonedx.org/docs/1.6/json/ says what the fields are.
"""

from __future__ import annotations

import json
import sys
import uuid
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any
from urllib.parse import quote

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT, EXTRAS = "roadaware", frozenset({"models", "export", "viewer"})


def needed(root: str, extras: frozenset[str]) -> tuple[dict[str, Distribution], dict[str, list[str]]]:
    """Every installed package that is needed, by name, and the names of those that each needs itself.

    Args:
        root: a package that is installed.
        extras: of it.

    Raises:
        PackageNotFoundError: if one that is needed is not installed.
    """
    found: dict[str, Distribution] = {}
    needs: dict[str, set[str]] = {}
    left = [(canonicalize_name(root), extras)]
    seen = set(left)
    while left:
        name, wanted = left.pop()
        found[name] = held = distribution(name)
        for line in held.requires or ():
            requirement = Requirement(line)
            marker = requirement.marker
            if marker and not any(marker.evaluate({"extra": extra}) for extra in ("", *wanted)):
                continue
            other = (canonicalize_name(requirement.name), frozenset(requirement.extras))
            if other[0] != name:  # an extra may name other extras of its own package
                needs.setdefault(name, set()).add(other[0])
            if other not in seen:
                seen.add(other)
                left.append(other)
    return found, {name: sorted(needs.get(name, ())) for name in found}


def document(root: str = ROOT, extras: frozenset[str] = EXTRAS) -> dict[str, Any]:
    """The document, JSON-ready.

    Args:
        root, extras: as of `needed`.

    Raises:
        PackageNotFoundError: if a package that is needed is not installed.
    """
    found, needs = needed(root, extras)
    references = {name: _reference(name, held.version) for name, held in found.items()}
    parts = {name: _component(name, held, references[name]) for name, held in sorted(found.items())}
    content = {
        "metadata": {"component": {**parts.pop(canonicalize_name(root)), "type": "application"}},
        "components": list(parts.values()),
        "dependencies": [
            {"ref": references[name], "dependsOn": [references[each] for each in needs[name]]}
            for name in sorted(found)
        ],
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{number}"}
    return {**head, "version": 1, **content}


def _reference(name: str, version: str) -> str:
    """The package URL."""
    return f"pkg:pypi/{name}@{quote(version, safe='.-_')}"


def _component(name: str, held: Distribution, reference: str) -> dict[str, Any]:
    about = {"type": "library", "bom-ref": reference, "name": name, "version": held.version}
    return {**about, "purl": reference, **_licences(held)}


def _licences(held: Distribution) -> dict[str, Any]:
    """As an SPDX expression where the package states one, else in its own words, if it has any."""
    if stated := held.metadata.get("License-Expression"):
        return {"licenses": [{"expression": stated}]}
    classified = [
        line.rpartition(" :: ")[2]
        for line in held.metadata.get_all("Classifier") or ()
        if line.startswith("License :: ") and line != "License :: OSI Approved"
    ]
    text = (held.metadata.get("License") or "").strip()
    names = sorted(set(classified)) or ([text] if text and "\n" not in text and len(text) < 100 else [])
    return {"licenses": [{"license": {"name": name}} for name in names]} if names else {}


def main() -> int:
    """Print the document."""
    try:
        print(json.dumps(document(), indent=1))
    except PackageNotFoundError as error:
        print(f"{error.name} is not installed: run `make setup` first", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
