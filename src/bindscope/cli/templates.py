"""``bindscope templates``: are these templates a task, and what strings do they make?"""

from __future__ import annotations

import json as json_format
from typing import TYPE_CHECKING, Literal

from bindscope.cli.options import Flag, Labels, Seed
from bindscope.cli.table import format_table
from bindscope.errors import BindscopeError

if TYPE_CHECKING:
    from bindscope.tasks.templates.checks import TemplateSample

FAULTY = 1  # the exit code for templates that are no task


def templates(
    action: Literal["check", "sample"],
    /,
    *texts: str,
    labels: Labels = None,
    n: int = 5,
    seed: Seed = 0,
    json: Flag = False,
) -> int:
    """Check templates typed as text, or print sequences they make.

    A capital or a Greek letter is a wildcard, any other character a regular token; 'quotes' make
    one token of several characters. Templates form a task when they are equally long, no two
    are equivalent, and no two match the same string; 'check' shows one that does, and
    ends with exit code 1 when something is wrong.

    Examples:
        bindscope templates check AA AB
        bindscope templates check AB Ax --labels 1,-1
        bindscope templates sample ABA --n 5
        bindscope templates sample "A='+1','print'(A)"

    Parameters
    ----------
    action
        What to do with the templates.
    texts
        The templates.
    labels
        Labels to check too, separated by commas: numbers, or tokens of the templates.
    n
        How many strings to print of each template.
    seed
        The seed that draws them.
    json
        Print JSON instead.
    """
    if not texts:
        raise BindscopeError(f"Give at least one template, as in 'bindscope templates {action} ABA'.")
    if action == "check":
        return check_templates(texts, labels, json)
    print_samples(texts, n, seed, json)
    return 0


def check_templates(texts: tuple[str, ...], labels: str | None, json: bool) -> int:
    """Print what is wrong, or that nothing is."""
    from bindscope.tasks.templates.checks import find_problems, parse
    from bindscope.tasks.templates.reading import read_labels

    parsed = [parse(text) for text in texts]
    problems = find_problems(parsed, None if labels is None else read_labels(labels))
    if json:
        print(json_format.dumps({"templates": list(map(str, parsed)), "fine": not problems, "problems": problems}))
    elif problems:
        print("\n".join(problems))
    else:
        wildcards = [", ".join(template.wildcards) or "–" for template in parsed]
        regular = [" ".join(template.regular_tokens) or "–" for template in parsed]
        rows = list(zip(map(str, parsed), map(str, map(len, parsed)), wildcards, regular))
        print(format_table(["template", "tokens", "wildcards", "regular tokens"], rows, numbers=[1]))
        print("\nfine: equally long, none equivalent, disjoint" if len(parsed) > 1 else "\nfine")
    return FAULTY if problems else 0


def print_samples(texts: tuple[str, ...], n: int, seed: int, json: bool) -> None:
    """Strings of each template with the substitution that made them."""
    import numpy as np

    from bindscope.tasks.templates.checks import parse, sample_strings

    rng = np.random.default_rng(seed)
    samples = [(parse(text), sample) for text in texts for sample in sample_strings(text, n, rng)]
    if json:
        for template, sample in samples:
            line = {"template": str(template), "string": sample.string, "substitution": sample.substitution}
            print(json_format.dumps(line))
        return
    rows = [[str(template), " ".join(sample.string), _describe(sample)] for template, sample in samples]
    print(format_table(["template", "string", "substitution"], rows))


def _describe(sample: TemplateSample) -> str:
    return ", ".join(f"{wildcard} = {symbol}" for wildcard, symbol in sample.substitution.items())
