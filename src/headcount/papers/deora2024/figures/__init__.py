"""The figures of deora2024, and figures beyond it; importing a file registers its figures."""
