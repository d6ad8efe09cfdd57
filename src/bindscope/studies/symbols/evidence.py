"""What the verdicts of study 3 rest on, and what more training would settle."""

from bindscope.studies.framework.claims import Wanted

EVIDENCE = (
    Wanted("majority", 50, "a majority with the paper's heads and more sequences", full=True),
    Wanted("print-symbolic", 51, "values never seen, from up to 8,192 programs", full=True),
    Wanted("language", 60, "perplexity over six pairs of trainings"),
    Wanted("gain", 65, "which gain of identity scaling another task would choose"),
    Wanted("same-different-gain", 66, "identity scaling at the gain that another task chose"),
    Wanted("aba-abb", 70, "both scalings, LSTM and MLP over seeds"),
    Wanted("copy", 71, "inverse scaling over seeds"),
    Wanted("print-real", 72, "printing a number over seeds"),
    Wanted("width", 73, "whether width hurts where the answer is a number, over seeds"),
    Wanted("learnability", 75, "whether the kernel predicts trained transformers, over seeds"),
    Wanted("gpt2", 76, "pretrained weights, which must be on this machine"),
    Wanted("same-different", 80, "the paper's 16 heads of 64", full=True),
)
