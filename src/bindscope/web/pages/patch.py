"""Patching: grids of one pair as they are made, and chosen places of it together, at one checkpoint or over all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.program import VOCABULARY, Program
from bindscope.tasks.vocabulary import show_symbol
from bindscope.web.body import Provenance, to_body
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import Operation, Page, Question
from bindscope.web.pages.program import ProgramText, Steps, read_program

if TYPE_CHECKING:
    from bindscope.interventions.contrast import Contrast
    from bindscope.tasks.binding.pairs import CounterfactualPairs

SiteText = Annotated[str, Field(min_length=1, max_length=40)]
Sites = Annotated[list[SiteText], Field(max_length=64)]
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
    given = _words(question)
    yield to_body(
        dataset,
        Provenance(run=run.name, step=question.step, n=1, note=_note(question)),
        title={"residual": "The stream, place by place", "heads": "Heads", "mlps": "MLPs"}[question.grid],
        command=f"bindscope patch {run.name} {given} --grid {question.grid} --step {question.step}{_flags(question)}",
        python=_python(
            run,
            question,
            f"patch_steps(run.checkpoint, [{question.step}], pairs, Patch(grid={question.grid!r}, "
            f"direction={question.direction!r}), source_step={question.source_step})",
        ),
    )
    for part in one_pair.stream_grid(model, contrast, question.grid, source_model):
        yield {"at": part.at, "variables": part.values}


def patch(lab: Lab, run: LabRun, question: PatchQuestion) -> dict[str, Any]:
    """Distributions of the base, the source and the patched run over (step, condition, output), and every metric (step)."""
    from bindscope.studies.one_pair import patch_distributions
    from bindscope.tasks.binding.structure import structural_places

    _, pairs = read_pair(run, question)
    contrast = _contrast(pairs, question)
    steps = [run.find_step(step) for step in question.steps]
    source_step = None if question.source_step is None else run.find_step(question.source_step)
    places = structural_places(pairs)
    dataset = patch_distributions(run.model, steps, contrast, question.sites, places, source_step)
    outputs = [show_symbol(symbol) for symbol in VOCABULARY.symbols][: dataset.sizes["output"]]
    dataset = dataset.assign_coords(output=outputs)
    dataset.attrs = {**_answers(contrast), "sites": " ".join(question.sites)}
    step = steps[0] if len(steps) == 1 else None
    at = f"--step {step}" if step is not None else f"--steps {','.join(map(str, steps))}"
    sites = " ".join(f"--site '{site}'" for site in question.sites)
    return to_body(
        dataset,
        Provenance(run=run.name, step=step, n=1, note=_note(question)),
        title="What the answer becomes",
        command=f"bindscope patch {run.name} {_words(question)} {sites} {at}{_flags(question)}",
        python=_python(
            run,
            question,
            f"patch_steps(run.checkpoint, {steps}, pairs, Patch(sites={tuple(question.sites)}, "
            f"direction={question.direction!r}), source_step={question.source_step})",
        ),
    )


def read_pair(run: LabRun, question: PairQuestion) -> tuple[tuple[Program, Program], CounterfactualPairs]:
    """The two programs of a question and the pair they make; one that cannot be patched is refused with a sentence."""
    from bindscope.tasks.binding.pairs import pair_programs

    program, counterfactual = (read_fitting(run, text) for text in (question.program, question.counterfactual))
    pairs = pair_programs(program, counterfactual)
    if program.answer == counterfactual.answer:
        raise BindscopeError(
            f"both programs have the answer {program.answer}; change the counterfactual so that its answer differs."
        )
    return (program, counterfactual), pairs


def read_fitting(run: LabRun, text: str) -> Program:
    """A program that is no longer than the run's own."""
    program, most = read_program(run, text), run.run.config.task.lines  # type: ignore[union-attr]
    if program.n_lines > most:
        raise BindscopeError(f"the program has {program.n_lines} lines and this model knows positions for {most} only.")
    return program


def base_program(programs: tuple[Program, Program], question: PairQuestion) -> Program:
    """The program that is run."""
    return programs[0] if question.direction == "noising" else programs[1]


def tokens_of(program: Program) -> list[str]:
    """The program's tokens as they can be shown."""
    return [show_symbol(symbol) for symbol in program.text]


def _contrast(pairs: CounterfactualPairs, question: PairQuestion) -> Contrast:
    from bindscope.interventions.contrast import contrast_pairs

    return contrast_pairs(pairs, question.direction)


def _answers(contrast: Contrast) -> dict[str, str]:
    return {"base_answer": str(int(contrast.base_answers[0])), "source_answer": str(int(contrast.source_answers[0]))}


def _words(question: PairQuestion) -> str:
    return " ".join(f"'{one_line(text)}'" for text in (question.program, question.counterfactual))


def one_line(text: str) -> str:
    return text.strip().replace("\n", ";")


def _flags(question: PairQuestion) -> str:
    direction = "" if question.direction == "noising" else f" --direction {question.direction}"
    return direction + ("" if question.source_step is None else f" --from-step {question.source_step}")


def _note(question: PairQuestion) -> str:
    return "" if question.source_step is None else f"activations taken from step {question.source_step:,}"


def _python(run: LabRun, question: PairQuestion, call: str) -> str:
    texts = [read_program(run, text).text for text in (question.program, question.counterfactual)]
    return "\n".join(
        [
            "from bindscope.cli.locate import find_run",
            "from bindscope.runs.directory import Run",
            "from bindscope.studies.patching import Patch, patch_steps",
            "from bindscope.tasks.binding.pairs import pair_programs",
            "",
            f"run = Run.open(find_run({run.name!r}))",
            f"pairs = pair_programs(*(run.config.task.parse(text) for text in {texts!r}))",
            call,
        ]
    )


def grid_steps(question: GridQuestion, run: LabRun) -> list[int]:
    return [question.step, *([] if question.source_step is None else [question.source_step])]


def patch_steps(question: PatchQuestion, run: LabRun) -> list[int]:
    return [*question.steps, *([] if question.source_step is None else [question.source_step])]


PAGE = Page(
    "patch",
    operations=(
        Operation("grid", GridQuestion, stream_grid, "A patch grid of one pair, streamed", grid_steps, streamed=True),
        Operation("patch", PatchQuestion, patch, "Places of one pair, patched together", patch_steps),
    ),
)
