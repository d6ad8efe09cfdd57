"""``bindscope presets``: what can be trained."""

from __future__ import annotations

import json as json_format
from typing import TYPE_CHECKING

from bindscope.cli.options import Device, Flag
from bindscope.cli.table import format_count, format_duration, format_table
from bindscope.errors import BindscopeError

if TYPE_CHECKING:
    from bindscope.studies.framework.preset import Preset

HEADINGS = ("preset", "parameters", "layers", "steps", "expected time", "memory", "what it is")


def show_presets(
    name: str | None = None,
    /,
    *,
    json: Flag = False,
    measure: Flag = False,
    device: Device = "auto",
) -> None:
    """List the presets, or print all settings of one.

    Examples:
        bindscope presets
        bindscope presets binding-tiny
        bindscope presets binding-paper --json
        bindscope presets binding-tiny --measure
        bindscope presets binding-tiny > mine.toml      # change it, then
        bindscope train mine.toml

    Parameters
    ----------
    name
        Print every setting of this preset, or of this TOML file, as TOML that 'bindscope train' takes.
    json
        Print JSON instead.
    measure
        Train the named preset for a few steps, keep nothing, and say what it takes on this machine.
    device
        Where --measure trains; auto takes a GPU when there is one.
    """
    from bindscope.runs.config import config_to_mapping
    from bindscope.studies.framework.presets import PRESETS
    from bindscope.studies.framework.settings_file import open_preset, preset_to_toml

    if measure:
        print_cost(name, device)
        return
    chosen = dict(PRESETS) if name is None else {name: open_preset(name)}
    if json:
        settings = {each: config_to_mapping(preset.config) for each, preset in chosen.items()}
        print(json_format.dumps(settings if name is None else settings[name], indent=2))
    elif name is None:
        print(f"{format_presets(chosen)}\n\n{describe_curves()}")
    else:
        print(preset_to_toml(chosen[name]), end="")


def print_cost(name: str | None, device: Device = "auto") -> None:
    """Measure one preset here."""
    from bindscope.cli.cost import measure_cost
    from bindscope.families import family_of
    from bindscope.runs.config import override
    from bindscope.studies.framework.settings_file import open_preset

    if name is None:
        raise BindscopeError("--measure: name the preset to measure, as in 'bindscope presets binding-tiny --measure'.")
    config = open_preset(name).config
    config = override(config, family_of(config.task).settings_to_measure)
    cost = measure_cost(config, device=device)
    print(
        f"{name} here: {cost.seconds_per_step:.4f} s a step, {cost.megabytes:,} MB, "
        f"{format_duration(cost.seconds)} for all {cost.steps:,} steps"
    )


def format_presets(presets: dict[str, Preset]) -> str:
    """The list of presets."""
    rows = [describe_preset(preset) for preset in presets.values()]
    return format_table(HEADINGS, rows, numbers=[1, 2, 3])


def describe_curves() -> str:
    """What the experiments of study 3 take, one run after another: they train its presets at many n."""
    from bindscope.studies.symbols.experiments.define import EXPERIMENTS

    seconds = {each.name: each.usual_seconds for each in EXPERIMENTS}
    times = ", ".join(f"{name} {format_duration(taken)}" for name, taken in seconds.items())
    return (
        "The templates presets are trained at many n by experiments, smaller and with early ends, on one core in: "
        f"{times} ({format_duration(sum(seconds.values()))} in all). 'bindscope experiment' lists them."
    )


def describe_preset(preset: Preset) -> list[str]:
    """Its name, size, expected time and memory, and what it is."""
    from bindscope.studies.framework.costs import MEASURED

    model, cost = preset.config.model, MEASURED.get(preset.name)
    return [
        preset.name,
        format_count(model.n_parameters),
        str(model.n_layers),
        f"{preset.config.total_steps:,}",
        format_duration(cost.seconds) if cost else "–",
        f"{cost.megabytes:,} MB" if cost else "–",
        preset.summary,
    ]
