"""``bindscope kernel``: can a transformer's kernel learn these templates for symbols it has never seen?"""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.cli.asking import asking
from bindscope.cli.options import Flag
from bindscope.cli.outcome import check_out, show_progress, write_out
from bindscope.cli.table import format_table
from bindscope.errors import BindscopeError
from bindscope.questions.templates import Kernel

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.theory.kernel import Estimate
    from bindscope.theory.kernel_learnable import KernelReport

MOST_SHOWN = 8  # templates in the table of N
RIDGE_SIZES = (16, 32, 64, 128, 256, 512, 1024)
RIDGE_SEEDS = (0, 1, 2)


@asking(Kernel)
def kernel(question: Kernel, /, *, ridge: Flag = False, out: Path | None = None, json: Flag = False) -> None:
    """Judge by its kernel whether a transformer can learn templates for unseen symbols.

    An infinitely wide random transformer sees sequences through a kernel. N compares the templates
    under it, each with symbols of its own: where it is not singular, kernel ridge regression
    learns any labels of the templates so that symbols never seen are answered right.

    Examples:
        bindscope kernel AA AB --labels 1,-1
        bindscope kernel aba-abb
        bindscope kernel AABB ABAB --beta 1 --points 4096
        bindscope kernel AA AB --labels 1,-1 --gamma 0 --no-cls
        bindscope kernel aba-abb --ridge --out ridge.svg

    Parameters
    ----------
    ridge
        Also train kernel ridge regression on 16 to 1,024 sequences and test it on fresh symbols.
    out
        Also write the figure (.svg, .pdf, .png) or all numbers (.nc); with --ridge, of the regression.
    json
        Print the numbers as JSON instead of tables.
    """
    check_out(out)
    texts, numbers = question.read()
    if ridge and numbers is None:
        raise BindscopeError("--ridge: regression needs labels; give --labels, one number for each template.")
    report = question.report()
    regression = None if not ridge or numbers is None else run_ridge(texts, numbers, question.settings)
    if json:
        print(json_format.dumps(_to_json(report, regression)))
    else:
        print("\n\n".join([format_report(report), *([format_ridge(regression)] if regression is not None else [])]))
    if out is not None:
        dataset = report.to_dataset() if regression is None else regression
        path = write_out(dataset, out, _figure_or_none(dataset, regression is not None, out))
        if not json:
            print(f"\nwritten  {path}")


def run_ridge(texts: tuple[str, ...], labels: tuple[Any, ...], settings: Any) -> xr.Dataset:
    """Kernel ridge regression over n, three training sets each."""
    from bindscope.tasks.templates import TemplateTask
    from bindscope.theory.kernel_ridge import ridge_generalises

    task = TemplateTask(name="custom", templates=texts, labels=labels)
    sizes = [n for n in RIDGE_SIZES if n >= task.n_wildcards]
    with show_progress("ridge regression") as on_progress:
        return ridge_generalises(task, sizes, RIDGE_SEEDS, settings, on_progress=on_progress)


def format_report(report: KernelReport) -> str:
    """The setting, N with errors, eigenvalues with intervals, and the verdict in words."""
    settings, sampling = report.settings, report.settings.sampling
    phi = f"cos({settings.b1:g}t + {settings.b2:g})" if settings.phi.name == "cos" else settings.phi.name
    head = (
        f"β = {settings.beta:g}, γ = {settings.gamma:g}, φ = {phi}, {'with' if settings.cls else 'without'} CLS; "
        f"{sampling.n_randomisations} shifts of {sampling.n_outer:,} × {sampling.n_inner} points"
    )
    parts = [head, f"N, with standard errors\n{_format_matrix(report)}", _format_eigenvalues(report)]
    return "\n\n".join([*parts, f"{report.verdict}: {report.why}", *_format_size(report)])


def format_ridge(regression: xr.Dataset) -> str:
    """Errors on fresh symbols over n."""
    rows = []
    for n in regression.n.values:
        at = regression.sel(n=n)
        errors, means = at.test_error.values, at.means_error.values
        rows.append([f"{n:,}", f"{errors.mean():.4f}  {errors.min():.4f}–{errors.max():.4f}", f"{means.mean():.4f}"])
    seeds = regression.sizes["seed"]
    table = format_table(["sequences", "error on fresh symbols", "from template means"], rows, numbers=[0, 2])
    return f"kernel ridge regression, mean square error; mean and range of {seeds} training sets\n{table}"


def _format_matrix(report: KernelReport) -> str:
    names, matrix = report.templates[:MOST_SHOWN], report.matrix
    rows = [
        [name, *(_with_error(matrix.value[i, j], matrix.standard_error[i, j]) for j in range(len(names)))]
        for i, name in enumerate(names)
    ]
    left_out = len(report.templates) - len(names)
    more = f"\n… and {left_out} more templates; --out kernel.nc has them all" if left_out else ""
    return format_table(["", *names], rows) + more


def _format_eigenvalues(report: KernelReport) -> str:
    found = report.eigenvalues
    rows = [
        [f"{value:.4g}", f"{low:.4g} to {high:.4g}", f"{error:.1g}"]
        for value, low, high, error in zip(found.value, found.low, found.high, found.standard_error)
    ]
    shown = rows if len(rows) <= MOST_SHOWN else [*rows[: MOST_SHOWN - 1], rows[-1]]
    note = "" if len(shown) == len(rows) else f", the smallest {MOST_SHOWN - 1} and the largest"
    table = format_table(["eigenvalue of N", "95 % interval", "standard error"], shown, numbers=[0, 2])
    return table if not note else f"of {len(rows)} eigenvalues{note}\n{table}"


def _format_size(report: KernelReport) -> list[str]:
    size = _half_loss(report)
    if size is None:
        return []
    return [
        f"Without chance repetitions of symbols, ridge regression halves its error at about {float(size.value):,.0f}"
        f" sequences ({float(size.low):,.0f} to {float(size.high):,.0f})."
    ]


def _half_loss(report: KernelReport) -> Estimate | None:
    """How many sequences halve the error, for labels that can be learned."""
    from bindscope.theory.kernel_ridge import half_loss_size

    return half_loss_size(report.kernel, report.labels) if report.labels and report.verdict == "learnable" else None


def _with_error(value: float, error: float) -> str:
    """0.25908 ± 0.00002: as many digits as the error's first."""
    from math import floor, log10

    if error < 1e-9:
        return f"{value:.6f} exactly"
    digits = max(-floor(log10(error)), 3)
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def _to_json(report: KernelReport, regression: xr.Dataset | None) -> dict[str, Any]:
    eigenvalues, size = report.eigenvalues, _half_loss(report)
    found = {
        "templates": list(report.templates),
        "labels": report.labels,
        "kernel": report.matrix.value.tolist(),
        "kernel_error": report.matrix.standard_error.tolist(),
        "eigenvalues": eigenvalues.value.tolist(),
        "eigenvalues_low": eigenvalues.low.tolist(),
        "eigenvalues_high": eigenvalues.high.tolist(),
        "null_directions": report.null_directions.tolist(),
        "overlaps": [{"first": o.first, "second": o.second, "sequence": o.sequence} for o in report.overlaps],
        "half_loss": None if size is None else [float(size.value), float(size.low), float(size.high)],
        "verdict": report.verdict,
        "why": report.why,
    }
    if regression is not None:
        found["ridge"] = {
            "n": regression.n.values.tolist(),
            "test_error": regression.test_error.values.tolist(),
            "means_error": regression.means_error.values.tolist(),
        }
    return found


def _figure_or_none(dataset: xr.Dataset, is_ridge: bool, out: Path) -> Any:
    from bindscope.studies.symbols.kernel.draw_matrix import draw_kernel, draw_ridge

    if out.suffix.lower() == ".nc":
        return None
    return draw_ridge(dataset) if is_ridge else draw_kernel(dataset)
