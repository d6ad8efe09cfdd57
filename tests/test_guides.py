"""The tutorial, the how-to guides, the explanations and the report: what they tell a reader to type is there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from bindscope.cli.main import COMMANDS, build_app
from bindscope.questions.claimed import open_claims

DOCS = Path(__file__).parents[1] / "docs"
GUIDES = [
    DOCS / "tutorial.md",
    *(page for part in ("how-to", "explanation", "replication") for page in sorted((DOCS / part).glob("*.md"))),
]
IDS = [page.relative_to(DOCS).as_posix() for page in GUIDES]
MOST_LINES = 80  # of a how-to guide: one question, one screen or two
EVERYWHERE = {"--family", "--help"}


@cache
def options_of(command: str) -> set[str]:
    arguments = build_app()[command].assemble_argument_collection(parse_docstring=True)
    return {name for argument in arguments for name in argument.names} | EVERYWHERE


@pytest.mark.parametrize("page", GUIDES, ids=IDS)
def test_every_command_and_option_of_a_guide_exists(page: Path) -> None:
    unknown = []
    for command, rest in re.findall(r"\bbindscope ([a-z][a-z-]*)([^`\n#|]*)", page.read_text(encoding="utf-8")):
        if command not in COMMANDS:
            unknown.append(command)
            continue
        unknown += [
            f"{command} {option}"
            for option in re.findall(r"(?<!\S)--[a-z-]+", rest)
            if option not in options_of(command)
        ]
    assert unknown == []


@pytest.mark.parametrize("page", GUIDES, ids=IDS)
def test_every_claim_in_a_guide_is_one_that_can_be_judged(page: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for number, block in enumerate(blocks):
        document = tmp_path / f"{number}.toml"
        document.write_text(block, encoding="utf-8")
        assert open_claims([document]).claims


@pytest.mark.parametrize("page", sorted((DOCS / "how-to").glob("*.md")), ids=lambda page: page.stem)
def test_a_how_to_guide_is_short_and_answers_before_it_explains(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    parts = [text.index(part) for part in ("**Question.**", "**Answer.**", "```", "## Pitfalls", "## Where to go on")]
    assert parts == sorted(parts)
