"""A result as the web page shows it, in a cell of a notebook or as a file: finding, drawing, and where the numbers come from.

Nothing is fetched and no script runs: the drawing says what is pointed at, and the dataset folds out below it.

>>> run.patch("k=9;c=k;#c:", "k=4;c=k;#c:").panel(metric="kl").save("patch.html")
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import xarray as xr

from bindscope.runs.files import explain_failure, write_atomically
from bindscope.studies.plots.html import Markup, document, element
from bindscope.studies.plots.style import GRID, INK, MUTED, series_css

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELL = "background:#fff;color:{ink};padding:0.6rem;max-width:60rem;--paper:#fff;--ink:{ink};--muted:{muted};--grid:{grid};{series}"


@dataclass(frozen=True, eq=False)
class Panel:
    """A figure with its finding, provenance and numbers. At the end of a cell it shows itself; ``save`` writes a page."""

    title: str
    finding: str
    provenance: str
    figure: Figure
    dataset: xr.Dataset

    @cached_property
    def content(self) -> Markup:
        """Everything below the title."""
        from bindscope.studies.plots.readings import readable_svg

        return Markup(
            (element("p", element("strong", self.finding)) if self.finding else "")
            + element("figure", Markup(readable_svg(self.figure, "b", self.title)), style="margin:0")
            + element("p", element("small", f"{self.provenance} · point at the drawing to read it"))
            + element("details", element("summary", "The numbers"), Markup(xr.Dataset._repr_html_(self.dataset)))
        )

    def save(self, path: str | Path) -> Path:
        """Write it as one HTML file that opens by itself."""
        path = Path(path)
        with explain_failure(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        page = document(self.title, element("main", element("h1", self.title), self.content))
        write_atomically(path, page.encode())
        return path

    def __repr__(self) -> str:
        return f"<panel {self.title}: {self.finding or self.provenance}>"

    def _repr_html_(self) -> str:
        """On white, since a notebook's page may be dark."""
        style = CELL.format(ink=INK, muted=MUTED, grid=GRID, series=series_css()[0])
        return element("div", element("h3", self.title), self.content, class_="bindscope-panel", style=style)


def tell_provenance(dataset: xr.Dataset) -> str:
    """``'binding-laptop · step 3,700 · n = 240 · seed 0'``, of what the dataset says of itself."""
    from bindscope import __version__

    about = dataset.attrs
    steps = dataset.step.values.ravel() if "step" in dataset.coords else [about["step"]] if "step" in about else []
    spans = f"step {int(steps[0]):,}" + (f" to {int(steps[-1]):,}" if len(steps) > 1 else "") if len(steps) else ""
    n = next((about[name] for name in ("n", "n_pairs", "n_programs") if name in about), None)
    parts = [
        str(about.get("run", "")),
        spans,
        "" if n is None else f"n = {int(n):,}",
        *(f"{name} {about[name]}" for name in ("seed",) if name in about),
        str(about.get("interval", "")),
        f"Bindscope {__version__}",
    ]
    return " · ".join(part for part in parts if part)
