"""What MkDocs needs to know of the repository: pages link to files outside docs/, and these are on the site too.

Pages link to one another as files do, so that a code host shows them as they are. On the site ``docs/X`` is ``X``, and
any other file of the repository is ``repository/X``: Markdown and notebooks as pages, the rest as plain files.
MkDocs calls ``on_files`` and ``on_page_markdown`` (``hooks`` in mkdocs.yml).
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
RUN = ROOT / "build" / "notebooks"
OUTSIDE = "repository"
# The path of a relative link, or code, in which nothing is a link.
LINK = re.compile(r"^```.*?^```|`[^`\n]*`|(?<=\]\()(?!\w+:|#)(?P<path>[^)\s#]+)", flags=re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what the navigation names or a page links to outside docs/, and what those pages link to."""
    waiting = [ROOT / "docs" / file.src_uri for file in files.documentation_pages()]
    waiting += [_source(uri) for uri in _named(config.nav) if uri.startswith(OUTSIDE)]
    for path in waiting:
        for file in _files_of(path, config):
            if file.src_uri not in files.src_uris:
                files.append(file)
        linked = _links(path) if path.suffix in (".md", ".ipynb") else ()
        waiting += [target for target in linked if target not in waiting and target.is_file()]
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """The page, its links to files of the repository turned into links of the site."""
    here = _source(page.file.src_uri).parent

    def on_site(match: re.Match[str]) -> str:
        if not match["path"]:
            return match.group()
        uri = _uri(_target(here, match["path"]))
        return os.path.relpath(uri, os.path.dirname(page.file.src_uri) or ".")

    return LINK.sub(on_site, markdown)


def _files_of(path: Path, config: MkDocsConfig) -> Iterator[File]:
    """What a file of the repository is on the site."""
    if path.suffix == ".ipynb":
        text, pictures = read_notebook(path)
        yield File.generated(config, _uri(path), content=text)
        for name, content in pictures.items():
            yield File.generated(config, f"{os.path.dirname(_uri(path))}/{name}", content=content)
    elif ROOT / "docs" not in path.parents:
        yield File.generated(config, _uri(path), abs_src_path=str(path))


def read_notebook(path: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook as Markdown, with what its cells showed where they were run, and the pictures among it."""
    parts, pictures = [], {}
    for cell in _cells(path):
        source = cell["source"]
        parts.append(f"```python\n{source}\n```" if cell["cell_type"] == "code" else source)
        for output in cell.get("outputs", []):
            shown = output.get("data", {"text/plain": output.get("text", "")})
            if "image/png" in shown:
                name = f"{path.stem}-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode("".join(shown["image/png"]))
                parts.append(f"![]({name})")
            elif "".join(shown.get("text/html", "")).startswith(("<table", '<div class="bindscope-panel"')):
                parts.append("".join(shown["text/html"]))
            else:
                parts.append("```text\n" + "".join(shown.get("text/plain", "")).rstrip() + "\n```")
    parts.append(f"*This is the notebook `{path.relative_to(ROOT).as_posix()}` of the repository.*")
    return "\n\n".join(parts) + "\n", pictures


def _cells(path: Path) -> list[dict[str, Any]]:
    """The cells as they were run (``run_notebooks.py``), or as they are stored where these are others."""
    stored, run = (_read_cells(each) for each in (path, RUN / path.name))
    return run if [cell["source"] for cell in run] == [cell["source"] for cell in stored] else stored


def _read_cells(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"] if path.is_file() else []
    return [cell | {"source": "".join(cell["source"])} for cell in cells]


def _links(path: Path) -> Iterator[Path]:
    """The files of the repository that a page links to."""
    text = read_notebook(path)[0] if path.suffix == ".ipynb" else path.read_text(encoding="utf-8")
    return (_target(path.parent, match["path"]) for match in LINK.finditer(text) if match["path"])


def _target(folder: Path, link: str) -> Path:
    """The file that a link leads to; of a folder its README."""
    target = Path(os.path.normpath(folder / link))
    return target / "README.md" if target.is_dir() else target


def _uri(path: Path) -> str:
    """Where a file of the repository is on the site."""
    within = os.path.relpath(path, ROOT)
    uri = os.path.relpath(path, ROOT / "docs") if within.startswith("docs" + os.sep) else f"{OUTSIDE}/{within}"
    return re.sub(r"\.ipynb$", ".md", uri)


def _source(uri: str) -> Path:
    """The file of the repository that a page of the site is made from."""
    path = ROOT / os.path.relpath(uri, OUTSIDE) if uri.startswith(OUTSIDE) else ROOT / "docs" / uri
    return path if path.is_file() else path.with_suffix(".ipynb")


def _named(nav: Any) -> Iterator[str]:
    """Every page that the navigation names."""
    if isinstance(nav, str):
        yield nav
    else:
        for item in nav.values() if isinstance(nav, dict) else nav:
            yield from _named(item)
