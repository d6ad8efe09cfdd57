"""The tables of ``bindscope behaviour``, each from its labelled array."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bindscope.cli.table import format_table

if TYPE_CHECKING:
    import xarray as xr

NOTHING = "–"


def format_behaviour(dataset: xr.Dataset, by: str) -> str:
    """Accuracy with its interval, where predictions come from, and which rules they follow, group by group."""
    name, values = by.replace("_", " "), [str(value) for value in dataset[by].values]
    accuracy = [
        [value, *_with_interval(dataset, "accuracy", {by: index}), str(int(dataset.n[index]))]
        for index, value in enumerate(values)
    ]
    sources = _source_fractions(dataset)
    from_where = [[value, *(_fraction(part[index]) for part in sources.values())] for index, value in enumerate(values)]
    rules = [
        [value, *(" ".join(_with_interval(dataset, "followed_where_wrong", {by: index, "rule": rule}))
                  for rule in range(dataset.sizes["rule"]))]
        for index, value in enumerate(values)
    ]  # fmt: skip
    rule_names = [str(rule).replace("_", " ") for rule in dataset.rule.values]
    parts = [
        f"accuracy by {name}: {dataset[by].attrs['description']}",
        format_table([name, "accuracy", "interval", "n"], accuracy, numbers=[0, 1, 3]),
        "the line whose constant was given",
        format_table([name, *sources], from_where, numbers=range(len(sources) + 1)),
        "how often a rule is followed where it is wrong",
        format_table([name, *rule_names], rules, numbers=[0]),
    ]
    return _join(parts)


def format_steps(dataset: xr.Dataset) -> str:
    """Accuracy and the fraction of line 1's constants, step by step."""
    rows = [
        [f"{int(step):,}", *_with_interval(dataset, "accuracy", {"step": index}),
         *_with_interval(dataset, "line_1", {"step": index})]
        for index, step in enumerate(dataset.step.values)
    ]  # fmt: skip
    head = ["step", "accuracy", "interval", "says line 1", "interval"]
    return format_table(head, rows, numbers=[0, 1, 3])


def format_confusion(dataset: xr.Dataset) -> str:
    """Fractions of predictions for each answer."""
    names = [str(name) for name in dataset.prediction.values]
    rows = [
        [str(answer), *(_fraction(value, 3) for value in dataset.fraction.sel(answer=answer).values),
         str(int(dataset["count"].sel(answer=answer).sum()))]
        for answer in dataset.answer.values
    ]  # fmt: skip
    table = format_table(["answer", *names, "n"], rows, numbers=range(len(names) + 2))
    return _join(["the fraction of each prediction, by answer", table])


def format_importance(dataset: xr.Dataset) -> str:
    """What the outcome depends on, the most important attribute first; or why that cannot be said."""
    head = f"what decides whether {dataset.attrs['target']} ({float(dataset.fraction):.4f} of {dataset.attrs['n']:,})"
    if dataset.attrs["note"]:
        return f"{head}\n{dataset.attrs['note']}."
    order = dataset.importance.values.argsort()[::-1]
    rows = [
        [str(dataset.attribute.values[index]),
         *_with_interval(dataset, "importance", {"attribute": index}),
         *_with_interval(dataset, "alone", {"attribute": index})]
        for index in order
    ]  # fmt: skip
    fit = [
        ["fitted model", f"{float(dataset.log_loss):.4f}", f"{float(dataset.auc):.3f}"],
        ["base rate", f"{float(dataset.base_log_loss):.4f}", "0.500"],
        ["shuffled outcomes", f"{float(dataset.shuffled_log_loss):.4f}", f"{float(dataset.shuffled_auc):.3f}"],
    ]
    return _join(
        [
            head,
            format_table(["attribute", "importance", "interval", "alone", "interval"], rows, numbers=[1, 3]),
            "log-loss in nats on examples not fitted: added when the attribute is shuffled; saved by it alone",
            format_table(["", "log-loss", "area under curve"], fit, numbers=[1, 2]),
        ]
    )


def format_grid(dataset: xr.Dataset) -> str:
    """Accuracy, and the line-1 heuristic where it misleads, over program lengths and depths."""
    trained = dataset.attrs
    lines = f"{trained['trained_min_lines']} to {trained['trained_lines']}"
    if trained["trained_min_lines"] == trained["trained_lines"]:
        lines = str(trained["trained_lines"])
    half = float((dataset.accuracy_high - dataset.accuracy_low).max()) / 2
    n = f"{int(dataset.n.max())} programs a cell; 95 % intervals reach at most {half:.3f} to either side"
    return _join(
        [
            f"accuracy by lines and depth (trained on {lines} lines, depth up to {trained['trained_max_depth']})",
            _grid_table(dataset, "accuracy"),
            "accuracy where line 1 is wrong",
            _grid_table(dataset, "accuracy_where_wrong"),
            "the fraction of line 1's constant where it is wrong",
            _grid_table(dataset, "line_1_where_wrong"),
            f"{n}.\nMissing: {trained['missing']}.",
        ]
    )


def _grid_table(dataset: xr.Dataset, name: str) -> str:
    depths = [f"depth {depth}" for depth in dataset.depth.values]
    rows = [
        [str(lines), *(_fraction(v, 2) for v in dataset[name].sel(lines=lines).values)]
        for lines in dataset.lines.values
    ]
    return format_table(["lines", *depths], rows, numbers=range(len(depths) + 1))


def _source_fractions(dataset: xr.Dataset) -> dict[str, list[float]]:
    """Fractions by group from line 1, line 2, any later line and no line."""
    fractions = dataset.prediction_source.values  # [group, source]
    parts = {"line 1": fractions[:, 0], "line 2": fractions[:, 1:-1][:, :1].sum(1)}
    parts |= {"later line": fractions[:, 2:-1].sum(1), "no line": fractions[:, -1]}
    return {name: list(values) for name, values in parts.items()}


def _with_interval(dataset: xr.Dataset, name: str, cell: dict[str, int]) -> list[str]:
    """A number and its interval, as two cells."""
    value, low, high = (float(dataset[f"{name}{end}"].isel(cell)) for end in ("", "_low", "_high"))
    if value != value:
        return [NOTHING, NOTHING]
    between = " to " if low < 0 else "–"  # a dash beside a minus cannot be read
    return [f"{value:.4f}", f"{low:.4f}{between}{high:.4f}"]


def _fraction(value: float, digits: int = 4) -> str:
    return NOTHING if value != value else f"{value:.{digits}f}"


def _join(parts: list[str]) -> str:
    return "\n\n".join(f"{title}\n{table}" for title, table in zip(parts[::2], [*parts[1::2], ""])).rstrip()
