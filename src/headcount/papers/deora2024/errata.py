"""Notes on the text of deora2024, whose two published versions are called v1 and v2 here."""

from __future__ import annotations

from ...theory import add_errata

add_errata(
    "deora2024",
    (
        "E1",
        "Lemmas 2, 16, 17, Eqs. (6), (102), (120), Sec. 5.1",
        "The first phase concentrates around (zeta/2) u_* in every row.",
        "E[y mu_y] = u_*/2, and the step has a further 1/2: the mean row is (zeta/4) u_*. With the "
        "printed centre |p| tends to zeta S/(2 sqrt 2), so that no constant C makes (6) true.",
        "The centre (zeta/4) u_*, with p of mean zero and an explicit bound on |p|.",
    ),
    (
        "E2",
        "Proposition 7, Corollaries 2 and 5, Eq. (100)",
        "g_0(eps) = (2 B_Phi + log(1/eps))/gamma.",
        "theta_* has norm sqrt(2), so the witness is sqrt(2) times as far away; no other "
        "point does "
        "better where the model is linear. The condition on H stays sufficient.",
        "g_0 = sqrt(2) G: 5/2 for 5/4 in the training bound, 34 for 17 in the gap. The bounds of "
        "Corollary 5 are true as printed all the same: its many heads leave room.",
    ),
    (
        "E3",
        "Sec. 5.1, Lemma 13, Eq. (116)",
        "alpha_h ~ Unif(+-1).",
        "It can be read as a fair sign or as uniform on [-1, 1]. gamma_* of (7) is then exact or "
        "false, even without noise, once the centre is zeta/4.",
        "Fair signs.",
    ),
    (
        "E4",
        "Lemmas 14 and 15, Proposition 2",
        "Hoeffding's inequality over heads, a condition on H, and gamma_*/2.",
        "With fair signs every head contributes the same number to the tangent margin: there is no "
        "deviation, for any H. The main text has R^4 where the appendix has R^3.",
        "gamma_* itself for every H; the printed form is kept as a variant.",
    ),
    (
        "E5",
        "Fact 2, Lemma 12",
        "Two-sided deviations with log(1/delta).",
        "Hoeffding's inequality has log(2/delta) for two sides; with three fair signs the printed "
        "bound fails with probability 1/4 for delta between 0.2231 and 0.25.",
        "log(2/delta). P2 needs no union over samples: one random factor is shared by all X.",
    ),
    (
        "E6",
        "Eq. (24), used for Theorem 3",
        "mean |l'| <= L <= 1.",
        "The logistic loss exceeds 1 on misclassified samples. The proof needs only |l'| <= 1.",
        "mean |l'| <= min(L, 1).",
    ),
    (
        "E7",
        "Lemma 18, Proposition 3",
        "Any A and any Gamma above its bound.",
        "The proof divides by A and multiplies by Gamma: both must be positive. Otherwise half of "
        "the mass, or more, can leak.",
        "The hypotheses A > 0 and Gamma >= 0.",
    ),
    (
        "E8",
        "Eqs. (21), (89) and the display after (88)",
        "(1 + eta beta_3/sqrt(H)) max L^{-i}.",
        "The bracket closes too early: the factor is 1 + (eta beta_3/sqrt(H)) max "
        "L^{-i}. As printed "
        "it vanishes with the loss, while the two runs only drift apart.",
        "1 + (eta beta_3/sqrt(H)) max L^{-i}.",
    ),
    (
        "E9",
        "Proposition 1 and everything after it",
        "v1 and v2 have different Hessian bounds; v2 has a further factor d and says that v1 was "
        "miscalculated.",
        "Both statements are true. A bound without d holds and is attained: |Hess Phi| <= "
        "sqrt(T) R^3 (2 R^2 |U| + 1) = R^2 beta_1.",
        "v2 by default, v1 and sharp as variants of every claim that depends on it.",
    ),
    (
        "E10",
        "Eq. (3), Corollary 2 of the main text",
        "sqrt(H) >= C d^2 sqrt(T) R^5 N D^3.",
        "The appendix has (3D + N) D^2. The product is comparable only for N, D >= 1; from a zero "
        "start N is about D/sqrt(H), and (3) is far too weak.",
        "(74) and (84).",
    ),
    (
        "E11",
        "Theorem 1, Corollary 2: the step size",
        "rho of order d^{9/2} T^{3/2} R^{13} N^2 D^2.",
        "The part T R^2/4 of rho is left out; it has one more sqrt(T) and dominates for "
        "many heads. "
        "Corollary 2 shows g_0^4 and no B_2. v1 prints the inequality the other way round.",
        "rho of Theorem 3 and Corollary 5.",
    ),
    (
        "E12",
        "Proof of Theorem 3",
        "eta <= 1 v 1/rho.",
        "A minimum is meant.",
        "eta <= 1 ^ 1/rho.",
    ),
    (
        "E13",
        "Lemmas 8-10",
        "k in [K-1].",
        "The sums start at k = 0.",
        "k = 0, ..., K-1.",
    ),
    (
        "E14",
        "Corollaries 3 and 4",
        "|theta_eps - theta_0| = g_0(eps).",
        "Assumption 2 says at most. The proofs go through with g_0 in place of D.",
        "At most.",
    ),
    (
        "E15",
        "Eq. (66)",
        "|l''| |grad| + |l'| |Hess|^2.",
        "The square belongs to the gradient.",
        "|l''| |grad|^2 + |l'| |Hess|.",
    ),
    (
        "E16",
        "Eqs. (25), (26)",
        "A remainder of first order, phi' of a direction.",
        "The remainder is of second order, and phi' is taken at the point.",
        "The derivatives of Lemma 4, checked against autodiff.",
    ),
    (
        "E17",
        "Sec. 5.2",
        "phi'(0) = I - 1 1^T/T.",
        "A factor 1/T is missing; the appendix has it. |phi'(0)|_F is then at most "
        "1/sqrt(T), and p "
        "costs at most P T R^3 instead of P T^{5/2} (S + Z)^3.",
        "I/T - 1 1^T/T^2; P T R^3 in the variant `sharp`.",
    ),
    (
        "E18",
        "From (115) to (116)",
        "2 P T^{5/2} (S + Z)^3 becomes P T^{5/2} (S + Z)^3.",
        "The halving is right only for E|alpha| = 1/2. It does no harm, because of E17.",
        "gamma_* as printed, which holds.",
    ),
    (
        "E19",
        "Eq. (115)",
        "(4 - zeta^2).",
        "The terms add up to 4 - 2 zeta - zeta^2; the printed bound is looser and valid.",
        "As printed.",
    ),
    (
        "E20",
        "Footnote on other read-outs",
        "The results also apply to pooling and to the last token.",
        "Pooling is printed transposed, and the power of T changes: T for pooling, 1 for the last "
        "token. With sqrt(T) the bounds fail for pooling.",
        "A power of T for each read-out.",
    ),
    (
        "E21",
        "Eqs. (123), (124), (9)",
        "U_opt = 1_d u_*^T/(S sqrt(T)).",
        "It has T rows and norm 1: 1_T u_*^T/(S sqrt(2T)).",
        "Eq. (9) with this normalisation.",
    ),
    (
        "E22",
        "App. E.1",
        "A >= (3/4) S^4 > (1.25/4) S^4 >= 2B.",
        "2B can be (2.5/4) S^4; A > 2B is still true.",
        "A > 2B.",
    ),
    (
        "E23",
        "Sec. 7",
        "Proposition 3 restated with Gamma >= log((1/zeta - 1)/eps)/S.",
        "This Gamma is too small: with S = 1 and no noise the attention leaks many times eps.",
        "Proposition 3.",
    ),
    (
        "E24",
        "Secs. 5.3 and 7",
        "gamma_attn >= gamma_* >= gamma_lin.",
        "gamma_* is a margin of the tangent features and grows like S^4, gamma_attn is one of the "
        "model and grows like S. gamma_* >= gamma_lin needs a positive attention part.",
        "The three numbers side by side, without an order.",
    ),
    (
        "E25",
        "Eq. (8), Sec. 5.3",
        "The scores differ by an amount of order S^2.",
        "They differ by about S^4.",
        "Eq. (129).",
    ),
    (
        "E26",
        "Sec. 5.2",
        "W_{K,*} and W_{Q,*}.",
        "The names are swapped with respect to W = W_Q W_K^T.",
        "W_* itself.",
    ),
    (
        "E27",
        "Lemma 16",
        "1/n, the tau-th column, alpha_h twice in (103).",
        "It is 1/n_1 and a row, l'(0) = -1/2, and alpha_h enters once.",
        "The closed form of the first phase.",
    ),
    (
        "E28",
        "Lemma 12",
        "A middle bound without the factor T.",
        "The final bound has it.",
        "The final bound.",
    ),
    (
        "E29",
        "Lemmas 2, 14 and 17",
        "Probabilities 1 - delta and 1 - 2 delta; indices of concat.",
        "The two lemmas state the same event with different probabilities.",
        "1 - delta with the explicit bound of E1.",
    ),
    (
        "E30",
        "Lemma 11",
        "5k, L(theta^{-i}), an equality in (87).",
        "4k suffices, L^{-i}(theta^{-i}) is meant, and (87) is an inequality.",
        "As meant.",
    ),
    (
        "E31",
        "Eqs. (16), (67), proof of Lemma 7",
        "beta_3(theta_1), beta_3(theta_2); theta; L(theta).",
        "The points are theta and theta_k, theta_{k+1}, and the loss is the largest on "
        "the segment.",
        "As meant.",
    ),
    (
        "E32",
        "Theorem 4, Corollaries 4 and 5",
        "Any theta and eta.",
        "theta may depend on the data inside the expectation, eta may not: the argument compares "
        "runs with the same eta on neighbouring training sets. No counterexample is known, the "
        "bound is far from tight.",
        "theta and eta fixed before the data; hypotheses for every training set.",
    ),
    (
        "E33",
        "Assumption 3 and App. G",
        "Noise with sure bounds; experiments with N(0, 0.1^2 I).",
        "Gaussian noise has no sure bound. R, B_2 and B_Phi must also be at least 1.",
        "Bounded noise is an option of the data; an audit says that Gaussian noise is outside.",
    ),
)
