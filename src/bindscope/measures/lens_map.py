"""The logit lens on one program, everywhere: what the residual stream at each position would answer after each layer.

>>> lens = map_lens(run.checkpoint(3700), parse_program("a=5\\nb=a\\nc=3\\n#b:"))
>>> lens.answer.sel(layer=5)[-1]  # the model's own probability of the answer, at the colon
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import xarray as xr

from bindscope.measures.evaluation import evaluating
from bindscope.measures.lens import lens_sites
from bindscope.model.run import run, to_host
from bindscope.tasks.binding import ask_programs
from bindscope.tasks.binding.program import VOCABULARY

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer
    from bindscope.tasks.binding import Program


def map_lens(model: Transformer, program: Program) -> xr.Dataset:
    """Readings over (layer, position); layer k is after k layers.

    ``answer`` and ``line_1``: the probabilities of the true answer and of line 1's constant, with their logits;
    ``top`` and ``top_probability``: the likeliest token; ``entropy`` of all outputs, in bits. Only the last position
    was trained to answer: elsewhere the lens shows what the residual stream holds, not what the model would say.
    """
    batch = ask_programs([program])
    sites = lens_sites(model)
    tokens = torch.from_numpy(batch.tokens)
    with evaluating(model), torch.no_grad():
        trace = run(model, tokens, read=sites, layout=batch.layout)
        stream = torch.stack([trace[site][0] for site in sites])  # [layer, position, d_model]
        logits = to_host(model.to_logits(stream)).double()  # [layer, position, output]
    fractions = logits.softmax(-1)
    top = fractions.max(-1)
    symbols = VOCABULARY.shown()
    answer, line_1 = program.answer, program.values[0]  # a digit is its own token
    entropy = -(fractions * fractions.clamp_min(1e-300).log2()).sum(-1)
    readings = {
        "answer": (fractions[..., answer].numpy(), "fraction"),
        "line_1": (fractions[..., line_1].numpy(), "fraction"),
        "answer_logit": (logits[..., answer].numpy(), "logit"),
        "line_1_logit": (logits[..., line_1].numpy(), "logit"),
        "top": ([[symbols[index] for index in row] for row in top.indices.tolist()], ""),
        "top_probability": (top.values.numpy(), "fraction"),
        "entropy": (entropy.numpy(), "bits"),
    }
    dims = ("layer", "position")
    variables = {name: (dims, values, {"units": units}) for name, (values, units) in readings.items()}
    dataset = xr.Dataset(variables, {"layer": list(range(len(sites))), "position": list(range(len(program.tokens)))})
    dataset.attrs = {"title": "logit lens of one program", "answer_digit": str(answer), "line_1_digit": str(line_1)}
    return dataset.assign_coords(
        site=("layer", [str(site) for site in sites]),
        token=("position", program.shown_tokens),
    )
