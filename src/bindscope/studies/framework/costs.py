"""What training each preset takes on a quiet 2-core machine.

``steps`` is where a run ends: the last step, or where it reached its target. ``binding-tiny`` (the middle one of seeds 0,
1 and 2) and ``binding-laptop`` were timed as whole commands with ``--threads 1``; the others with two threads by
``presets NAME --measure``, ``binding-plain`` for the steps of the shipped run. Same-different, ABA or ABB, AABB or ABAB
and copy are in seconds of one thread's CPU, up to the step at which seed 0 with fewer heads had nothing left to learn;
the other templates with all their steps, which is the most that they take.
"""

from __future__ import annotations

from bindscope.studies.framework.preset import Cost

MEASURED: dict[str, Cost] = {
    "binding-tiny": Cost(seconds_per_step=0.072, megabytes=501, steps=1_500),
    "binding-laptop": Cost(seconds_per_step=0.199, megabytes=757, steps=3_700),
    "binding-plain": Cost(seconds_per_step=0.126, megabytes=569, steps=5_300),
    "binding-neutral": Cost(seconds_per_step=0.315, megabytes=793, steps=3_400),
    "binding-deep": Cost(seconds_per_step=0.61, megabytes=1_100, steps=3_290),  # seed 0, on a core of its own
    "binding-reassign": Cost(seconds_per_step=0.19, megabytes=712, steps=4_250),  # one thread, evaluations included
    "binding-paper": Cost(seconds_per_step=8.4, megabytes=4_000, steps=105_465),  # three steps alone, no evaluation
    "assign-add": Cost(seconds_per_step=0.035, megabytes=441, steps=40_000),
    "assign-add-small": Cost(seconds_per_step=0.015, megabytes=359, steps=2_000),
    "templates-same-different": Cost(seconds_per_step=0.422, megabytes=579, steps=300),
    "templates-aba-abb": Cost(seconds_per_step=0.307, megabytes=505, steps=175),
    "templates-aabb-abab": Cost(seconds_per_step=0.346, megabytes=534, steps=200),
    "templates-majority": Cost(seconds_per_step=0.583, megabytes=884, steps=8_000),
    "templates-counting": Cost(seconds_per_step=0.524, megabytes=823, steps=1_000),
    "templates-random": Cost(seconds_per_step=0.708, megabytes=805, steps=1_000),
    "templates-copy": Cost(seconds_per_step=0.064, megabytes=428, steps=125),
    "templates-print-real": Cost(seconds_per_step=1.58, megabytes=1_045, steps=1_000),
    "templates-print": Cost(seconds_per_step=2.17, megabytes=1_254, steps=4_000),
    "templates-gpt2-small": Cost(seconds_per_step=0.24, megabytes=413, steps=250),  # one thread; ends near there
}
