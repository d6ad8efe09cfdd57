"""How fast subspaces are swapped and learned, ours beside other libraries on the same weights and pairs.

    python benchmarks/subspace_swaps.py --size laptop --pairs 128
    python benchmarks/subspace_swaps.py --size paper --pairs 32 --batch 16 --steps 2 --rounds 1

*Steps*: one step of distributed alignment search, forward, backward and Adam, for a rank-8 rotation of the residual stream
that enters a layer, at several layers. *Swaps*: a rank-8 subspace swapped in every layer in turn, ``--subspaces`` of them a
layer. Both at positions of 16-line programs whose roots stand on line 3 or later: ``rhs 1`` (the root's right-hand side), ``chain``
(every right-hand side of the queried chain, the query and the colon) and ``query``; with ``--sweep`` the swaps are at every
named position, as ``sweep_subspaces`` makes them.

A peer runs the whole model for each step and swap; it takes the source's streams from one run. Ours keeps the base runs and
goes on from them: what that takes at the beginning is printed as setup, and counted in the time of all swaps and of a whole
search of 100 steps. Losses and logits must agree before anything is timed. Contenders take turns; medians are printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent))
from bindscope.model.convert import export_hugging_face
from bindscope.model.transformer import Transformer
from bindscope.subspaces.positions import find_columns, named_columns
from bindscope.subspaces.rotation import RotationPlan, learn_rotation
from bindscope.subspaces.stream import keep_base, read_layers, run_changed
from bindscope.subspaces.subspace import Subspace
from bindscope.tasks.binding.pairs import CounterfactualPairs
from bindscope.training.memory import keep_freed_memory
from patching import SIZES, build_setting
from patching_peers import PlainHooks
from subspace_peers import PEERS, Rotation
from turns import OURS, Clock, choose_clock, compare, fastest, note, take_turns

RANK, SEARCH = 8, 100
POSITIONS = ("rhs 1", "chain", "query")
GOALS = {"steps": 2, "swaps": 4}


def main() -> None:
    options = read_options()
    torch.set_num_threads(options.threads)
    keep_freed_memory()  # for everyone
    clock = choose_clock(options.clock)
    setting = build_setting(options.size, options.pairs)
    with tempfile.TemporaryDirectory() as directory:
        export_hugging_face(setting.model, Path(directory) / "model")
        plain = PlainHooks(Path(directory) / "model")
    plain.model.requires_grad_(False)
    with torch.no_grad():
        plain.take_from(torch.from_numpy(setting.pairs.counterfactual_tokens))
    print(f"{options.size}, {options.pairs} pairs, {options.threads} thread(s), {options.rounds} round(s), ", end="")
    print(f"{options.clock} time, medians\n")
    if "swaps" in options.what:
        every = [name for name in named_columns(setting.pairs) if name != "distractor"]
        for positions in ([[name] for name in options.positions], [every])[options.sweep]:
            report_swaps(setting.model, setting.pairs, positions, plain, options, clock)
    if "steps" in options.what:
        for position in options.positions:
            for layer in options.layers or spread_layers(setting.model.config.n_layers, position):
                report_steps(setting.model, setting.pairs, layer, position, plain, options, clock)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="laptop", help="the model of which preset")
    parser.add_argument("--pairs", type=int, default=128)
    parser.add_argument("--batch", type=int, default=64, help="pairs of a step")
    parser.add_argument("--steps", type=int, default=5, help="steps of each turn")
    parser.add_argument("--subspaces", type=int, default=3, help="swaps in each layer, 3 as a sweep makes them")
    parser.add_argument("--sweep", action="store_true", help="swap at every named position, as a sweep does")
    parser.add_argument("--rounds", type=int, default=3, help="how often everyone has a turn")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--clock", choices=("cpu", "wall"), default="cpu", help="cpu: processor time, for a busy machine"
    )
    parser.add_argument("--what", nargs="+", choices=list(GOALS), default=list(GOALS))
    parser.add_argument("--layers", nargs="+", type=int, help="of the steps (default: first, middle, last)")
    parser.add_argument("--positions", nargs="+", choices=POSITIONS, default=list(POSITIONS))
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS))
    options = parser.parse_args()
    if options.clock == "cpu" and options.threads > 1:
        parser.error("--clock cpu adds up the time of all threads: use it with --threads 1.")
    return options


def spread_layers(n_layers: int, position: str) -> list[int]:
    """The first layer, where the two programs differ at the root alone, a middle one and the last."""
    return [layer for layer in (0, n_layers // 2, n_layers - 1) if layer > 0 or position != "query"]


def report_swaps(
    model: Transformer,
    pairs: CounterfactualPairs,
    positions: Sequence[str],
    plain: PlainHooks,
    options: argparse.Namespace,
    clock: Clock,
) -> None:
    marked, free = [find_columns(pairs, position) for position in positions], draw_free(model.config.d_model)
    layers, subspace = range(model.config.n_layers), Subspace.spanned_by(free.T)
    cells = [(layer, columns) for columns in marked for layer in layers] * options.subspaces

    def ours() -> tuple[float, float]:
        start = clock()
        source = read_layers(model, pairs.counterfactual_tokens, layers, np.concatenate(marked, axis=1))
        widths = [columns.shape[1] for columns in marked] * options.subspaces
        taken = {
            layer: iter(values.repeat(1, options.subspaces, 1).split(widths, 1)) for layer, values in source.items()
        }
        kept = keep_base(model, pairs, 0)
        ready = clock()
        for layer, columns in cells:
            run_changed(model, pairs, layer, columns, next(taken[layer]), subspace.swap, kept)
        return ready - start, clock() - start

    def theirs(rotations: list[Rotation]) -> tuple[float, float]:
        start = clock()
        with torch.no_grad():
            plain.take_from(torch.from_numpy(pairs.counterfactual_tokens))
            ready = clock()
            for layer, columns in cells:
                swap_present(rotations[layer], pairs, columns)
        return ready - start, clock() - start

    names = [name for name in options.peers if all(usable(name, columns) for columns in marked)]
    peers = {name: [PEERS[name](plain, layer, free) for layer in layers] for name in names}
    check_swaps(model, pairs, marked[0], subspace, peers)
    contenders = {OURS: ours} | {name: lambda each=each: theirs(each) for name, each in peers.items()}
    times = take_turns(contenders, options.rounds)
    where = positions[0] if len(positions) == 1 else f"{len(positions)} positions ({', '.join(positions)})"
    print(f"{options.subspaces} swap(s) in each of {len(layers)} layers at {where}, setup included")
    what = f"swaps in every layer at {positions[0] if len(positions) == 1 else 'all positions'}, {options.size} size"
    report(what, times, lambda setup, whole: whole, lambda setup, whole: f"setup {setup * 1e3:7.0f} ms", "swaps")


@torch.no_grad()
def check_swaps(
    model: Transformer,
    pairs: CounterfactualPairs,
    columns: np.ndarray,
    subspace: Subspace,
    peers: dict[str, list[Rotation]],
) -> None:
    """Stop if a peer's logits differ from ours by more than 1e-5 of the largest."""
    kept, present = keep_base(model, pairs, 0), torch.from_numpy((columns >= 0).any(1))
    for layer, source in read_layers(model, pairs.counterfactual_tokens, range(model.config.n_layers), columns).items():
        logits = run_changed(model, pairs, layer, columns, source, subspace.swap, kept)[present]
        for name, rotations in peers.items():
            theirs = swap_present(rotations[layer], pairs, columns)
            difference = ((theirs - logits).abs().max() / logits.abs().max()).item()
            if difference > 1e-5:
                raise SystemExit(f"{name} computes something else: layer {layer} differs by {difference:.2g}.")


def swap_present(rotation: Rotation, pairs: CounterfactualPairs, columns: np.ndarray) -> Tensor:
    """A peer's logits of the pairs that have the position."""
    base, rows = torch.from_numpy(pairs.base_tokens), np.flatnonzero((columns >= 0).any(1))
    return rotation.swap(base, torch.from_numpy(rows), torch.from_numpy(columns[rows]))


def report_steps(
    model: Transformer,
    pairs: CounterfactualPairs,
    layer: int,
    position: str,
    plain: PlainHooks,
    options: argparse.Namespace,
    clock: Clock,
) -> None:
    columns, plan = find_columns(pairs, position), RotationPlan(options.steps + 1, options.batch)

    def ours() -> tuple[float, float]:
        return spread(learn_ours(model, pairs, layer, position, plan, clock)[1])

    def theirs(name: str) -> tuple[float, float]:
        return spread(learn_theirs(name, plain, pairs, layer, columns, plan, clock)[1])

    names = [name for name in options.peers if usable(name, columns)]
    losses = learn_ours(model, pairs, layer, position, plan, clock)[0]
    for name in names:
        found = learn_theirs(name, plain, pairs, layer, columns, plan, clock)[0]
        n = len(losses) if name == "plain hooks" else 1  # others have parameters of their own
        if not np.allclose(found[:n], losses[:n], rtol=1e-3):
            raise SystemExit(f"{name} learns something else: losses {found[:n]} where ours are {losses[:n]}.")
    contenders = {OURS: ours} | {name: lambda name=name: theirs(name) for name in names}
    times = take_turns(contenders, options.rounds)
    print(f"a step of {options.batch} pairs in layer {layer} at {position}")
    whole = {name: setup + SEARCH * step for name, (setup, step) in both_medians(times).items()}
    report(
        f"a rank-{RANK} step in layer {layer} at {position}, {options.size} size",
        times,
        lambda setup, step: step,
        lambda setup, step: (
            f"setup {setup * 1e3:7.0f} ms, {SEARCH} steps {(setup + SEARCH * step) / whole[OURS]:6.1f} ×"
        ),
        "steps",
    )


def learn_ours(
    model: Transformer, pairs: CounterfactualPairs, layer: int, position: str, plan: RotationPlan, clock: Clock
) -> tuple[list[float], list[float]]:
    """The losses of a search, and the clock at its beginning and after each step."""
    ticks = [clock()]
    learned = learn_rotation(
        model,
        pairs,
        layer=layer,
        position=position,
        rank=RANK,
        generator=torch.Generator().manual_seed(0),
        plan=plan,
        on_progress=lambda *_: ticks.append(clock()),
    )
    return learned.losses.tolist(), ticks


def learn_theirs(
    name: str,
    plain: PlainHooks,
    pairs: CounterfactualPairs,
    layer: int,
    columns: np.ndarray,
    plan: RotationPlan,
    clock: Clock,
) -> tuple[list[float], list[float]]:
    """The same by a peer: the same rows, and from the same directions on."""
    ticks, losses = [clock()], []
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        plain.take_from(torch.from_numpy(pairs.counterfactual_tokens))
    rotation = PEERS[name](plain, layer, torch.randn(plain.model.config.hidden_size, RANK, generator=generator))
    base, wanted = torch.from_numpy(pairs.base_tokens), torch.from_numpy(pairs.counterfactual_answers)
    optimizer = torch.optim.Adam(list(rotation.parameters()), lr=plan.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, plan.n_steps)
    for _ in range(plan.n_steps):
        rows = torch.randint(len(pairs), (plan.batch_size,), generator=generator)
        loss = F.cross_entropy(rotation.swap(base, rows, torch.from_numpy(columns)[rows]), wanted[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        ticks.append(clock())
    return losses, ticks


def spread(ticks: list[float]) -> tuple[float, float]:
    """The time before the first step, and that of a step."""
    steps = np.diff(ticks)
    step = float(np.median(steps[1:]))
    return max(0.0, float(steps[0]) - step), step


def draw_free(d_model: int) -> Tensor:
    return torch.randn(d_model, RANK, generator=torch.Generator().manual_seed(0))


def usable(name: str, columns: np.ndarray) -> bool:
    """Whether a peer can change these columns: some change only one of each pair."""
    return PEERS[name].several_columns or columns.shape[1] == 1


def both_medians(times: dict[str, list[tuple[float, float]]]) -> dict[str, tuple[float, float]]:
    """Of each one's two times."""
    return {name: (median(a for a, _ in pairs), median(b for _, b in pairs)) for name, pairs in times.items()}


def report(
    what: str,
    times: dict[str, list[tuple[float, float]]],
    compared: Callable[[float, float], float],
    beside: Callable[[float, float], str],
    goal: str,
) -> None:
    turns = {name: [compared(*both) for both in pairs] for name, pairs in times.items()}
    two = both_medians(times)
    seconds = {name: compared(*both) for name, both in two.items()}
    for name, value in seconds.items():
        print(f"  {name:14}{value * 1e3:10.1f} ms{value / seconds[OURS]:8.1f} ×   {beside(*two[name])}")
    peer = fastest(turns)
    ratio = compare(turns, peer)
    print(f"  {ratio} the fastest peer ({peer}); goal {GOALS[goal]}×\n", flush=True)
    note("subspace_swaps", what, ratio=ratio, peer=peer, seconds=seconds[OURS], goal=GOALS[goal])


if __name__ == "__main__":
    main()
