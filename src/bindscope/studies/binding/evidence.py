"""What the verdicts of study 1 rest on, and what more training would settle."""

from bindscope.studies.framework.claims import Wanted

EVIDENCE = (
    Wanted("binding-neutral", 10, "every claim on a run that nothing was supplied to"),
    Wanted("binding-deep", 11, "the mechanism where each hop can have a layer of its own"),
    Wanted("seeds-neutral", 12, "phases and their order over six trainings from random weights"),
    Wanted("seeds-deep", 13, "the same with twelve layers"),
    Wanted("binding-laptop", 14, "every claim on the fast run with identity scaling"),
    Wanted("binding-plain", 15, "every claim on the fast run with a relay"),
    Wanted("seeds-plain", 16, "phases over six trainings with the relay's start"),
    Wanted("seeds", 17, "phases over six trainings with identity scaling"),
    Wanted("binding-reassign", 18, "which write of a variable wins, and whether state is kept or looked up"),
    Wanted("rungs", 19, "how far towards the paper's training a start from random weights goes", beyond=True),
    Wanted("fixed-length", 20, "other lengths of models that saw one, over three trainings"),
    Wanted("held-out", 40, "combinations never shown, over three trainings"),
    Wanted("weighting", 41, "the weight on deep chains apart from the balance of depths"),
)
