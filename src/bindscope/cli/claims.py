"""``bindscope claims``: the claims that come with Bindscope, listed or as documents to start from."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from bindscope.cli.table import format_table

Names = Annotated[str, Parameter(help="The claims to print, such as VB3. Without any, all are listed.")]


def claims(*names: Names) -> None:
    """List the claims that come with Bindscope, or print some as documents.

    A document is TOML: statement, source, published figure, criterion and control
    in words, and when these were fixed with what in view. Start a claim of your own
    from one (docs/own-claims.md), and judge it with 'bindscope verify --claims'.

    Examples:
        bindscope claims
        bindscope claims VB3
        bindscope claims VB3 VB6 > mine.toml
    """
    from bindscope.studies.framework.documents import claim_to_toml
    from bindscope.studies.framework.verify import all_studies, find_claim

    sources = {claim.id: study.source for study in all_studies() for claim in study.claims}
    if names:
        chosen = [find_claim(name) for name in names]
        print("\n".join(claim_to_toml(claim, sources[claim.id]) for claim in chosen), end="")
        return
    rows = [[claim.id, claim.title, claim.paper] for study in all_studies() for claim in study.claims]
    print(format_table(["claim", "title", "the paper"], rows))
