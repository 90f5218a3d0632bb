"""One use case a file: files in, a value out, no printing. ``plan.py`` is the one to read first."""
