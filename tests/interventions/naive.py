"""Grids by the book: one whole run of the model for every cell, by ``model.run``. The oracle of the fast ones."""

import torch

from bindscope.interventions.outcome import measure_outcomes
from bindscope.model.run import run


@torch.no_grad()
def naive_cell(model, contrast, site, marked, source_model=None):
    """Logits [pair, output] with ``site`` taken from the source run at the marked positions [pair, position]."""
    source = run(source_model or model, contrast.source, read=[site])[site]

    def take(value):
        where = marked.reshape(*marked.shape, *(1,) * (value.dim() - 2))
        return torch.where(where, source, value)

    return run(model, contrast.base, write={site: take}).logits[:, contrast.at]


def naive_logits(model, contrast, sites, marked, source_model=None):
    """[site, pair, output]"""
    return torch.stack([naive_cell(model, contrast, site, marked, source_model) for site in sites])


@torch.no_grad()
def naive_outcomes(model, contrast, logits, source_model=None):
    """The metrics of changed logits [..., pair, output]."""
    base = run(model, contrast.base).logits[:, contrast.at]
    source = run(source_model or model, contrast.source).logits[:, contrast.at]
    return measure_outcomes(logits, base, source, contrast)


def only(position, contrast):
    """Marks one position of every pair."""
    marked = torch.zeros_like(contrast.base, dtype=torch.bool)
    marked[:, position] = True
    return marked
