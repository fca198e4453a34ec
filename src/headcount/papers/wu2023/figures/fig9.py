"""wu2023, Figure 9: Figure 2 with tau0 = d_m^(-1)."""

from ....lab import register
from .fig2 import descent_figure

figure = register(descent_figure(9, "ntk", "tau0 = d_m^(-1)"))
