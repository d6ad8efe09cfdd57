"""The Python reference shows everything that is public, and what it shows works."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bindscope
from bindscope.cli.api_page import VIEWS, Docstring, describe_api, find_class, methods_of
from bindscope.runs.locate import SHIPPED_DIRECTORY

# What an example would need that is not there, or minutes of training: such lines are only compiled.
ELSEWHERE = ("recall-small", "RecallFamily", "out-shakespeare-char", "chain.safetensors", "runs/tiny", "run.retrain")


def methods() -> Iterator[tuple[str, Any]]:
    for location, called, _ in VIEWS:
        for name, method in methods_of(find_class(location)):
            yield f"{called}.{name}", method


@pytest.mark.parametrize("name", bindscope.PUBLIC)
def test_a_public_name_has_an_example_of_itself(name: str) -> None:
    thing = getattr(bindscope, name)
    says = Docstring.of(thing)
    assert says.text
    assert thing.__name__ in says.example


def test_every_method_of_what_is_opened_has_an_example_of_itself() -> None:
    asked = [(name, method) for name, method in methods() if inspect.isfunction(method)]
    assert len(asked) > 40
    assert [name for name, method in asked if f".{method.__name__}(" not in Docstring.of(method).example] == []


def test_everything_that_is_opened_says_what_it_is() -> None:
    page = describe_api()
    assert [name for name, _ in methods() if f"`{name}`: \n" in page or f"{name}\n\n\n" in page] == []
    for name, method in methods():
        if inspect.isfunction(method):
            assert set(Docstring.of(method).parameters) <= set(inspect.signature(method).parameters), name
            assert f"### {name}\n" in page
        else:
            assert f"- `{name}`: " in page


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "binding-tiny").symlink_to(SHIPPED_DIRECTORY / "binding-laptop")
    monkeypatch.chdir(tmp_path)
    shown: dict[str, Any] = {}
    failed = []
    for block in examples_of(describe_api()):
        run_here = "\n".join(line for line in block.splitlines() if not any(word in line for word in ELSEWHERE))
        compile(block, "docs/api.md", "exec")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(run_here, shown)
        except Exception as problem:
            failed.append(f"{block}: {problem}")
    assert failed == []


def examples_of(page: str) -> Iterator[str]:
    """The blocks that are examples, not signatures."""
    for section in re.split(r"^#{2,3} ", page, flags=re.MULTILINE):
        blocks = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
        title = section.partition("\n")[0]
        thing = getattr(bindscope, title.removeprefix("bindscope."), None) if title.startswith("bindscope.") else None
        is_called = (
            inspect.isfunction(thing) or re.fullmatch(r"(run|sums|study|verdicts|grids)\.\w+", title) is not None
        )
        yield from blocks[1:] if is_called else blocks
