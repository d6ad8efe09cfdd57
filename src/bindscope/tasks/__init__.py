"""What is asked: the three task families, with their samplers and reference interpreters. No torch below this line."""
