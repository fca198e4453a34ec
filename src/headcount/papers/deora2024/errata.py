"""Notes on the text of deora2024."""
