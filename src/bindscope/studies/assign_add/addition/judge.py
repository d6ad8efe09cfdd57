"""AA5 and AA6: what the last MLP gets whatever form the sum has, and that it is what adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr

from bindscope.studies.assign_add.judging import highest_of, lowest_of
from bindscope.studies.assign_add.published import REPORTED
from bindscope.studies.assign_add.seeds import SEEDS, state_seeds
from bindscope.studies.framework.claims import (
    Claim,
    Condition,
    Finding,
    Fixed,
    Quantity,
    conclude,
    not_testable,
    reaches,
    stays_within,
)
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import cell_of, difference_of

KNOWN = 0.9  # accuracy below which a circuit is not yet to be looked for
ALIKE = 0.9  # mean cosine that counts as close to 1
APART = 0.3  # how much lower the cosine with other numbers must be
MOST_OTHERWISE = 0.5  # how much of that difference a fresh model may show
ADDS = 0.95  # of all pairs
READ, UNREAD = 0.9, 0.1  # of tested sequences: what a probe must reach after the MLP, and may reach before it
COUNTED = {0: "no variable", 1: "one variable", 2: "two variables"}


def judge_equivalence(results: Mapping[str, xr.Dataset]) -> Finding:
    """AA5: cosines are near 1 where the numbers match, much lower where they do not."""
    dataset = results["equivalence"]
    last, n = dataset.isel(step=-1), int(dataset.attrs["n"])
    accuracy = float(last.accuracy.min())
    if accuracy < KNOWN:
        return not_testable(f"sums as in training are answered correctly in {accuracy:.0%} of cases, below {KNOWN:.0%}")
    found, control, conditions, controls = [], [], [], []
    for kind, words in (("sum", "OV images"), ("form", "number form")):
        cells = _cells(last, kind)
        counts = cells[f"{kind}_count_of"].values.tolist()
        others = [str(pairing) for pairing in cells.pairing.values if pairing != "matched"]
        matched = [_cosine(f"{words}, {COUNTED[count]}", cells, kind, n, count, "matched") for count in counts]
        other = [
            _cosine(f"{words}, {COUNTED[count]}, {pairing}", cells, kind, n, count, pairing)
            for count in counts
            for pairing in others
        ]
        lowest, highest = lowest_of(matched), highest_of(other)
        said = f"{words}: mean cosine at least {lowest.value:.3f} matched"
        conditions.append(Condition(reaches(lowest, ALIKE), said, said))
        said = f"{words}: at most {highest.value:.3f} with other numbers"
        apart = difference_of(f"{words}: lowest matched less highest other", lowest, highest, "1")
        conditions.append(Condition(reaches(apart, APART), said, f"{said}, too near"))
        gap = _gap(words, last, kind, "", n)
        fresh = _gap(f"{words}, fresh model: matched less others", dataset, kind, "untrained_", n)
        said = f"{words}: the difference is {gap.value:.2f}, in a fresh model {fresh.value:.2f}"
        controls.append(Condition(stays_within(fresh, MOST_OTHERWISE * gap.value), said, f"{said}, too much"))
        found += matched
        control += [*other, fresh]
    finding = conclude(tuple(conditions), tuple(controls), tuple(found), tuple(control))
    return state_seeds("AA5", finding, results)


def judge_addition(results: Mapping[str, xr.Dataset]) -> Finding:
    """AA6: the circuit alone adds, and the answer can be read after the last MLP only."""
    dataset, probes = results["addition"], results["answer_probes"]
    model_right, last = float(probes.model_accuracy), dataset.isel(step=-1)
    if model_right < KNOWN:
        return not_testable(f"the model answers {model_right:.0%} of the tested sums correctly, below {KNOWN:.0%}")
    alone = {
        group: cell_of(f"circuit alone, {group} pairs", last, "accuracy", int(last.n.sel(group=group)), group=group)
        for group in ("all", "trained", "swap seen", "both held out")
    }
    n_pairs, n_test = alone["all"].n, int(probes.attrs["n_test"])
    direct = cell_of("without the MLP, all pairs", last, "direct_accuracy", n_pairs)
    fresh = cell_of("untrained circuit, all pairs", dataset, "untrained_accuracy", n_pairs, group="all")

    def probe(condition: str, site: str) -> Quantity:
        label = f"probe {site}" if condition == "trained" else f"probe {site}, {condition}"
        return cell_of(label, probes, "accuracy", n_test, condition=condition, site=site)

    before, after = (probe("trained", f"{word} the MLP") for word in ("before", "after"))
    others = [probe(condition, "after the MLP") for condition in ("shuffled labels", "untrained model")]
    adds = f"the circuit alone adds {alone['all'].value:.1%} of all pairs"
    criterion = (
        Condition(reaches(alone["all"], ADDS), adds, adds),
        Condition(
            stays_within(before, UNREAD),
            "no probe reads the answer before the MLP",
            f"the answer is read before the MLP ({before.number})",
        ),
        Condition(
            reaches(after, READ),
            "a linear probe reads it after",
            f"a linear probe does not read it after the MLP ({after.number})",
        ),
    )
    control = tuple(
        Condition(
            stays_within(other, UNREAD),
            f"{other.label}: {other.value:.1%}",
            f"{other.label}: {other.value:.1%}, too many",
        )
        for other in (direct, fresh, *others)
    )
    finding = conclude(criterion, control, (*alone.values(), before, after), (direct, fresh, *others))
    return state_seeds("AA6", finding, results)


def _cells(dataset: xr.Dataset, kind: str, prefix: str = "") -> xr.Dataset:
    """One comparison's cosines over (KIND_count_of, pairing), whatever its own dimensions are called."""
    chosen = dataset.sel(vector="attention") if kind == "sum" else dataset
    count = "n_variables" if kind == "sum" else "form_variables"
    names = [f"{prefix}{kind}_cosine{end}" for end in ("", "_low", "_high")]
    return chosen[names].rename({count: f"{kind}_count_of", f"{kind}_pairing": "pairing"})


def _cosine(label: str, cells: xr.Dataset, kind: str, n: int, count: int, pairing: str) -> Quantity:
    where: dict[str, Any] = {f"{kind}_count_of": count, "pairing": pairing}
    return cell_of(label, cells, f"{kind}_cosine", n, "1", **where)


def _gap(label: str, dataset: xr.Dataset, kind: str, prefix: str, n: int) -> Quantity:
    """Matched less the nearest of the others, the smallest over numbers of variables."""
    cells = _cells(dataset, kind, prefix)
    value, low, high = (cells[f"{prefix}{kind}_cosine{end}"] for end in ("", "_low", "_high"))
    others = [pairing for pairing in value.pairing.values if pairing != "matched"]

    def less(matched: xr.DataArray, other: xr.DataArray) -> float:
        smallest = (matched.sel(pairing="matched", drop=True) - other.sel(pairing=others).max("pairing")).min()
        return round(float(smallest), 4) + 0.0  # never −0

    return Quantity(label, less(value, value), less(low, high), less(high, low), n, "1")


_FIXED = Fixed("2026-11-16", "the released run; judged on intervals since 2026-11-17, with assign-add seen")

AA5 = Claim(
    id="AA5",
    title="One vector, whatever the form",
    statement=(
        "What reaches the last MLP at the equals sign is the sum of the two numbers' images under the layer-2 OV map, and "
        "it is the same whether the numbers are written out or stand behind variables."
    ),
    paper=REPORTED["AA5"],
    measure=(
        "Mean cosine at = between what layer-2 attention adds and OV2 e_a + OV2 e_b, with the sequence's own numbers, with "
        "the second or both of another sequence; and between the residual stream before the MLP of a sum with variables and of the "
        "same sum written out in numbers behind the same assignments, with another sequence's numbers there, or with "
        "another sequence. Sums as in training with none, one and two variables."
    ),
    criterion=(
        f"Matched cosines are at least {ALIKE} on average for every number of variables, and at least {APART} above any "
        "with other numbers."
    ),
    control_description=(
        "The same with other numbers, one of them or both; and in a fresh model of the same shape matched and other "
        f"cosines differ at most {MOST_OTHERWISE:.0%} as much."
    ),
    results=("equivalence", SEEDS),
    judge=judge_equivalence,
    draw=defer(f"{__package__}.draw", "draw_equivalence"),
    fixed=_FIXED,
)

AA6 = Claim(
    id="AA6",
    title="The last MLP adds",
    statement=(
        "The layer-2 OV map, the MLP and the unembedding alone compute the sum of any two numbers; linear probes cannot "
        "read the answer before that MLP and can after it."
    ),
    paper=REPORTED["AA6"],
    measure=(
        "The largest of W_U · MLP2(OV2 e_a + OV2 e_b), with nothing else in the residual stream, over all pairs; ridge probes for "
        "the answer on the residual stream at = before and after the last MLP, fitted on some pairs and tested on others, a pair "
        "and its swap always on the same side."
    ),
    criterion=(
        f"The circuit alone adds at least {ADDS:.0%} of all pairs, and probes read at most {UNREAD:.0%} of the answers "
        f"before the MLP and at least {READ:.0%} after it."
    ),
    control_description=(
        f"At most {UNREAD:.0%} for the circuit without its MLP, for a fresh model's circuit, and for probes after the MLP "
        "fitted to shuffled answers or to a fresh model's stream."
    ),
    results=("addition", "answer_probes", SEEDS),
    judge=judge_addition,
    draw=defer(f"{__package__}.draw", "draw_addition"),
    fixed=_FIXED,
)

CLAIMS = (AA5, AA6)
