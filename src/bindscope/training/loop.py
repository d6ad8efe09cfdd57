"""The training loop. It knows no disk: what must last goes to a keeper, what is worth watching to an observer.

Step n is the model after n updates. Update n takes batch n of the loader and a dropout seed made from (seed, n, rank),
so a run continued from a saved state is the run that was never interrupted, bit for bit on the same CPU and threads.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from bindscope.errors import BindscopeError
from bindscope.model.lean import shorten
from bindscope.tasks.loading import Loader, StagedLoader
from bindscope.tasks.task import Batch
from bindscope.training.config import TrainingConfig
from bindscope.training.distributed import Processes
from bindscope.training.frozen import Frozen
from bindscope.training.loss import answer_accuracy, batch_loss
from bindscope.training.optimizer import Optimizer, build_optimizer
from bindscope.training.plan import checkpoint_steps
from bindscope.training.progress import Observer, Progress
from bindscope.training.schedule import last_step, learning_rate_factor
from bindscope.training.state import Keeper, MemoryKeeper, Tally, TrainingState

Evaluate = Callable[[Any], Mapping[str, Any]]
SECONDS_BETWEEN_GLANCES = 0.25
STEPS_BETWEEN_PROBES = 10  # of staged data: how often the present stage is tried
EVALUATIONS_RUNNING = 2  # how many must reach the target before training stops early


class Diverged(BindscopeError):
    """A loss or gradient is no number any more."""


def train(
    model: nn.Module,
    loader: Loader,
    config: TrainingConfig,
    *,
    evaluate: Evaluate,
    seed: int = 0,
    total_steps: int | None = None,
    keeper: Keeper | None = None,
    observer: Observer | None = None,
    state: TrainingState | None = None,
    device: torch.device | None = None,
    processes: Processes | None = None,
    frozen: Mapping[str, Tensor] | None = None,
) -> Tally:
    """Train ``model`` in place from its present weights, or from ``state``, to the last step or an early stop.

    ``total_steps`` replaces ``config.steps`` where it is derived (epochs of a fixed dataset). ``seed`` is that of
    dropout. With several processes only the first one evaluates, keeps and reports. ``frozen`` marks the entries of
    parameters, by name, that stay as they are.

    >>> train(model, StreamLoader(task, 0, 64), TrainingConfig(steps=1000), evaluate=build_evaluator(task, 500, 1))
    """
    training = _Training(
        model=model,
        loader=loader,
        config=config,
        evaluate=evaluate,
        seed=seed,
        total_steps=total_steps or config.steps,
        keeper=keeper or MemoryKeeper(),
        observer=observer,
        device=device or torch.device("cpu"),
        processes=processes or Processes(),
        frozen_marks=frozen or {},
    )
    training.start(state)
    while not training.tally.finished:
        training.update()
        training.advance_stage()
        training.settle_step()
    return training.tally


@dataclass(eq=False)
class _Training:
    model: nn.Module
    loader: Loader
    config: TrainingConfig
    evaluate: Evaluate
    seed: int
    total_steps: int
    keeper: Keeper
    observer: Observer | None
    device: torch.device
    processes: Processes
    frozen_marks: Mapping[str, Tensor] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)

    def start(self, state: TrainingState | None) -> None:
        self.kept_steps = frozenset(checkpoint_steps(self.config.checkpoints, self.total_steps))
        self.model.to(self.device)
        self.optimizer: Optimizer = build_optimizer(self.model, self.config.optimizer)
        if state is not None:
            self.model.load_state_dict(state.weights)
            self.optimizer.load_state_dict(state.optimizer)
            self.tally = state.tally
        self.processes.share_weights(self.model)
        self.shortened = shorten(self.model)
        self.parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.frozen = Frozen(self.model, self.frozen_marks)
        self.unread = _UnreadLosses()
        self.watch = _Watch(self.tally, self.config.batch_size)
        if state is None:
            self.settle_step()

    def update(self) -> None:
        step = self.tally.step
        self.model.train()
        self.optimizer.zero_grad()
        factor = learning_rate_factor(self.config.schedule, step, self.total_steps, self._last_stage_start())
        self.optimizer.scale_rates(factor)
        with self._seeded(step):
            loss = self._add_up_gradients(*self.processes.shard(self._next_batch()))
        self.processes.average_gradients(self.parameters)
        self.frozen.mask_gradients()
        norm = self._clip_gradients()
        self.optimizer.step()
        self.frozen.restore()
        self.unread.add(self.processes.mean(loss), norm)
        self.tally = replace(self.tally, step=step + 1)

    def _add_up_gradients(self, batch: Batch, fraction: float) -> Tensor:
        """The loss of a batch, its gradient left on the parameters: computed in parts, each counting as its rows do."""
        n_parts, losses = min(self.config.accumulate, len(batch)), []
        for index in range(n_parts):
            part = batch.shard(index, n_parts)
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bf16"):
                loss = batch_loss(self.shortened, part, self.config.loss) * (fraction * len(part) / len(batch))
            loss.backward()
            losses.append(loss.detach())
        return torch.stack(losses).sum()

    def advance_stage(self) -> None:
        """Of staged data: open the next stage once fresh examples of the present one are answered well enough."""
        loader, step, stage = self.loader, self.tally.step, len(self.tally.stage_starts)
        if not isinstance(loader, StagedLoader) or stage + 1 >= len(loader.stages) or step % STEPS_BETWEEN_PROBES:
            return
        with self.watch.paused():
            self.model.eval()
            accuracy = self.processes.share(lambda: answer_accuracy(self.model, loader.probe(step, stage)))
        if accuracy >= loader.pass_at:
            self.tally = replace(self.tally, stage_starts=(*self.tally.stage_starts, step))

    def _next_batch(self) -> Batch:
        if isinstance(self.loader, StagedLoader):
            return self.loader.batch(self.tally.step, len(self.tally.stage_starts))
        return self.loader.batch(self.tally.step)

    def _last_stage_start(self) -> int | None:
        """The step at which the last stage of staged data began; None before it, 0 where there are no stages."""
        n_stages = len(self.loader.stages) if isinstance(self.loader, StagedLoader) else 1
        starts = (0, *self.tally.stage_starts)
        return starts[-1] if len(starts) == n_stages else None

    def _stage(self) -> dict[str, Any]:
        """What an evaluation says of the stage that training has reached, where there are stages."""
        if not isinstance(self.loader, StagedLoader):
            return {}
        starts = self.tally.stage_starts
        return {"stage": {"number": len(starts) + 1, "name": self.loader.stages[len(starts)], "starts": list(starts)}}

    def settle_step(self) -> None:
        """After an update, or before the first one: evaluate, keep and report what is due."""
        step, config = self.tally.step, self.config
        end = last_step(config.schedule, self.total_steps, self._last_stage_start())
        is_last = step == end
        keeping = is_last or step in self.kept_steps
        evaluating = is_last or step % config.evaluate_every == 0 or (keeping and self._is_early(step))
        saving = is_last or step % config.save_every == 0
        if not (evaluating or keeping or saving or self.unread.is_full or self.watch.wants_glance):
            return
        self.tally = self.unread.read_into(self.tally)
        evaluation = self._evaluate() if evaluating else None
        finished = is_last or (evaluation is not None and self.tally.streak >= EVALUATIONS_RUNNING)
        self.tally = replace(self.tally, elapsed=self.watch.elapsed, finished=finished)
        progress = self.watch.glance(self.tally, end, self.optimizer.lr, evaluation)
        if evaluation is not None:
            self.tally = replace(self.tally, loss_sum=0.0, loss_count=0)
        if self.processes.is_first:
            self._hand_over(progress, keeping or finished, saving or finished)

    def _is_early(self, step: int) -> bool:
        return self.config.evaluate_early and step < self.config.evaluate_every

    def _hand_over(self, progress: Progress, keeping: bool, saving: bool) -> None:
        """The order matters: a state is kept only when everything up to it has been."""
        if keeping:
            self.keeper.keep_weights(progress.step, self.model)
        if progress.evaluation is not None:
            self.keeper.keep_evaluation(_record(progress, self.config.batch_size) | self._stage())
        if saving:
            weights = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
            self.keeper.keep_state(TrainingState(self.tally, weights, self.optimizer.state_dict()))
        if self.observer is not None:
            self.observer(progress)

    def _evaluate(self) -> Mapping[str, Any]:
        """The first process evaluates, all hear of it: whether training has arrived is decided by all alike."""
        with self.watch.paused(), torch.no_grad():
            self.model.eval()
            evaluation = self.processes.share(lambda: self.evaluate(self.model))
        if any(_stops(self.config)):
            arrived = _has_arrived(evaluation, self.tally.mean_loss, self.config)
            self.tally = replace(self.tally, streak=self.tally.streak + 1 if arrived else 0)
        return evaluation

    def _clip_gradients(self) -> Tensor:
        """The norm of the whole gradient, after scaling it down to ``clip`` if it is longer."""
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        norm = nn.utils.get_total_norm(gradients)
        if self.config.clip is not None:
            nn.utils.clip_grads_with_norm_(self.parameters, self.config.clip, norm)
        return norm

    @contextmanager
    def _seeded(self, step: int) -> Iterator[None]:
        """Dropout draws from torch's global generator: seed it for this update, and leave it as it was found."""
        devices = [self.device] if self.device.type == "cuda" else []
        digest = hashlib.sha256(f"{self.seed}/{step}/{self.processes.rank}".encode()).digest()
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(int.from_bytes(digest[:8], "little") >> 1)
            yield


class _UnreadLosses:
    """Losses of the latest updates, left on the device until somebody looks, so that a GPU is never waited for."""

    def __init__(self) -> None:
        self.losses: list[Tensor] = []
        self.norms: list[Tensor] = []

    def add(self, loss: Tensor, norm: Tensor) -> None:
        self.losses.append(loss)
        self.norms.append(norm)

    @property
    def is_full(self) -> bool:
        return len(self.losses) >= 256

    def read_into(self, tally: Tally) -> Tally:
        """Add them to the tally. A loss or gradient that is no number ends training, before anything is saved of it."""
        if not self.losses:
            return tally
        losses, norms = torch.stack(self.losses).tolist(), torch.stack(self.norms).tolist()
        first = tally.step - len(losses)  # finished updates before the first unread one
        self.losses.clear()
        self.norms.clear()
        total = tally.loss_sum
        for index, (loss, norm) in enumerate(zip(losses, norms)):
            if not (math.isfinite(loss) and math.isfinite(norm)):
                what = f"the loss is {loss}" if not math.isfinite(loss) else f"the norm of the gradient is {norm}"
                raise Diverged(
                    f"training diverged at step {first + index + 1}: {what}. What was saved before remains; train "
                    "again with a lower training.optimizer.lr, or a longer training.schedule.warmup_steps."
                )
            total += loss
        return replace(tally, loss_sum=total, loss_count=tally.loss_count + len(losses))


class _Watch:
    """Time spent, and the pace of training between two glances."""

    def __init__(self, tally: Tally, batch_size: int) -> None:
        self.batch_size = batch_size
        self.elapsed_before, self.step_before = tally.elapsed, tally.step
        self.start = self.last_time = time.perf_counter()
        self.last_step = tally.step
        self.seconds_paused = 0.0  # since the last glance

    @property
    def elapsed(self) -> float:
        return self.elapsed_before + time.perf_counter() - self.start

    @property
    def wants_glance(self) -> bool:
        return time.perf_counter() - self.last_time > SECONDS_BETWEEN_GLANCES

    @contextmanager
    def paused(self) -> Iterator[None]:
        before = time.perf_counter()
        yield
        self.seconds_paused += time.perf_counter() - before

    def glance(self, tally: Tally, total_steps: int, lr: float, evaluation: Mapping[str, Any] | None) -> Progress:
        now = time.perf_counter()
        seconds = max(now - self.last_time - self.seconds_paused, 1e-9)
        steps_here = tally.step - self.step_before
        progress = Progress(
            step=tally.step,
            total_steps=total_steps,
            loss=tally.mean_loss,
            lr=lr,
            examples_per_second=(tally.step - self.last_step) * self.batch_size / seconds,
            seconds_left=(now - self.start) / steps_here * (total_steps - tally.step) if steps_here else None,
            elapsed=tally.elapsed,
            evaluation=evaluation,
        )
        self.last_time, self.last_step, self.seconds_paused = now, tally.step, 0.0
        return progress


def _stops(config: TrainingConfig) -> tuple[bool, ...]:
    """Which of the ways to end early are in use."""
    return tuple(setting is not None for setting in (config.stop_at, config.stop_below, config.stop_fitted))


def _has_arrived(evaluation: Mapping[str, Any], training_loss: float | None, config: TrainingConfig) -> bool:
    """Whether any target that training may stop at has been reached at this evaluation."""
    if config.stop_at is not None and _all_reached(evaluation, config.stop_at):
        return True
    if config.stop_below is not None:
        if evaluation.get("watched_loss") is None:
            raise BindscopeError("training.stop_below: the evaluation of this task watches no loss; set it to none.")
        if evaluation["watched_loss"] <= config.stop_below:
            return True
    return config.stop_fitted is not None and training_loss is not None and training_loss <= config.stop_fitted


def _all_reached(evaluation: Mapping[str, Any], target: float) -> bool:
    """``watched`` is a list of accuracies, or a mapping from names to them."""
    watched = evaluation.get("watched")
    watched = list(watched.values()) if isinstance(watched, Mapping) else watched
    if not watched:
        raise BindscopeError("training.stop_at: the evaluation of this task watches no accuracy; set stop_at to none.")
    return all(value is not None and value >= target for value in watched)


def _record(progress: Progress, batch_size: int) -> dict[str, Any]:
    """One evaluation as it is saved: where training stood, then what the evaluation found."""
    where = {
        "step": progress.step,
        "loss": progress.loss,
        "lr": progress.lr,
        "examples": progress.step * batch_size,
        "elapsed": progress.elapsed,
    }
    return {**where, **(progress.evaluation or {})}
