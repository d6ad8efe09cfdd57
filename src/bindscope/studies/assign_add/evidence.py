"""What the verdicts of study 2 rest on, and what more training would settle."""

from bindscope.studies.framework.claims import Wanted

EVIDENCE = (
    Wanted("assign-add", 30, "every claim on one run of the paper's size"),
    Wanted("assign-add-seeds", 31, "every claim about learning over eight trainings"),
    Wanted("pair-fraction-small", 32, "the fraction of pairs at modulus 31"),
    Wanted("two-variable-frequency-small", 33, "two-variable sequences shown less often, at modulus 31"),
    Wanted("two-variable-rows-small", 34, "rows of two variables removed for good, at modulus 31"),
    Wanted("coefficient-width", 35, "whether the local learning coefficient grows with width", beyond=True),
    Wanted("pair-fraction", 90, "the fraction of pairs at the paper's size"),
    Wanted("two-variable-frequency", 91, "two-variable sequences shown less often, at the paper's size"),
    Wanted("two-variable-rows", 92, "rows of two variables removed for good, at the paper's size"),
)
