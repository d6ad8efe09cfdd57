"""A bill of materials (CycloneDX 1.6) of the environment that runs this file: Bindscope, what it was installed with, and the page's packages.

    python release/bill.py dist/bindscope-0.1.0-py3-none-any.whl bindscope.cdx.json

It reads what is installed, not what was asked for, and says of no file when it was made: the same environment gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

OWN, INSTALLER = "bindscope", "pip"


def main() -> int:
    archive, target = map(Path, sys.argv[1:])
    target.write_text(json.dumps(make_bill(archive), indent=1) + "\n", encoding="utf-8")
    print(f"{target}: {len(json.loads(target.read_text())['components'])} components")
    return 0


def make_bill(archive: Path, folders: list[str] = sys.path) -> dict[str, Any]:
    """The bill of what is installed in these folders."""
    found = {plain(each.name): each for each in distributions(path=folders)}
    own, _ = found.pop(OWN), found.pop(INSTALLER, None)
    page = json.loads(own.read_text("sboms/page.cdx.json") or "{}")["components"]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**describe(own, "application"), "hashes": [hash_of(archive)]}},
        "components": [*(describe(found[name]) for name in sorted(found)), *page],
        "dependencies": [
            {"ref": address(own), "dependsOn": sorted([*needs(own, found), *(each["bom-ref"] for each in page)])},
            *({"ref": address(found[name]), "dependsOn": needs(found[name], found)} for name in sorted(found)),
        ],
    }


def describe(package: Distribution, kind: str = "library") -> dict[str, Any]:
    return {
        "type": kind,
        "bom-ref": address(package),
        "name": package.name,
        "version": package.version,
        "licenses": licences(package),
        "purl": address(package),
    }


def licences(package: Distribution) -> list[dict[str, Any]]:
    """As the package states it: an expression, else its classifiers, else the first line of what it says."""
    said = package.metadata
    if expressions := said.get_all("License-Expression"):
        return [{"expression": expressions[0]}]
    classifiers = [
        each.rpartition(" :: ")[2] for each in said.get_all("Classifier", []) if each.startswith("License ::")
    ]
    names = classifiers or said.get_all("License", [""])[0].strip().splitlines()[:1]
    return [{"license": {"name": name}} for name in names]


def needs(package: Distribution, found: dict[str, Distribution]) -> list[str]:
    """What it requires without extras, as far as that is installed; what is for other systems is not."""
    asked = (each for each in package.requires or () if "extra ==" not in each)
    names = {plain(re.split(r"[^\w.-]", each, maxsplit=1)[0]) for each in asked}
    return sorted(address(found[name]) for name in names & found.keys())


def address(package: Distribution) -> str:
    return f"pkg:pypi/{plain(package.name)}@{package.version.replace('+', '%2B')}"


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def hash_of(archive: Path) -> dict[str, str]:
    return {"alg": "SHA-256", "content": hashlib.sha256(archive.read_bytes()).hexdigest()}


if __name__ == "__main__":
    sys.exit(main())
