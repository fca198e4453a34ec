"""Notes on the text of wu2023."""

from __future__ import annotations

from ...theory import add_errata

add_errata(
    "wu2023",
    (
        "E1",
        "Pooling, Sec. 3.1",
        "The text averages over tokens; rho, Lemmas 9 to 14, the limiting kernel and the network "
        "as rewritten in App. C.2 use the sum.",
        "Mean pooling is sum pooling with tau_1 divided by d_s. Conditions (2) and (3) then get "
        "harder by d_s, the residual aside.",
        "Both; every bound is evaluated with the effective tau_1.",
    ),
    (
        "E2",
        "Width requirements",
        "Quadratic for LeCun and He (abstract), N^3 or N^2 by scaling (Theorem 1), N for NTK "
        "(Theorem 2, Table 3), quadratic or cubic (Sec. 4.4).",
        "The places do not agree with each other.",
        "No order is assumed: (2) and (3) themselves are evaluated.",
    ),
    (
        "E3",
        "(7), (9), (17), (73), Lemma 1, Hessian",
        "sigma_r where a derivative of relu is meant.",
        "The formulas hold with relu' (0 or 1), as autodiff confirms.",
        "relu'.",
    ),
    (
        "E4",
        "Lemma 14, (19)",
        "relu' is treated as 1-Lipschitz.",
        "relu' jumps: from w_V = +eps to -eps the gradient changes by about 1 while the point "
        "moves by 2 eps. The descent step at the end of the proof of Prop. 1 can fail there.",
        "c3 while no unit changes sign, a jump term where some do, and a count of sign changes "
        "between steps.",
    ),
    (
        "E5",
        "(21)",
        "A token has norm at most C_x, and is taken out of the sum over tokens.",
        "Assumption 1 gives sqrt(d_s) C_x only: one token may carry all of |X|_F.",
        "sqrt(d_s) C_x.",
    ),
    (
        "E6",
        "(22)",
        "C_x^2 d_s + 3 lambda_K z.",
        "A factor d_s C_x^2 in front of 3 lambda_K z is lost, and one sign is wrong (plus "
        "beta beta^T). Without any kink the printed c3 can be too small by a factor of 9 and more.",
        "d_s C_x^2 (1 + 3 lambda_K z).",
    ),
    (
        "E7",
        "(14) and (24), fourth line",
        "3 lambda_K z in the line of the key gradient.",
        "By symmetry it is 3 lambda_Q z.",
        "3 lambda_Q z.",
    ),
    (
        "E8",
        "(36)",
        "c1 = rho (lambda_V + lambda_O + lambda_V z).",
        "The line before has lambda_O in front of the attention term; it is dropped. The printed "
        "c1 fails once |w_O| is large, and with it Proposition 1: the step size 1/C is then too "
        "long, and the loss can grow although (2) and (3) hold.",
        "c1 = rho (lambda_V + lambda_O (1 + lambda_V z)).",
    ),
    (
        "E9",
        "(35), (37)",
        "|f - y| is replaced by 2 l(theta^0).",
        "It is at most sqrt(2 l(theta^0)); the printed value is safe only where |f_0 - y| >= 1.",
        "C = c1 c2 + c3 sqrt(2 l(theta^0)).",
    ),
    (
        "E10",
        "End of the proof of Prop. 1",
        "The last step gives 1 - gamma alpha/2.",
        "It should be alpha^2, and sigma_min >= alpha/2 gives the factor 1/4. With the hypothesis "
        "sigma_min >= alpha/sqrt 2 in the induction, (3) gives sigma_min >= 7 alpha/8, and the "
        "printed rate follows.",
        "The rate with alpha^2/2; the one with alpha^2/4 is a variant.",
    ),
    (
        "E11",
        "z",
        "Defined in Prop. 1 and again in Lemma 14, with another meaning.",
        "Two constants share one letter.",
        "z_prop and z14.",
    ),
    (
        "E12",
        "Proof of Prop. 1, drift of F_pre",
        "2 tau_0 C_x^2 in the first line.",
        "d_s is missing; Lemma 9 has it.",
        "2 tau_0 d_s C_x^2.",
    ),
    (
        "E13",
        "App. C.7, (62)",
        "w_O inside f_pre, and |w_O| ||W_V|| in the bound on the change by the residual.",
        "f_pre has no w_O, and the change is relu's: at most sqrt(N) tau_1 d_s C_x, whatever the "
        "weights. The printed bound fails for small weights. X + A_1 also needs d_m = d.",
        "sqrt(N) tau_1 d_s C_x; X is padded with zeros to d_m features.",
    ),
    (
        "E14",
        "Lemma 1, (63), (64)",
        "A matrix product, and 1_{d_s} for the limit of beta.",
        "The product is entry by entry, and softmax of zeros is (1/d_s) 1_{d_s}: with the matrix "
        "product even the diagonal is wrong.",
        "The entry-wise product and uniform attention.",
    ),
    (
        "E15",
        "(48), (49), (54), (60)",
        "lambda_min >= d_m lambda_0/4.",
        "The factor tau_1^2 is missing. It is 1 for LeCun and He; for NTK it is 1/d_m, alpha does "
        "not grow with the width, and with C_* = 1 condition (2) never becomes true: Theorem 2's "
        "proof fails. With C_* of order sqrt(d_m) it can be repaired, at the price of d_m of order "
        "N^3.",
        "tau_1^2 d_m lambda_0/4; C_* is chosen by search.",
    ),
    (
        "E16",
        "App. C.3 and C.4",
        "F_pre F_pre^T is a sum of positive semi-definite matrices.",
        "It is the product of sums over tokens, and cross terms need not be. Two samples with the "
        "same tokens in another order have lambda_min = 0, though the first-token part has not.",
        "alpha is computed from the whole F_pre.",
    ),
    (
        "E17",
        "Lemma 15, (39), (41)",
        "Gershgorin's theorem without absolute values; a difference that is called Theta(1/d_s).",
        "Absolute values are needed; the chosen t makes the difference possibly 0; there is no "
        "union bound over pairs; N <= d is needed; t < 1 makes exp(-t^c) exceed 1/e, so that the "
        "stated probability is never above 0.63.",
        "The inequality of the chain, with absolute values; lambda_0 itself is measured.",
    ),
    (
        "E18",
        "Lemmas 16 to 19, App. C.5 and C.8",
        "lambda_min(Phi* Phi*^T) = lambda_min(Phi*^T Phi*).",
        "They have the same nonzero eigenvalues, but for N > d the first is 0. Lemma 15 needs "
        "N <= d and Lemma 17 N >= d^4. The upper bound in the remark (42) contradicts Lemma 18.",
        "The measured eigenvalues; (38) as the lower bound.",
    ),
    (
        "E19",
        "Assumption 4",
        "x is the sum of the tokens; Lemma 17 uses one token, Phi* their mean.",
        "Factors d_s^2 are lost between the three.",
        "The mean; the second moment of the sum is d_s^2 times that of the mean.",
    ),
    (
        "E20",
        "(43)",
        "The second equality lacks eta_V.",
        "E relu(phi.w)^2 = eta_V |phi|^2/2.",
        "With eta_V.",
    ),
    (
        "E21",
        "Theorem 3",
        "No initialisation is named; H_QV, H_QO and H_OV are O(1/d_m); H_QK lacks the identity "
        "term; (71) swaps tau_0 and tau_1; the third term of Gamma_i is not a matrix.",
        "The proof is for d = 1 and holds for the NTK initialisation. For LeCun and He H_OV does "
        "not shrink. The blocks named are of order d_m^{-1/2}.",
        "The closed form of the Hessian for d = 1, and the claim for the NTK initialisation.",
    ),
    (
        "E22",
        "(45)",
        "One term of the maximum in (2).",
        "The query and key terms add a factor max(1, d_s C_x^2/sqrt d).",
        "The whole of (2).",
    ),
    (
        "E23",
        "Remark after Prop. 1",
        "gamma is of order N^{-1/2}.",
        "c1 c2 grows like N and c3 l(theta^0) like N^{3/2}: gamma is of order N^{-3/2}; with the "
        "sqrt(2 l(theta^0)) of E9 it is N^{-1}.",
        "C itself.",
    ),
    (
        "E24",
        "Lemma 16",
        "d_s and sqrt(log) in the width, lambda_0 in one line.",
        "The chain gives d_s^2, log, and lambda_*.",
        "d_s^2 in the bound on the Frobenius distance.",
    ),
    (
        "E25",
        "Small slips",
        "Squares missing in Lemma 13's proof, a sum for a product in Lemma 11's, AM-GM in Lemma "
        "8's, theta^T for theta^t, Phi(W) for the loss in (31), a hat over Omega in Theorem 2, a "
        "root that covers too much in (7).",
        "None changes a statement.",
        "The statements.",
    ),
    (
        "E26",
        "App. C.6",
        "tau_0 = d_m^{-1/2} converges faster because alpha is larger.",
        "It is a heuristic: the lower bound 1/d_s of |beta|^2 is the same for both scalings. On "
        "the synthetic data alpha is smaller for d_m^{-1/2}.",
        "Only the lower bound; alpha is measured.",
    ),
    (
        "E27",
        "Fig. 2",
        "gamma = 1 with the summed loss and Gaussian tokens of variance 1.",
        "Descent then diverges within a few steps at every width: gamma lambda_max(K) is 37 and "
        "more, 2 is the limit.",
        "Tokens of variance 1/d, mean pooling and the mean squared error, under which gamma = 1 is "
        "stable; the printed reading is an option.",
    ),
)
