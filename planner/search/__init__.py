"""Space -> Optuna study over shapes, exact inner solve, polish, proof. See README.md here."""
