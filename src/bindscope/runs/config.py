"""Everything that determines a run, as one value; and changing it by dotted keys."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args, get_origin

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.families import find_task_type
from bindscope.model.config import BaselineConfig, ModelConfig
from bindscope.schema import ByFamily, convert_value, from_mapping, to_mapping
from bindscope.tasks.task import Task
from bindscope.training.config import TrainingConfig


@dataclass(frozen=True)
class DatasetConfig:
    """How many examples a fixed dataset has; no example is in two of its parts."""

    train: int = 450_000
    validation: int = 1_000
    test: int = 49_000

    def __post_init__(self) -> None:
        for part in ("train", "validation", "test"):
            if getattr(self, part) < (1 if part == "train" else 0):
                raise BindscopeError(f"dataset.{part}: too few examples, got {getattr(self, part)}.")


@dataclass(frozen=True)
class StartConfig:
    """Begin with the weights of a pretrained GPT-2 (``runs/start.py``): a local Hugging Face directory."""

    directory: str = ""


@dataclass(frozen=True)
class RunConfig:
    """A task, a model, a way to train it and a seed: with the same version on the same machine, the same run.

    >>> six_lines = BindingTask(lines=6, max_depth=3)
    >>> shape = ModelConfig(len(six_lines.vocabulary), six_lines.n_positions, n_layers=2)
    >>> config = RunConfig("first", six_lines, shape, TrainingConfig(steps=500))
    """

    name: str
    task: Annotated[Task, ByFamily(find_task_type)]
    model: ModelConfig
    training: TrainingConfig = field(default_factory=TrainingConfig)
    seed: int = 0
    dataset: DatasetConfig | None = None
    baseline: BaselineConfig | None = None  # trained instead of the transformer, whose shape it takes
    start: StartConfig | None = None  # weights to begin with, instead of drawn ones

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.seed < 0:
            raise BindscopeError(f"seed: must not be negative, got {self.seed}.")
        _check_dataset(self)
        _check_model_fits(self.model, self.task)
        if self.training.trained == "last" and (self.model.tied or self.baseline is not None):
            raise BindscopeError("training.trained: 'last' needs a transformer with an unembedding of its own.")
        _check_start(self)
        if self.training.loss == "all":
            _check_every_token_can_be_asked(self.model, self.task)

    @property
    def n_examples(self) -> int | None:
        """How many examples a fixed training set has; None for an endless stream."""
        if self.training.data == "stream":
            return None
        return self.task.count_fixed((self.dataset or DatasetConfig()).train)

    @property
    def total_steps(self) -> int:
        """What the epochs over a fixed training set come to, where they are given; else ``training.steps``."""
        if self.n_examples is None or self.training.epochs is None:
            return self.training.steps
        return self.training.epochs * (self.n_examples // self.training.batch_size)

    @property
    def seeds(self) -> dict[str, int]:
        """One seed per purpose, so that no two of them draw the same numbers."""
        return {purpose: derive_seed(self.seed, purpose) for purpose in ("model", "data", "dropout", "evaluation")}


def check_name(name: str) -> None:
    """Refuse a name that cannot be that of a run's directory."""
    if not name or name != name.strip() or "/" in name or name.startswith("."):
        raise BindscopeError(f"name: {name!r} cannot name a directory; use letters, digits and dashes.")


def config_to_mapping(config: RunConfig) -> dict[str, Any]:
    """Plain values, ready for JSON or TOML."""
    return typing.cast(dict[str, Any], to_mapping(config))


def config_from_mapping(mapping: Any, where: str = "config") -> RunConfig:
    """The inverse of ``config_to_mapping``; anything unknown or of the wrong type is refused with its location in the mapping."""
    return from_mapping(RunConfig, mapping, where)


def derive_seed(seed: int, purpose: str) -> int:
    """A seed of its own for ``purpose``.

    >>> derive_seed(0, "model") != derive_seed(0, "data")
    True
    """
    return int.from_bytes(hashlib.sha256(f"{seed}/{purpose}".encode()).digest()[:6], "little")


def fit_model(model: ModelConfig, task: Task) -> ModelConfig:
    """The same model with the vocabulary, positions and outputs that the task needs."""
    d_vocab = len(task.vocabulary)
    d_out = None if task.d_out == d_vocab else task.d_out
    return dataclasses.replace(model, d_vocab=d_vocab, n_positions=task.n_positions, d_out=d_out)


def override(config: RunConfig, changes: Mapping[str, Any]) -> RunConfig:
    """The config with some settings changed; text is read as the type the setting has.

    When the task changes, the model's vocabulary, positions and outputs follow unless they are given too. A number of
    steps takes the place of epochs.

    >>> config = bindscope.preset("binding-tiny").config
    >>> override(config, {"training.optimizer.lr": "3e-4", "task.lines": 8, "training.clip": "none"})
    """
    mapping = config_to_mapping(config)
    for key, value in changes.items():
        hint = _find_setting(config, key)
        parsed = _parse_text(hint, value, key) if isinstance(value, str) else value
        _set_in(mapping, key.split("."), to_mapping(convert_value(hint, parsed, key)))
    if "training.steps" in changes and "training.epochs" not in changes:
        mapping["training"]["epochs"] = None
    touches_task = any(key.split(".")[0] == "task" for key in changes)
    sizes = {"model", "model.d_vocab", "model.n_positions", "model.d_out"}
    if touches_task and not sizes & changes.keys():
        task = convert_value(_hints(RunConfig)["task"], mapping["task"], "task")
        model = from_mapping(ModelConfig, mapping["model"], "model")
        mapping["model"] = to_mapping(fit_model(model, task))
    return config_from_mapping(mapping)


def list_settings(config: Any, prefix: str = "") -> Iterator[str]:
    """Every dotted key that ``override`` takes for this config."""
    for item in dataclasses.fields(config):
        value = getattr(config, item.name)
        if value is None:
            value = _default_of(_hints(type(config))[item.name])
        if dataclasses.is_dataclass(value):
            yield from list_settings(value, f"{prefix}{item.name}.")
        else:
            yield f"{prefix}{item.name}"


def _find_setting(config: RunConfig, key: str) -> Any:
    """The type of the setting that a dotted key names."""
    value: Any = config
    hint: Any = None
    for part in key.split("."):
        hints = _hints(type(value)) if dataclasses.is_dataclass(value) else {}
        if part not in hints:
            raise BindscopeError(f"unknown setting '{key}'.{suggest_nearest(key, list_settings(config))}")
        hint = hints[part]
        value = getattr(value, part)
        if value is None:
            value = _default_of(hint)
    return hint


def _hints(cls: type) -> dict[str, Any]:
    names = {item.name for item in dataclasses.fields(cls) if item.init}
    return {name: hint for name, hint in typing.get_type_hints(cls, include_extras=True).items() if name in names}


def _default_of(hint: Any) -> Any:
    """A default value of the dataclass in an optional setting, whose own settings can then be named."""
    for choice in get_args(hint):
        if dataclasses.is_dataclass(choice):
            return choice()  # type: ignore[operator]
    return None


def _set_in(mapping: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        if mapping[part] is None:
            mapping[part] = {}
        mapping = mapping[part]
    mapping[path[-1]] = value


def _parse_text(hint: Any, text: str, key: str) -> Any:
    """Text from a command line as the value a setting of this type takes."""
    choices = get_args(hint) if get_origin(hint) in (types.UnionType, typing.Union) else (hint,)
    if get_origin(hint) is Annotated and text.lstrip().startswith("{"):
        return _parse_table(text, key)
    if type(None) in choices and text.lower() in ("none", "null", ""):
        return None
    for choice in choices:
        if choice is bool and text.lower() in ("true", "false", "yes", "no", "on", "off"):
            return text.lower() in ("true", "yes", "on")
        if choice is int or choice is float:
            try:
                return _parse_number(choice, text, key)
            except BindscopeError:
                if str in choices:
                    return text
                raise
        if get_origin(choice) is tuple:
            items = [item for item in text.strip("()[] ").split(",") if item.strip()]
            inner = get_args(choice)[0]
            return [_parse_text(inner, item.strip(), key) for item in items]
        if dataclasses.is_dataclass(choice) and text.lstrip().startswith("{"):
            return _parse_table(text, key)
    return text


def _parse_number(kind: type, text: str, key: str) -> int | float:
    try:
        number = float(text.replace("_", ""))
    except ValueError:
        raise BindscopeError(f"{key}: expected a number, got {text!r}.") from None
    if kind is int:
        if not number.is_integer():
            raise BindscopeError(f"{key}: expected a whole number, got {text!r}.")
        return int(number)
    return number


def _parse_table(text: str, key: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise BindscopeError(f"{key}: {text!r} is not valid JSON.") from None


def _check_dataset(config: RunConfig) -> None:
    config.task.check_data(fixed=config.training.data == "fixed", sized=config.dataset is not None)
    if config.n_examples is not None and config.n_examples < config.training.batch_size:
        raise BindscopeError(
            f"training.batch_size: the {config.n_examples} training examples do not fill one batch of "
            f"{config.training.batch_size}."
        )


def _check_model_fits(model: ModelConfig, task: Task) -> None:
    needs = {"d_vocab": (model.d_vocab, len(task.vocabulary)), "outputs (d_out)": (model.outputs, task.d_out)}
    for name, (given, needed) in needs.items():
        if given != needed:
            raise BindscopeError(f"model.{name}: the {task.family} task needs {needed}, got {given}.")
    if model.n_positions < task.n_positions:
        raise BindscopeError(
            f"model.n_positions: the {task.family} task needs at least {task.n_positions}, got {model.n_positions}."
        )


def _check_start(config: RunConfig) -> None:
    if config.start is None:
        return
    if not config.start.directory:
        raise BindscopeError("start.directory: name the directory of a GPT-2, with config.json and model.safetensors.")
    if config.baseline is not None or config.model.identity_qk or config.model.identity_vo:
        raise BindscopeError(
            "start.directory: a run starts from a GPT-2 as a plain transformer, without baseline or identity."
        )


def _check_every_token_can_be_asked(model: ModelConfig, task: Task) -> None:
    if task.target_kind != "token":
        raise BindscopeError("training.loss: 'all' needs tokens as answers, and this task's answers are numbers.")
    if not model.causal:
        raise BindscopeError("training.loss: 'all' asks for the next token, which a bidirectional model already sees.")
    if model.outputs < model.d_vocab:
        raise BindscopeError(
            f"training.loss: 'all' needs an output per token ({model.d_vocab}), the model has {model.outputs}."
        )
