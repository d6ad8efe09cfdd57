"""Patching: grids of one pair as they are made, and chosen places of it together, at one checkpoint or over all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from bindscope.web.again import in_python, steps_in_python
from bindscope.web.body import Provenance, to_body
from bindscope.web.kept import kept_result
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import Operation, Page, Question, Resource, Step
from bindscope.web.programs import FAMILIES, ProgramText, Sites, Steps, read_pair

if TYPE_CHECKING:
    from bindscope.interventions.contrast import Contrast
    from bindscope.tasks.binding.pairs import CounterfactualPairs
    from bindscope.tasks.binding.program import Program

DECIMALS = 4  # of a mean: enough to draw and to read
LARGE = 3_000_000  # parameters from which several threads are used, and the chain's columns come first


class PairQuestion(Question):
    """Two programs: one that is run, and one that activations are taken from (the other way round in denoising)."""

    program: ProgramText
    counterfactual: ProgramText
    direction: Literal["noising", "denoising"] = "noising"
    source_step: Step | None = None  # take the activations from another checkpoint


class GridQuestion(PairQuestion):
    """What becomes of the answer when one cell after another is changed?"""

    step: Step
    grid: Literal["residual", "heads", "mlps"] = "residual"


class PatchQuestion(PairQuestion):
    """What becomes of the answer when these sites are changed together?"""

    steps: Steps
    sites: Annotated[Sites, Field(min_length=1)]


def stream_grid(lab: Lab, run: LabRun, question: GridQuestion) -> Iterator[dict[str, Any]]:
    """First a body whose values are all missing, then its parts; see ``studies.one_pair``."""
    from bindscope.studies.binding.mechanism import one_pair

    programs, pairs = read_pair(run, question)
    contrast = _contrast(pairs, question)
    model = run.model(run.find_step(question.step))
    source_model = None if question.source_step is None else run.model(run.find_step(question.source_step))
    dataset = one_pair.empty_grid(model, contrast, question.grid)
    if question.grid == "residual":
        dataset = dataset.assign_coords(token=("position", base_program(programs, question).shown_tokens))
    dataset.attrs = _answers(contrast)
    yield to_body(
        dataset,
        Provenance(run=run.name, step=question.step, n=1, note=_note(question)),
        title={"residual": "The stream, place by place", "heads": "Heads", "mlps": "MLPs"}[question.grid],
        command=f"bindscope patch {run.name} {_words(programs)} --grid {question.grid} --step {question.step}{_flags(question)}",
        python=_python(run, programs, question, f"grid={question.grid!r}, steps={question.step}"),
    )
    large = model.config.n_parameters >= LARGE
    use_threads(os.cpu_count() or 1 if large else 1)
    first = {*pairs.chain_positions[0].tolist(), pairs.query_position, pairs.colon_position} if large else ()
    for part in one_pair.stream_grid(model, contrast, question.grid, source_model, first):
        yield {"at": part.at, "variables": part.values}


def patch(lab: Lab, run: LabRun, question: PatchQuestion) -> dict[str, Any]:
    """Distributions of the base, the source and the patched run over (step, condition, output), and every metric (step)."""
    from bindscope.studies.binding.mechanism.one_pair import patch_distributions
    from bindscope.tasks.binding.program import VOCABULARY
    from bindscope.tasks.binding.structure import structural_places

    programs, pairs = read_pair(run, question)
    contrast = _contrast(pairs, question)
    steps = [run.find_step(step) for step in question.steps]
    source_step = None if question.source_step is None else run.find_step(question.source_step)
    places = structural_places(pairs)
    dataset = patch_distributions(run.model, steps, contrast, question.sites, places, source_step)
    dataset = dataset.assign_coords(output=VOCABULARY.shown(dataset.sizes["output"]))
    dataset.attrs = {**_answers(contrast), "sites": " ".join(question.sites)}
    step = steps[0] if len(steps) == 1 else None
    all_steps = "all" if tuple(steps) == tuple(run.run.steps) else ",".join(map(str, steps))
    at = f"--step {step}" if step is not None else f"--steps {all_steps}"
    sites = " ".join(f"--site '{site}'" for site in question.sites)
    return to_body(
        dataset,
        Provenance(run=run.name, step=step, n=1, note=_note(question)),
        title="What the answer becomes",
        command=f"bindscope patch {run.name} {_words(programs)} {sites} {at}{_flags(question)}",
        python=_python(run, programs, question, f"sites={question.sites}, steps={steps_in_python(run, steps)}"),
    )


def use_threads(n_threads: int) -> None:
    """How many threads the worker computes with: the products of a small model are too small to share."""
    import torch

    torch.set_num_threads(n_threads)


def chain_grid(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Means over pairs of patching the stream at the chain's places: (step, direction, layer, place)."""
    return _mean_grid(run, "chain", "chain", "The stream at the chain's places, mean over pairs")


def head_grid(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Means over pairs of patching each head's whole output: (step, direction, layer, head)."""
    return _mean_grid(run, "head", "heads", "Heads, mean over pairs")


def _mean_grid(run: LabRun, prefix: str, grid: str, title: str) -> dict[str, Any]:
    kept = kept_result(run, "grids")
    names = [str(name) for name in kept.data_vars if str(name).startswith(f"{prefix}_")]
    wanted = [*names, "already", "accuracy", *(["n"] if grid == "chain" else [])]
    dataset = kept[wanted].rename({name: name.removeprefix(f"{prefix}_") for name in names}).round(DECIMALS)
    n, seed = int(kept.attrs["n"]), int(kept.attrs.get("asked_seed", 0))
    return to_body(
        dataset,
        Provenance(
            run=run.name, n=n, seed=seed, interval=str(kept.attrs["interval"]),
            note=f"left out: {kept.attrs['excluded']}, where shortcut and mechanism agree",
        ),
        title=title,
        command=f"bindscope patch {run.name} --grid {grid} --steps all --n {n} --seed {seed}",
        python=in_python(run, 'run.result("grids")'),
    )  # fmt: skip


def base_program(programs: tuple[Program, Program], question: PairQuestion) -> Program:
    """The program that is run."""
    return programs[0] if question.direction == "noising" else programs[1]


def _contrast(pairs: CounterfactualPairs, question: PairQuestion) -> Contrast:
    from bindscope.interventions.contrast import contrast_pairs

    return contrast_pairs(pairs, question.direction)


def _answers(contrast: Contrast) -> dict[str, str]:
    return {"base_answer": str(int(contrast.base_answers[0])), "source_answer": str(int(contrast.source_answers[0]))}


def _words(programs: tuple[Program, Program]) -> str:
    return " ".join(f"'{program.one_line}'" for program in programs)


def _flags(question: PairQuestion) -> str:
    direction = "" if question.direction == "noising" else f" --direction {question.direction}"
    return direction + ("" if question.source_step is None else f" --from-step {question.source_step}")


def _note(question: PairQuestion) -> str:
    return "" if question.source_step is None else f"activations taken from step {question.source_step:,}"


def _python(run: LabRun, programs: tuple[Program, Program], question: PairQuestion, wanted: str) -> str:
    texts = ", ".join(f'"{program.one_line}"' for program in programs)
    direction = "" if question.direction == "noising" else f", direction={question.direction!r}"
    source = "" if question.source_step is None else f", source_step={question.source_step}"
    return in_python(run, f"run.patch({texts}, {wanted}{direction}{source})")


def grid_steps(question: GridQuestion, run: LabRun) -> list[int]:
    return [question.step, *([] if question.source_step is None else [question.source_step])]


def patch_steps(question: PatchQuestion, run: LabRun) -> list[int]:
    return [*question.steps, *([] if question.source_step is None else [question.source_step])]


PAGE = Page(
    "patch",
    resources=(
        Resource("runs/{run}/grid-chain.json", chain_grid, "Mean patch grid of the chain's places", families=FAMILIES),
        Resource("runs/{run}/grid-heads.json", head_grid, "Mean patch grid of the heads", families=FAMILIES),
    ),
    operations=(
        Operation("grid", GridQuestion, stream_grid, "A patch grid of one pair, streamed", grid_steps, streamed=True),
        Operation("patch", PatchQuestion, patch, "Places of one pair, patched together", patch_steps),
    ),
)
