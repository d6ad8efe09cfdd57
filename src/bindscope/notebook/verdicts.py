"""The verdicts on a paper's claims, as a table and as figures."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import xarray as xr

from bindscope.errors import BindscopeError, suggest_nearest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bindscope.studies.framework.verify import Verification

COLUMNS = ("title", "paper", "measured", "verdict", "reason")


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What a run says about each claim; ``.dataset`` is the table, ``.plot("VB3")`` the figure behind a row.

    >>> verdicts = run.verify(["VB1", "VB3"])
    """

    verification: Verification

    @property
    def dataset(self) -> xr.Dataset:
        """Texts over (claim)."""
        judged = self.verification.judged
        cells = {
            "title": [one.claim.title for one in judged],
            "paper": [one.claim.paper for one in judged],
            "measured": ["; ".join(map(str, one.finding.quantities)) for one in judged],
            "verdict": [one.finding.verdict for one in judged],
            "reason": [one.finding.reason for one in judged],
        }
        coordinates = {"claim": [one.claim.id for one in judged]}
        return xr.Dataset(
            {name: ("claim", values) for name, values in cells.items()}, coordinates, {"run": self.verification.run}
        )

    def plot(self, claim: str | None = None) -> Figure:
        """The figure of one claim; it needs no name where only one was asked for.

        >>> verdicts.plot("VB3")
        """
        names = [one.claim.id for one in self.verification.judged]
        if claim is None:
            if len(names) != 1:
                raise BindscopeError(f"name the claim to draw: {', '.join(names)}.")
            (claim,) = names
        known = {one.claim.id.lower(): one for one in self.verification.judged}
        if claim.lower() not in known:
            raise BindscopeError(f"there is no claim '{claim}' here.{suggest_nearest(claim, names)}")
        return known[claim.lower()].draw()

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.verification.counts.items() if count)
        return f"<claims on {self.verification.run}: {counts}>"

    def _repr_html_(self) -> str:
        table = self.dataset
        head = "".join(f"<th style='text-align:left'>{name}</th>" for name in ("claim", *COLUMNS))
        rows = "".join(
            f"<tr><th>{escape(str(claim))}</th>"
            + "".join(f"<td style='text-align:left'>{escape(str(table[name].values[row]))}</td>" for name in COLUMNS)
            + "</tr>"
            for row, claim in enumerate(table.claim.values)
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
