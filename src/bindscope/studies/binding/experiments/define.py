"""The experiments of study 1, as data: what claims need beyond one run, and questions beyond the paper."""

from __future__ import annotations

from typing import Any

from bindscope.studies.binding.experiments import define_plateau
from bindscope.studies.framework.experiments import Experiment, Variant, defer

TINY: dict[str, Any] = {"training.evaluate_every": 50, "training.evaluation_size": 1_000}
IDENTITY: dict[str, Any] = {"model.identity_qk": True, "model.identity_vo": True, "model.identity_gain": 20.0}
NO_IDENTITY: dict[str, Any] = {"model.identity_qk": False, "model.identity_vo": False}
NO_RELAY: dict[str, Any] = {"model.init.relay_offset": None}
NO_OFFSETS: dict[str, Any] = {**NO_RELAY, "model.init.offset_bias": 0.0}
NO_MIMETIC: dict[str, Any] = {"model.init.mimetic_qk": 0.0, "model.init.mimetic_vo": 0.0}
NEUTRAL: dict[str, Any] = {
    **NO_OFFSETS, **NO_MIMETIC, "model.init.tied_start": 0.0, "model.rope_fraction": 1.0, "model.rope_base": 1e4,
}  # fmt: skip
LONG: dict[str, Any] = {
    "task.queries": 10, "task.max_depth": 6, "training.steps": 1_200, "training.stop_at": 0.99,
    "training.evaluation_size": 1_500,
}  # fmt: skip
LAPTOP: dict[str, Any] = {"training.stop_at": 0.99}
AS_DRAWN: dict[str, Any] = {"task.balance": "none"}


def _experiment(
    name: str,
    question: str,
    preset: str,
    variants: tuple[Variant, ...],
    found: str = "comparison",
    measure: str = "",
    **more: Any,
) -> Experiment:
    """Concluded by ``conclude_FOUND`` and drawn by ``draw_FOUND``; ``measure_MEASURE`` gives what the records do not hold."""
    return Experiment(
        name=name,
        question=question,
        preset=preset,
        variants=variants,
        conclude=defer(f"{__package__}.conclude", f"conclude_{found}"),
        draw=defer(f"{__package__}.draw", f"draw_{found}"),
        measure=defer(f"{__package__}.measure", f"measure_{measure}") if measure else None,
        **more,
    )


def _shipped(name: str, meaning: str) -> Variant:
    """The preset as the experiment on seeds trains it, of which seed 0 is shipped."""
    return Variant(name, meaning, borrowed=("seeds", "preset"), shipped="binding-laptop")


EXPERIMENTS: tuple[Experiment, ...] = (
    _experiment(
        "seeds",
        "Do seeds agree on the three phases, and on when each begins?",
        "binding-laptop",
        (Variant("preset", "the preset as it is; seed 0 is the shipped run", shipped="binding-laptop"),),
        seeds=6,
        changes=LAPTOP,
        minutes=7,
        limits="One preset, one task; runs stop once every depth is at 99 %.",
        found="seeds",
        measure="seed_paths",
    ),
    _experiment(
        "seeds-plain",
        "Do seeds agree when the model has no identity-scaling terms but the relay's start?",
        "binding-plain",
        (Variant("preset", "the preset as it is; seed 0 is the shipped run", shipped="binding-plain"),),
        seeds=6,
        changes=LAPTOP,
        minutes=4,
        limits="One preset, one task; runs stop once every depth is at 99 %.",
        found="seeds",
    ),
    _experiment(
        "seeds-neutral",
        "Do seeds agree when nothing of the mechanism is supplied?",
        "binding-neutral",
        (Variant("preset", "the preset as it is; seed 0 is the shipped run", shipped="binding-neutral"),),
        seeds=6,
        minutes=20,
        limits="One preset, one task; letters and lines are scheduled.",
        found="seeds",
    ),
    _experiment(
        "seeds-deep",
        "Do seeds agree with twelve layers of four heads, nothing supplied?",
        "binding-deep",
        (Variant("preset", "the preset as it is; seed 0 is the shipped run", shipped="binding-deep"),),
        seeds=3,
        minutes=55,
        limits="One preset, one task; letters and lines are scheduled.",
        found="seeds",
    ),
    define_plateau.EXPERIMENT,
    _experiment(
        "rungs",
        "How far towards the paper's training does a neutral start go?",
        "binding-neutral",
        (
            Variant("preset", "the preset as it is", borrowed=("seeds-neutral", "preset"), shipped="binding-neutral"),
            Variant(
                "branching",
                "scheduled chains may branch, any is extended alike, and shortcuts serve",
                {"task.curriculum.side_by_side": False, "task.curriculum.exponent": 0.0},
            ),
            Variant(
                "any-chain", "scheduled chains are extended alike, long or short", {"task.curriculum.exponent": 0.0}
            ),
            Variant(
                "whole-at-end",
                "every batch of the last stage is the whole task",
                {"task.curriculum.whole_at_end": True},
            ),
            Variant("all-tokens", "the loss is on every next token", {"training.loss": "all"}),
            Variant("dropout", "a tenth of the activations dropped", {"model.dropout": 0.1}),
            Variant("one-query", "one query a program, as many tokens", {"task.queries": 1, "training.batch_size": 26}),
            Variant("8-heads", "eight heads a layer", {"model.n_heads": 8}),
        ),
        seeds=1,
        minutes=25,
        limits="One seed a rung, each changed by itself; the learning rate was chosen for the preset.",
    ),
    _experiment(
        "held-out",
        "Does the model bind variables to constants that it never met together?",
        "binding-laptop",
        (Variant("held-out", "a tenth of the combinations never shown", {"task.held_out": 0.1}),),
        seeds=3,
        changes=LAPTOP,
        minutes=7,
        limits="Few seeds and one choice of held-out combinations; the variable and the constant are each met in many others.",
        found="held_out",
        measure="avoidance",
    ),
    _experiment(
        "fixed-length",
        "Does a model that was trained on 16 lines alone answer shorter and longer programs, and deeper chains?",
        "binding-plain",
        (Variant("16-lines", "every program has 16 lines", {"task.min_lines": None}),),
        seeds=3,
        changes=LAPTOP,
        minutes=10,
        limits="One preset; 100 programs of each length and depth, chains deeper than four from a grammar that makes them more often.",
        found="fixed_length",
        measure="length_grid",
    ),
    _experiment(
        "weighting",
        "Is the heuristic of answering from the first lines owed to the weight on deep chains?",
        "binding-laptop",
        (
            _shipped("cubic", "a line extends a chain with weight depth³: the shipped run, stopped later"),
            Variant("uniform", "every chain is as likely to be extended", {"task.exponent": 0.0}),
            Variant("cubic-as-drawn", "depth³, and any line is asked about, as deep as it is", AS_DRAWN),
            Variant("uniform-as-drawn", "every chain, and any line is asked about", {"task.exponent": 0.0, **AS_DRAWN}),
        ),
        seeds=1,
        changes=LAPTOP,
        minutes=13,
        limits="One seed of each. Where queries are not balanced over depths, neither are those of evaluations, so that accuracies are of another mix of depths there; phases ask for every depth.",
        found="weighting",
        measure="longest_chain",
    ),
    _experiment(
        "identity",
        "Is identity-scaled attention what lets a small model learn binding in minutes?",
        "binding-tiny",
        (
            Variant("recipe", "the preset, which has no identity-scaling terms"),
            Variant("recipe+identity", "the preset with identity-scaling terms in scores and outputs", IDENTITY),
            Variant("no-mimetic", "W_Q, W_K, W_V and W_O drawn apart", NO_MIMETIC),
            Variant("no-mimetic+identity", "the same with identity-scaling terms", {**NO_MIMETIC, **IDENTITY}),
            Variant("no-relay", "keys look for names where they stand", NO_RELAY),
            Variant("no-relay+identity", "the same with identity-scaling terms", {**NO_RELAY, **IDENTITY}),
            Variant("no-offsets", "no heads that start attending a few positions back, and so no relay", NO_OFFSETS),
            Variant("no-offsets+identity", "the same with identity-scaling terms", {**NO_OFFSETS, **IDENTITY}),
            Variant("neutral", "an ordinary start: none of the recipe's parts in the weights", NEUTRAL),
            Variant("neutral+identity", "the same with identity-scaling terms", {**NEUTRAL, **IDENTITY}),
            Variant(
                "no-mimetic+scores",
                "without mimetic weights, the identity-scaling term in the scores alone",
                {**NO_MIMETIC, **IDENTITY, "model.identity_vo": False},
            ),
            Variant(
                "no-mimetic+outputs",
                "without mimetic weights, the identity-scaling term in the outputs alone",
                {**NO_MIMETIC, **IDENTITY, "model.identity_qk": False},
            ),
        ),
        seeds=2,
        changes={**TINY, "training.steps": 800},
        minutes=1,
        limits='Six lines, chains of up to three, 800 steps at one learning rate; few seeds. "Never" means not within them. The parts are removed from one trained model, where other heads can stand in for one that is cut.',
        found="identity",
        measure="identity",
    ),
    _experiment(
        "identity-programs",
        "From how many examples is binding learned with identity scaling, and without?",
        "binding-tiny",
        (
            Variant("off", "the preset, which has no identity-scaling terms", borrowed=("identity", "recipe")),
            Variant(
                "both",
                "identity-scaling terms in scores and outputs",
                IDENTITY,
                borrowed=("identity", "recipe+identity"),
            ),
        ),
        seeds=6,
        changes={**TINY, "training.steps": 800},
        minutes=1,
        limits="Six lines, chains of up to three, 800 steps at one learning rate, from a start that attends a few positions back, matches and copies by itself.",
    ),
    _experiment(
        "identity-16",
        "Is identity-scaled attention needed at the paper's 16 lines?",
        "binding-laptop",
        (
            _shipped("both", "identity-scaling terms in scores and outputs: the shipped run, stopped later"),
            Variant("none", "no identity-scaling term", NO_IDENTITY),
            Variant("scores", "the identity-scaling term in the scores alone", {"model.identity_vo": False}),
            Variant("outputs", "the identity-scaling term in the outputs alone", {"model.identity_qk": False}),
        ),
        seeds=1,
        changes=LAPTOP,
        minutes=13,
        limits="Few seeds; learning rates were chosen for the preset with both paths.",
    ),
    _experiment(
        "loss",
        "Does it matter whether the loss is on the answer alone or on every token?",
        "binding-tiny",
        (
            Variant("answer", "the loss is on the answers alone"),
            Variant("all", "the loss is on every next token", {"training.loss": "all"}),
        ),
        seeds=3,
        changes={**TINY, "training.steps": 2_000},
        minutes=2,
        limits="Six lines, at most 2,000 steps, the learning rate chosen for the answer loss; an all-token loss gives the answer a small fraction of the gradient, which Adam's scaling only partly undoes.",
    ),
    _experiment(
        "reassignment",
        "When a variable is assigned again, which write wins, and where does the mechanism break?",
        "binding-tiny",
        (
            Variant("once", "trained on programs that assign each variable once", borrowed=("loss", "answer")),
            Variant("again", "three lines in ten assign a variable again", {"task.reassign": 0.3}),
        ),
        seeds=2,
        changes={**TINY, "training.steps": 2_000},
        minutes=2,
        limits="Six lines; 300 questions of each situation, in which exactly one thing is unusual and the rival's digit differs.",
        found="reassignment",
        measure="writes",
    ),
    _experiment(
        "encoder",
        "Does a bidirectional encoder learn the same task, through the same phases?",
        "binding-tiny",
        (
            Variant("causal", "every position sees what stands before it"),
            Variant("bidirectional", "every position sees all", {"model.causal": False}),
        ),
        seeds=2,
        changes={**TINY, "training.steps": 800, "task.queries": 1, "training.batch_size": 100},
        minutes=2,
        limits="Six lines, one query a program: with several, the program would not see the query in training but would in evaluation. The start was made for causal attention.",
    ),
    _experiment(
        "long",
        "How do learning time and accuracy change with 10 to 30 lines and chains of up to six links?",
        "binding-plain",
        (
            Variant("10-lines", "10 lines", {"task.lines": 10}),
            Variant("18-lines", "18 lines", {"task.lines": 18}),
            Variant("26-lines", "26 lines, as many as there are letters", {"task.lines": 26}),
            Variant(
                "30-lines",
                "30 lines, a fifth of which assign a variable again",
                {"task.lines": 30, "task.reassign": 0.2},
            ),
        ),
        seeds=1,
        changes=LONG,
        minutes=5,
        limits="One seed a length, 1,200 steps; a 30-line program needs variables that are assigned again, so that variant differs in more than its length.",
        found="long",
        measure="lengths",
    ),
)
