"""The documentation, as files of the repository and as the site: every page is found, and every link leads somewhere."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from bindscope.cli.reference import PAGES as GENERATED

ROOT = Path(__file__).parents[1]
PAGES = sorted(ROOT.glob("docs/**/*.md"))
READ_BY_PEOPLE = [*PAGES, *ROOT.glob("*.md"), *ROOT.glob("[a-z]*/README.md"), *ROOT.glob("notebooks/*.ipynb")]
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")  # what code hosts read


def on_site(page: Path) -> Path:
    """Where the site has a page of docs/, or another of the repository's."""
    within = page.relative_to(ROOT / "docs") if "docs" in page.parts else Path("repository") / page.relative_to(ROOT)
    folder = within.parent if within.stem in ("index", "README") else within.with_suffix("")
    return folder / "index.html"


def read(page: Path) -> str:
    """A page, or the text of a notebook, without what stands in code."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    return re.sub(r"^( *)```.*?^\1```|(`+)[^`].*?\2", "", text, flags=re.DOTALL | re.MULTILINE)


@cache
def anchors(page: Path) -> set[str]:
    """The names that a code host gives a page's headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found: Counter[str] = Counter()
    names = set()
    for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        names.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return names


@pytest.mark.parametrize("page", sorted(GENERATED))
def test_generated_pages_are_current(page: str) -> None:
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == GENERATED[page](), "run 'make docs'"


@pytest.mark.parametrize("page", READ_BY_PEOPLE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_files_lead_somewhere(page: Path) -> None:
    broken = []
    for target, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?[^)]*\)", read(page)):
        file = page.parent / target if target else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(f"{target}#{anchor}" if anchor else target)
    assert broken == []


def test_every_page_of_the_documentation_is_in_its_index() -> None:
    index = ROOT / "docs" / "index.md"
    linked = set(re.findall(r"\]\(([^)#]+)", index.read_text(encoding="utf-8")))
    pages = {page.relative_to(index.parent).as_posix() for page in PAGES if page != index}
    assert pages - linked == set()


def templates(source: str) -> list[str]:
    """Every text in a module, joined as Python joins it, with … for what is put in."""

    def text_of(node: ast.AST) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value)
        return "".join(text_of(part) if isinstance(part, ast.Constant) else "…" for part in node.values)  # type: ignore[attr-defined]

    strings = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.JoinedStr | ast.Constant))
    return [text_of(node) for node in strings]


def said_by_bindscope() -> str:
    """All that commands, the page and the Makefile can say."""
    modules = [*ROOT.glob("src/**/*.py"), *ROOT.glob("release/*.py")]
    page = [path for path in ROOT.glob("frontend/src/**/*") if path.suffix in (".ts", ".svelte")]
    said = [text for module in modules for text in templates(module.read_text(encoding="utf-8"))]
    return "\n".join([*said, *(path.read_text(encoding="utf-8") for path in [*page, ROOT / "Makefile"])])


def test_every_sentence_among_the_symptoms_is_one_that_bindscope_says() -> None:
    said = said_by_bindscope()
    index = (ROOT / "docs" / "symptoms.md").read_text(encoding="utf-8")
    sentences = re.findall(r"^\| `([^`]*)` \|", index, flags=re.MULTILINE)
    assert len(sentences) > 40

    def is_said(sentence: str) -> bool:
        """Its own words stand in one text in this order; at its ends and where … stands anything may."""
        words = [re.escape(part) for part in sentence.split("…") if part.strip()]
        return re.search("[^\n]*".join(words), said) is not None

    assert [sentence for sentence in sentences if not is_said(sentence)] == []
    assert not is_said("there is no preset '…' at all")


class Elements(HTMLParser):
    """What an article is made of, and what a whole page fetches."""

    COUNTED = frozenset(
        ["li", "ul", "ol", "table", "tr", "td", "pre", "img", "h1", "h2", "h3", "h4", "em", "strong", "a", "blockquote"]
    )

    def __init__(self, html: str, within: str = "article") -> None:
        super().__init__()
        self.within, self.inside = within, not within
        self.counts: Counter[str] = Counter()
        self.fetched: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.inside = self.inside or tag == self.within
        if self.inside and tag in self.COUNTED and known.get("class") != "headerlink":
            self.counts[tag] += 1
        self.fetched += [known[name] or "" for name in ("src", "srcset", "poster", "data") if name in known]
        if tag in ("link", "image", "use"):
            self.fetched.append(known.get("href") or known.get("xlink:href") or "")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != self.within


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as strictly as ``make site`` does: a broken link or a page that is in no menu ends the build."""
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_on_the_site(site: Path) -> None:
    assert [page for page in READ_BY_PEOPLE if not (site / on_site(page)).is_file()] == [], "add it to mkdocs.yml's nav"


def test_a_page_of_the_site_fetches_nothing_from_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        fetched = Elements(page.read_text(encoding="utf-8")).fetched
        assert fetched
        assert [address for address in fetched if re.match(r"(\w+:)?//", address)] == [], page
    for style in [*site.rglob("*.css"), *site.rglob("*.html")]:
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", style.read_text(encoding="utf-8")), style


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_site_reads_a_page_as_a_code_host_does(site: Path, page: Path) -> None:
    """A list without a line before it, or one set in too little, is a list for one of the two readers only."""
    shown = Elements((site / on_site(page)).read_text(encoding="utf-8")).counts
    assert shown == Elements(MARKDOWN.render(page.read_text(encoding="utf-8")), within="").counts


def test_a_notebook_is_a_page_with_what_its_cells_showed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mkdocs")
    monkeypatch.syspath_prepend(str(ROOT / "release"))
    hook = import_module("site_pages")
    outputs = [
        {"data": {"image/png": "aGVsbG8=", "text/plain": "<Figure>"}},
        {"data": {"text/html": "<table><tr><td>1</td></tr></table>", "text/plain": "1"}},
        {"data": {"text/html": '<div class="bindscope-panel">found</div>', "text/plain": "2"}},
        {"text": ["printed\n"]},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["1 + 1"], "outputs": outputs},
    ]
    monkeypatch.setattr(hook, "ROOT", tmp_path)
    (tmp_path / "one.ipynb").write_text(json.dumps({"cells": cells}))
    text, pictures = hook.read_notebook(tmp_path / "one.ipynb")
    assert text.startswith("# Title\n\n```python\n1 + 1\n```\n\n![](one-1.png)\n\n<table>")
    assert "```text\nprinted\n```" in text
    assert '<div class="bindscope-panel">found</div>' in text
    assert pictures == {"one-1.png": b"hello"}
