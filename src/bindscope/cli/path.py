"""``bindscope path``: what one part of the model tells another directly."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Any, Literal

from bindscope.cli.effects import format_summary, summarise, summary_to_json
from bindscope.cli.options import Flag, Seed
from bindscope.cli.outcome import check_out, write_out
from bindscope.cli.pairs import Words, figure_or_none, find_pairs
from bindscope.errors import BindscopeError
from bindscope.runs.locate import find_run


def patch_paths(
    run: str,
    base: str | None = None,
    counterfactual: str | None = None,
    /,
    *,
    sender: str = "",
    receiver: Words = (),
    direction: Literal["noising", "denoising"] = "noising",
    metric: Literal["success", "logit_difference", "new_logit", "kl"] = "logit_difference",
    step: str = "last",
    n: int = 200,
    depth: int | None = None,
    first_root_line: int = 3,
    seed: Seed = 0,
    out: Path | None = None,
    json: Flag = False,
) -> None:
    """Measure what one part of the model tells another directly (path patching).

    The sender takes its value from the counterfactual run; every head and MLP
    between it and the receiver is held at its value in the base run; only the
    receiver hears the change.

    Examples:
        bindscope path binding-laptop --sender L1.H0 --receiver L3.H1.k
        bindscope path binding-laptop --sender "L2.H1@rhs 2" --receiver logits --receiver L4.H0.v
        bindscope path binding-plain --sender L2.mlp_out --receiver L4.H0.q --depth 3

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    base
        The program that is run, lines separated by ';'. Without programs, pairs are drawn.
    counterfactual
        The program that the sender's activations are taken from.
    sender
        The site that speaks: L1.H0 (a head's whole output), L2.mlp_out, "L2.H1@rhs 2" (at a named place).
    receiver
        The site that hears: a head's input (L3.H1.q, .k or .v), L3.pre, logits, … Give it once per receiver; each is
        measured alone.
    direction
        noising runs the first program and takes from the second; denoising the other way round.
    metric
        What to show: success, logit_difference, new_logit or kl.
    step
        Which checkpoint: a step, or 'last'.
    n
        How many pairs to draw.
    depth
        Draw pairs of this depth only.
    first_root_line
        The first line that may hold the root's constant.
    seed
        The seed that draws them.
    out
        Also write a figure (.svg, .pdf, .png) or the numbers pair by pair (.nc).
    json
        Print the means as JSON instead of a table.
    """
    from bindscope.runs.directory import Run

    check_out(out)
    if not sender or not receiver:
        raise BindscopeError("name both ends: --sender L1.H0 --receiver L3.H1.k, or --receiver logits.")
    opened = Run.open(find_run(run))
    drawn = find_pairs(opened, base, counterfactual, n, depth, first_root_line, seed)
    found = opened.find_step(step)
    dataset = _measure(opened.checkpoint(found), drawn.pairs, sender, receiver, direction)
    dataset.attrs |= {"run": opened.name, "step": found, "pairs": drawn.note, "metric": metric}
    summary = summarise(dataset, seed)
    title = f"{opened.name} at step {found:,}, from {sender}"
    if json:
        print(json_format.dumps(summary_to_json(summary, metric, dataset.attrs)))
    else:
        print(f"{title}; {direction}\n{drawn.note}\n\n{format_summary(summary, metric)}")
    if out is not None:
        path = write_out(dataset, out, figure_or_none(out, summary, metric, title))
        if not json:
            print(f"\nwritten  {path}")


def _measure(model: Any, pairs: Any, sender: str, receivers: tuple[str, ...], direction: Any) -> Any:
    """Every metric over (receiver, pair)."""
    import xarray as xr

    from bindscope.interventions.contrast import contrast_pairs
    from bindscope.interventions.paths import patch_path
    from bindscope.studies.binding.mechanism.patching import locate_sites
    from bindscope.tasks.binding import structural_places

    contrast, places = contrast_pairs(pairs, direction), structural_places(pairs)
    (speaks,), sent = locate_sites([sender], places)
    parts = []
    for text in receivers:
        (hears,), received = locate_sites([text], places)
        outcome = patch_path(
            model,
            contrast,
            speaks,
            "final" if hears == "logits" else hears,
            sender_positions=sent.get(speaks),
            receiver_positions=received.get(hears),
        )
        parts.append(outcome)
    dataset = xr.concat(parts, dim="receiver", combine_attrs="drop_conflicts").assign_coords(receiver=list(receivers))
    dataset.attrs["frozen"] = "; ".join(f"{name}: {part.attrs['frozen']}" for name, part in zip(receivers, parts))
    return dataset
