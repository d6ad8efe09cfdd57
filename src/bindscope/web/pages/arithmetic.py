"""Sums: how a run learned them, what its weights say, what it answers to one, and with parts of another checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError
from bindscope.questions.sums import Sum
from bindscope.questions.transplants import Transplant
from bindscope.web.again import in_python, in_shell
from bindscope.web.asking import answer_body, opened
from bindscope.web.body import Provenance, to_body
from bindscope.web.kept import kept_result
from bindscope.web.lab import Lab, LabRun, NotMeasured
from bindscope.web.page import Operation, Page, Resource
from bindscope.web.sums import KINDS, sum_task

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.measures.arithmetic.forms import SumForms

DECIMALS = 4  # of an attention weight: enough to draw, and a body that is small
SCORE_DECIMALS = 3  # … and of scores and pre-activations
N_EXAMPLES, EXAMPLE_SEED = 2, 0  # of each split
N_STORED, STORED_SEED = 40, 0  # sums of each split that a static copy holds, for transplants in the reader's browser
WILSON = "95 % Wilson interval over sums"
ARITHMETIC, STUDY = "bindscope.measures.arithmetic", "bindscope.studies.assign_add"


def read_splits(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Accuracy of the nine splits over (step), the halves of those with held-out pairs, and over (spike) where it jumps."""
    from bindscope.measures.arithmetic.spikes import SpikeCriterion
    from bindscope.studies.assign_add.learning.phases import published_spikes, spikes_of
    from bindscope.studies.framework.trajectory import trajectory_dataset

    try:
        whole = trajectory_dataset(run.run.metrics, family=run.family)
    except BindscopeError as problem:
        raise NotMeasured(f"{run.name}: {problem}") from None
    dataset = whole[["split_accuracy", "split_accuracy_low", "split_accuracy_high", "half_accuracy"]]
    spikes = spikes_of(whole)
    published = published_spikes(spikes)
    dataset = dataset.assign_coords(spike=[spike.number for spike in spikes])
    dataset = dataset.assign(
        spike_before=("spike", [spike.before_step for spike in spikes]),
        spike_after=("spike", [spike.after_step for spike in spikes]),
        spike_size=("spike", [spike.size for spike in spikes]),
        spike_splits=("spike", [" ".join(spike.splits) for spike in spikes]),
        spike_published=(
            "spike",
            [published.index(spike) + 1 if spike in published else 0 for spike in spikes],
        ),  # the paper's 1 or 2
    )
    dataset.attrs = {"spike": SpikeCriterion().describe()}
    return to_body(
        dataset,
        Provenance(run=run.name, n=int(whole.split_n.values[0]), seed=run.run.config.seed, interval=WILSON),
        title="Nine splits over training",
        command=in_shell(run, "trajectory"),
        python=in_python(
            run, "phases_and_spikes(run.trajectory())", f"from {STUDY}.learning.phases import phases_and_spikes"
        ),
    )


def read_progress(lab: Lab, run: LabRun) -> dict[str, Any]:
    """The seven progress measures over (step)."""
    from bindscope.studies.framework.results import CHECKPOINT

    command = in_shell(run, "progress")
    found = kept_result(run, "progress", command)
    dataset = found.drop_vars(CHECKPOINT, errors="ignore").assign_attrs()
    n, seed = int(found.attrs["n_per_split"]), int(found.attrs["seed"])
    dataset.attrs = {}
    return to_body(
        dataset,
        Provenance(run=run.name, n=n, seed=seed, interval=str(found.attrs["interval"]), note="n sums of each split"),
        title="Seven progress measures",
        command=command,
        python=in_python(run, 'run.result("progress")'),
    )


def read_scores(lab: Lab, run: LabRun) -> dict[str, Any]:
    """The nine terms of the score that = gives a value in layer 2, over (step, variable, operand, query_part, key_part).

    The attribute ``variable`` names the one whose score rises most across the run's last spike.
    """
    from bindscope.studies.assign_add.learning.phases import spikes_of
    from bindscope.studies.assign_add.scores.describe import find_riser, steps_around

    command = in_shell(run, "figure", "score-terms")
    found = kept_result(run, "score_terms", command)
    trajectory = run.library.fill("trajectory").dataset
    steps = steps_around(found, [] if trajectory is None else spikes_of(trajectory))
    dataset = found[["term", "last_position_to_variable"]].reset_coords(drop=True)
    dataset.attrs = {"variable": find_riser(found, steps)}
    return to_body(
        _rounded(dataset, SCORE_DECIMALS),
        Provenance(
            run=run.name, n=int(found.attrs["n"]), seed=int(found.attrs["seed"]),
            note="n sums of each variable as each operand; before the softmax",
        ),
        title="Why = attends to a value in layer 2",
        command=command,
        python=in_python(run, 'run.result("score_terms")'),
    )  # fmt: skip


def read_circuit(lab: Lab, run: LabRun, step: int) -> dict[str, Any]:
    """Scores between all embeddings in layer 1, between positions, and between copies of variables in layer 2."""
    from bindscope.measures.arithmetic.circuit import circuit_matrices, identity_margin, position_margin

    dataset = circuit_matrices(_forms(run, step), sum_task(run))
    dataset = dataset.assign(
        identity_margin=("query_variable", identity_margin(dataset.variable_identity.values), {"units": "score"}),
        position_margin=("query_position", position_margin(dataset.positions.values), {"units": "score"}),
    ).drop_vars(["equals_to", "positions"])  # both are parts of qk1
    call = f"task = run.run.config.task\ncircuit_matrices(SumForms.of(run.model({step}), task), task)"
    return to_body(
        _rounded(dataset, SCORE_DECIMALS),
        Provenance(run=run.name, step=step, note="read off the weights, before any softmax"),
        title="The routing circuit",
        python=in_python(run, call, *_imports("circuit", "circuit_matrices")),
    )


def read_neurons(lab: Lab, run: LabRun, step: int) -> dict[str, Any]:
    """The best Fourier component for every neuron of the last MLP, over (neuron), and what each number gives it, over (number).

    The circuit alone gives a neuron, for the pair (n1, n2), ``part`` of n1 plus ``part`` of n2.
    """
    import numpy as np

    from bindscope.measures.arithmetic.cyclic import CyclicNumbers
    from bindscope.measures.arithmetic.neurons import fit_neurons, preactivations

    task, forms = sum_task(run), _forms(run, step)
    values = preactivations(forms)  # [n1, n2, neuron]
    try:
        numbers = CyclicNumbers.of(task)
        fits = fit_neurons(values, numbers)
    except BindscopeError as problem:
        raise NotMeasured(f"{run.name}: {problem}") from None
    names = ["frequency", "mean", "amplitude", "phase_1", "phase_2", "explained_variance"]
    dataset = fits[names].assign_coords(
        number=np.arange(task.modulus), first=("index", numbers.first), second=("index", numbers.second)
    )
    dataset["part"] = (("number", "neuron"), np.diagonal(values, axis1=0, axis2=1).T / 2)
    call = (
        f"task = run.run.config.task\nforms = SumForms.of(run.model({step}), task)\n"
        "fit_neurons(preactivations(forms), CyclicNumbers.of(task))"
    )
    imports = [f"from {ARITHMETIC}.cyclic import CyclicNumbers", *_imports("neurons", "fit_neurons, preactivations")]
    return to_body(
        _rounded(dataset, SCORE_DECIMALS),
        Provenance(
            run=run.name, step=step, n=task.modulus**2, note="every pair of numbers, through OV2 and the MLP alone"
        ),
        title="Neurons as Fourier components",
        command=in_shell(run, "fourier", step=step),
        python=in_python(run, call, *imports),
    )


def list_sums(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Sums over (sum), the same at every visit, some of each split."""
    import numpy as np
    import xarray as xr

    task = sum_task(run)
    splits = task.sample_evaluation(np.random.default_rng(EXAMPLE_SEED), N_EXAMPLES)
    order = sorted(splits, key=lambda split: split.startswith("0"))  # first those with something to look up
    rows = [(split, *row) for split in order for row in zip(splits[split].tokens, splits[split].targets)]
    columns: dict[str, list[Any]] = {
        "text": [task.render(tokens) for _, tokens, _ in rows],
        "split": [split for split, _, _ in rows],
        "answer": [int(answers[0]) for _, _, answers in rows],
    }
    dataset = xr.Dataset(coords={name: ("sum", values) for name, values in columns.items()})
    call = f"run.run.config.task.sample_evaluation(np.random.default_rng({EXAMPLE_SEED}), {N_EXAMPLES})"
    return to_body(
        dataset,
        Provenance(run=run.name, n=len(rows), seed=EXAMPLE_SEED),
        title="Example sums",
        python=in_python(run, call, "import numpy as np"),
    )


def list_parts(lab: Lab, run: LabRun) -> dict[str, Any]:
    """What can be transplanted, over (part), and the sums on which a static copy tries it, over (split, sum, position).

    Over (region) the rows of the tensors that a part of weights is made of, -1 for the last one; over (look) the layers
    and positions whose attention a part is.
    """
    import numpy as np
    import xarray as xr

    from bindscope.interventions import transplant

    task = sum_task(run)
    parts = list(transplant.list_parts(run.run.config.model).values())
    regions = [(part.name, region) for part in parts for region in part.regions]
    looks = [(part.name, look) for part in parts for look in part.looks]
    splits = task.sample_evaluation(np.random.default_rng(STORED_SEED), N_STORED)
    dataset = xr.Dataset(
        {
            "meaning": ("part", [part.meaning for part in parts]),
            "kind": ("part", [part.kind for part in parts]),
            "region_part": ("region", [name for name, _ in regions]),
            "region_tensor": ("region", [region.tensor for _, region in regions]),
            "region_first": ("region", [region.first for _, region in regions]),
            "region_stop": ("region", [-1 if region.stop is None else region.stop for _, region in regions]),
            "look_part": ("look", [name for name, _ in looks]),
            "look_layer": ("look", [look.layer for _, look in looks]),
            "look_positions": ("look", [",".join(map(str, look.positions or ())) for _, look in looks]),
            "tokens": (("split", "sum", "position"), np.stack([batch.tokens for batch in splits.values()])),
            "answer": (("split", "sum"), np.stack([batch.targets[:, 0] for batch in splits.values()])),
        },
        {"part": [part.name for part in parts], "split": list(splits)},
    )
    return to_body(
        dataset,
        Provenance(run=run.name, n=N_STORED, seed=STORED_SEED),
        title="Parts that can be transplanted",
        python=in_python(
            run, "list_parts(run.run.config.model)", "from bindscope.interventions.transplant import list_parts"
        ),
    )


def ask_sum(lab: Lab, run: LabRun, question: Sum) -> dict[str, Any]:
    """Attention over (step, layer, query, key), four decimals, and probabilities over (step, output)."""
    dataset = question.answer(opened(run))
    dataset["pattern"] = (dataset.pattern.round(DECIMALS) + 0.0).assign_attrs(units="fraction")
    only = question.steps if isinstance(question.steps, int) else None
    return answer_body(question, dataset, "Where the model attends, and what it answers", run=run, step=only, n=1)


def transplant_parts(lab: Lab, run: LabRun, question: Transplant) -> dict[str, Any]:
    """Accuracy over (condition: receiver, transplanted, donor; split), with its interval."""
    import numpy as np
    import xarray as xr

    found = question.answer(opened(run)).isel(part=0)
    prefix = {"receiver": "receiver_", "transplanted": "", "donor": "donor_"}
    dataset = xr.Dataset(
        {
            f"accuracy{end}": (
                ("condition", "split"),
                np.stack([found[f"{each}accuracy{end}"].values for each in prefix.values()]),
                {"units": "fraction"},
            )
            for end in ("", "_low", "_high")
        },
        {"condition": list(prefix), "split": found.split.values},
        {"receiver": found.attrs["receiver"], "donor": found.attrs["donor"], "parts": str(found.part.item())},
    )
    about = {"n": question.n, "seed": question.seed, "interval": WILSON, "note": f"n {found.attrs['counted']}"}
    return answer_body(question, dataset, "Parts of another checkpoint", run=run, **about)


def together(request: Any) -> Transplant:
    """The question of a request, whose parts are all given at once."""
    from bindscope.measures.transplanting import TOGETHER

    return Transplant(**{**request.model_dump(), "parts": (TOGETHER.join(request.parts),)})


def _forms(run: LabRun, step: int) -> SumForms:
    from bindscope.measures.arithmetic.forms import SumForms

    task = sum_task(run)
    try:
        return SumForms.of(run.model(step), task)
    except BindscopeError as problem:
        raise NotMeasured(f"{run.name}: {problem}") from None


def _rounded(dataset: xr.Dataset, decimals: int) -> xr.Dataset:
    rounded = {
        name: (array.round(decimals) + 0.0).assign_attrs(array.attrs)
        for name, array in dataset.data_vars.items()
        if array.dtype.kind == "f"
    }
    return dataset.assign(rounded)


def _imports(module: str, names: str) -> list[str]:
    return [f"from {ARITHMETIC}.{module} import {names}", f"from {ARITHMETIC}.forms import SumForms"]


def _over_run(name: str, make: Any, summary: str) -> Resource:
    return Resource(f"runs/{{run}}/{name}.json", make, summary, kinds=KINDS)


PAGE = Page(
    "arithmetic",
    resources=(
        _over_run("sums", list_sums, "Example sums of a run's task"),
        _over_run("splits", read_splits, "The nine splits over training"),
        _over_run("progress", read_progress, "The seven progress measures"),
        _over_run("scores", read_scores, "The score of = in layer 2 by its nine terms"),
        _over_run("parts", list_parts, "What can be transplanted between checkpoints"),
        _over_run("steps/{step}/circuit", read_circuit, "The routing circuit of sums"),
        _over_run("steps/{step}/neurons", read_neurons, "The neurons of the last MLP as Fourier components"),
    ),
    operations=(
        Operation("sum", Sum, ask_sum, "What a model makes of a sum", ("steps", "sequence")),
        Operation(
            "transplant", Transplant, transplant_parts, "A checkpoint with parts of another",
            ("receiver", "donor", "parts", "n", "seed"), ask=together,
        ),
    ),
)  # fmt: skip
