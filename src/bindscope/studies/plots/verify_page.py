"""The verdicts on a run as one HTML file: every claim with its figure, numbers, criterion and control.

>>> page = render_verification(verification, command="bindscope verify binding-laptop", config=run.manifest.config)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bindscope.studies.framework.claims import Quantity
from bindscope.studies.framework.verify import Judged, Verification
from bindscope.studies.plots.html import Markup, document, element, list_settings, table
from bindscope.studies.plots.style import figure_to_svg

CLASSES = {  # colours the page has already
    "replicates": "systematic", "differs": "heuristic", "inconclusive": "random", "not testable": "random",
}  # fmt: skip


def render_verification(verification: Verification, command: str, config: Mapping[str, Any]) -> str:
    """The whole page: the table of verdicts first, then each claim by itself, then how it was made."""
    title = f"Claims on {verification.run}"
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verification.counts.items() if count)
    pieces = [
        element("h1", title),
        element("p", f"{len(verification.judged)} published claims checked against this run: {counts}.", class_="lead"),
        _summary(verification),
        *(_claim_section(judged) for judged in verification.judged),
        _making_section(verification, command, config),
    ]
    footer = element("footer", "Made by Bindscope. Intervals are 95 %. This file fetches nothing.")
    return document(title, *pieces, footer)


def _summary(verification: Verification) -> Markup:
    rows = [
        [
            element("a", judged.claim.id, href=f"#{judged.claim.id}"),
            judged.claim.title,
            _verdict(judged),
            judged.claim.paper,
            _lines(str(quantity) for quantity in judged.finding.quantities[:3]),
        ]
        for judged in verification.judged
    ]
    return element("section", table(("claim", "about", "verdict", "the paper", "this run"), rows), class_="verdicts")


def _claim_section(judged: Judged) -> Markup:
    claim, finding = judged.claim, judged.finding
    pieces: list[object] = [
        element("h2", f"{claim.id} · {claim.title} ", _verdict(judged)),
        element("p", claim.statement),
        element("p", element("strong", "Found here: "), finding.reason),
    ]
    if judged.has_figure:
        svg = Markup(figure_to_svg(judged.draw(), claim.id, f"{claim.id}: {claim.title}"))
        pieces.append(element("figure", svg, class_="wide"))
    quantities = [("", quantity) for quantity in finding.quantities]
    quantities += [("control", quantity) for quantity in finding.control]
    if quantities:
        rows = [[quantity.label, kind, quantity.number, _count(quantity)] for kind, quantity in quantities]
        pieces.append(table(("what", "", "value [95 % interval]", "n"), rows, numbers=(2, 3)))
    pieces.append(_terms(judged))
    return element("section", *pieces, id=claim.id)


def _terms(judged: Judged) -> Markup:
    claim = judged.claim
    terms = {
        "The paper": claim.paper,
        "Measure": claim.measure,
        "Criterion": claim.criterion,
        "Control": claim.control_description,
        "Criterion fixed": str(claim.fixed or ""),
        "Results read": ", ".join(claim.results),
    }
    pieces = (element(kind, text) for each in terms.items() for kind, text in zip(("dt", "dd"), each))
    return element("dl", *pieces, class_="terms")


def _making_section(verification: Verification, command: str, config: Mapping[str, Any]) -> Markup:
    rows = []
    for filled in verification.filled.values():
        settings = verification.settings[filled.name]
        remark = filled.reason or filled.note
        rows.append([filled.name, *(str(settings.get(key, "–")) for key in ("n", "seed")), filled.key[:12], remark])
    return element(
        "section",
        element("h2", "How it was made"),
        element("pre", element("code", command)),
        table(("result", "n", "seed", "key", "remark"), rows, numbers=(1, 2)),
        list_settings(config, "settings of the run"),
    )


def _verdict(judged: Judged) -> Markup:
    verdict = judged.finding.verdict
    return element("span", verdict, class_=CLASSES[verdict])


def _lines(texts: Iterator[str]) -> Markup:
    return element("div", *(element("div", text) for text in texts))


def _count(quantity: Quantity) -> str:
    return "–" if quantity.n is None else f"{quantity.n:,}"
