"""An experiment is a question that is answered by training several runs.

It names a preset, the *variants* of it that are compared (each a few settings that differ) and how many seeds train each.
Every (variant, seed) is a *cell*: an ordinary run in ``runs/experiment-NAME/VARIANT-seed-S``. Runs that have ended are
kept, so an experiment stops and goes on. What the cells recorded becomes one dataset over (variant, seed, step), from
which the figure and the sentence that answers the question are made.

>>> experiment = find_experiment("weighting")
>>> runs = dict(train_cells(plan_cells(experiment), Path("runs/experiment-weighting")))
>>> dataset = experiment_dataset(experiment, runs)
>>> print(experiment.conclude(dataset))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.families import all_families, family_of
from bindscope.runs.cluster import ONE_PROCESSOR, PerRun
from bindscope.runs.config import RunConfig, config_from_mapping, config_to_mapping, override
from bindscope.runs.placement import Device

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from bindscope.runs.directory import Run

Progress = Callable[[int, int], None] | None  # (done, total)
SHIPPED_RUNS = Path(__file__).parents[2] / "shipped"
SHIPPED_DATASETS = SHIPPED_RUNS / "experiments"
MADE_BY = "bindscope experiment "  # how the source of an experiment's dataset begins


@dataclass(frozen=True)
class Variant:
    """A preset with some of its settings changed, by their dotted names."""

    name: str
    meaning: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    borrowed: tuple[str, str] | None = None  # the experiment and variant that train exactly this already
    shipped: str | None = None  # the shipped run that is this with seed 0, trained as long or longer
    labels: Mapping[str, str | float] = field(default_factory=dict)  # coordinates of the dataset, such as model and n
    full: bool = False  # trained with --full only: a size for many machines


@dataclass(frozen=True)
class Experiment:
    """A question, and the runs that answer it."""

    name: str
    question: str
    preset: str
    variants: tuple[Variant, ...]
    seeds: int
    limits: str  # what the answer does not cover
    conclude: Callable[[xr.Dataset], str]  # the answer in a paragraph, from the numbers alone
    draw: Callable[[xr.Dataset], Figure]
    measure: Callable[[Mapping[Cell, Run], Progress], xr.Dataset] | None = None  # what the records do not hold
    changes: Mapping[str, Any] = field(default_factory=dict)  # to the preset, in every variant
    minutes: float = 1.0  # what one run takes, roughly, with one thread on a quiet core
    sweeps: str | None = None  # the dotted name of the number in which variants differ: a coordinate of the dataset

    @property
    def usual_seconds(self) -> float:
        """What training takes without --full, one run after another with one thread on a quiet core, roughly."""
        n_variants = sum(not (variant.full or variant.borrowed) for variant in self.variants)
        return 60 * self.minutes * self.seeds * n_variants

    def seconds_of(self, variant: Variant) -> float:
        """What one run takes: where the size is the paper's, as long as the preset of that size."""
        from bindscope.studies.framework.costs import MEASURED

        measured = MEASURED.get(self.preset)
        return measured.seconds if variant.full and measured is not None else 60 * self.minutes

    def find_variant(self, name: str) -> Variant:
        known = {variant.name: variant for variant in self.variants}
        if name not in known:
            raise BindscopeError(f"experiment {self.name}: no variant '{name}'.{suggest_nearest(name, known)}")
        return known[name]


def sweep_variants(setting: str, values: Sequence[float], word: str) -> tuple[Variant, ...]:
    """One variant for each value of a numeric setting, named ``fraction-0.35``.

    >>> [variant.name for variant in sweep_variants("task.pair_fraction", (0.3, 0.35), "fraction")]
    ['fraction-0.3', 'fraction-0.35']
    """
    return tuple(Variant(f"{word}-{value:g}", f"{setting} = {value:g}", {setting: value}) for value in values)


@dataclass(frozen=True)
class Cell:
    """One run of an experiment."""

    variant: str
    seed: int
    config: RunConfig = field(hash=False)
    owner: str | None = None  # the experiment that this run belongs to, where it is not this one
    shipped: bool = False  # the run comes with Bindscope and is not trained
    seconds: float = field(default=0.0, compare=False)  # what training takes, roughly, with one thread on a quiet core

    def path_in(self, directory: Path) -> Path:
        """Where its run is saved: in the experiment's ``directory``, in its owner's beside that, or with Bindscope."""
        if self.shipped:
            return SHIPPED_RUNS / self.config.name
        return (directory if self.owner is None else directory.parent / f"experiment-{self.owner}") / self.config.name


def plan_cells(
    experiment: Experiment,
    seeds: Sequence[int] | None = None,
    only: Sequence[str] = (),
    steps: int | None = None,
    full: bool = False,
) -> list[Cell]:
    """The cells of an experiment, seed by seed, so that what is stopped early has all variants of the first seeds.

    Variants of a size for many machines are planned with ``full``, or by name.

    >>> [cell.config.name for cell in plan_cells(find_experiment("weighting"))]
    ['binding-laptop', 'uniform-seed-0']
    """
    from bindscope.studies.framework.presets import find_preset

    base = find_preset(experiment.preset).config
    usual = [variant for variant in experiment.variants if full or not variant.full]
    chosen = [experiment.find_variant(name) for name in only] if only else usual
    more = {} if steps is None else {"training.steps": steps, "training.epochs": None}
    cells = []
    for seed in range(experiment.seeds) if seeds is None else seeds:
        for variant in chosen:
            if variant.shipped is not None and seed == 0 and not more and (SHIPPED_RUNS / variant.shipped).is_dir():
                cells.append(Cell(variant.name, seed, find_preset(variant.shipped).config, shipped=True))
                continue
            owner, kept_as = variant.borrowed or (None, variant.name)
            changes = {**experiment.changes, **variant.changes, **more}
            seconds = experiment.seconds_of(variant)
            cells.append(Cell(variant.name, seed, cell_config(base, changes, kept_as, seed), owner, seconds=seconds))
    return cells


def cell_config(base: RunConfig, changes: Mapping[str, Any], variant: str, seed: int) -> RunConfig:
    """The configuration of one run, named ``no-offsets-seed-1``. A fixed set of sequences is drawn again for each seed."""
    drawn = family_of(base.task).settings_of_seed(seed)
    return override(base, {**drawn, **changes, "seed": seed, "name": f"{variant}-seed-{seed}"})


def split_name(name: str) -> tuple[str, int]:
    """Variant and seed from a run's name."""
    variant, _, seed = name.rpartition("-seed-")
    return variant, int(seed)


def train_cells(
    cells: Sequence[Cell],
    directory: Path,
    jobs: int = 1,
    cluster: str | None = None,
    device: Device = "cpu",
    per_run: PerRun = ONE_PROCESSOR,
) -> Iterator[tuple[Cell, Run]]:
    """Train what is missing and yield every cell with its run, as it ends: on a device here, or on a Ray ``cluster``.

    Cells that belong to another experiment are looked for, and trained, in the directory beside this one.
    """
    from bindscope.runs.directory import Run
    from bindscope.runs.sweep import train_sweep

    for cell in cells:
        if cell.shipped:
            yield cell, Run.open(cell.path_in(directory))
    trained = [cell for cell in cells if not cell.shipped]
    for path in dict.fromkeys(cell.path_in(directory).parent for cell in trained):
        by_name = {cell.config.name: cell for cell in trained if cell.path_in(directory).parent == path}
        for run in train_sweep([cell.config for cell in by_name.values()], path, jobs, cluster, device, per_run):
            yield by_name[run.name], run


def experiment_dataset(experiment: Experiment, runs: Mapping[Cell, Run], on_progress: Progress = None) -> xr.Dataset:
    """What all cells recorded (see ``cells.gather_cells``), and what the experiment measures besides."""
    import json

    from bindscope.studies.framework.cells import gather_cells
    from bindscope.studies.framework.presets import find_preset

    if not runs:
        raise BindscopeError(f"experiment {experiment.name}: none of its runs has ended yet.")
    order = [variant.name for variant in experiment.variants]
    dataset = gather_cells({(cell.variant, cell.seed): run for cell, run in runs.items()}, order)
    if experiment.measure is not None:
        dataset = dataset.merge(experiment.measure(runs, on_progress), join="left")
    used = [variant for variant in experiment.variants if variant.name in dataset.variant.values]
    if experiment.sweeps is not None:
        numbers = [float(variant.changes[experiment.sweeps]) for variant in used]
        dataset = dataset.assign_coords({experiment.sweeps.rpartition(".")[2]: ("variant", numbers)})
    for label in dict.fromkeys(name for variant in used for name in variant.labels):
        values = [variant.labels[label] for variant in used]
        dataset = dataset.assign_coords({label: ("variant", values)})
    dataset.attrs = {
        "title": f"experiment {experiment.name}",
        "source": f"{MADE_BY}{experiment.name}",
        "question": experiment.question,
        "limits": experiment.limits,
        "preset": experiment.preset,
        "settings": json.dumps(config_to_mapping(find_preset(experiment.preset).config)),
        "common_changes": json.dumps(dict(experiment.changes), sort_keys=True),
        "changes": json.dumps({variant.name: dict(variant.changes) for variant in used}),
        "meanings": json.dumps({variant.name: variant.meaning for variant in used}),
        "steps": max(cell.config.training.steps for cell in runs),
        "sweeps": experiment.sweeps or "",
    }
    return dataset


def is_of_present_preset(dataset: xr.Dataset, experiment: Experiment) -> bool:
    """Whether the experiment's preset is still what its runs were trained from; older datasets do not tell, and count."""
    import json

    from bindscope.studies.framework.presets import find_preset

    recorded = dataset.attrs.get("settings")
    if recorded is None:
        return True
    try:
        return config_from_mapping(json.loads(recorded)) == find_preset(experiment.preset).config
    except (ValueError, BindscopeError):  # settings that there no longer are
        return False


def defer(module: str, name: str) -> Callable[..., Any]:
    """The function ``name`` of a module that is imported when the function is first called, so that listing is instant.

    >>> defer("bindscope.studies.binding.experiments.draw", "draw_long")(dataset)
    """

    def call(*arguments: Any) -> Any:
        return getattr(import_module(module), name)(*arguments)

    return call


def find_experiment(name: str) -> Experiment:
    """The experiment of that name, of all studies."""
    known = all_experiments()
    if name not in known:
        raise BindscopeError(f"there is no experiment '{name}'.{suggest_nearest(name, known)}")
    return known[name]


def all_experiments() -> dict[str, Experiment]:
    """Every experiment by name, of all families."""
    return {experiment.name: experiment for family in all_families() for experiment in family.experiments()}


def find_experiment_dataset(name: str, runs_directory: Path | str = "runs") -> Path | None:
    """Where an experiment's dataset is: made here, else shipped; None where it is neither.

    >>> find_experiment_dataset("seeds")
    PosixPath('runs/experiment-seeds/seeds.nc')
    """
    find_experiment(name)
    paths = (Path(runs_directory) / f"experiment-{name}" / f"{name}.nc", SHIPPED_DATASETS / f"{name}.nc")
    return next((path for path in paths if path.is_file()), None)


def save_experiment_dataset(dataset: xr.Dataset, path: Path) -> Path:
    """Write it compressed, whole or not at all."""
    from bindscope.runs.results import NAMES, write_dataset

    dataset = dataset.assign_attrs(names=NAMES)
    packed = {"zlib": True, "complevel": 9, "dtype": "float32"}
    large = [name for name, variable in dataset.variables.items() if variable.dtype.kind == "f" and variable.size > 256]
    return write_dataset(path, dataset, dict.fromkeys(large, packed))


def count_runs(dataset: xr.Dataset) -> int:
    """How many runs an experiment's dataset holds."""
    return int(dataset.last_step.count())


def load_experiment_dataset(path: Path) -> xr.Dataset:
    """Read it back; a damaged file is said to be one."""
    from bindscope.runs.results import is_current, read_result

    dataset = read_result(path)
    if not is_current(dataset):
        raise BindscopeError(
            f"{path}: an earlier Bindscope, with other names, made this dataset; give 'bindscope experiment {path.stem}' "
            "again, which trains nothing that has ended."
        )
    return dataset
