"""docs/api.md: every public name, and every method of an opened run or study, with signature, parameters and example."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from inspect import cleandoc
from typing import Any

import bindscope

WIDEST = 100  # a longer signature has one parameter a line
FOR_TRAINING = (
    "keep_",
    "write_",
    "link_",
    "settle_",
    "save_",
    "create",
    "rewind",
    "load_state",
)  # of Run: not for readers
PACKAGES = ("tasks.binding", "tasks.code", "tasks.assign_add", "tasks.templates", "model", "training", "measures", "interventions",
            "subspaces", "theory", "runs")  # fmt: skip
INSIDE = frozenset(
    {"RunView.opened", *(f"GridSeries.{name}" for name in ("of_pairs", "means", "key", "find_missing", "piece"))}
)
VIEWS = (  # class, how an example calls it, and what the section is called
    ("bindscope.notebook:RunView", "run", "Every opened run"),
    ("bindscope.notebook:ProgramsView", "run", "A run on programs"),
    ("bindscope.notebook:SumsView", "sums", "A run on sums"),
    ("bindscope.notebook:SymbolsView", "study", "The study of abstract symbols"),
    ("bindscope.notebook.verdicts:Verdicts", "verdicts", "Verdicts"),
    ("bindscope.questions.grids:GridSeries", "grids", "Patch grids over training"),
)


@dataclass(frozen=True)
class Docstring:
    """A docstring in its parts."""

    text: str
    example: str  # its input lines
    parameters: dict[str, str]  # name → what it is

    @classmethod
    def of(cls, thing: Any) -> Docstring:
        text, _, parameters = cleandoc(getattr(thing, "__doc__", None) or "").partition("\nParameters\n----------\n")
        text, _, session = text.partition("\n>>> ")
        lines = f">>> {session}".splitlines() if session else []
        described = re.findall(r"^(\w+)\n((?:    .*\n?)+)", parameters, flags=re.MULTILINE)
        return cls(
            re.sub(r"``([^`]+)``", r"`\1`", text.strip()),
            "\n".join(line[4:] for line in lines if line.startswith((">>> ", "... "))),
            {name: " ".join(help.split()) for name, help in described},
        )


def describe_api() -> str:
    """The page."""
    parts = [_LEAD, *(line for name in bindscope.PUBLIC for line in _describe_public(name))]
    for location, called, title in VIEWS:
        parts += ["", f"## {title}", "", *_describe_view(find_class(location), called)]
    parts += ["", "## Packages", "", "Each package has a short list of its own, for those who build on it:", ""]
    for package in PACKAGES:
        module = import_module(f"bindscope.{package}")
        names = ", ".join(f"`{name}`" for name in module.__all__)
        parts.append(f"- `bindscope.{package}`: {(module.__doc__ or '').splitlines()[0]} {names}")
    return "\n".join(parts)


def find_class(location: str) -> type:
    module, name = location.split(":")
    found: type = getattr(import_module(module), name)
    return found


def methods_of(view: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that stand in a class, or in those that it alone is made of."""
    parents = [parent for parent in view.__mro__ if parent.__module__.startswith("bindscope.")]
    stands_above = {find_class(location) for location, *_ in VIEWS} - {view}
    own = [parent for parent in parents if not any(issubclass(above, parent) for above in stands_above & set(parents))]
    for parent in own:
        for name, thing in vars(parent).items():
            described = inspect.isfunction(thing) or isinstance(thing, property | cached_property)
            if described and not name.startswith("_") and f"{view.__name__}.{name}" not in INSIDE:
                yield name, thing


def _describe_public(name: str) -> list[str]:
    thing = getattr(bindscope, name)
    says = Docstring.of(thing)
    lines = ["", f"## bindscope.{name}", ""]
    if not isinstance(thing, type):
        lines += ["```python", signature_of(thing, name), "```", ""]
    lines += [says.text, "", "```python", from_outside(says.example, thing), "```"]
    if dataclasses.is_dataclass(thing):
        lines += ["", *_fields_table(thing)]  # type: ignore[arg-type]
    return lines + (_members_table(thing) if isinstance(thing, type) else [])


def from_outside(example: str, thing: Any) -> str:
    """The example of something public as it is written where only ``bindscope`` was imported.

    Names of functions are often those of variables too, so of these only the thing's own is changed, where it is called.
    """
    for name in bindscope.PUBLIC:
        one = getattr(bindscope, name)
        if isinstance(one, type) or one in (thing, bindscope.open_run):
            where = r"\b" if isinstance(one, type) else r"(?=\()"
            example = re.sub(rf"(?<![\w.]){one.__name__}{where}", f"bindscope.{name}", example)
    return example


def _describe_view(view: type, called: str) -> list[str]:
    whole = Docstring.of(view)
    lines = [whole.text, *(["", "```python", whole.example, "```"] if whole.example else [])]
    plain = [(name, thing) for name, thing in methods_of(view) if not inspect.isfunction(thing)]
    lines += (
        ["", *(f"- `{called}.{name}`: {Docstring.of(_function(thing)).text}" for name, thing in plain)] if plain else []
    )
    for name, method in ((name, thing) for name, thing in methods_of(view) if inspect.isfunction(thing)):
        says = Docstring.of(method)
        lines += [
            "",
            f"### {called}.{name}",
            "",
            "```python",
            signature_of(method, f"{called}.{name}"),
            "```",
            "",
            says.text,
        ]
        if says.parameters:
            lines += ["", "| parameter | |", "|---|---|"]
            lines += [f"| `{one}` | {help.replace('|', chr(92) + '|')} |" for one, help in says.parameters.items()]
        lines += ["", "```python", from_outside(says.example, method), "```"]
    return lines


def signature_of(thing: Any, name: str) -> str:
    """The call as it is written, with types as they stand in the source; one parameter a line where it is long."""
    signature = inspect.signature(thing)
    parameters = [one for one in signature.parameters.values() if one.name != "self"]
    stars = [one.kind is one.KEYWORD_ONLY for one in parameters]
    written = [_write_parameter(one) for one in parameters]
    if True in stars and not any(one.kind is one.VAR_POSITIONAL for one in parameters):
        written.insert(stars.index(True), "*")
    gives = signature.return_annotation
    returns = "" if gives in (inspect.Signature.empty, None, "None") else f" -> {gives}"
    short = f"{name}({', '.join(written)}){returns}"
    return short if len(short) <= WIDEST else f"{name}(\n" + "".join(f"    {one},\n" for one in written) + f"){returns}"


def _write_parameter(one: inspect.Parameter) -> str:
    star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")  # type: ignore[call-overload]
    kind = "" if one.annotation is one.empty else f": {one.annotation}"
    if one.default is one.empty:
        return f"{star}{one.name}{kind}"
    default = re.sub(r"\w+Path\((.*)\)", r"\1", repr(one.default))
    return f"{star}{one.name}{kind} = {'…' if default.startswith('<') else default}"


def _fields_table(kind: type) -> list[str]:
    """The fields of a dataclass with what the comment behind each says."""
    source = cleandoc(inspect.getsource(kind)).splitlines()
    lines = ["| field | | |", "|---|---|---|"]
    for node in ast.parse("\n".join(source)).body[0].body:  # type: ignore[attr-defined]
        if isinstance(node, ast.AnnAssign):
            default = "" if node.value is None else f" = {ast.unparse(node.value)}"
            comment = source[node.lineno - 1].partition("  # ")[2]
            written = f"{ast.unparse(node.annotation)}{default}".replace("|", "\\|")
            lines.append(f"| `{ast.unparse(node.target)}` | `{written}` | {comment} |")
    return lines


def _members_table(kind: type) -> list[str]:
    """Methods and properties of a class in a line each."""
    rows = []
    for name, thing in vars(kind).items():
        if name.startswith("_") or name.startswith(FOR_TRAINING) or not hasattr(thing, "__get__"):
            continue
        function = _function(thing)
        text = Docstring.of(function).text.split("\n\n")[0].replace("\n", " ")
        if text and inspect.isfunction(function):
            called = isinstance(thing, property | cached_property)
            shown = f"{kind.__name__}.{name}" if isinstance(thing, classmethod) else f".{name}"
            rows.append(f"| `{shown}{'' if called else '(…)'}` | {text} |")
    return ["", "| member | |", "|---|---|", *rows] if rows else []


def _function(thing: Any) -> Any:
    """What was decorated."""
    return getattr(thing, "fget", None) or getattr(thing, "func", None) or getattr(thing, "__func__", thing)


_LEAD = """\
# The Python API

These names are imported from `bindscope` itself and stay. Each is loaded when it is first used, so `import bindscope` is
instant. Methods of an opened run or study return labelled arrays (xarray) that draw themselves with `.plot()`; [results.md](results.md) has what saved ones hold.

```python
import numpy as np

import bindscope

run = bindscope.open_run("binding-laptop")
print(run.predict("k=9;c=k;#c:"))
sums, study = bindscope.open_run("assign-add"), bindscope.open_study("symbols")
```

The examples below go on from there. Those for a model, which know no run, also from this:

```python
from bindscope.tasks.binding import BindingTask, sample_root_pairs
from bindscope.training import TrainingConfig

model, task, rng = run.model(), run.task, np.random.default_rng(0)
tokens = run.tokens("k=9;c=k;#c:")
contrast = bindscope.contrast_pairs(sample_root_pairs(task, rng, 20))
```"""
