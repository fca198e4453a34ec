"""The constants of deora2024 in slow arithmetic: the twin of `constants`, written apart from it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ...theory import Table
from ...theory.slow import Arithmetic, dot
from . import twins

Number = Any


def per_rows(num: Arithmetic, T: int, readout: str) -> Number:
    """The power of T of a read-out."""
    if readout == "last":
        return num.number(1)
    return num.number(T) if readout == "pooling" else num.sqrt(num.number(T))


def beta_1(num: Arithmetic, N: Number, R: Number, T: int, readout: str = "full") -> Number:
    """The gradient's bound."""
    return per_rows(num, T, readout) * (2 * R * R * R * N + R)


def beta_3(
    num: Arithmetic, N: Number, R: Number, T: int, d: int, tier: str, readout: str = "full"
) -> Number:
    """The Hessian's bound."""
    t, cube = per_rows(num, T, readout), R * R * R
    if tier == "sharp":
        return t * cube + 2 * t * cube * R * R * N
    root = num.sqrt(num.number(d))
    first = 6 * t * d * cube * R * R * N + 2 * t * root * cube
    return first if tier == "v1" else first * d


def beta_2(
    num: Arithmetic,
    N: Number,
    R: Number,
    H: Number,
    T: int,
    d: int,
    tier: str,
    readout: str = "full",
) -> Number:
    """The loss's smoothness."""
    half = beta_1(num, N, R, T, readout) / 2
    return half * half + beta_3(num, N, R, T, d, tier, readout) / num.sqrt(H)


def rho(
    num: Arithmetic,
    B: Number,
    R: Number,
    H: Number,
    T: int,
    d: int,
    tier: str,
    readout: str = "full",
) -> Number:
    """The inverse of the largest step."""
    t, root_H = per_rows(num, T, readout), num.sqrt(H)
    if tier == "sharp":
        longest = B + beta_1(num, B, R, T, readout) / root_H
        return beta_2(num, longest, R, H, T, d, tier, readout)
    root = num.sqrt(num.number(d))
    power = 1 if tier == "v1" else d
    slope = 9 * power * root * t * R**5 * B + 6 * power * root * t * R**3
    smooth = 2 * power * root * t * R**3 / root_H + t * t * R * R / 4
    return smooth * slope * slope


def stable_rho(
    num: Arithmetic,
    B: Number,
    R: Number,
    H: Number,
    T: int,
    d: int,
    tier: str,
    readout: str = "full",
) -> Number:
    """The same where eta beta_1(B)^2 <= 1 is asked for, too."""
    slope = beta_1(num, B, R, T, readout)
    return num.largest([slope * slope, rho(num, B, R, H, T, d, tier, readout)])


def start_loss(num: Arithmetic, B_Phi: Number) -> Number:
    """log(1 + e^{B_Phi})."""
    return num.log(1 + num.exp(B_Phi))


def realizable_root(
    num: Arithmetic,
    G: Number,
    B_2: Number,
    B_Phi: Number,
    R: Number,
    T: int,
    d: int,
    tier: str,
    readout: str = "full",
) -> Number:
    """What sqrt(H) must reach in (98)."""
    if tier == "sharp":
        root = num.sqrt(num.number(2))
        return G * G * beta_3(num, B_2 + root * G, R, T, d, tier, readout) / B_Phi
    lead = beta_3(num, num.number(1), R, T, d, tier, readout) * 5 / 2
    return lead * B_2 / B_Phi * G * G * num.largest([num.number(1), G])


def good_start_root(
    num: Arithmetic,
    g0: Number,
    B_2: Number,
    R: Number,
    T: int,
    d: int,
    tier: str,
    readout: str = "full",
) -> Number:
    """What sqrt(H) must reach in Corollary 5."""
    lead = 128 * beta_3(num, 4 * g0 + B_2, R, T, d, tier, readout) * g0 * g0
    return lead if tier == "sharp" else lead * B_2


class SlowConstants(Table):
    """The names of `constants.Constants`, from a point's nested lists."""

    @cached_property
    def data(self) -> twins.Data:
        """The point as a model: a head alone is one group on one sample."""
        own = self.symbols
        if "readout" in own:
            return own
        alone = {name: [own[name]] for name in ("X", "U", "W")}
        return {**alone, "k": [self.num.number(1)], "readout": "full"}

    @property
    def tier(self) -> str:
        """The Hessian bound."""
        return self.form if self.form in ("v1", "sharp") else "v2"

    @property
    def readout(self) -> str:
        """The read-out."""
        return self.data["readout"]

    @property
    def shape(self) -> tuple[Any, ...]:
        """What every beta_3 ends with."""
        return *twins.shape(self.data), self.tier, self.readout

    @cached_property
    def R(self) -> Number:
        return twins.token_bound(self.num, self.data)

    @cached_property
    def H(self) -> Number:
        return twins.total(self.num, self.data)

    @cached_property
    def target(self) -> twins.Rows:
        root = self.num.sqrt(self.H)
        return twins.combined(twins.parameters(self.data), twins.move(self.data), 1 / root)

    @cached_property
    def D(self) -> Number:
        moved = twins.length(self.num, self.data, twins.move(self.data))
        return moved / self.num.sqrt(self.H)

    @cached_property
    def N(self) -> Number:
        """A run speaks of its target."""
        if "dU" in self.data:
            return twins.widest(self.num, self.target)
        return twins.longest_readout(self.num, self.data)

    @cached_property
    def L_theta(self) -> Number:
        return twins.loss(self.num, self.data, self.target)

    @cached_property
    def L_0(self) -> Number:
        return twins.loss(self.num, self.data, twins.parameters(self.data))

    @property
    def eta(self) -> Number:
        return self.data["eta"]

    @property
    def K(self) -> int:
        return int(self.data["K"])

    @property
    def samples(self) -> int:
        return int(self.data.get("m", len(self.data["y"])))

    @property
    def beta_1(self) -> Number:
        return beta_1(self.num, self.N, self.R, self.shape[0], self.readout)

    @property
    def full_beta_1(self) -> Number:
        return beta_1(self.num, self.N, self.R, self.shape[0])

    @property
    def beta_2(self) -> Number:
        return beta_2(self.num, self.N, self.R, self.H, *self.shape)

    @property
    def beta_3(self) -> Number:
        return beta_3(self.num, self.N, self.R, *self.shape)

    @property
    def bend(self) -> Number:
        return self.beta_3 / self.num.sqrt(self.H)

    @property
    def B(self) -> Number:
        return 3 * self.D + self.N

    @property
    def tilde_1(self) -> Number:
        return beta_1(self.num, self.B, self.R, self.shape[0], self.readout)

    @property
    def tilde_3(self) -> Number:
        return beta_3(self.num, self.B, self.R, *self.shape)

    @property
    def root(self) -> Number:
        return 18 * self.tilde_3 * self.D * self.D

    @property
    def wider_root(self) -> Number:
        return 128 * self.tilde_3 * self.D * self.D

    def _longest(self, rho_B: Number, at_target: Number, at_start: Number) -> Number:
        ratios = [self.D * self.D / (self.K * at_target), self.D * self.D / at_start]
        return self.num.smallest([self.num.number(1), 1 / rho_B, *ratios])

    @property
    def longest_step(self) -> Number:
        rho_B = rho(self.num, self.B, self.R, self.H, *self.shape)
        return self._longest(rho_B, self.L_theta, self.L_0)

    @property
    def longest_stable_step(self) -> Number:
        rho_B = stable_rho(self.num, self.B, self.R, self.H, *self.shape)
        return self._longest(rho_B, self.L_theta, self.L_0)

    @property
    def training_bound(self) -> Number:
        return 2 * self.L_theta + 5 * self.D**2 / (4 * self.eta * self.K)

    @property
    def gap_bound(self) -> Number:
        inner = 2 * self.K * self.L_theta + 9 * self.D * self.D / (4 * self.eta)
        return self.num.number(4) / self.samples * inner

    @property
    def stretched(self) -> Number:
        return (2 if self.form == "corrected" else 1) * self.D

    @cached_property
    def start(self) -> SlowStart:
        return SlowStart(self.num, self.data)

    @property
    def g_0(self) -> Number:
        G = self.start.G
        return G if self.form in ("printed", "sharp") else self.num.sqrt(self.num.number(2)) * G

    @property
    def start_root(self) -> Number:
        return good_start_root(self.num, self.g_0, self.start.B_2, self.R, *self.shape)

    def _start_step(self, rho_of: Any) -> Number:
        s = self.start
        rho_B = rho_of(self.num, 4 * self.g_0 + s.B_2, self.R, self.H, *self.shape)
        first = (2 * s.B_Phi / s.gamma) ** 2 / start_loss(self.num, s.B_Phi)
        return self.num.smallest([self.num.number(1), 1 / rho_B, first])

    @property
    def start_step(self) -> Number:
        return self._start_step(rho)

    @property
    def stable_start_step(self) -> Number:
        return self._start_step(stable_rho)

    @property
    def start_bound(self) -> Number:
        return self.num.number(2) / self.K + 5 * self.g_0**2 / (4 * self.eta * self.K)

    @property
    def start_gap_bound(self) -> Number:
        factor = 17 if self.form in ("printed", "sharp") else 34
        return factor * self.start.G**2 / (self.eta * self.samples)

    @property
    def margin_ceiling(self) -> Number:
        slope = beta_1(self.num, self.start.B_2, self.R, self.shape[0], self.readout)
        return self.num.sqrt(self.num.number(2)) * slope


class SlowStart:
    """P1-P3 of a start."""

    def __init__(self, num: Arithmetic, data: twins.Data) -> None:
        self.num, self.H = num, twins.total(num, data)
        root = num.sqrt(self.H)
        self.rows = twins.parameters(data)
        raw = twins.parameters({"U": data["vU"], "W": data["vW"]})
        self.direction: twins.Rows = [[e / root for e in row] for row in raw]
        parts = twins.samples(num, data, self.rows)
        one = num.number(1)
        self.B_2 = num.largest([one, twins.widest(num, self.rows)])
        self.B_Phi = num.largest([one] + [num.absolute(part.margin) for part in parts])
        self.gamma = num.smallest(
            [y * self._slope(data, part) / root for part, y in zip(parts, data["y"], strict=True)]
        )
        self.G = (2 * self.B_Phi - num.log(data["eps"])) / self.gamma

    def _slope(self, data: twins.Data, part: twins.Sample) -> Number:
        rows = zip(data["k"], part.gradients, self.direction, strict=True)
        return self.num.total([k * dot(g, v) for k, g, v in rows])
