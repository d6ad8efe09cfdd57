"""Verdicts as a page of the documentation: what each claim means here, and what the runs say about it.

>>> page = render_verdicts([verification, another])
"""

from __future__ import annotations

from collections.abc import Sequence

from bindscope.studies.framework.claims import Claim
from bindscope.studies.framework.verify import Judged, Verification

N_SHOWN = 3  # quantities of a claim in the table


def render_verdicts(verifications: Sequence[Verification]) -> str:
    """One table with a column for each run, the reasons below it, then every claim with its terms."""
    names = [verification.run for verification in verifications]
    by_claim = list(zip(*(verification.judged for verification in verifications)))
    parts = [
        _row(["claim", "the paper", *names, "criterion fixed"]),
        "|---" * (3 + len(names)) + "|",
        *(_claim_row(judged) for judged in by_claim),
    ]
    for verification in verifications:
        parts += ["", f"### Why, on {verification.run}", ""]
        parts += [f"- **{judged.claim.id}** {judged.finding.reason}" for judged in verification.judged]
    parts += ["", "### What each claim means here"]
    for judged in by_claim:
        parts += ["", f"#### {_title(judged[0].claim)}", "", *_terms(judged[0].claim)]
    return "\n".join(parts) + "\n"


def _title(claim: Claim) -> str:
    return f"{claim.id} {claim.title}"


def _claim_row(judged: Sequence[Judged]) -> str:
    claim = judged[0].claim
    return _row([_title(claim), claim.paper, *map(_cell, judged), str(claim.fixed or "")])


def _cell(judged: Judged) -> str:
    quantities = "<br>".join(str(quantity) for quantity in judged.finding.quantities[:N_SHOWN])
    read = f"<br>from {', '.join(judged.sources)}" if judged.sources else ""
    return f"**{judged.finding.verdict}**" + (f"<br>{quantities}" if quantities else "") + read


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _terms(claim: Claim) -> list[str]:
    return [
        claim.statement,
        "",
        f"- **Paper:** {claim.paper}",
        f"- **Measure:** {claim.measure}",
        f"- **Criterion:** {claim.criterion}",
        f"- **Control:** {claim.control_description}",
        f"- **Criterion and control fixed:** {claim.fixed or 'not recorded'}",
        f"- **Results:** {', '.join(f'`{name}`' for name in claim.results)}",
    ]
