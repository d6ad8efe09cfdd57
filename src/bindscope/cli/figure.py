"""``bindscope figure``: the figure behind one claim, or one beside them."""

from __future__ import annotations

from pathlib import Path

from bindscope.cli.options import HERE, AtLeastOne, Cluster, Flag, Jobs, Place, Seed
from bindscope.cli.table import fill_lines
from bindscope.runs.locate import is_shipped


def figure(
    run: str,
    name: str,
    /,
    *,
    out: Path | None = None,
    n: AtLeastOne | None = None,
    seed: Seed = 0,
    fresh: Flag = False,
    jobs: Jobs = None,
    cluster: Cluster = None,
    place: Place = HERE,
) -> None:
    """Draw the figure behind one claim about a run, or one beside the claims.

    What the figure shows is measured first if it was not saved already, as
    'bindscope verify' does, so both show the same numbers. Beside the claims,
    ablations (programs) has the answers that fall without each head, by depth and
    hop; mixture, identifiers and lookbacks (programs) how a binding is looked up,
    through training (docs/mixture.md), and edges how many edges between parts are
    enough (docs/edges.md); crosscoder (programs) which features of the residual
    stream checkpoints share and when they appear (docs/development.md);
    reassignment (programs that assign variables again) which write wins
    (docs/reassignment.md); score-terms (sums) why = attends to a value in layer 2;
    token-maps (sums) what both layers make of every token. Of any run
    on programs or sums, coefficient is the local learning coefficient over training,
    coefficient-refined the same by layer and question (both take minutes where they
    are not saved), and diagnostics the plateau diagnostics (docs/development.md).

    Examples:
        bindscope figure binding-laptop VB3
        bindscope figure binding-laptop VB1 --out phases.pdf
        bindscope figure runs/fast VB5 --n 400 --out vb5.png
        bindscope figure binding-neutral ablations
        bindscope figure binding-plain mixture
        bindscope figure assign-add score-terms
        bindscope figure binding-plain coefficient

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name; or symbols, for the claims of study 3.
    name
        The claim: VB1 to VB12 on programs, AA1 to AA11 on sums, AS1 to AS13 on symbols. Or a figure beside them:
        ablations, mixture, identifiers, lookbacks, edges, crosscoder or reassignment on programs, score-terms or token-maps on
        sums, coefficient, coefficient-refined or diagnostics on both.
    out
        The figure's file; its ending chooses the format (svg, pdf, png). By default results/VB3.svg inside the run, or
        NAME-VB3.svg here for a shipped run or a study.
    n
        How many programs each measurement draws; each has its own number when left out.
    seed
        The seed that draws them.
    fresh
        Measure again, whatever was saved.
    """
    from bindscope.cli.verify import open_library, watch_results
    from bindscope.studies.framework.claims import Drawing
    from bindscope.studies.framework.verify import draw_results, verify
    from bindscope.studies.plots.style import figure_format, save_figure

    library, study = open_library(run, n=n, seed=seed, fresh=fresh, placement=place)
    chosen = study.find_figure(name)
    opened = library.opened
    outside = opened is None or is_shipped(opened.path)
    path = out or (Path(f"{library.name}-{chosen.id}.svg") if outside else library.folder / f"{chosen.id}.svg")
    figure_format(path)  # refused before anything is measured
    with watch_results() as on_result:
        if isinstance(chosen, Drawing):
            drawn, words = draw_results(library, chosen, on_result, jobs, cluster), chosen.title
        else:
            judged = verify(library, [chosen], on_result, jobs=jobs, cluster=cluster).judged[0]
            drawn = judged.draw()
            words = f"{chosen.id} {chosen.title}: {judged.finding.verdict}. {judged.finding.reason}"
    save_figure(drawn, path)
    print(fill_lines(words))
    print(f"figure   {path}")
