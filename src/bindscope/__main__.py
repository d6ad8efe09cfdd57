"""``python -m bindscope`` is the ``bindscope`` command."""

from bindscope.cli.main import main

if __name__ == "__main__":
    main()
