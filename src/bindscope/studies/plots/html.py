"""Pieces of a self-contained HTML page. Text given to them is escaped here, so nothing else needs to think of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from bindscope.studies.plots.style import series_css


class Markup(str):
    """HTML that is already safe to put into a page; any other text is escaped when it is."""


def element(name: str, *content: object, **attributes: str) -> Markup:
    """``element("td", "a < b", class_="number")`` → ``<td class="number">a &lt; b</td>``."""
    written = "".join(f' {key.rstrip("_")}="{escape(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{written}>{join(content)}</{name}>")


def join(content: Iterable[object]) -> Markup:
    """Pieces one after the other; text among them is escaped."""
    return Markup("".join(piece if isinstance(piece, Markup) else escape(str(piece)) for piece in content))


def table(head: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[int] = ()) -> Markup:
    """A table that scrolls by itself on a narrow screen; the columns in ``numbers`` are set flush right."""

    def cells(kind: str, row: Sequence[object]) -> Markup:
        classes: list[dict[str, str]] = [{"class_": "number"} if i in numbers else {} for i in range(len(row))]
        return element("tr", *(element(kind, cell, **classes[i]) for i, cell in enumerate(row)))

    body = element("tbody", *(cells("td", row) for row in rows))
    return element("div", element("table", element("thead", cells("th", head)), body), class_="scroll")


def tiles(numbers: Iterable[tuple[str, str, str]]) -> Markup:
    """Headline numbers: (what it is, the number, a remark)."""
    return element(
        "dl",
        *(
            element("div", element("dt", what), element("dd", number, element("small", remark) if remark else ""))
            for what, number, remark in numbers
        ),
        class_="tiles",
    )


def document(title: str, *content: object) -> str:
    """A whole page: style inside, no script, nothing fetched."""
    light, dark = series_css()
    css = files("bindscope.studies.plots").joinpath("report.css").read_text(encoding="utf-8")
    theme = f":root{{{light}}}@media (prefers-color-scheme: dark){{:root{{{dark}}}}}"
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{css}{theme}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{join(content)}</body></html>\n'


def list_settings(config: Mapping[str, Any], what: str) -> Markup:
    """Every setting of a run, folded away."""
    rows = [[element("code", key), element("code", value)] for key, value in flatten_settings(config)]
    return element("details", element("summary", f"All {len(rows)} {what}"), table(("setting", "value"), rows))


def flatten_settings(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """``{"model": {"d_model": 64}}`` → ``("model.d_model", "64")``."""
    for key, value in config.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            yield from flatten_settings(value, f"{name}.")
        else:
            yield name, "none" if value is None else str(value)
