"""Other people's files -> our specs: one module and one table row each."""
