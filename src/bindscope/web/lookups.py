"""How bindings are looked up, through training: accounts, identifiers, lookbacks, reassignment and shared features, for the panels of the page Development."""

from __future__ import annotations

from typing import Any

from bindscope.web.again import in_python, in_shell
from bindscope.web.body import Provenance, to_body
from bindscope.web.kept import kept_result
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import Resource
from bindscope.web.programs import KINDS

DECIMALS = 3


def mixture(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Weights of the accounts over (step, layer, position, account), and how well they fit."""
    from bindscope.measures.binding.mixture.reading import pointer_layer

    kept = kept_result(run, "mixture", in_shell(run, "figure", "mixture"), waits=False)
    note = "pairs asked directly; layer: what enters it"
    names = ["weight", "weight_low", "weight_high", "distance", "floor", "accuracy"]
    return body_of(
        run, "mixture", "What a question is looked up by", kept[names], note, pointer_layer=pointer_layer(kept)
    )


def identifiers(lab: Lab, run: LabRun) -> dict[str, Any]:
    """What swaps two bindings and what leaves them, over (step, intervention, part, layer)."""
    kept = kept_result(run, "identifiers", in_shell(run, "figure", "identifiers"), waits=False)
    names = ["swapped", "swapped_low", "swapped_high", "kept", "kept_low", "kept_high"]
    return body_of(run, "identifiers", "What swaps two bindings", kept[names], "programs for each intervention")


def lookbacks(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Address, pointer and payload over (step, …, layer)."""
    kept = kept_result(run, "lookbacks", in_shell(run, "figure", "lookbacks"), waits=False)
    names = [f"{name}{end}" for name in ("binding", "source", "end") for end in ("", "_low", "_high")]
    return body_of(run, "lookbacks", "Address, pointer and payload of a lookup", kept[names], "pairs of each kind")


def reassignment(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Which write wins, what undoes an overwrite and what probes read, over (step, …); what each step shows in words."""
    from bindscope.measures.binding.reassignment.finding import describe_reassignment

    kept = kept_result(run, "reassignment", in_shell(run, "figure", "reassignment"), waits=False)
    names = [f"{name}{end}" for name in ("answered", "undone", "excess") for end in ("", "_low", "_high")]
    findings = [describe_reassignment(kept.isel(step=index)) for index in range(kept.sizes["step"])]
    shown = kept[[*names, "write", "accuracy"]].assign_coords(finding=("step", findings))
    return body_of(run, "reassignment", "Variables that are assigned again", shown, "pairs of each kind")


def crosscoder(lab: Lab, run: LabRun) -> dict[str, Any]:
    """How many features tell what of their line, and how much of them each checkpoint has, over (step, layer, kind, seed)."""
    from bindscope.measures.binding.line_features import describe_line_features, summarise_kinds

    kept = kept_result(run, "crosscoder", in_shell(run, "figure", "crosscoder"), waits=False)
    return to_body(
        summarise_kinds(kept)
        .round(DECIMALS)
        .drop_vars("checkpoint", errors="ignore")
        .assign_attrs(finding=describe_line_features(kept)),
        Provenance(
            run=run.name,
            n=int(kept.attrs["n"]),
            seed=int(kept.attrs["asked_seed"]),
            note="programs, a third of them measured on",
        ),
        title="Features that checkpoints share",
        command=in_shell(run, "figure", "crosscoder"),
        python=in_python(run, 'run.result("crosscoder")'),
    )


def body_of(run: LabRun, name: str, title: str, dataset: Any, note: str, **attrs: Any) -> dict[str, Any]:
    """A saved result of such a measure as it is sent."""
    n, seed = int(dataset.attrs["n"]), int(dataset.attrs.get("asked_seed", 0))
    chosen = dataset.round(DECIMALS).drop_vars("checkpoint", errors="ignore")
    return to_body(
        chosen.assign_attrs(attrs),
        Provenance(run=run.name, n=n, seed=seed, interval=str(dataset.attrs["interval"]), note=note),
        title=title,
        command=in_shell(run, name, n=n, seed=seed),
        python=in_python(run, f'run.result("{name}")'),
    )


RESOURCES = (
    Resource("runs/{run}/mixture.json", mixture, "What a question is looked up by, through training", kinds=KINDS),
    Resource("runs/{run}/identifiers.json", identifiers, "What swaps two bindings, through training", kinds=KINDS),
    Resource("runs/{run}/lookbacks.json", lookbacks, "Address, pointer and payload, through training", kinds=KINDS),
    Resource("runs/{run}/crosscoder.json", crosscoder, "Features that checkpoints share", kinds=KINDS),
    Resource(
        "runs/{run}/reassignment.json", reassignment, "Which write wins, through training", kinds=("reassignment",)
    ),
)
