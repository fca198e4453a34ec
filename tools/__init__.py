"""Tools for whoever works on Headcount; not part of the package."""
