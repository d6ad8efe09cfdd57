"""A pretrained GPT-2 beside one from scratch."""
