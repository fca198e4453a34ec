"""The constants of arda2026 in slow arithmetic: the twin of `constants`, written apart from it."""

from __future__ import annotations

from ...theory.slow import Arithmetic, norm
from .naive import Data, Number, activation, bounds, smoothness_constants


def table(num: Arithmetic, data: Data, variant: str) -> dict[str, Number]:
    """The constants at a ModelInstance's realised B_U; B_app where the instance has a delta."""
    b = bounds(num, data, variant)
    known = "delta" in data
    delta = data["delta"] if known else num.number(1) / 2
    sizes = (len(data["q"][0]), len(data["c0"]), len(data["X"]), delta)
    found = constants(num, data["activation"], b.B_U, b.rho, b.nu, sizes, variant)
    return found if known else {name: k for name, k in found.items() if name != "B_app"}


def event_radius(num: Arithmetic, d: Number, m: Number, delta_prime: Number) -> Number:
    """sqrt(d) + sqrt(2 ln(m / (2 delta'))) [arda2026, Def. 1]."""
    return num.sqrt(num.number(d)) + num.sqrt(2 * (num.log(num.number(m) / 2 / delta_prime)))


def constants(
    num: Arithmetic,
    name: str,
    B_U: Number,
    rho: list[Number],
    nu: list[Number],
    sizes: tuple[Number, Number, Number, Number],
    variant: str,
) -> dict[str, Number]:
    """The constants for the activation of this name; `sizes` are (d, m, n, delta)."""
    d, m, n, delta = (num.number(size) for size in sizes)
    s0, s1, s2 = activation(num, name).bounds
    sharp, one, two = variant == "sharp", num.number(1), num.number(2)
    L1, L2 = smoothness_constants(num, s1, s2, B_U, variant)
    root_m, k = num.sqrt(m), norm(num, rho[1:])
    bounded = s0 * nu[0] + s1 * nu[1]
    on_w = s1 * nu[2] * (num.sqrt(two) if sharp else one)
    on_c, on_theta = L1 * k / m, (L2 * k + rho[0] * L1) / m
    theta = (one + rho[0] / root_m) * L1
    A = norm(num, [s0, theta]) if sharp else s0 + theta
    f_max = L1 * k + s0 * rho[0]
    y_max = bounded + s1 * nu[2] * (one if sharp else num.sqrt(d))
    lengths = norm(num, rho) + norm(num, nu)
    return {
        "B_U": B_U,
        "L1": L1,
        "L2": L2,
        "k": k,
        "B_app": two
        * (bounded + on_w)
        * num.sqrt((one if sharp else two) * num.log(two * n / delta) / m),
        "B_lin": (L1 * rho[0] * k + (L2 / two if sharp else L2) * k * k) / root_m,
        "B_CoF": ((L1 + L2) * k + rho[0] * L1) * lengths / root_m,
        "f_max": f_max,
        "y_max": y_max,
        "A": A,
        "B_grad": (two * (f_max + y_max) * A) ** 2,
        "rho_norm": norm(num, rho),
        "nu_norm": norm(num, nu),
        "distance": lengths / root_m,
        "change_c": on_c,
        "change_theta": on_theta,
        "change": norm(num, [on_c, on_theta]) if sharp else on_c + on_theta,
    }
