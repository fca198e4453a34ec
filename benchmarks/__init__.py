"""Benchmarks: each module without an underscore has `run() -> dict`. See `python -m benchmarks`."""
