"""Notes on the text of wu2023."""
