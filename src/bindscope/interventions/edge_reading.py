"""What a report on edges says: its finding and its error in a sentence each, and its edges and circuits as tables.

>>> tell_circuit(report)
'80 of 388 edges are 89 % faithful [85–94]; random circuits of that size 1–3 %.'
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from bindscope.interventions.edge_circuit import CHOSEN
from bindscope.interventions.edge_report import smallest_faithful
from bindscope.interventions.edges import ANYWHERE

FAITHFUL = 0.8


def tell_circuit(report: xr.Dataset, least: float = FAITHFUL) -> str:
    """How many of the strongest edges are faithful, with an interval, beside random circuits; empty before they were tried."""
    if report.kept.isnull().any():
        return ""
    if report.faithfulness.isnull().any():
        return "Base and source are answered alike, so that nothing can be told of circuits."
    n_edges, size = int(report["size"].values[-1]), smallest_faithful(report, least)
    if size is None or size == n_edges:
        smaller = report["size"].values[report["size"].values < n_edges]
        best = f"; with {smaller[-1]:,} they are {_tell_size(report, int(smaller[-1]))}" if len(smaller) else ""
        return f"Nothing less than all {n_edges:,} edges is {least:.0%} faithful{best}.".replace("%", " %", 1)
    return f"{size:,} of {n_edges:,} edges are {_tell_size(report, size)}."


def tell_error(report: xr.Dataset) -> str:
    """How far attributed edges and parts are from exact patches."""
    about, n_checked = report.attrs, int(report.exact.notnull().sum())
    if n_checked == 0:
        return "No edge was patched exactly yet."
    sign = about["sign_agreement"]
    right = f", right sign {100 * sign:.0f} %" if np.isfinite(sign) else ""
    correlation = about["correlation"]
    together = f"correlation {correlation:.2f}, " if np.isfinite(correlation) else ""
    errors = np.abs(report.input_effect - report.input_exact)
    return (
        f"Attribution against {n_checked} edges patched exactly: {together}mean error {about['mean_absolute_error']:.4f}, "
        f"largest {about['largest_error']:.3f}{right}. Against all {report.input_exact.size} nodes inside heads: mean error "
        f"{float(errors.sel(side=['q', 'k']).mean()):.4f} of queries and keys, {float(errors.sel(side='v').mean()):.4f} of values."
    )


def tabulate_edges(report: xr.Dataset, most: int | None = None) -> xr.Dataset:
    """The ``most`` strongest edges and all that were checked, strongest first: ``effect`` and ``exact`` (edge), with
    their ``sender``, ``receiver`` and the named position ``at`` which most of it comes.
    """
    means = report.effect_at.sel(position=ANYWHERE).transpose("sender", "receiver").values
    known = np.argwhere(np.isfinite(means))
    order = known[np.argsort(-np.abs(means[tuple(known.T)]), kind="stable")]
    senders, receivers = (report[name].values.tolist() for name in ("sender", "receiver"))
    ends = zip(report.edge_sender.values, report.edge_receiver.values, strict=True)
    exact = {
        (senders.index(s), receivers.index(r)): value for (s, r), value in zip(ends, report.exact.values, strict=True)
    }
    rows = [(s, r) for rank, (s, r) in enumerate(order) if most is None or rank < most or (s, r) in exact]
    named = report.effect_at.drop_sel(position=ANYWHERE).transpose("position", "sender", "receiver")
    largest = np.abs(np.nan_to_num(named.values)).argmax(0) if named.sizes["position"] else None
    at = ["" if largest is None else str(named.position.values[largest[row]]) for row in rows]
    return xr.Dataset(
        {
            "effect": ("edge", [means[row] for row in rows]),
            "exact": ("edge", [exact.get(row, np.nan) for row in rows]),
        },
        {
            "sender": ("edge", [senders[s].removesuffix(".result") for s, _ in rows]),
            "receiver": ("edge", [receivers[r] for _, r in rows]),
            "at": ("edge", at),
        },
    )


def tabulate_parts(report: xr.Dataset) -> xr.Dataset:
    """``part_effect`` and ``part_exact`` over (part): of a sender the sum of its edges, of a head's inputs their own."""
    sums = report.effect_at.sel(position=ANYWHERE).sum("receiver").values
    senders = [str(sender).removesuffix(".result") for sender in report.sender.values]
    inputs = report[["input_effect", "input_exact"]].stack(part=("layer", "head", "side"))
    names = [f"L{layer}.H{head}.{side}" for layer, head, side in inputs.part.values]
    return xr.Dataset(
        {
            "part_effect": ("part", np.concatenate([sums, inputs.input_effect.values])),
            "part_exact": ("part", np.concatenate([report.part_exact.values, inputs.input_exact.values])),
        },
        {"part": [*senders, *names]},
    )


def tabulate_circuits(report: xr.Dataset) -> xr.Dataset:
    """``faithfulness`` and ``kept`` of the strongest edges over (size), and the least and most of random circuits."""
    chosen, others = report.sel(circuit=CHOSEN, drop=True), report.drop_sel(circuit=CHOSEN)
    names = ("faithfulness", "faithfulness_low", "faithfulness_high", "kept", "n_connected")
    return chosen[list(names)].assign(
        random_least=others.faithfulness.min("circuit"),
        random_most=others.faithfulness.max("circuit"),
        random_kept=others.kept.max("circuit"),
    )


def _tell_size(report: xr.Dataset, size: int) -> str:
    one = tabulate_circuits(report).sel(size=size)
    value, low, high, least, most = (
        round(100 * float(one[name]))
        for name in ("faithfulness", "faithfulness_low", "faithfulness_high", "random_least", "random_most")
    )
    return f"{value} % faithful [{low}–{high}]; random circuits of that size {_range(least, most)} %"


def _range(least: int, most: int) -> str:
    """Two whole numbers as one range.

    >>> _range(1, 3), _range(2, 2), _range(-1, 3)
    ('1–3', '2', '-1 to 3')
    """
    if least == most:
        return str(least)
    return f"{least}–{most}" if least >= 0 else f"{least} to {most}"
