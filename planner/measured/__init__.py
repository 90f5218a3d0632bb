"""What benchmark results say about the model."""
