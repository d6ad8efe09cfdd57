"""Claims that are documents, opened for a run: their questions become results, saved like any other.

>>> opened = open_claims([Path("mine.toml")])
>>> library = Library(run, (*study.results, *opened.results), folder)
>>> verify(library, opened.claims)
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.own_files import OwnCodeFailed, explain, load_named
from bindscope.questions.algorithm import Algorithm
from bindscope.questions.opened import Opened
from bindscope.questions.patch import Patch
from bindscope.questions.patch import Path as PathPatch
from bindscope.questions.program import Ablate
from bindscope.questions.question import BadValue, RunQuestion, describe_fields
from bindscope.questions.transplants import Transplant
from bindscope.studies.framework.claims import Claim, Study
from bindscope.studies.framework.documents import Asked, Document, read_documents
from bindscope.studies.framework.results import Context, Result, last_step
from bindscope.studies.framework.verify import find_claim

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.interventions.own_metric import OwnMetric
    from bindscope.runs.directory import Run

RESULT_OPTION = "--result"
N_EXAMPLES = 100  # that a function of one's own is told to draw, unless a person says otherwise
NAMED: Mapping[str, type[RunQuestion]] = {  # those that draw examples: one example has no interval
    "patch": Patch, "path": PathPatch, "ablate": Ablate, "algorithm": Algorithm, "transplant": Transplant,
}  # fmt: skip


@dataclass(frozen=True)
class OpenedClaims:
    """Claims of documents, and the results they read beyond those of a study."""

    documents: tuple[Document, ...]
    results: tuple[Result, ...]

    @property
    def claims(self) -> list[Claim]:
        return [document.claim for document in self.documents]

    def choose(self, study: Study, named: Sequence[str]) -> list[Claim]:
        """These claims, after those of the study that are named."""
        chosen = [study.find_claim(name) for name in named]
        if twice := {claim.id for claim in chosen} & {claim.id for claim in self.claims}:
            raise BindscopeError(f"--claim {min(twice)}: --claims has one of this name too; leave one of them out.")
        return [*chosen, *self.claims]

    def joined(self, results: Sequence[Result]) -> tuple[Result, ...]:
        """The results of a study and these; no name may be there twice."""
        known = {result.name for result in results}
        for index, result in enumerate(self.results):
            if result.name in known or result.name in [other.name for other in self.results[:index]]:
                raise BindscopeError(
                    f"{RESULT_OPTION}: a result '{result.name}' is there already; give yours another name."
                )
        return (*results, *self.results)


def open_claims(paths: Iterable[Path], results: Sequence[str] = (), metrics: Sequence[str] = ()) -> OpenedClaims:
    """The claims of TOML files, with results and metrics of one's own, each PATH.py:NAME: a document cannot name those."""
    documents = [document for path in paths for document in read_documents(path, find_claim)]
    twice = {one.claim.id for one in documents if [each.claim.id for each in documents].count(one.claim.id) > 1}
    if twice:
        raise BindscopeError(f"--claims: two claims are called '{min(twice)}'.")
    asked = {each.name: each for document in documents for each in document.asked}
    own = _load_metrics(metrics)
    made = [_result_of(each, own) for each in asked.values()]
    return OpenedClaims(tuple(documents), (*made, *map(load_result, results)))


def load_result(location: str) -> Result:
    """A result of one's own: a ``Result``, or a function of a ``Context`` that gives a dataset and is called each time.

    >>> load_result("mine.py:agreement").name
    'agreement'
    """
    if ":" not in location:
        raise BindscopeError(f"{RESULT_OPTION} {location}: say which function of which file, as in mine.py:agreement.")
    found = load_named(location, RESULT_OPTION, "function or a Result", _is_result)
    if isinstance(found, Result):
        return replace(found, compute=partial(_compute_own, found.compute, location))
    compute = partial(_compute_own, found, location)
    return Result(found.__name__, location, compute, n=N_EXAMPLES, steps=last_step, kept=False)


def _is_result(value: Any) -> bool:
    return isinstance(value, Result) or inspect.isfunction(value)


def _compute_own(function: Any, location: str, context: Context) -> xr.Dataset:
    import xarray as xr

    try:
        dataset = function(context)
    except BindscopeError:
        raise
    except Exception as problem:
        code = getattr(function, "__code__", None)
        raise OwnCodeFailed(f"{location} failed{explain(problem, code.co_filename if code else None)}") from problem
    if not isinstance(dataset, xr.Dataset):
        raise OwnCodeFailed(
            f"{location}: it must return an xarray Dataset, and it returned a {type(dataset).__name__}."
        )
    return dataset


def _load_metrics(locations: Sequence[str]) -> dict[str, OwnMetric]:
    if not locations:
        return {}
    from bindscope.interventions.own_metric import load_metric

    loaded = [load_metric(location) for location in locations]
    return {metric.name: metric for metric in loaded}


def _result_of(asked: Asked, metrics: Mapping[str, OwnMetric]) -> Result:
    """A question as a result: its own n and seed count where the document sets them."""
    question: Any = _question_of(asked, metrics)
    known = {each.name for each in fields(question)}

    def compute(context: Context) -> xr.Dataset:
        changes: dict[str, Any] = {"n": context.n} if "n" in known else {}
        if "seed" in known and "seed" not in asked.settings:
            changes["seed"] = context.seed
        answer = replace(question, run=context.run.name, **changes).answer
        progress = {"on_progress": context.on_progress} if "on_progress" in inspect.signature(answer).parameters else {}
        dataset: xr.Dataset = answer(Opened.of(context.run), **progress)
        return dataset

    def steps(run: Run) -> Sequence[int]:
        return tuple(question.saved_steps(Opened.of(run)))

    n = question.n if "n" in known else 0
    kept = getattr(question, "own_metric", None) is None  # what a function of one's own gives may change with its file
    return Result(asked.name, f"asking {asked.question}", compute, n=n, steps=steps, kept=kept)


def _question_of(asked: Asked, metrics: Mapping[str, OwnMetric]) -> RunQuestion:
    where = f"question '{asked.question}'"
    if asked.question not in NAMED:
        raise BindscopeError(f"there is no {where}.{suggest_nearest(asked.question, NAMED)}")
    kind, settings = NAMED[asked.question], dict(asked.settings)
    known = {name: about for name, about in describe_fields(kind).items() if name != "run"}
    for name, value in settings.items():
        if name not in known:
            raise BindscopeError(f"{where}: it has no setting '{name}'.{suggest_nearest(name, known)}")
        if known[name].live.get("never") and isinstance(value, str) and ":" in value:
            raise BindscopeError(
                f"{where}: {name}: a document cannot name code; give --metric {value} to the command and its name here."
            )
        if known[name].live.get("never") and value in metrics:
            settings[name] = metrics[value]
        elif isinstance(value, list):
            settings[name] = tuple(value)
    try:
        return kind(run="RUN", **settings)
    except BadValue as problem:
        raise BindscopeError(f"{where}: {problem}") from None
    except TypeError as problem:
        raise BindscopeError(f"{where}: a setting is of the wrong kind or missing ({problem}).") from None
