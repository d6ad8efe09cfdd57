"""``bindscope templates``: are these templates a task, and what sequences do they make?"""

from __future__ import annotations

import json as json_format
from typing import Annotated, Literal

from bindscope.cli.asking import option
from bindscope.cli.options import Flag, Seed
from bindscope.cli.table import format_table
from bindscope.errors import BindscopeError
from bindscope.questions.templates import TemplateCheck, TemplateSamples, describe_substitution

FAULTY = 1  # the exit code for templates that are no task


def templates(
    action: Literal["check", "sample"],
    /,
    *texts: Annotated[str, option(TemplateCheck, "templates")],
    labels: Annotated[str | None, option(TemplateCheck, "labels")] = None,
    n: Annotated[int, option(TemplateSamples, "n")] = 5,
    seed: Annotated[Seed, option(TemplateSamples, "seed")] = 0,
    json: Flag = False,
) -> int:
    """Check templates typed as text, or print sequences they make.

    A capital or a Greek letter is a wildcard, any other character a regular token; 'quotes' make
    one token of several characters. Templates form a task when they are equally long, no two
    are equivalent, and no two match the same sequence; 'check' shows one that does, and
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
    json
        Print JSON instead.
    """
    if not texts:
        raise BindscopeError(f"Give at least one template, as in 'bindscope templates {action} ABA'.")
    if action == "check":
        return check_templates(TemplateCheck(templates=texts, labels=labels), json)  # type: ignore[arg-type]
    print_samples(TemplateSamples(templates=texts, n=n, seed=seed), json)
    return 0


def check_templates(question: TemplateCheck, json: bool) -> int:
    """Print what is wrong, or that nothing is."""
    from bindscope.tasks.templates.checks import parse

    parsed = [parse(text) for text in question.templates]
    problems = [str(problem) for problem in question.answer().problem_text.values]
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


def print_samples(question: TemplateSamples, json: bool) -> None:
    """Sequences of each template with the substitution that made them."""
    samples = question.draw()
    if json:
        for template, sample in samples:
            line = {"template": template, "sequence": sample.sequence, "substitution": sample.substitution}
            print(json_format.dumps(line))
        return
    rows = [[template, " ".join(sample.sequence), describe_substitution(sample)] for template, sample in samples]
    print(format_table(["template", "sequence", "substitution"], rows))
