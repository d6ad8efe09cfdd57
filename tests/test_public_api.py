"""The names that a researcher needs are one import away, and stay."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import bindscope

ROOT = Path(__file__).parent.parent
PACKAGES = ("model", "training", "measures", "interventions", "subspaces", "theory", "runs")
NAMES = [
    "BindscopeError",
    "ModelConfig",
    "Run",
    "RunConfig",
    "Site",
    "Transformer",
    "ablate_heads",
    "contrast_pairs",
    "head_grid",
    "mlp_grid",
    "open_run",
    "open_study",
    "override",
    "patch",
    "patch_path",
    "preset",
    "read_model",
    "register_family",
    "residual_grid",
    "resume",
    "run",
    "train",
]


def test_the_public_names_are_these():
    assert sorted(bindscope.PUBLIC) == NAMES
    assert dir(bindscope) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_can_be_used_and_says_what_it_is_for(name):
    assert (getattr(bindscope, name).__doc__ or "").strip()


def test_type_checkers_see_the_same_names():
    stub = ast.parse((ROOT / "src" / "bindscope" / "__init__.pyi").read_text())
    imported = {
        f"{alias.asname}": f"{node.module}:{alias.name}"
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    declared = {name: where if ":" in where else f"{where}:{name}" for name, where in bindscope.PUBLIC.items()}
    assert imported == declared


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_on_a_package_list_is_there(package):
    module = import_module(f"bindscope.{package}")
    assert 1 <= len(module.__all__) <= 25
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        module.nothing_of_that_name  # noqa: B018


def test_importing_bindscope_imports_nothing_heavy():
    script = "import sys, bindscope, bindscope.model, bindscope.runs; print({'torch', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_python_of_the_readme_needs_no_deep_import():
    readme = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", readme, re.S)
    assert blocks
    assert not [line for block in blocks for line in block.splitlines() if re.match(r"\s*from bindscope\.", line)]
