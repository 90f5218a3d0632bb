"""Archive and prices -> front, picks, and why nothing works; no search, so also after repricing."""
