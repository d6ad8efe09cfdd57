"""The phases of learning, and what is learned first."""
