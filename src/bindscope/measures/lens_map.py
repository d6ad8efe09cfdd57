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
from bindscope.tasks.binding import BindingTask, columns_of, outputs_of_digits

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer
    from bindscope.tasks.binding import Program


def map_lens(model: Transformer, program: Program, task: BindingTask | None = None) -> xr.Dataset:
    """Readings over (layer, position); layer k is after k layers.

    ``answer`` and ``line_1``: the probabilities of the true answer and of line 1's constant, with their logits;
    ``top`` and ``top_probability``: the likeliest token; ``entropy`` of all outputs, in bits. Only the last position
    was trained to answer: elsewhere the lens shows what the residual stream holds, not what the model would say. The
    program is written as ``task`` does; without one, in its own tokens.
    """
    task = task or BindingTask()
    batch = task.to_batch(program)
    sites, columns = lens_sites(model), columns_of(batch)
    tokens = torch.from_numpy(batch.tokens)
    with evaluating(model), torch.no_grad():
        trace = run(model, tokens, read=sites, layout=batch.layout)
        stream = torch.stack([trace[site][0, columns] for site in sites])  # [layer, position, d_model]
        logits = to_host(model.to_logits(stream)).double()  # [layer, position, output]
    fractions = logits.softmax(-1)
    top = fractions.max(-1)
    symbols = task.vocabulary.shown()
    answer, line_1 = outputs_of_digits(batch)[[program.answer, program.values[0]]]
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
    dataset = xr.Dataset(variables, {"layer": list(range(len(sites))), "position": list(range(len(columns)))})
    digits = {"answer_digit": str(program.answer), "line_1_digit": str(program.values[0])}
    dataset.attrs = {"title": "logit lens of one program", **digits}
    return dataset.assign_coords(
        site=("layer", [str(site) for site in sites]),
        token=("position", task.show_tokens(program)),
    )
