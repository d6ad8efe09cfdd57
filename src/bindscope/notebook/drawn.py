"""Labelled arrays that know the figure which belongs to them.

A ``Drawn`` is an xarray dataset in every respect, except that ``.plot()``, which datasets leave undefined, draws the study's
figure. Which figure is an attribute of the dataset, so it survives selection and a file.

>>> run.trajectory().sel(step=slice(0, 1000)).plot()
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import xarray as xr

from bindscope.errors import BindscopeError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bindscope.notebook.panel import Panel

FIGURE = "figure"  # the attribute that names the figure
_HERE = "bindscope.notebook.figures"
_SUMS = "bindscope.notebook.sums_figures"
_OF_SUMS = "bindscope.studies.assign_add"
_SYMBOLS = "bindscope.notebook.symbols_figures"
_KERNEL = "bindscope.studies.symbols.kernel.draw_matrix"
FIGURES: Mapping[str, tuple[str, str]] = {  # name → module and function
    "trajectory": ("bindscope.studies.plots.panels", "figure_trajectory"),
    "development": ("bindscope.studies.plots.development", "figure_development"),
    "phases": (_HERE, "figure_phases"),
    "prediction": (_HERE, "figure_prediction"),
    "lens": (_HERE, "figure_lens"),
    "attention": (_HERE, "figure_attention"),
    "patch": (_HERE, "figure_patch"),
    "result": (_HERE, "figure_result"),
    "hypotheses": ("bindscope.studies.binding.algorithm.draw_hypotheses", "draw_hypotheses"),
    "algorithm": ("bindscope.studies.binding.algorithm.draw", "draw_algorithm"),
    "mixture": ("bindscope.studies.binding.mixture.draw", "draw_checkpoint"),
    "identifiers": ("bindscope.studies.binding.identifiers.draw", "draw_checkpoint"),
    "lookbacks": ("bindscope.studies.binding.lookbacks.draw", "draw_checkpoint"),
    "reassignment": ("bindscope.studies.binding.reassignment.draw", "draw_checkpoint"),
    "edges": ("bindscope.studies.plots.edges", "draw_edges"),
    "moves": ("bindscope.studies.plots.moves", "draw_moves"),
    "coefficient": ("bindscope.studies.development.coefficient.draw", "draw_coefficient"),
    "diagnostics": ("bindscope.studies.development.diagnostics.draw", "draw_asked"),
    "swap": (_HERE, "figure_swap"),
    "points": (_HERE, "figure_points"),
    "subspace": ("bindscope.studies.plots.subspaces", "figure_subspace"),
    "sum": (f"{_OF_SUMS}.attention.draw", "draw_sum"),
    "circuit": (f"{_OF_SUMS}.weights.draw", "draw_matrices"),
    "splits": (_SUMS, "figure_splits"),
    "spikes": (_SUMS, "figure_spikes"),
    "progress": (_SUMS, "figure_progress"),
    "neuron": (_SUMS, "figure_neuron"),
    "transplant": ("bindscope.studies.plots.transplants", "figure_transplant"),
    "retrain": ("bindscope.studies.binding.transplants.draw", "draw_cells"),
    "experiment": (_SYMBOLS, "figure_experiment"),
    "samples": (_SYMBOLS, "figure_samples"),
    "kernel": (_KERNEL, "draw_kernel"),
    "ridge": (_KERNEL, "draw_ridge"),
}


class Plot:
    """``.plot`` of a drawn dataset: called, it draws the study's figure; xarray's own plots are still inside."""

    def __init__(self, dataset: Drawn) -> None:
        self._dataset = dataset

    def __call__(self, **settings: Any) -> Figure:
        """The figure; ``settings`` are those of its function, such as ``metric="kl"`` for a patch."""
        name = str(self._dataset.attrs.get(FIGURE))
        if name not in FIGURES:
            raise BindscopeError(f"this dataset names no figure of Bindscope (its attribute '{FIGURE}' is '{name}').")
        module, function = FIGURES[name]
        draw = cast("Callable[..., Figure]", getattr(import_module(module), function))
        return draw(self._dataset, **settings)

    def __getattr__(self, name: str) -> Any:
        return getattr(super(Drawn, self._dataset).plot, name)


class Drawn(xr.Dataset):
    """A dataset with its figure."""

    __slots__ = ()

    @classmethod
    def of(cls, dataset: xr.Dataset, figure: str, **attrs: Any) -> Drawn:
        """The same dataset with the figure ``figure`` (see ``FIGURES``) and further attributes."""
        return cls(dataset.data_vars, dataset.coords, {**dataset.attrs, FIGURE: figure, **attrs})

    @property
    def plot(self) -> Plot:  # type: ignore[override]
        return Plot(self)

    def panel(self, **settings: Any) -> Panel:
        """Its figure with finding, provenance and a readout, as the web page shows it; ``settings`` are those of ``plot``.

        >>> run.trajectory().panel().save("trajectory.html")
        """
        from bindscope.notebook.findings import tell_finding
        from bindscope.notebook.panel import Panel, tell_provenance

        figure, name = self.plot(**settings), str(self.attrs[FIGURE])
        about = f" of {self.attrs['program']}" if "program" in self.attrs else ""
        title = f"{self.attrs.get('title') or name}{about}"
        return Panel(title, tell_finding(self, name), tell_provenance(self), figure, self)

    def _repr_html_(self) -> str:
        """The panel; a part that its figure cannot draw is shown as any other dataset."""
        try:
            return self.panel()._repr_html_()
        except (BindscopeError, ArithmeticError, LookupError, AttributeError, TypeError, ValueError):
            return super()._repr_html_()


def show_figures() -> None:
    """Let a notebook show figures as pictures; where nobody shows anything, do nothing.

    Figures here are made without pyplot, so a notebook would otherwise only name them.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    formatter = getattr(shell, "display_formatter", None)
    if formatter is not None:
        formatter.formatters["image/png"].for_type_by_name("matplotlib.figure", "Figure", figure_to_png)


def figure_to_png(figure: Figure) -> bytes:
    """The picture of a figure, on white, since a notebook's page may be dark."""
    from io import BytesIO

    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=110, facecolor="white", bbox_inches="tight")
    return buffer.getvalue()
