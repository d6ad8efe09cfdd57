"""Patching: grids of one pair as they are made, and chosen places of it together, at one checkpoint or over all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from bindscope.errors import BindscopeError
from bindscope.web.body import Provenance, to_body
from bindscope.web.lab import Lab, LabRun, NotMeasured
from bindscope.web.page import Operation, Page, Question, Resource
from bindscope.web.pages.program import ProgramText, Steps, one_line, open_run, read_program, show_outputs

if TYPE_CHECKING:
    from bindscope.interventions.contrast import Contrast
    from bindscope.tasks.binding.pairs import CounterfactualPairs
    from bindscope.tasks.binding.program import Program

SiteText = Annotated[str, Field(min_length=1, max_length=40)]
Sites = Annotated[list[SiteText], Field(max_length=64)]
DECIMALS = 4  # of a mean: enough to draw and to read
LARGE = 3_000_000  # parameters from which several threads are used, and the chain's columns come first
OneStep = Annotated[int, Field(ge=0, le=10**12)]


class PairQuestion(Question):
    """Two programs: one that is run, and one that activations are taken from (the other way round in denoising)."""

    program: ProgramText
    counterfactual: ProgramText
    direction: Literal["noising", "denoising"] = "noising"
    source_step: OneStep | None = None  # take the activations from another checkpoint


class GridQuestion(PairQuestion):
    """What becomes of the answer when one cell after another is changed?"""

    step: OneStep
    grid: Literal["residual", "heads", "mlps"] = "residual"


class PatchQuestion(PairQuestion):
    """What becomes of the answer when these sites are changed together?"""

    steps: Steps
    sites: Annotated[Sites, Field(min_length=1)]


def stream_grid(lab: Lab, run: LabRun, question: GridQuestion) -> Iterator[dict[str, Any]]:
    """First a body whose values are all missing, then its parts; see ``studies.one_pair``."""
    from bindscope.studies import one_pair

    programs, pairs = read_pair(run, question)
    contrast = _contrast(pairs, question)
    model = run.model(run.find_step(question.step))
    source_model = None if question.source_step is None else run.model(run.find_step(question.source_step))
    dataset = one_pair.empty_grid(model, contrast, question.grid)
    if question.grid == "residual":
        dataset = dataset.assign_coords(token=("position", tokens_of(base_program(programs, question))))
    dataset.attrs = _answers(contrast)
    yield to_body(
        dataset,
        Provenance(run=run.name, step=question.step, n=1, note=_note(question)),
        title={"residual": "The stream, place by place", "heads": "Heads", "mlps": "MLPs"}[question.grid],
        command=f"bindscope patch {run.name} {_words(programs)} --grid {question.grid} --step {question.step}{_flags(question)}",
        python=_python(
            run,
            programs,
            f"patch_steps(run.checkpoint, [{question.step}], pairs, Patch(grid={question.grid!r}, "
            f"direction={question.direction!r}), source_step={question.source_step})",
        ),
    )
    large = model.config.n_parameters >= LARGE
    use_threads(os.cpu_count() or 1 if large else 1)
    first = {*pairs.chain_positions[0].tolist(), pairs.query_position, pairs.colon_position} if large else ()
    for part in one_pair.stream_grid(model, contrast, question.grid, source_model, first):
        yield {"at": part.at, "variables": part.values}


def patch(lab: Lab, run: LabRun, question: PatchQuestion) -> dict[str, Any]:
    """Distributions of the base, the source and the patched run over (step, condition, output), and every metric (step)."""
    from bindscope.studies.one_pair import patch_distributions
    from bindscope.tasks.binding.structure import structural_places

    programs, pairs = read_pair(run, question)
    contrast = _contrast(pairs, question)
    steps = [run.find_step(step) for step in question.steps]
    source_step = None if question.source_step is None else run.find_step(question.source_step)
    places = structural_places(pairs)
    dataset = patch_distributions(run.model, steps, contrast, question.sites, places, source_step)
    dataset = dataset.assign_coords(output=show_outputs(dataset.sizes["output"]))
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
        python=_python(
            run,
            programs,
            f"patch_steps(run.checkpoint, {'run.steps' if all_steps == 'all' else steps}, pairs, Patch(sites={tuple(question.sites)}, "
            f"direction={question.direction!r}), source_step={question.source_step})",
        ),
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
    filled = run.library.fill("grids")
    if filled.dataset is None:
        raise NotMeasured(f"{run.name}: there are no mean grids of this run: {filled.reason}.")
    kept = filled.dataset
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
        python=open_run(run) + "from bindscope.studies.results import Library\n"
        "from bindscope.studies.verify import find_study\n\n"
        'library = Library(run, find_study("binding").results, run.path / "results")\n'
        'library.fill("grids").dataset',
    )  # fmt: skip


def read_pair(run: LabRun, question: PairQuestion) -> tuple[tuple[Program, Program], CounterfactualPairs]:
    """The two programs of a question and the pair they make; one that cannot be patched is refused with a sentence."""
    from bindscope.tasks.binding.pairs import pair_programs

    program, counterfactual = (read_program(run, text) for text in (question.program, question.counterfactual))
    pairs = pair_programs(program, counterfactual)
    if program.answer == counterfactual.answer:
        raise BindscopeError(
            f"both programs have the answer {program.answer}; change the counterfactual so that its answer differs."
        )
    return (program, counterfactual), pairs


def base_program(programs: tuple[Program, Program], question: PairQuestion) -> Program:
    """The program that is run."""
    return programs[0] if question.direction == "noising" else programs[1]


def tokens_of(program: Program) -> list[str]:
    """The program's tokens as they can be shown."""
    from bindscope.tasks.vocabulary import show_symbol

    return [show_symbol(symbol) for symbol in program.text]


def _contrast(pairs: CounterfactualPairs, question: PairQuestion) -> Contrast:
    from bindscope.interventions.contrast import contrast_pairs

    return contrast_pairs(pairs, question.direction)


def _answers(contrast: Contrast) -> dict[str, str]:
    return {"base_answer": str(int(contrast.base_answers[0])), "source_answer": str(int(contrast.source_answers[0]))}


def _words(programs: tuple[Program, Program]) -> str:
    return " ".join(f"'{one_line(program)}'" for program in programs)


def _flags(question: PairQuestion) -> str:
    direction = "" if question.direction == "noising" else f" --direction {question.direction}"
    return direction + ("" if question.source_step is None else f" --from-step {question.source_step}")


def _note(question: PairQuestion) -> str:
    return "" if question.source_step is None else f"activations taken from step {question.source_step:,}"


def _python(run: LabRun, programs: tuple[Program, Program], call: str) -> str:
    return (
        open_run(run) + "from bindscope.studies.patching import Patch, patch_steps\n"
        "from bindscope.tasks.binding.pairs import pair_programs\n\n"
        f"texts = {[program.text for program in programs]!r}\n"
        f"pairs = pair_programs(*(run.config.task.parse(text) for text in texts))\n{call}"
    )


def grid_steps(question: GridQuestion, run: LabRun) -> list[int]:
    return [question.step, *([] if question.source_step is None else [question.source_step])]


def patch_steps(question: PatchQuestion, run: LabRun) -> list[int]:
    return [*question.steps, *([] if question.source_step is None else [question.source_step])]


PAGE = Page(
    "patch",
    resources=(
        Resource(
            "runs/{run}/grid-chain.json", chain_grid, "Mean patch grid of the chain's places", families=("binding",)
        ),
        Resource("runs/{run}/grid-heads.json", head_grid, "Mean patch grid of the heads", families=("binding",)),
    ),
    operations=(
        Operation("grid", GridQuestion, stream_grid, "A patch grid of one pair, streamed", grid_steps, streamed=True),
        Operation("patch", PatchQuestion, patch, "Places of one pair, patched together", patch_steps),
    ),
)
