"""Claim AA7: the neurons of the last MLP are Fourier components."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from bindscope.intervals import bootstrap_interval
from bindscope.measures.arithmetic.neurons import FITS
from bindscope.studies.assign_add.published import REPORTED
from bindscope.studies.framework.claims import Claim, Condition, Finding, Quantity, conclude, not_testable
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import fraction_of

EACH = 0.9  # of all neurons: what "each neuron" must at least mean
STILL = 0.95  # accuracy with Fourier components in place of all pre-activations
KNOWN = 0.9  # of literal sums answered correctly: below, there is no addition to look into
CHANCE = 0.05  # of neurons that may fit where there is nothing to find


def judge_neurons(results: Mapping[str, xr.Dataset]) -> Finding:
    """The fraction of neurons whose pre-activation fits, and whether Fourier components alone still add."""
    dataset = results["neurons"]
    model, last = dataset.sel(source="model"), dataset.sel(source="model").isel(step=-1)
    n, n_pairs = dataset.sizes["neuron"], int(dataset.attrs["n_pairs"])
    accuracy = fraction_of("literal sums answered correctly", float(last.accuracy), n_pairs)
    if accuracy.value < KNOWN:
        return not_testable(
            f"the model answers {accuracy.value:.0%} of literal sums; below {KNOWN:.0%} there is no addition to look "
            "into",
            (accuracy,),
        )
    explained = model.explained_variance.fillna(0).values
    fitting = fraction_of(
        f"neurons with explained variance of {FITS:.0%} or more", float((explained >= FITS).mean()), n
    )
    fitted = fraction_of("answered correctly by Fourier components alone", float(last.fitted_accuracy), n_pairs)
    weighted = float((explained * model.output_fraction.values).sum())
    criterion = (
        Condition(
            fitting.value >= EACH,
            f"{fitting.value:.0%} of the neurons fit one Fourier component of each operand",
            f"only {fitting.value:.0%} of the neurons fit one Fourier component of each operand by {FITS:.0%}; weighted by what they "
            f"add to the answer, Fourier components explain {weighted:.0%}",
        ),
        Condition(
            fitted.value >= STILL,
            f"with a Fourier component in place of every pre-activation the model answers {fitted.number} of sums",
            f"with a Fourier component in place of every pre-activation the model answers only {fitted.value:.0%} of sums",
        ),
    )
    permuted = dataset.permuted_explained_variance.fillna(0).values
    untrained = dataset.untrained_explained_variance.fillna(0).values
    controls = tuple(
        fraction_of(f"fitting neurons, {words}", float((values >= FITS).mean()), values.size)
        for words, values in (("untrained model", untrained), ("numbers in a random order", permuted))
    )
    chance = tuple(_is_rare(control) for control in controls)
    return conclude(criterion, chance, (fitting, fitted, *_further(model, explained)), controls)


def _further(model: xr.Dataset, explained: np.ndarray) -> tuple[Quantity, ...]:
    """How well neurons fit beyond a threshold, and whether their outputs keep the phase of the analytic network."""
    rng, fraction = np.random.default_rng(0), model.output_fraction.values
    median = Quantity(
        "median explained variance",
        float(np.median(explained)),
        *bootstrap_interval(explained, rng, lambda drawn: np.median(drawn, axis=1)),
        n=len(explained),
    )
    weighted = Quantity("explained variance weighted by effect on the answer", float((explained * fraction).sum()))
    angles = model.phase_difference.values[explained >= FITS]
    agreement = np.nan if not len(angles) else float(abs(np.exp(1j * angles).mean()))
    phase = Quantity("agreement of output phases with φ1 + φ2, fitting neurons", agreement, n=len(angles), unit="1")
    components = model.isel(step=-1).neurons_per_frequency.values
    frequencies = Quantity(
        "frequencies with at least 1 % of the neurons", int((components >= 0.01 * len(explained)).sum()), unit="1"
    )
    return (median, weighted, frequencies, phase)


def _is_rare(control: Quantity) -> Condition:
    words = f"{control.label}: {control.value:.0%}"
    return Condition(control.value <= CHANCE, words, f"{words}, too many")


AA7 = Claim(
    id="AA7",
    title="Neurons of the last MLP are Fourier components",
    statement=(
        "Each neuron's pre-activation over all pairs (n, m) is cos(2πkn/p + φ1) + cos(2πkm/p + φ2) up to scale and mean, "
        "with a frequency and two phases of its own, as in the analytic network for modular addition."
    ),
    paper=REPORTED["AA7"],
    measure=(
        "The whole model runs on all p² literal sums behind PADs; each pre-activation is fitted in closed form by cosines "
        "of one frequency with equal amplitudes. Then all of them are replaced by their fits at once. For differences "
        "n2 runs backwards; for products numbers stand in the order of their discrete logarithms."
    ),
    criterion=(
        f"At least {EACH:.0%} of the neurons have an explained variance of {FITS:.0%} or more, and with a Fourier component in place "
        f"of every pre-activation at least {STILL:.0%} of the sums are answered correctly."
    ),
    control_description=(
        f"The same fit holds for at most {CHANCE:.0%} of the neurons of an untrained model, and of this model when the "
        "numbers are put in a random order."
    ),
    results=("neurons",),
    judge=judge_neurons,
    draw=defer(f"{__package__}.draw", "draw_neurons"),
)

CLAIMS: tuple[Claim, ...] = (AA7,)
