"""Programs: examples of a run's task, new ones drawn to a wish, and what a model answers, live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from bindscope.errors import BindscopeError
from bindscope.web.body import Provenance, to_body
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import Operation, Page, Question, Resource, Step

if TYPE_CHECKING:
    from bindscope.tasks.binding.examples import ProgramPair
    from bindscope.tasks.binding.program import Program
    from bindscope.tasks.binding.task import BindingTask

MAX_PROGRAM = 400  # characters: forty lines of six
N_EXAMPLES, EXAMPLE_SEED = 24, 0
ProgramText = Annotated[str, Field(min_length=1, max_length=MAX_PROGRAM)]
Steps = Annotated[list[Step], Field(min_length=1, max_length=600)]


class PredictQuestion(Question):
    """What does the model answer at these checkpoints?"""

    steps: Steps
    program: ProgramText


class SampleQuestion(Question):
    """A new program of the run's task; what is null may be anything."""

    depth: Annotated[int, Field(ge=1, le=13)] | None = None
    distractors: Annotated[int, Field(ge=0, le=30)] | None = None  # chains beside the queried one
    n_lines: Annotated[int, Field(ge=2, le=30)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0


def list_examples(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Pairs of programs over (program), the same at every visit, covering every depth."""
    import numpy as np

    from bindscope.tasks.binding.examples import draw_examples

    pairs = draw_examples(binding_task(run), np.random.default_rng(EXAMPLE_SEED), N_EXAMPLES)
    python = (
        "import numpy as np\nfrom bindscope.tasks.binding.examples import draw_examples\n\n"
        f"draw_examples(run.config.task, np.random.default_rng({EXAMPLE_SEED}), {N_EXAMPLES})"
    )
    return _pairs_to_body(run, pairs, EXAMPLE_SEED, "Example programs", open_run(run) + python)


def sample(lab: Lab, run: LabRun, question: SampleQuestion) -> dict[str, Any]:
    """One pair over (program), drawn from the run's own task."""
    import numpy as np

    from bindscope.tasks.binding.examples import draw_pair

    wish = {"depth": question.depth, "n_lines": question.n_lines, "n_chains": question.distractors}
    pair = draw_pair(binding_task(run), np.random.default_rng(question.seed), **wish)
    asked = "".join(f", {name}={value}" for name, value in wish.items() if value is not None)
    python = (
        "import numpy as np\nfrom bindscope.tasks.binding.examples import draw_pair\n\n"
        f"draw_pair(run.config.task, np.random.default_rng({question.seed}){asked})"
    )
    return _pairs_to_body(run, [pair], question.seed, "A new program", open_run(run) + python)


def predict(lab: Lab, run: LabRun, question: PredictQuestion) -> dict[str, Any]:
    """Probabilities of every output over (step, output), and the true answer."""
    import numpy as np
    import xarray as xr

    from bindscope.measures.evaluation import read_answers
    from bindscope.tasks.binding.programs import ask_programs

    program = read_program(run, question.program)
    batch = ask_programs([program])
    rows = []
    for step in question.steps:
        logits = read_answers(run.model(run.find_step(step)), batch)[0].astype(float)  # [output]
        shares = np.exp(logits - logits.max())
        rows.append(shares / shares.sum())
    dataset = xr.Dataset({"probability": (("step", "output"), np.array(rows), {"units": "share"})})
    dataset = dataset.assign_coords(step=question.steps, output=show_outputs(len(rows[0])))
    dataset.attrs = {"answer": str(program.answer), "line_1": str(program.values[0]), "depth": program.depth}
    only = question.steps[0] if len(question.steps) == 1 else None
    return to_body(
        dataset,
        Provenance(run=run.name, step=only, n=1),
        title="What the model answers",
        command=f"bindscope run {run.name} '{one_line(program)}' --step {'all' if only is None else only}",
        python=(
            open_run(run) + "from bindscope.measures.evaluation import read_answers\n"
            "from bindscope.tasks.binding import ask_programs\n\n"
            f'program = run.config.task.parse("{program_literal(program)}")\n'
            f"for step in {question.steps if only is not None else 'run.steps'}:\n"
            "    print(step, read_answers(run.checkpoint(step), ask_programs([program]))[0])  # logits by output"
        ),
    )  # fmt: skip


def read_program(run: LabRun, text: str) -> Program:
    """A program of a reader, lines ended by line breaks or ';', as the run's task reads it and its model can take it."""
    task, model = binding_task(run), run.run.config.model
    program = task.parse(text.replace(";", "\n"))
    if len(program.tokens) > model.n_positions:
        raise BindscopeError(
            f"the program has {program.n_lines} lines and {len(program.tokens)} tokens; the model of {run.name} reads "
            f"{model.n_positions}: leave out lines."
        )
    return program


def binding_task(run: LabRun) -> BindingTask:
    """The run's task, where programs are what it is about."""
    from bindscope.tasks.binding.task import BindingTask

    task = run.run.config.task
    if not isinstance(task, BindingTask):
        raise BindscopeError(f"{run.name}: its task is {run.family}; programs are for runs on binding.")
    return task


def show_outputs(n_outputs: int) -> list[str]:
    """What each output of a model stands for, as it can be printed."""
    from bindscope.tasks.binding.program import VOCABULARY
    from bindscope.tasks.vocabulary import show_symbol

    return [show_symbol(symbol) for symbol in VOCABULARY.symbols[:n_outputs]]


def one_line(program: Program) -> str:
    """A program as it is typed on a command line: lines joined by ';'."""
    return program.text.replace("\n", ";")


def program_literal(program: Program) -> str:
    """A program inside the quotes of a Python string."""
    return program.text.replace("\n", "\\n")


def open_run(run: LabRun) -> str:
    """The lines of Python that open this run."""
    return (
        "from bindscope.cli.locate import find_run\nfrom bindscope.runs.directory import Run\n\n"
        f'run = Run.open(find_run("{run.name}"))\n'
    )


def _pairs_to_body(run: LabRun, pairs: Sequence[ProgramPair], seed: int, title: str, python: str) -> dict[str, Any]:
    import xarray as xr

    columns: dict[str, list[Any]] = {
        "text": [base.text for base, _ in pairs],
        "counterfactual": [other.text for _, other in pairs],
        "depth": [base.depth for base, _ in pairs],
        "n_lines": [base.n_lines for base, _ in pairs],
        "root_line": [base.root_line for base, _ in pairs],
        "distractors": [len(base.distractor_chains) for base, _ in pairs],
        "answer": [base.answer for base, _ in pairs],
        "counterfactual_answer": [other.answer for _, other in pairs],
    }
    dataset = xr.Dataset(coords={name: ("program", values) for name, values in columns.items()})
    provenance = Provenance(run=run.name, n=len(pairs), seed=seed)
    return to_body(dataset, provenance, title=title, python=python)


def asked_steps(question: PredictQuestion, run: LabRun) -> list[int]:
    return question.steps


def no_steps(question: SampleQuestion, run: LabRun) -> list[int]:
    return []


PAGE = Page(
    "program",
    resources=(
        Resource("runs/{run}/programs.json", list_examples, "Example programs of a run's task", families=("binding",)),
    ),
    operations=(
        Operation("predict", PredictQuestion, predict, "What a model answers to a program", asked_steps),
        Operation("sample", SampleQuestion, sample, "A new program of a run's task", no_steps),
    ),
)
