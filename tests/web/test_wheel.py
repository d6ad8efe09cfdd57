"""The package as it is installed: the page is inside, whole, and nothing of its sources or third parties besides."""

from __future__ import annotations

import json
import posixpath
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STATIC = "bindscope/web/static/"
NAMED = r"[\"'(`](\.{0,2}/?(?:assets/)?[\w.-]+-[\w-]{8}\.(?:js|css|svg|png|woff2?))"  # a file with a hash in its name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """A wheel packed from this checkout, with the build requirements that are installed already."""
    if not (ROOT / "hatch_build.py").is_file():
        pytest.skip("not a checkout")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as opened:
        yield opened


def test_every_asset_that_the_page_names_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    waiting, seen = ["index.html"], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        assert STATIC + name in names
        if name.endswith((".html", ".js", ".css")):
            text = wheel.read(STATIC + name).decode()
            folder = name.rpartition("/")[0]
            for found in re.findall(NAMED, text):
                beside, below = (
                    posixpath.normpath(f"{start}{found}") for start in (f"{folder}/" if folder else "", "")
                )
                waiting.append(beside if STATIC + beside in names else below)
    assert {name for name in seen if name.endswith(".js")} >= {
        name.removeprefix(STATIC) for name in names if name.startswith(STATIC) and name.endswith(".js")
    }, "a script that nothing names"


def test_the_page_names_no_other_host(wheel: zipfile.ZipFile) -> None:
    """Addresses in the bundle are namespaces of SVG and links for people, never something to fetch."""
    page = wheel.read(f"{STATIC}index.html").decode()
    assert not re.search(r"(?:src|href)=[\"'](?:https?:)?//", page)
    assert not re.search(r"(?:src|href)=[\"']/", page), "addresses must be relative, to work under a sub-path"


def test_the_wheel_holds_runs_and_results_but_no_sources_of_the_page(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    assert any(name.startswith("bindscope/shipped/binding-laptop/checkpoints/") for name in names)
    assert not [name for name in names if "node_modules" in name or name.endswith((".svelte", ".ts"))]


def test_licences_and_a_bill_of_materials_go_with_what_is_bundled(wheel: zipfile.ZipFile) -> None:
    (sbom,) = (name for name in wheel.namelist() if name.endswith(".dist-info/sboms/page.cdx.json"))
    components = json.loads(wheel.read(sbom))["components"]
    licences = wheel.read(f"{STATIC}THIRD-PARTY.txt").decode()
    assert {"svelte", "d3-scale", "vite"} <= {each["name"] for each in components}  # vite puts its loader in
    for each in components:
        assert f"\n{each['name']} {each['version']} ({each['licenses'][0]['expression']})\n====" in licences
