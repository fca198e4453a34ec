"""Notes on the text of arda2026."""

from __future__ import annotations

from ...theory import add_errata

add_errata(
    "arda2026",
    (
        "E1",
        "Lemma 5",
        "The main text's bound has sigma_2 nu_w, the appendix's has sigma_1 nu_w.",
        "The appendix proves the form with sigma_1. The form with sigma_2 fails when sigma_2 is "
        "much smaller than sigma_1, for example for sigma(u) = 50 tanh(u/50).",
        "sigma_1 nu_w (variant `corrected`).",
    ),
    (
        "E2",
        "Definition 1",
        "log(m/2 delta').",
        "It can be read as ln(m/(2 delta')) or as ln((m/2) delta'). The union bound over m/2 "
        "vectors gives the first; the second would make the event far less likely than stated.",
        "ln(m/(2 delta')).",
    ),
    (
        "E3",
        "Fact 4",
        "A two-sided tail with factor 2, then a maximum bound without that 2.",
        "Both statements are true: the maximum needs only the one-sided tail.",
        "Both as printed; the one-sided tail is a variant of its own.",
    ),
    (
        "E4",
        "Proof of Lemma 5, (i) and (ii)",
        "|Z| <= K gives a psi_2 norm of at most K.",
        "The constant is K/sqrt(ln 2) = 1.2011 K, attained by fair signs. The factor 2 in the "
        "lemma's K absorbs it.",
        "K/sqrt(ln 2).",
    ),
    (
        "E5",
        "Proof of Lemma 5, tail after Eq. (23)",
        "2 exp(-N t^2/K^2) with K the psi_2 norm.",
        "With this scale the tail is not a theorem: the mean of fair signs exceeds it. Centring "
        "costs a further constant, at most 2: the psi_2 norm of Z - EZ can exceed that of Z. The "
        "lemma's final bound is true all the same, see E6.",
        "Hoeffding's inequality, and the proof of E6.",
    ),
    (
        "E6",
        "Proof of Lemma 5, (iii)",
        "sigma'(U.a) M v_w q is treated as independent of U, with norm at most nu_w.",
        "The vector depends on U, and its norm bound is sigma_1 nu_w. A vector of norm 1 that "
        "depends on U can give <U, w> = |U|, whose psi_2 norm grows with d; here tr M <= 1 saves "
        "the bound. A repaired argument: "
        "|<phi_w, v_w>| <= sigma_1 nu_w |MU| with |MU|^2 = sum_i l_i^2 U_i^2 and sum_i l_i <= 1; "
        "comparing with an independent copy gives the variance proxy 2 (sigma_1 nu_w)^2.",
        "The appendix's bound, which this proves, and a smaller one (variant `sharp`).",
    ),
    (
        "E7",
        "Informal theorem",
        "Linearisation term (d + ln(m/delta'))/sqrt(m) and approximation term sqrt(ln(n/delta)/m).",
        "Multiplying out Theorem 1 gives the powers 3/2 and, for the approximation term, an "
        "extra sqrt(d + ln(m/delta')); the average iterate also has a term B_lin^2.",
        "The explicit bounds (45) and (46).",
    ),
    (
        "E8",
        "Lemma 3",
        "L2 (rho_u^2 + rho_w^2).",
        "The proof has L2/2 and drops the half. f(X; phi0) = 0 is not needed.",
        "The printed bound; the half is in the variant `sharp`.",
    ),
    (
        "E9",
        "Proof of Lemma 2 (b)",
        "A bound on the induced norm of the W-W block is used as a bound on its Frobenius norm.",
        "This does not follow in general (identity matrix). Here the block is the third central "
        "moment of the tokens in direction U times q q^T, whose Frobenius norm is at most "
        "(32/27) |U|, so the lemma holds; the supremum found is 4/(3 sqrt 3) |U|.",
        "The printed L2; 32/27 in place of 8 in the variant `sharp`.",
    ),
    (
        "E10",
        "Proof of Lemma 6",
        "|f| = (i) + (ii).",
        "It is at most: terms of different heads may cancel. No cross term is missing, since "
        "c h - c0 h0 = c0 (h - h0) + (c - c0) h.",
        "The inequality.",
    ),
    (
        "E11",
        "Eq. (45)",
        "The minimum over 0 <= s <= tau; the theorem has s < tau.",
        "The sum covers s = 0, ..., tau - 1, which gives the theorem's (stronger) form.",
        "s < tau.",
    ),
    (
        "E12",
        "Proof of Lemma 4",
        "K_m with a factor 1/m in front of gradients that carry m^(-1/2) each.",
        "The factor is counted twice in the first display; the following lines have it once.",
        "The sum over heads without a further 1/m.",
    ),
    (
        "E13",
        "Section 5.4, inner product",
        "<f~(.; v), f~(.; v')> = E<v, v'>.",
        "Different v can give the same function, so this is defined up to {v : f~ = 0}, which is "
        "not {0}: v_c = 1 gives f~ = 0 for every odd sigma. The RKHS norm is the infimum over v.",
        "E|v|^2 as an upper bound of the squared norm, which is all the proofs use.",
    ),
    (
        "E14",
        "L1 and L2",
        "Written as functions of delta' and m.",
        "Through B_U they also depend on d and rho_u.",
        "B_U with rho_u/sqrt(m), a priori or realised.",
    ),
    (
        "E16",
        "Theorem 1, rho >= nu",
        "A comparison of vectors.",
        "It is meant element by element, so that the transported point lies in Omega_rho.",
        "Element by element, as a hypothesis.",
    ),
    (
        "E19",
        "Lemma 6, y_max",
        "sigma_1 sqrt(d) nu_w.",
        "True; sqrt(d) is not needed, since E|MU| <= sqrt(tr M^2) <= 1.",
        "The printed bound; without sqrt(d) in the variant `sharp`.",
    ),
    (
        "E21",
        "Lemma 5, data",
        "The data are given.",
        "The union bound needs data (and target) that do not depend on the initialisation.",
        "Data and teacher are drawn from streams of their own.",
    ),
    (
        "E15",
        "Section 6.1, teacher",
        "v_c and v_u are scaled by nu/sigma, v_w is only clipped at nu_w.",
        "The W-part then has weight about 1 while the others have weight nu/sigma = 3.",
        "The paper's form; a scaled and clipped form is an option of the teacher.",
    ),
    (
        "E17",
        "Section 6.1, labels",
        "Labels are averages over a finite pool of heads.",
        "They differ from f* by a sampling error, about 0.002 for a pool of 8192 heads.",
        "The approximation error is measured against the labels that were used.",
    ),
    (
        "E18",
        "Section 5.2, width",
        "m is even.",
        "The released Transformer code accepts odd m and then starts unpaired, so f(phi0) != 0.",
        "An odd width is refused.",
    ),
    (
        "E20",
        "Sections 6.1 and B.1",
        "The label formula has an unmatched bracket; the Jacobian metric, printed with its norm "
        "and its maximum over s < tau, is that of a mean over samples.",
        "The bracket has no effect. The norm is taken after the mean over samples, so gradients "
        "of different samples may cancel.",
        "The norm of the mean, with the mean and the largest of the norms beside it.",
    ),
    (
        "E22",
        "Proposition 2",
        "A bound up to constants that depend on mu_T.",
        "The constants are those of another paper and are not written out, so it is not an "
        "inequality that can be checked; exp(Omega(T)) is an upper bound, not a prediction.",
        "The condition gamma + rho_w/sqrt(m) <= 1/sigma_1 and the shape of the rate.",
    ),
    (
        "E23",
        "Proposition 2, cutoff",
        "mu_T = O(1) if gamma + rho_w/sqrt(m) <= 1/sigma_1.",
        "At equality the sum behind mu_T has T - 1 equal terms, and it is attained: a logistic "
        "unit with w = 4 that stays at its steepest point has |dh_T/dw| = (T - 1)/8.",
        "Bounded strictly below the cutoff, linear in T at it.",
    ),
)
