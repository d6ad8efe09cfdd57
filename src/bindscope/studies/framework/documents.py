"""A claim as a document: TOML that says what is claimed, by whom, and which numbers would bear it out.

    [[claim]]
    id = "second-hop"
    title = "The second right-hand side carries the value"
    statement = "…"
    source = "…"        # who says so, and where
    figure = "> 80 %"   # the published figure
    fixed = {on = 2026-11-18, seen = "nothing"}

    [[claim.criterion]]  # terms, as in ``terms``
    [[claim.control]]
    [[claim.requires]]   # without these the claim is not testable

A file may hold several claims. It is data: nothing that it names is ever loaded as code. ``judge = "VB3"`` names a claim
that comes with Bindscope, whose own judge then speaks.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.studies.framework.claims import Claim, Finding, Fixed, conclude, inconclusive, not_testable
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.settings_file import load_toml
from bindscope.studies.framework.terms import WORDS, Judgement, Term, judge_term

if TYPE_CHECKING:
    import xarray as xr

TEXTS = ("id", "title", "statement", "source", "figure")
SECTIONS = ("criterion", "control", "requires")
CLAIM_KEYS = (*TEXTS, "measure", "fixed", *SECTIONS, "judge", "results")
TERM_KEYS = (
    "result",
    "question",
    "ask",
    "variable",
    "select",
    "reduce",
    "minus",
    "n",
    "at_least",
    "at_most",
    "unit",
    "label",
)
UNITS = ("fraction", "step", "1")


@dataclass(frozen=True)
class Asked:
    """A question that a document asks, by its name and its fields; ``questions.claimed`` makes a result of it."""

    question: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What its answer is saved under: the same question has the same name."""
        text = json.dumps([self.question, dict(self.settings)], sort_keys=True, default=str)
        return f"{self.question}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def __str__(self) -> str:
        """``ablate (sites L0.H0, depth 1)``."""
        lists = {key: value if isinstance(value, list) else [value] for key, value in self.settings.items()}
        words = ", ".join(f"{key.replace('_', ' ')} {' + '.join(map(str, each))}" for key, each in lists.items())
        return f"{self.question} ({words})" if words else self.question


@dataclass(frozen=True)
class Terms:
    """What decides a claim that is written as a document."""

    criterion: tuple[Term, ...] = ()
    control: tuple[Term, ...] = ()
    requires: tuple[Term, ...] = ()  # without these the claim is not testable

    def __iter__(self) -> Iterator[Term]:
        return iter((*self.requires, *self.criterion, *self.control))


@dataclass(frozen=True)
class Document:
    """A claim that was read from a file, and what it asks beyond saved results."""

    claim: Claim
    terms: Terms = Terms()  # none where a claim that comes with Bindscope judges
    asked: tuple[Asked, ...] = ()


def read_documents(path: Path, shipped: Callable[[str], Claim]) -> list[Document]:
    """The claims of a TOML file; ``shipped`` finds one that comes with Bindscope by its id.

    >>> [document.claim.id for document in read_documents(Path("mine.toml"), find_shipped)]
    ['second-hop']
    """
    table = load_toml(path)
    claims = table.pop("claim", None)
    if table or not isinstance(claims, list) or not all(isinstance(each, dict) for each in claims):
        extra = f" '{next(iter(table))}' stands outside of one." if table else ""
        raise BindscopeError(f"{path}: begin each claim with [[claim]].{extra}")
    documents: list[Document] = []
    for index, each in enumerate(claims, start=1):
        name = each.get("id") if isinstance(each.get("id"), str) else f"claim {index}"
        try:
            documents.append(_read_claim(each, shipped))
        except BindscopeError as problem:
            raise BindscopeError(f"{path}: {name}: {problem}") from None
        if name in [other.claim.id for other in documents[:-1]]:
            raise BindscopeError(f"{path}: two claims are called '{name}'.")
    return documents


def claim_to_toml(claim: Claim, source: str) -> str:
    """A claim that comes with Bindscope as a document, which ``read_documents`` reads back to the same claim."""
    fixed = claim.fixed or Fixed("", "not recorded")
    fields = {
        "id": claim.id, "title": claim.title, "statement": claim.statement, "source": claim.source or source,
        "figure": claim.paper, "measure": claim.measure, "results": list(claim.results), "criterion": claim.criterion,
        "control": claim.control_description,
    }  # fmt: skip
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()]
    on = fixed.on if re.fullmatch(r"\d{4}-\d\d-\d\d", fixed.on) else json.dumps(fixed.on)
    lines.append(f"fixed = {{on = {on}, seen = {json.dumps(fixed.seen, ensure_ascii=False)}}}")
    comment = (
        "# The criterion is judged by Python that terms cannot say; the words describe it. For a claim of your own,\n"
        "# change the id, take 'judge' out and write criterion and control as terms (docs/own-claims.md)."
    )
    return "\n".join(["[[claim]]", *lines, comment, f'judge = "{claim.id}"']) + "\n"


def judge_terms(name: str, terms: Terms, results: Mapping[str, xr.Dataset]) -> Finding:
    """The verdict of a document's terms: what it requires first, then criterion and control, by whole intervals."""
    required = _judge_section(name, terms, "requires", results)
    quantities = tuple(each.quantity for each in required)
    for each in sorted(required, key=lambda each: each.condition.holds is None):
        if each.condition.holds is not True:
            say = inconclusive if each.condition.holds is None else not_testable
            return say(f"what the claim requires is not given here: {each.condition}", quantities)
    criterion, control = (_judge_section(name, terms, section, results) for section in ("criterion", "control"))
    return conclude(
        tuple(each.condition for each in criterion),
        tuple(each.condition for each in control),
        tuple(each.quantity for each in criterion),
        tuple(each.quantity for each in control),
    )


def _judge_section(name: str, terms: Terms, section: str, results: Mapping[str, xr.Dataset]) -> list[Judgement]:
    judged = []
    for index, term in enumerate(getattr(terms, section), start=1):
        try:
            judged.append(judge_term(term, results[term.result], section == "control"))
        except BindscopeError as problem:
            raise BindscopeError(f"{name}: {section} {index}, on '{term.result}': {problem}") from None
    return judged


def _read_claim(table: Mapping[str, Any], shipped: Callable[[str], Claim]) -> Document:
    _refuse_unknown(table, CLAIM_KEYS)
    for key in (*TEXTS, *(["measure"] if "measure" in table else [])):
        if not isinstance(table.get(key), str) or not table[key].strip():
            raise BindscopeError(f'{key}: a text is needed, as in {key} = "…".')
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,39}", table["id"]):
        raise BindscopeError("id: letters, digits, '-' and '_' alone, a letter first, 40 at most.")
    fixed = _read_fixed(table.get("fixed"))
    if "judge" in table:
        return Document(_judged_by_shipped(table, fixed, shipped))
    if "results" in table:
        raise BindscopeError("results: each term names its own; leave this out.")
    asked: dict[str, Asked] = {}
    terms = Terms(**{name: _read_section(table, name, asked) for name in SECTIONS})
    _check_control(terms)
    return Document(_claim_of(table, terms, fixed), terms, tuple(asked.values()))


def _claim_of(table: Mapping[str, Any], terms: Terms, fixed: Fixed) -> Claim:
    results = tuple(dict.fromkeys(term.result for term in terms))
    requires = f" Only where {_in_words(terms.requires)}." if terms.requires else ""
    return Claim(
        id=table["id"],
        title=table["title"],
        statement=table["statement"],
        paper=table["figure"],
        measure=table.get("measure") or f"Read of {', '.join(results)}.",
        criterion=f"{_in_words(terms.criterion)}.{requires}",
        control_description=f"{_in_words(terms.control)}.",
        results=results,
        judge=partial(judge_terms, table["id"], terms),
        draw=partial(defer("bindscope.studies.plots.terms", "draw_terms"), terms),
        fixed=fixed,
        source=table["source"],
    )


def _judged_by_shipped(table: Mapping[str, Any], fixed: Fixed, shipped: Callable[[str], Claim]) -> Claim:
    """The claim whose judge is named; words that it does not judge by would be untrue, so they must be its own."""
    if not isinstance(table["judge"], str):
        raise BindscopeError('judge: the id of a claim that comes with Bindscope, as in judge = "VB3".')
    claim = shipped(table["judge"])
    own = {"criterion": claim.criterion, "control": claim.control_description, "results": list(claim.results)}
    for key, value in own.items():
        if table.get(key, value) != value:
            raise BindscopeError(
                f"{key}: {claim.id} judges by its own, which differs; leave it as 'bindscope claims {claim.id}' prints "
                "it, or take 'judge' out and write terms."
            )
    if claim.fixed is not None and fixed != claim.fixed:
        raise BindscopeError(f"fixed: the criterion of {claim.id} was fixed {claim.fixed}; leave it so.")
    changes = {"paper": table["figure"], "measure": table.get("measure", claim.measure)}
    return replace(claim, **{key: table[key] for key in ("id", "title", "statement", "source")}, **changes)


def _read_fixed(value: Any) -> Fixed:
    if not isinstance(value, dict) or set(value) != {"on", "seen"}:
        raise BindscopeError(
            "fixed: say since when criterion and control stand and what had been seen by then, as in "
            'fixed = {on = 2026-11-18, seen = "nothing"}.'
        )
    on, seen = value["on"], value["seen"]
    if isinstance(on, datetime.datetime) or not isinstance(on, datetime.date):
        raise BindscopeError("fixed: 'on' is a date without quotes, as in on = 2026-11-18.")
    if not isinstance(seen, str) or not seen.strip():
        raise BindscopeError("fixed: 'seen' is a text: the runs and numbers that were known, or \"nothing\".")
    return Fixed(on.isoformat(), seen)


def _read_section(table: Mapping[str, Any], name: str, asked: dict[str, Asked]) -> tuple[Term, ...]:
    section = table.get(name, [])
    if not isinstance(section, list) or not all(isinstance(each, dict) for each in section):
        raise BindscopeError(f"{name}: write each of its terms under [[claim.{name}]].")
    if not section and name != "requires":
        why = (
            "a claim without a control that can fail shows nothing" if name == "control" else "nothing would be judged"
        )
        raise BindscopeError(f"{name}: it is missing, and {why}; add a term under [[claim.{name}]].")
    terms = []
    for index, each in enumerate(section, start=1):
        try:
            terms.append(read_term_table(each, asked))
        except BindscopeError as problem:
            raise BindscopeError(f"{name} {index}: {problem}") from None
    return tuple(terms)


def read_term_table(table: Mapping[str, Any], asked: dict[str, Asked]) -> Term:
    """One term of a section; a question that it asks is added to ``asked``."""
    _refuse_unknown(table, TERM_KEYS)
    _check_types(table)
    if ("result" in table) == ("question" in table):
        raise BindscopeError('name what it reads: result = "chain", or question = "patch" with its settings in ask.')
    if "variable" not in table:
        raise BindscopeError('variable: name the number to read, as in variable = "success".')
    if "at_least" not in table and "at_most" not in table:
        raise BindscopeError("there is no comparison; add at_least = 0.8, or at_most = 0.1.")
    result, asks = table.get("result", ""), ""
    if "question" in table:
        each = Asked(table["question"], table.get("ask", {}))
        result, asks = asked.setdefault(each.name, each).name, str(each)
    elif "ask" in table:
        raise BindscopeError("ask: these are the settings of a question, and it reads a result.")
    own = {key: table[key] for key in TERM_KEYS if key in table and key not in ("result", "question", "ask", "reduce")}
    return Term(result, reduce=tuple(map(_read_reduction, table.get("reduce", ()))), asks=asks, **own)


def _check_types(table: Mapping[str, Any]) -> None:
    number: tuple[type, ...] = (int, float)
    kinds: dict[str, tuple[tuple[type, ...], str]] = {
        **dict.fromkeys(("result", "question", "variable", "unit", "label"), ((str,), "a text")),
        **dict.fromkeys(("select", "minus", "ask"), ((dict,), "a table, as in {depth = 2}")),
        **dict.fromkeys(("at_least", "at_most"), (number, "a number")),
        "reduce": ((list,), 'a list, as in ["max over layer"]'),
        "n": ((int, str), "a count, or the name of one in the result"),
    }
    for key, value in table.items():
        types, what = kinds[key]
        if not isinstance(value, types) or isinstance(value, bool) or value != value:
            raise BindscopeError(f"{key}: {what} is needed, not {value!r}.")
    if isinstance(table.get("n"), int) and table["n"] < 1:
        raise BindscopeError("n: at least 1.")
    if table.get("unit", "1") not in UNITS:
        raise BindscopeError(f"unit: one of {', '.join(UNITS)}.")
    for key in ("select", "minus"):
        for dim, value in table.get(key, {}).items():
            if isinstance(value, dict) and (not value or set(value) - {"from", "to"}):
                raise BindscopeError(f"{key}: a range of {dim} is written {{from = 1, to = 3}}.")
            if isinstance(value, list) and not value:
                raise BindscopeError(f"{key}: no {dim} is listed.")


def _read_reduction(text: Any) -> tuple[str, str]:
    word, _, dim = text.partition(" over ") if isinstance(text, str) else ("", "", "")
    if word not in WORDS or not dim:
        raise BindscopeError(f'reduce: {text!r} is not "max over layer", "min over layer" or "mean over layer".')
    return word, dim.strip()


def _check_control(terms: Terms) -> None:
    """A control that asks for the same as the criterion cannot fail where that holds."""
    for index, term in enumerate(terms.control, start=1):
        if any(replace(term, label="") == replace(each, label="") for each in terms.criterion):
            raise BindscopeError(f"control {index}: the criterion asks the same, so this cannot fail by itself.")


def _in_words(terms: Sequence[Term]) -> str:
    return "; ".join(f"{term} {term.comparison}" for term in terms)


def _refuse_unknown(table: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in table:
        if key not in known:
            raise BindscopeError(f"there is no key '{key}'.{suggest_nearest(key, known)}")
