"""Identity scaling on sums: parts are taken out of the models as by hand, and the conclusion tells what was measured."""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bindscope.measures.evaluation import read_answers
from bindscope.model.transformer import Transformer
from bindscope.studies.assign_add.experiments import measure as identity_sums
from bindscope.studies.assign_add.experiments.conclude import conclude_identity_sums
from bindscope.studies.assign_add.experiments.measure import measure_identity_sums
from bindscope.studies.framework.experiments import find_experiment, plan_cells
from studies.test_assign_add_beyond import ALL, made_dataset

N_SUMS = 60


@pytest.fixture(scope="module")
def cells():
    """One cell of each variant with an untrained model whose identity-scaling terms are strong."""
    torch.manual_seed(0)
    runs = {}
    for cell in plan_cells(find_experiment("identity-sums"), [0]):
        model = Transformer(cell.config.model)
        for name, weight in model.named_parameters():
            if "identity" in name:
                torch.nn.init.normal_(weight)
        runs[cell] = SimpleNamespace(config=cell.config, checkpoint=lambda _, model=model: model)
    return runs


@pytest.fixture(scope="module")
def measured(cells):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identity_sums, "N_SUMS", N_SUMS)
        return measure_identity_sums(cells)


def right_fraction(model: Transformer, cell) -> float:
    splits = cell.config.task.sample_evaluation(np.random.default_rng(identity_sums.SEED), N_SUMS)
    right = [read_answers(model, batch).argmax(1) == batch.targets[:, 0] for batch in splits.values()]
    return float(np.mean([fraction.mean() for fraction in right]))


def test_a_part_is_taken_out_as_a_copy_with_that_weight_at_zero_shows(cells, measured):
    for cell, run in cells.items():
        if cell.variant == "off":
            continue
        row = measured.sel(variant=cell.variant, seed=0)
        assert float(row.whole_accuracy) == right_fraction(run.checkpoint("last"), cell)
        for part, name in (("identity scores", "identity_a"), ("identity outputs", "identity_b")):
            for layer in range(2):
                found = float(row.accuracy_without.sel(part=part, layer=layer))
                cut = deepcopy(run.checkpoint("last"))
                weight = getattr(cut.layers[layer].attention, name)
                if weight is None:
                    assert np.isnan(found)
                    continue
                torch.nn.init.zeros_(weight)
                assert found == right_fraction(cut, cell)


def test_taking_parts_out_changes_answers(measured):
    """Else the comparison with a copy could not fail."""
    changed = abs(measured.accuracy_without - measured.whole_accuracy).sel(variant="both", seed=0)
    assert (changed.sel(part="identity outputs") > 0).all()


def test_runs_without_identity_paths_are_not_asked(measured):
    assert "off" not in measured.variant.values


def test_the_conclusion_tells_what_the_runs_with_both_paths_owe_to_each_part(measured):
    dataset = made_dataset({("off", 0): ALL, ("both", 0): ALL})
    assert "runs with both paths" not in conclude_identity_sums(dataset)
    told = measured.sel(variant=["both"]).copy(deep=True)
    told["whole_accuracy"][:] = 0.981
    told["accuracy_without"].loc[{"part": "identity outputs", "layer": 0}] = 0.421
    told["scaled_a"][:] = [[[[0.5], [-0.5]]]]
    text = conclude_identity_sums(dataset.merge(told, join="left"))
    assert "In the 1 run with both paths 98.1 % of all sums come out right" in text
    assert "identity outputs 42.1 %, " in text
    assert "1 of 2 heads have a positive a" in text
