"""Parts of a checkpoint after the plateau put into one on it: at once, and given early and trained on."""
