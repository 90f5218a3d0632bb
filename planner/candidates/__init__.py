"""Specs -> columns for the model: the only place that knows both."""
