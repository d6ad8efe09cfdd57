"""What is kept: the run directory. The only package that knows the disk."""
