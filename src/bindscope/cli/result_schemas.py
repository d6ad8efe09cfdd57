"""docs/results.md: what every saved result holds, read from the definitions of the studies and from the shipped files."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.runs.directory import Run
    from bindscope.studies.framework.results import Result

MOST_SHOWN = 6  # coordinates of a dimension that are written out
COMMON = 8  # a variable of so many experiments is described once for all


def describe_results() -> str:
    """The page: what all results have in common, every result of every study, and the datasets of experiments."""
    from bindscope.studies.framework.verify import all_studies

    parts = [_LEAD]
    for study in all_studies():
        parts += ["", f"## Results: {study.title}", ""]
        read_elsewhere = [result for result in study.results if not result.kept]
        for result in (result for result in study.results if result.kept):
            files = _shipped_files(result.name, study.family)
            parts += [f"### {study.family}: {result.name}", "", *_describe_result(result, files), ""]
        if read_elsewhere:
            names = [f"`{result.name}` ({result.title})" for result in read_elsewhere]
            parts.append(f"Read from [datasets of experiments](#datasets-of-experiments): {', '.join(names)}.")
    return "\n".join([*parts, "", *_describe_experiments()])


def _shipped_files(name: str, family: str) -> list[Path]:
    """Where shipped runs of a family have a result; of a study without runs, its own folder."""
    from bindscope.runs.locate import SHIPPED_DIRECTORY, shipped_runs

    runs = [path for path in shipped_runs() if _open(path).config.task.family == family]
    folders = [path / "results" for path in runs] or [path for path in (SHIPPED_DIRECTORY / "studies").iterdir()]
    return [folder / f"{name}.nc" for folder in folders if (folder / f"{name}.nc").is_file()]


@cache
def _open(path: Path) -> Run:
    from bindscope.runs.directory import Run

    return Run.open(path)


def _describe_result(result: Result, files: list[Path]) -> list[str]:
    from bindscope.runs.results import read_result

    facts = [f"Revision {result.revision}", *([f"n = {result.n} unless asked otherwise"] if result.n else [])]
    facts += [f"reads {text}" for text in _what_it_reads(result, files)]
    facts += ["measured only when it is asked for"] if result.on_demand else []
    lines = [f"**{result.title[:1].upper()}{result.title[1:]}.** {'; '.join(facts)}.", ""]
    lines += [_meaning(result.compute), ""]
    if not files:
        return [*lines, "No shipped run has it."]
    shown = read_result(files[0])  # every run has the same variables
    names = [file.parents[1].name if file.parent.name == "results" else file.parent.name for file in files]
    lines += [f"Shipped for {', '.join(names)}. Coordinates in {names[0]}: {_coordinates(shown)}.", ""]
    return [*lines, *_variables([shown])]


def _what_it_reads(result: Result, files: list[Path]) -> Iterator[str]:
    if result.metrics:
        yield "the evaluations"
    runs = [file.parents[1] for file in files if file.parent.name == "results"]
    if runs:
        run = _open(runs[0])
        steps = tuple(result.steps(run))
        if steps:
            yield {run.steps: "every checkpoint", run.steps[-1:]: "the last checkpoint"}.get(steps, "some checkpoints")
    yield from (f"the result `{need}`" for need in result.needs)


def _meaning(compute: Callable[..., Any], depth: int = 2) -> str:
    """What a function's docstring says, and where it leaves that to another function, what that one says."""
    compute = getattr(compute, "func", compute)
    text = (inspect.getdoc(compute) or "").split(">>>")[0].strip()
    named = re.findall(r"``(\w+)``", text) if depth else []
    others = [_meaning(other, depth - 1) for name in named if (other := _find_function(compute, name)) is not None]
    return "\n\n".join([re.sub(r"``([^`]+)``", r"`\1`", text), *others])


def _find_function(near: Callable[..., Any], name: str) -> Callable[..., Any] | None:
    """A function that the module of another one defines, or imports anywhere in it."""
    module = sys.modules[near.__module__]
    found = getattr(module, name, None)
    if found is None:
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.ImportFrom) and node.module and name in [alias.name for alias in node.names]:
                found = getattr(import_module(node.module), name)
    return found if inspect.isfunction(found) else None


def _coordinates(dataset: xr.Dataset) -> str:
    return "; ".join(_coordinate(dataset, str(name)) for name in dataset.sizes)


def _coordinate(dataset: xr.Dataset, name: str) -> str:
    """A dimension with its first coordinates, or how many there are."""
    size = dataset.sizes[name]
    if name not in dataset.coords:
        return f"`{name}` ({size})"
    values = [f"{value:g}" if isinstance(value, float) else str(value) for value in dataset[name].values.tolist()]
    shown = values if size <= MOST_SHOWN else [*values[: MOST_SHOWN - 2], "…", values[-1]]
    return f"`{name}` ({size}): {' · '.join(shown)}"


def _variables(datasets: Iterable[xr.Dataset]) -> list[str]:
    """A row for each shape: the variables that have it, with units, and ± where an interval is beside them."""
    rows: dict[str, dict[str, None]] = {}
    for dataset in datasets:
        for name in _without_ends(dataset):
            variable = dataset[name]
            over = ", ".join(f"`{dim}`" for dim in variable.dims) or "one value"
            units = str(variable.attrs.get("units", "1"))
            ends = "±" if f"{name}_low" in dataset else ""
            rows.setdefault(over, {})[f"`{name}`{ends}{'' if units == '1' else f' [{units}]'}"] = None
    table = [f"| {over} | {', '.join(names)} |" for over, names in rows.items()]
    return ["| over | variables |", "|---|---|", *table]


def _without_ends(dataset: xr.Dataset) -> list[str]:
    """The variables, without the ends of their intervals."""
    ends = {f"{name}_{end}" for name in dataset.data_vars for end in ("low", "high")}
    return [str(name) for name in dataset.data_vars if name not in ends]


def _describe_experiments() -> list[str]:
    from bindscope.runs.results import read_result
    from bindscope.studies.framework.experiments import SHIPPED_DATASETS, all_experiments

    files = {name: SHIPPED_DATASETS / f"{name}.nc" for name in all_experiments()}
    datasets = {name: read_result(file) for name, file in sorted(files.items()) if file.is_file()}
    counts = Counter(name for dataset in datasets.values() for name in _without_ends(dataset))
    common = [name for name, count in counts.items() if count >= COMMON]
    lines = ["## Datasets of experiments", "", _EXPERIMENTS, "", "| experiment | over | beside the common variables |"]
    lines.append("|---|---|---|")
    for name, dataset in datasets.items():
        sizes = ", ".join(f"`{dim}` {size}" for dim, size in dataset.sizes.items())
        own = ", ".join(f"`{variable}`" for variable in _without_ends(dataset) if variable not in common)
        lines.append(f"| {name} | {sizes} | {own} |")
    shared = [dataset[common].transpose() for dataset in datasets.values() if set(common) <= set(dataset.data_vars)]
    shared = shared or [dataset[[name for name in common if name in dataset]] for dataset in datasets.values()]
    return [*lines, "", "Common variables, of those experiments whose task has them:", "", *_variables(shared)]


_LEAD = """\
# Results

`bindscope measure RUN NAME` measures a result of a run by its name and saves it as `results/NAME.nc` in the run (of a shipped run, in `runs/verify-NAME/results`); without
names it lists what is saved. Pages, figures and verdicts read the same files. They are netCDF, so anything reads them:

```python
import bindscope
import xarray

bindscope.open_run("binding-neutral").result("chain")  # measured if it is missing
xarray.open_dataset("runs/mine/results/chain.nc")  # without Bindscope
```

## What all have in common

- A variable is an array over named dimensions; a dimension's coordinates say what each index is. Layers, heads, positions and neurons count from 0, lines and depths of programs from 1. Named
  positions are roles in a program: `rhs 2` is the right-hand side of the second line of the queried chain, `query` the queried name, `colon` the last token.
- `X_low` and `X_high` are the ends of the 95 % interval of `X`, marked ± below; the attribute `interval` says of which kind: Wilson for fractions, bootstrap for the rest, unless it says otherwise.
- `n` is a variable where it varies, else an attribute of the dataset or of the variable. The attribute `units` of a variable is *fraction*, *nat*, *step* …; 1 or none is a pure number. What was not or cannot be
  measured is NaN, or −1 where whole numbers stand.
- Patches have five metrics: `success` (the source's answer is now the top output), `kept` (the base's answer still is), `logit_difference` (how far source answer − base answer moved from its value in the
  base run, 0, to that in the source run, 1), `new_logit` (the same for the source answer's logit alone), `kl` (base run ‖ changed run, nats).

| attribute | what it says |
|---|---|
| `result`, `revision`, `run` | what it is, which definition of it, of which run |
| `result_key` | the hash of everything it was made from |
| `asked_n`, `asked_seed` | how many examples were drawn, and the seed; where none are drawn, neither is there |
| `names` | the version of the names of dimensions and variables; a file with another one is measured again |
| `result_stem`, and the coordinate `checkpoint` | of results that grow with their run: what does not change, and the hash of each step's weights |
| `measured_on`, `dtype` | of results measured elsewhere than on the CPU in float32 |
| `step`, `accuracy`, `interval`, `excluded`, `title` … | where there is one of it: the checkpoint, what the model answers correctly, how intervals were made, which programs were left out |

## When it is measured again

A saved result is used while its key matches: the hash of name and revision, n and seed, the run's settings, the hashes of the checkpoints and evaluations it read, and the keys of the results it
needs. A longer run, another n or seed, another number type or a changed definition gives another key. Of a result that grows, only new checkpoints are measured. The file ends with its own hash, and a
damaged one is measured again with a note.

## How long it can be read

Files stay readable as netCDF. Within a major version a variable keeps its meaning under its `revision`; a new revision or new `names` makes Bindscope measure again, and never read the old file as the new.
[files.md](files.md#the-promise) has the promise for everything else in a run."""

_EXPERIMENTS = """\
`bindscope experiment NAME` writes `runs/experiment-NAME/NAME.nc` over its runs; those listed here are shipped. `variant` and `seed` name the run, further coordinates over `variant`
are what varies (`n`, `width`, `model` …), `step` is that of an evaluation, and a cell that was not trained or evaluated is missing (NaN). The attributes `question`, `limits`, `preset`, `changes` and
`meanings` say what was asked, what the answer does not cover, and how each variant differs from the preset."""
