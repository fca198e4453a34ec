"""One room per paper: what only that paper says. The engines find them through their manifests."""

from ..core import Paper as Paper
