"""``bindscope ablate``: take parts away and see which answers fall."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Any, Literal

from bindscope.cli.options import Flag, Seed
from bindscope.cli.outcome import binding_task, check_out, show_progress, write_out
from bindscope.cli.pairs import Words, draw_pairs, figure_or_none
from bindscope.cli.table import format_table
from bindscope.errors import BindscopeError
from bindscope.runs.locate import find_run


def ablate(
    run: str,
    /,
    *,
    of: Words = (),
    kind: Literal["mean", "zero", "resample"] = "mean",
    cut: Words = (),
    layer: int | None = None,
    head: int | None = None,
    step: str = "last",
    n: int = 400,
    depth: int | None = None,
    first_root_line: int = 1,
    seed: Seed = 0,
    out: Path | None = None,
    json: Flag = False,
) -> None:
    """Ablate heads or MLPs, or knock attention edges out, see which answers fall.

    Accuracy by depth with 95 % Wilson intervals. A head's output includes its
    identity path where the model has one.

    Examples:
        bindscope ablate binding-laptop
        bindscope ablate binding-laptop --of mlps --kind zero
        bindscope ablate binding-laptop --of L1.H2 --of "L2.H0@rhs 2" --kind resample
        bindscope ablate binding-laptop --cut "colon>query" --layer 4
        bindscope ablate binding-plain --cut "rhs 2>rhs 1" --cut "query>rhs 2"

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    of
        'heads' or 'mlps': each alone, one after another. Or sites, all together: L1.H2, L3.mlp_out, "L2.H0@rhs 2". Give
        it once per site. Heads when nothing else is asked.
    kind
        What stands there instead: the mean over the programs, nothing (zero), or another program's (resample).
    cut
        Cut an attention edge instead, from who looks to what it looks at: "colon>query". Several are cut together.
    layer
        Cut the edges in this layer only.
    head
        Cut the edges in this head of each layer only.
    step
        Which checkpoint: a step, or 'last'.
    n
        How many programs to draw, balanced over depths.
    depth
        Draw programs of this depth only.
    first_root_line
        The first line that may hold the queried chain's constant.
    seed
        The seed that draws them.
    out
        Also write a figure (.svg, .pdf, .png) or the numbers program by program (.nc).
    json
        Print the accuracies as JSON instead of a table.
    """
    from bindscope.interventions.answers import accuracy_by
    from bindscope.runs.directory import Run

    check_out(out)
    opened = Run.open(find_run(run))
    drawn = draw_pairs(binding_task(opened), n, depth, first_root_line, seed)
    _check(of, cut, layer, head)
    found = opened.find_step(step)
    model = opened.checkpoint(found)
    with show_progress("programs") as on_progress:
        if cut:
            dataset = _cut(model, drawn.pairs, cut, layer, head)
        else:
            dataset = _ablate(model, drawn.pairs, of, kind, seed, on_progress)
    note = drawn.note.replace("pairs", "programs")
    dataset.attrs |= {"run": opened.name, "step": found, "programs": note}
    accuracy = accuracy_by(dataset, "depth")
    title = f"{opened.name} at step {found:,}, {_what(of, kind, cut, layer, head)}"
    if json:
        print(json_format.dumps({**dataset.attrs, "rows": _to_json(accuracy)}))
    else:
        print(f"{title}\n{note}\n\naccuracy by depth, with 95 % Wilson intervals\n{format_accuracy(accuracy)}")
    if out is not None:
        path = write_out(dataset, out, figure_or_none(out, _for_figure(accuracy), "accuracy", title))
        if not json:
            print(f"\nwritten  {path}")


def format_accuracy(accuracy: Any) -> str:
    """One row unchanged, then one for each part taken away; one column a depth."""
    rows = [[name, *(_share(*cell) for cell in cells)] for name, cells in _rows(accuracy)]
    return format_table(["", *(f"depth {int(d)}, n {int(k)}" for d, k in zip(accuracy.depth, accuracy.base_n))], rows)


def _rows(accuracy: Any) -> list[tuple[str, list[tuple[float, float, float]]]]:
    """Names with (accuracy, low, high) for each depth."""
    import numpy as np

    def cells(prefix: str, index: dict[str, Any]) -> list[tuple[float, float, float]]:
        columns = (accuracy[f"{prefix}accuracy{suffix}"].sel(index).values for suffix in ("", "_low", "_high"))
        return [tuple(map(float, cell)) for cell in zip(*columns)]  # type: ignore[misc]

    rows = [("unchanged", cells("base_", {}))]
    dims = accuracy.accuracy.dims[:-1]
    for index in np.ndindex(*(accuracy.sizes[dim] for dim in dims)):
        part = {dim: accuracy[dim].values[place] for dim, place in zip(dims, index)}
        rows.append((_name(part), cells("", part)))
    return rows


def _name(part: dict[str, Any]) -> str:
    if not part:
        return "changed"
    return f"L{part['layer']}.H{part['head']}" if "head" in part else f"L{part['layer']}.mlp_out"


def _share(share: float, low: float, high: float) -> str:
    return "–" if share != share else f"{share:.3f}  {low:.3f}–{high:.3f}"


def _ablate(model: Any, pairs: Any, of: tuple[str, ...], kind: Any, seed: int, on_progress: Any) -> Any:
    import numpy as np

    from bindscope.interventions.ablation import ablate_heads, ablate_mlps, ablate_together
    from bindscope.studies.binding.mechanism.patching import locate_sites
    from bindscope.tasks.binding import structural_places

    rng = np.random.default_rng([seed, 2])
    if of in ((), ("heads",)):
        return ablate_heads(model, pairs.base, kind=kind, rng=rng, on_progress=on_progress)
    if of == ("mlps",):
        return ablate_mlps(model, pairs.base, kind=kind, rng=rng, on_progress=on_progress)
    sites, positions = locate_sites(of, structural_places(pairs))
    return ablate_together(model, pairs.base, sites, kind, positions=positions, rng=rng)


def _cut(model: Any, pairs: Any, cut: tuple[str, ...], layer: int | None, head: int | None) -> Any:
    from bindscope.interventions.knockout import knock_out_edges, name_edge
    from bindscope.tasks.binding import structural_places

    places = structural_places(pairs)
    return knock_out_edges(model, pairs.base, [name_edge(text, places, layer, head) for text in cut])


def _check(of: tuple[str, ...], cut: tuple[str, ...], layer: int | None, head: int | None) -> None:
    if of and cut:
        raise BindscopeError("--of and --cut: choose one of the two.")
    if (layer is not None or head is not None) and not cut:
        raise BindscopeError("--layer and --head: say which edge to cut there, such as --cut 'colon>query'.")
    if len(of) > 1 and {"heads", "mlps"} & set(of):
        raise BindscopeError("--of: 'heads' and 'mlps' go one by one; ask for them alone, or name sites.")


def _what(of: tuple[str, ...], kind: str, cut: tuple[str, ...], layer: int | None, head: int | None) -> str:
    if cut:
        where = [f"layer {layer}"] * (layer is not None) + [f"head {head}"] * (head is not None)
        return f"without {', '.join(cut)} in {' '.join(where) or 'all layers'}"
    parts = {(): "each head", ("heads",): "each head", ("mlps",): "each MLP"}.get(of, " + ".join(of))
    return f"{parts} replaced by {dict(mean='its mean', zero='zero', resample='another program')[kind]}"


def _for_figure(accuracy: Any) -> Any:
    """Parts as rows, depths as columns."""
    if "head" not in accuracy.dims:
        return accuracy
    flat = accuracy[["accuracy", "accuracy_low", "accuracy_high"]].stack(part=("layer", "head"))
    names = [f"L{layer}.H{head}" for layer, head in flat.part.values]
    return flat.drop_vars(("part", "layer", "head")).assign_coords(part=names).transpose("part", "depth")


def _to_json(accuracy: Any) -> list[dict[str, Any]]:
    depths = [int(depth) for depth in accuracy.depth.values]
    return [
        {"part": name, "depth": depth, "accuracy": share, "low": low, "high": high}
        for name, cells in _rows(accuracy)
        for depth, (share, low, high) in zip(depths, cells)
        if share == share
    ]
