"""How much memory there is."""

import os
from pathlib import Path


def available_memory() -> int:
    """Bytes that can be allocated now without swapping.

    Linux counts reclaimable caches as available; elsewhere the free pages are taken.
    """
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    names = os.sysconf_names
    pages = "SC_AVPHYS_PAGES" if "SC_AVPHYS_PAGES" in names else "SC_PHYS_PAGES"
    return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
