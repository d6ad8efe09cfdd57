"""``bindscope circuit``: which heads move the value between which positions, and since when."""

from __future__ import annotations

import json as json_format
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bindscope.cli.asking import naming_options
from bindscope.cli.options import HERE, Flag, Place, Seed
from bindscope.cli.outcome import open_binding_run, show_progress
from bindscope.cli.table import format_table
from bindscope.questions.findings import Drawing, save_circuit, try_circuit
from bindscope.questions.opened import Opened
from bindscope.questions.pairs import draw_pairs
from bindscope.questions.question import to_steps
from bindscope.questions.render import write_command

if TYPE_CHECKING:
    from bindscope.interventions.circuit import Circuit


def circuit(
    run: str,
    /,
    *,
    depth: int = 2,
    step: str = "last",
    steps: str | None = None,
    metric: Literal["success", "logit_difference"] = "logit_difference",
    least_success: float = 0.1,
    least_loss: float = 0.3,
    n: int = 48,
    first_root_line: int = 3,
    seed: Seed = 0,
    place: Place = HERE,
    save: Path | None = None,
    json: Flag = False,
) -> None:
    """Find the heads that move a value along its chain, and try them on other programs.

    A move is a head that reads at one position of the chain and writes at another.
    It counts when taking what it writes from another run carries the answer
    along, or when cutting the edge loses the answer. The circuit is found on
    --n pairs of one depth, then frozen and tried on as many others.

    Examples:
        bindscope circuit binding-plain --depth 2
        bindscope circuit binding-plain --depth 2 --steps all
        bindscope circuit binding-laptop --depth 1 --metric success --least-success 0.5
        bindscope circuit binding-plain --depth 2 --save chain.safetensors

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    depth
        The depth of the chains.
    step
        The checkpoint at which the circuit is found: a step, or 'last'.
    steps
        The checkpoints at which the frozen circuit is tried: 'all', or a list such as 0,1000,last. --step when left out.
    metric
        How far an answer follows: success (it is on top), or logit_difference (the way there), which also finds heads
        that share the work.
    least_success
        How far the answer must follow what one head writes.
    least_loss
        The fraction of right answers that cutting one edge must lose.
    n
        How many pairs to draw for finding, and again for trying.
    first_root_line
        The first line that may hold the root's constant.
    seed
        The seed that draws the pairs for finding; the next one draws those for trying.
    save
        Also save the circuit with its effect at --step, for 'bindscope apply'.
    json
        Print moves and effects as JSON instead of tables.
    """
    from bindscope.interventions.circuit import find_circuit
    from bindscope.interventions.contrast import contrast_pairs
    from bindscope.tasks.binding import named_positions

    opened, task = open_binding_run(run, place)
    found_at, tried_at = opened.find_step(step), Opened.of(opened).find_steps(to_steps(steps or step))
    with naming_options():
        drawn, others = (draw_pairs(task, n, depth, first_root_line, number) for number in (seed, seed + 1))
    with show_progress("searching") as on_progress:
        found = find_circuit(
            opened.checkpoint(found_at),
            contrast_pairs(drawn.pairs),
            named_positions(drawn.pairs),
            metric=metric,
            least_success=least_success,
            least_loss=least_loss,
            on_progress=on_progress,
        )
    effects = []
    with show_progress("trying") as on_progress:
        for index, kept in enumerate(tried_at if found.moves else [], start=1):
            effects.append({"step": kept, **try_circuit(opened.checkpoint(kept), others.pairs, found, seed)})
            on_progress(index, len(tried_at))
    if save is not None:
        command = write_command("circuit", opened.name, depth=depth, step=found_at, metric=metric, seed=seed, n=n)
        save_circuit(save, opened, found_at, found, Drawing(n, depth, first_root_line, seed + 1), command)
    if json:
        moves = [_move_to_json(move) for move in found.moves]
        print(json_format.dumps({"run": opened.name, "step": found_at, "moves": moves, "effects": effects}))
        return
    print(f"{opened.name}, found at step {found_at:,} on {drawn.note}\n\n{format_moves(found)}")
    if effects:
        print(f"\nthe frozen circuit on {n} other pairs, drawn with seed {seed + 1}\n{format_effects(effects)}")
    if save is not None:
        print(f"\nsaved    {save}")


def format_moves(circuit: Circuit) -> str:
    """One row for each move, with what both tests found."""
    if not circuit.moves:
        return "no move reaches the thresholds; lower --least-success or --least-loss."
    rows = [
        [f"L{move.layer}.H{move.head}", f"{move.source} → {move.target}", _number(move.success), _number(move.loss)]
        for move in circuit.moves
    ]
    return format_table(["head", "move", circuit.metric.replace("_", " "), "lost when cut"], rows, numbers=[2, 3])


def format_effects(effects: list[dict[str, Any]]) -> str:
    """One row for each checkpoint."""
    rows = [
        [f"{row['step']:,}", *(_interval(row[name]) for name in ("patched", "without", "alone"))] for row in effects
    ]
    return format_table(
        ["step", "patched: answer follows", "right without it", "right with it alone"], rows, numbers=[0]
    )


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def _interval(values: list[float]) -> str:
    mean, low, high = values
    return f"{mean:.3f} [{low:.3f}–{high:.3f}]"


def _move_to_json(move: Any) -> dict[str, Any]:
    evidence = {
        name: None if math.isnan(value) else value for name, value in (("success", move.success), ("loss", move.loss))
    }
    return {"layer": move.layer, "head": move.head, "source": move.source, "target": move.target, **evidence}
