"""What the repository promises as a whole: documents in step with the code, imports in one direction."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bindscope import __version__
from bindscope.cli.docstrings import for_terminals, split_docstring
from bindscope.cli.main import COMMANDS, build_app
from bindscope.studies.framework.verify import all_studies

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "numpy", "matplotlib", "xarray", "safetensors")


def tracked_text_files() -> dict[str, str]:
    """Every text file of the repository, by its path from the root."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("not a git checkout")
    texts = {}
    for name in filter(None, listing.stdout.split("\0")):
        content = (ROOT / name).read_bytes() if (ROOT / name).is_file() else b""
        if b"\0" not in content[:4096]:
            texts[name] = content.decode("utf-8", errors="replace")
    return texts


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_documents_itself_its_options_and_an_example(name: str) -> None:
    command = build_app()[name]
    description, examples = split_docstring(command.default_command)
    assert description.splitlines()[0] == COMMANDS[name][1]
    assert all(line.startswith("bindscope ") or "| bindscope " in line for line in examples.splitlines() if line)
    assert f"bindscope {name}" in examples
    undocumented = [a.name for a in command.assemble_argument_collection(parse_docstring=True) if not a.parameter.help]
    assert undocumented == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_says_all_that_the_docstring_says_and_lets_the_terminal_break_lines(name: str) -> None:
    docstring = build_app()[name].default_command.__doc__
    written = for_terminals(docstring)
    assert written.replace(" \\\n", "\n").split() == docstring.replace("Examples:", "For example:").split()
    examples = written.partition("For example:\n")[2].partition("\nParameters\n")[0].splitlines()
    assert all(len(line) < 80 for line in examples)
    prose = written.split("For example:")[0].splitlines()
    assert all(not line or line[0] in " -*" or line.endswith((".", ":", "?", ")")) for line in prose)


def test_asking_for_help_imports_nothing_heavy() -> None:
    questions = [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)]
    program = (
        "import sys; from bindscope.cli.main import run;"
        f"codes = [run(question) for question in {questions!r}];"
        f"print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules], 'CODES', set(codes))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "HEAVY [] CODES {0}" in answer.stdout


def test_listing_presets_needs_no_torch() -> None:
    program = "import sys; from bindscope.cli.main import run; run(['presets']); print('torch' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.endswith("False\n")


def test_the_python_example_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL):
        exec(compile(block, "README.md", "exec"), {})
    assert "9 becomes 4" in capsys.readouterr().out


def test_the_commands_of_the_readme_exist() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    used = set(re.findall(r"^bindscope ([a-z-]+)", readme, flags=re.MULTILINE))
    assert used
    assert used <= set(COMMANDS)


def test_the_readme_opens_with_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.index("make demo") < readme.index("make test") < 400


def test_imports_point_in_one_direction() -> None:
    contracts = pytest.importorskip("importlinter.cli")
    assert contracts.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_the_version_is_told_once() -> None:
    assert f"version: {__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_a_version_has_one_date_and_no_change_twice() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    date = re.search(rf"^## {re.escape(__version__)} \((\d{{4}}-\d\d-\d\d)\)$", changes, flags=re.MULTILINE)
    assert date is not None
    assert f"date-released: {date[1]}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    bullets = re.findall(r"^- .*", changes, flags=re.MULTILINE)
    assert len(set(bullets)) == len(bullets)


def test_the_paper_of_every_study_is_to_be_cited() -> None:
    cited = set(re.findall(r"arXiv:(\d+\.\d+)", (ROOT / "CITATION.cff").read_text(encoding="utf-8")))
    assert {number for study in all_studies() for number in re.findall(r"arXiv (\d+\.\d+)", study.source)} == cited


def test_the_licence_is_the_one_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert licence.startswith(f"{project['license']} License")
    assert "Bindscope contributors" in licence


def test_continuous_integration_uses_the_same_door_as_everyone() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert "make test" in script.read_text(encoding="utf-8")


def test_no_machine_or_address_of_its_makers_is_in_the_repository() -> None:
    home_path = re.compile(r"(?<![\w./~-])/(?:work|home|root|Users|opt)/[\w.-]+")
    private_address = re.compile(
        r"https?://(?:10\.|192\.168\.|[\w.-]*\.internal|(?:localhost|127\.)[\w.:]*/(?:simple|npm|pypi))"
    )
    this_file = Path(__file__).relative_to(ROOT).as_posix()
    found = [
        f"{name}: {match.group()}"
        for name, text in tracked_text_files().items()
        if name != this_file
        for pattern in (home_path, private_address)
        for match in pattern.finditer(text)
    ]
    assert found == []


def test_the_lock_file_of_the_page_names_no_address_to_fetch_from() -> None:
    assert '"resolved"' not in (ROOT / "frontend" / "package-lock.json").read_text(encoding="utf-8")


def test_no_source_file_outgrows_the_head() -> None:
    written = (".py", ".ts", ".svelte", ".css")
    generated = ("frontend/src/api/schema.d.ts",)
    lengths = {n: t.count("\n") for n, t in tracked_text_files().items() if n.startswith(("src/", "frontend/src/"))}
    long = {name: length for name, length in lengths.items() if length > 400 and name.endswith(written)}
    assert {name: length for name, length in long.items() if name not in generated} == {}


def test_a_page_of_the_site_can_be_taken_away_without_touching_another() -> None:
    """Pages share what lies beside them, never each other's files: a new one is a folder and a module, no more."""
    pages = ROOT / "frontend" / "src" / "pages"
    for file in (file for file in pages.rglob("*") if file.suffix in (".ts", ".svelte") and file.parent != pages):
        own = file.relative_to(pages).parts[0]
        wanted = {
            (file.parent / position).resolve()
            for position in re.findall(r"from '(\.[^']*)'", file.read_text(encoding="utf-8"))
        }
        inside = {
            position.relative_to(pages.resolve()).parts[0] for position in wanted if pages.resolve() in position.parents
        }
        assert inside <= {own, "page"}, f"{file} reads {inside - {own, 'page'}}"
    for file in (ROOT / "src" / "bindscope" / "web" / "pages").glob("*.py"):
        assert "from bindscope.web.pages" not in file.read_text(encoding="utf-8"), file
