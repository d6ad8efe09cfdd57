"""What Bindscope is made of: every version and hash of its development environment, what is bundled, and that every command is tried."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bindscope.cli.main import COMMANDS

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


def load(file: str) -> ModuleType:
    described = importlib.util.spec_from_file_location(Path(file).stem, ROOT / file)
    assert described is not None
    assert described.loader is not None
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module


def test_the_lock_has_a_version_in_range_and_hashes_for_all_that_tests_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    asked = [
        *project["project"]["dependencies"],
        *extras["test"],
        *extras["interop"],
        *project["build-system"]["requires"],
    ]
    entries = re.findall(r"^([\w.-]+)==([^\s;]+)(.*(?:\n    --hash=sha256:[0-9a-f]{64}.*)+)", LOCK, flags=re.MULTILINE)
    assert len(entries) == len(re.findall(r"^\w", LOCK, flags=re.MULTILINE))  # none without a hash
    versions: dict[str, set[str]] = {}
    for name, version, _ in entries:
        versions.setdefault(name, set()).add(version)
    for requirement in map(Requirement, asked):
        name = canonicalize_name(requirement.name)
        assert versions[name], name
        assert all(requirement.specifier.contains(version) for version in versions[name]), (
            f"{requirement}: run 'make lock'"
        )


def test_the_lock_names_no_place_to_fetch_from() -> None:
    assert "://" not in LOCK
    assert "index-url" not in LOCK
    assert "find-links" not in LOCK


def test_every_command_is_tried_where_bindscope_is_installed() -> None:
    uses = {line.split()[0] for line in load("release/smoke.py").USES.splitlines() if line}
    assert uses == set(COMMANDS)


def make_package(frontend: Path, name: str, licence: str | None = "Permission is granted.") -> str:
    folder = frontend / "node_modules" / name
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"name": name, "version": "1.2.3", "license": "ISC"}))
    if licence is not None:
        (folder / "LICENSE.md").write_text(licence)
    return f"node_modules/{name}"


def test_the_page_names_every_package_in_it_with_its_licence(tmp_path: Path) -> None:
    hook = load("hatch_build.py")
    names = [make_package(tmp_path, "plain"), make_package(tmp_path, "@scope/part", f"Mine.\n{hook.OTHERS}\nTheirs.")]
    (tmp_path / hook.PACKAGES).write_text(json.dumps(names))
    hook.name_packages(tmp_path, tmp_path)
    licences = (tmp_path / hook.LICENCES).read_text()
    assert "plain 1.2.3 (ISC)" in licences
    assert "Permission is granted." in licences
    assert "Mine." in licences
    assert "Theirs." not in licences
    bill = json.loads((tmp_path / hook.BILL).read_text())
    assert [each["purl"] for each in bill["components"]] == ["pkg:npm/plain@1.2.3", "pkg:npm/%40scope/part@1.2.3"]


def test_a_package_without_a_licence_is_not_bundled(tmp_path: Path) -> None:
    hook = load("hatch_build.py")
    (tmp_path / hook.PACKAGES).write_text(json.dumps([make_package(tmp_path, "bare", licence=None)]))
    with pytest.raises(SystemExit, match=r"bare is bundled into the page, but .* has no licence"):
        hook.name_packages(tmp_path, tmp_path)


def install(folder: Path, name: str, version: str, *lines: str) -> Path:
    made = folder / f"{name}-{version}.dist-info"
    made.mkdir()
    (made / "METADATA").write_text(
        "\n".join(["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *lines, ""])
    )
    return made


def test_the_bill_of_materials_holds_all_that_is_installed_and_what_needs_what(tmp_path: Path) -> None:
    own = install(
        tmp_path, "bindscope", "0.1.0", "License-Expression: MIT",
        "Requires-Dist: Some_Thing>=1", "Requires-Dist: other; extra == 'test'", "Requires-Dist: absent; sys_platform == 'win32'",
    )  # fmt: skip
    page = [{"bom-ref": "pkg:npm/plain@1.2.3"}]
    (own / "sboms").mkdir()
    (own / "sboms" / "page.cdx.json").write_text(json.dumps({"components": page}))
    install(tmp_path, "some.thing", "1.5+cpu", "Classifier: License :: OSI Approved :: BSD License")
    install(tmp_path, "other", "2", "License: Own\n  and more")
    install(tmp_path, "pip", "24")
    (tmp_path / "bindscope.whl").write_bytes(b"")
    bill = load("release/bill.py").make_bill(tmp_path / "bindscope.whl", [str(tmp_path)])
    assert [each.get("purl") for each in bill["components"]] == [
        "pkg:pypi/other@2",
        "pkg:pypi/some-thing@1.5%2Bcpu",
        None,
    ]
    assert [each.get("licenses") for each in bill["components"]] == [
        [{"license": {"name": "Own"}}], [{"license": {"name": "BSD License"}}], None,
    ]  # fmt: skip
    assert bill["dependencies"][0] == {
        "ref": "pkg:pypi/bindscope@0.1.0",
        "dependsOn": ["pkg:npm/plain@1.2.3", "pkg:pypi/some-thing@1.5%2Bcpu"],
    }
    assert bill["metadata"]["component"]["hashes"][0]["content"].startswith("e3b0c44298fc1c14")


def test_an_archive_above_its_budget_fails_the_release(tmp_path: Path) -> None:
    build = load("release/build.py")
    small, large = tmp_path / "small.whl", tmp_path / "large.whl"
    for path, size in ((small, build.MOST_MB * 1e6), (large, build.MOST_MB * 1e6 + 1)):
        with path.open("wb") as file:
            file.truncate(int(size))
    assert build.too_large([large, small]) == ["large.whl"]
    said = (ROOT / "docs" / "supply.md").read_text(encoding="utf-8")
    assert f"its budget of {build.MOST_MB} MB" in said
