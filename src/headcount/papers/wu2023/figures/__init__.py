"""One file per figure: each registers itself when imported; see docs/lab.md."""
