"""What can be measured over the checkpoints of any run, whatever its family."""
