"""One typed program, read off a model: its answer, the logit lens and attention, as labelled arrays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
import xarray as xr

from bindscope.measures.evaluation import evaluating, read_answers
from bindscope.measures.lens import lens_sites
from bindscope.model.run import run
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import Program, ask_programs
from bindscope.tasks.binding.program import DIGITS, VOCABULARY
from bindscope.tasks.vocabulary import show_symbol


def predict_program(models: Iterable[tuple[int, Transformer]], program: Program) -> xr.Dataset:
    """What models at some steps answer: ``probability`` over (step, output)."""
    batch, steps, rows = ask_programs([program]), [], []
    for step, model in models:
        logits = torch.from_numpy(read_answers(model, batch)[0]).double()  # [output]
        steps.append(step)
        rows.append(logits.softmax(0).numpy())
    dataset = xr.Dataset({"probability": (("step", "output"), np.array(rows), {"units": "share"})})
    return dataset.assign_coords(step=steps, output=_outputs(len(rows[0]))).assign_attrs(_describe(program))


def read_lens(model: Transformer, program: Program) -> xr.Dataset:
    """The stream entering each layer and leaving the last, read as an answer at every position: dims (layer, position)."""
    sites = lens_sites(model)
    tokens = torch.from_numpy(ask_programs([program]).tokens)
    with evaluating(model), torch.no_grad():
        trace = run(model, tokens, read=sites)
        logits = torch.stack([model.to_logits(trace[site])[0] for site in sites]).double()  # [layer, position, output]
    shares = logits.softmax(-1)
    best, top = shares.max(-1)
    first = program.assignments[0]
    chosen = {"answer": program.answer} | ({"line_1": int(first.source)} if first.is_constant else {})
    variables = {name: (shares[..., output], "share") for name, output in chosen.items()}
    variables |= {f"{name}_logit": (logits[..., output], "logit") for name, output in chosen.items()}
    variables |= {
        "top_probability": (best, "share"),
        "entropy": (-(shares * shares.clamp_min(1e-30).log()).sum(-1), "nat"),
    }
    dataset = xr.Dataset(
        {name: (("layer", "position"), value.numpy(), {"units": unit}) for name, (value, unit) in variables.items()}
    )
    names = np.array(_outputs(logits.shape[-1]))
    dataset["top"] = (("layer", "position"), names[top.numpy()])
    dataset = dataset.assign_coords(layer=range(len(sites)), site=("layer", [str(site) for site in sites]))
    return dataset.assign_coords(token=("position", _tokens(program))).assign_attrs(_describe(program))


def read_attention(model: Transformer, program: Program) -> xr.Dataset:
    """Where each head looks: ``pattern`` over (layer, head, query, key)."""
    sites = [Site("pattern", layer) for layer in range(model.config.n_layers)]
    tokens = torch.from_numpy(ask_programs([program]).tokens)
    with evaluating(model), torch.no_grad():
        trace = run(model, tokens, read=sites)
    patterns = torch.stack([trace[site][0] for site in sites]).numpy()  # [layer, head, query, key]
    dataset = xr.Dataset({"pattern": (("layer", "head", "query", "key"), patterns, {"units": "share"})})
    return dataset.assign_coords(token=("query", _tokens(program))).assign_attrs(_describe(program))


def _describe(program: Program) -> dict[str, str | int]:
    return {"program": program.text.replace("\n", ";"), "answer": DIGITS[program.answer], "depth": program.depth}


def _outputs(n_outputs: int) -> list[str]:
    return [show_symbol(symbol) for symbol in VOCABULARY.symbols[:n_outputs]]


def _tokens(program: Program) -> list[str]:
    return [show_symbol(symbol) for symbol in VOCABULARY.decode(program.tokens)]
