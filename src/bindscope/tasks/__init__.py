"""What is asked: the task families that come with Bindscope, with their samplers and reference interpreters. No torch below this line."""
