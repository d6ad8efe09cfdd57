"""The mixture at every layer of a model: which accounts its answers follow when the end of a program comes from another.

    >>> drawn = sample_account_pairs(task, np.random.default_rng(0), 400)
    >>> dataset = measure_mixture(model, drawn, seed=0)
    >>> dataset.weight.sel(layer=2, position="end", account="lexical")

The residual stream is patched at the query variable, at the colon, and at the whole *end*, hash, query and colon together:
there nothing of the base's own question is left, and the weights say what the source's question was handed on as.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.joint import joint_answers
from bindscope.measures.binding.mixture.fit import Fit, fit_mixture
from bindscope.measures.binding.mixture.likelihood import ACCOUNTS, tabulate_components, to_outcomes
from bindscope.measures.binding.mixture.reading import COLON, END, POSITIONS, QUERY
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import to_digits
from bindscope.tasks.binding.accounts import AccountPairs


def measure_mixture(model: Transformer, drawn: AccountPairs, seed: int = 0) -> xr.Dataset:
    """``weight`` over (layer, position, account) with its interval; ``sigma``, ``distance`` and ``floor`` over (layer,
    position), ``without`` with each account left out; and ``accuracy`` on the base programs. Layers count what enters them,
    the last is what leaves the model.
    """
    answers = patch_ends(model, drawn)  # [position, layer, pair]
    components, known = tabulate_components(drawn), dict[bytes, Fit]()

    def fit(digits: np.ndarray) -> Fit:
        """Of the same answers once: many a patch changes nothing."""
        if digits.tobytes() not in known:
            outcomes = to_outcomes(digits, drawn.n_digits)
            known[digits.tobytes()] = fit_mixture(components, outcomes, np.random.default_rng(seed))
        return known[digits.tobytes()]

    fits = [[fit(answers[at, layer]) for at in range(len(POSITIONS))] for layer in range(answers.shape[1])]
    unpatched = answers[POSITIONS.index(COLON), 0]  # the colon's own token is the same in both programs
    right = unpatched == drawn.values[np.arange(len(drawn)), drawn.asked]
    return label_fits(fits).assign(accuracy=((), float(right.mean()), {"units": "fraction"})).assign_attrs(n=len(drawn))


def patch_ends(model: Transformer, drawn: AccountPairs) -> np.ndarray:
    """The digit that each patch makes the base answer, −1 for none: [position, layer, pair]."""
    pairs = drawn.pairs
    columns = np.arange(pairs.base_tokens.shape[1])
    ends = {
        QUERY: columns == pairs.query_position,
        COLON: columns == pairs.colon_position,
        END: columns >= pairs.query_position - 1,
    }
    marks = {name: np.tile(mark, (len(drawn), 1)) for name, mark in ends.items()}
    return to_digits(pairs.base, joint_answers(model, contrast_pairs(pairs), marks).values)


def label_fits(fits: list[list[Fit]]) -> xr.Dataset:
    """Fits [layer][position] as a dataset."""
    dims = ("layer", "position")

    def gather(name: str) -> np.ndarray:
        return np.array([[getattr(fit, name) for fit in row] for row in fits], np.float32)

    variables: dict[str, Any] = {
        name: ((*dims, "account"), gather(field), {"units": "fraction"})
        for name, field in (("weight", "weights"), ("weight_low", "low"), ("weight_high", "high"))
    }
    variables["sigma"] = (dims, gather("sigma"), {"units": "line"})
    for name in ("distance", "floor"):
        variables[name] = (dims, gather(name), {"units": "1"})
    variables["without"] = ((*dims, "account"), gather("without"), {"units": "1"})
    coords = {"layer": np.arange(len(fits)), "position": list(POSITIONS), "account": list(ACCOUNTS)}
    interval = "95 %, bootstrap over pairs, at least as wide as Wilson's"
    return xr.Dataset(variables, coords, {"interval": interval})
