"""Which tests concern a source file whose mutants are tried."""

from __future__ import annotations

import fnmatch
from pathlib import Path

CLI = "cli/test_cli_theory"
PARTS = ("test_ball_arrays", "test_ball_elementwise", "test_ball_structure")
BALLS = (*PARTS, "test_balls", "test_ball_jaxpr", "test_ball_models")
SEARCH, FALSIFY = "theory/test_search_parts", "theory/test_falsify_parts"
VERDICTS = "theory/test_verdict_parts"
MARGINS, CERTIFICATES = "kernels/test_margin_parts", "theory/test_certificate_parts"
LANDSCAPES = (
    "theory/test_power::test_the_search_goes_on_from_its_worst_instances",
    "theory/test_power::test_the_ascent_ascends",
    "theory/test_power::test_what_is_found_on_a_landscape_is_proved",
)
CHEAP = {
    "theory": ("theory/test_small_parts", "theory/test_searches_and_slopes"),
    "training": ("training/test_training_parts", "training/test_run_parts"),
}
"""Tests in seconds of many files of a layer."""
TESTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("theory/_ball*", tuple(f"theory/{name}" for name in BALLS)),
    (
        "theory/slow",
        (
            "theory/test_ball_arrays",
            "theory/test_balls",
            "theory/test_ball_claims",
            "theory/test_conformance",
        ),
    ),
    ("theory/slow_spectrum", ("theory/test_ball_arrays", "theory/test_conformance")),
    ("theory/duals", ("theory/test_ball_claims", "theory/test_conformance")),
    ("theory/_count", ("theory/test_count_parts", "theory/test_count")),
    ("theory/_audit", (VERDICTS, "theory/test_audit", "papers/arda2026/test_arda2026_audit", CLI)),
    ("theory/_search", (SEARCH, *LANDSCAPES, "theory/test_search")),
    ("theory/_spaces*", ("theory/test_space_parts", "theory/test_spaces", "theory/test_lemmas")),
    ("theory/_lemma*", (FALSIFY, VERDICTS, "theory/test_spaces", "theory/test_lemmas")),
    ("theory/lemma_files", ("theory/test_lemmas",)),
    ("theory/_verify*", ("theory/test_verify_parts", "theory/test_verify")),
    ("theory/_cells", ("theory/test_verify_parts", "theory/test_verify")),
    ("theory/_facts", (VERDICTS, "theory/test_verify")),
    ("theory/_s[ht]*", (SEARCH, *LANDSCAPES, "theory/test_search", "theory/test_engine")),
    ("theory/_sizes", (SEARCH, "theory/test_search")),
    ("theory/_falsify", (FALSIFY, *LANDSCAPES, "theory/test_search", "theory/test_engine")),
    ("theory/_prove", (FALSIFY, "theory/test_recheck", "theory/test_engine")),
    ("theory/_compare", ("theory/test_compare",)),
    ("theory/_explain", ("theory/test_engine", "cli/test_newcomer")),
    ("theory/_corpus", ("theory/test_search",)),
    ("theory/_[cr]e[rc]*", (CERTIFICATES, "theory/test_recheck", "theory/test_forgeries")),
    (
        "theory/_slow_sides",
        (CERTIFICATES, "theory/test_recheck", "theory/test_search", "theory/test_engine"),
    ),
    ("core/_rounding", ("theory/test_engine", "theory/test_verdicts")),
    (
        "theory/_verdict",
        (VERDICTS, "theory/test_verdicts", "theory/test_audit", SEARCH, "theory/test_engine"),
    ),
    (
        "theory/_judge_frequency",
        (VERDICTS, "theory/test_small_parts", "theory/test_verdicts", "theory/test_engine"),
    ),
    ("theory/_frequency", ("theory/test_verdicts", "theory/test_engine")),
    ("theory/_registry", ("theory/test_registry",)),
    ("theory/families", ("theory/test_families",)),
    ("theory/domain", ("theory/test_domain", "theory/test_forgeries")),
    ("theory/*", (CERTIFICATES, "theory/test_recheck", "theory/test_engine")),
    ("training/_path_indrnn", ("training/test_path_indrnn", "training/test_path_positional")),
    ("training/_path_*", ("training/test_path_{key}", "training/test_paths")),
    ("training/_config", ("training/test_config", "training/test_run")),
    ("training/_build", ("training/test_config", "training/test_run")),
    ("training/_projections", ("training/test_projections",)),
    ("training/_recorders", ("training/test_recorders",)),
    ("training/_rules", ("training/test_rules", "kernels/test_head_groups")),
    ("training/_paths", ("training/test_path_indrnn", "training/test_paths")),
    ("training/_epochs", ("training/test_epochs",)),
    ("training/_finetuning", ("training/test_finetuning",)),
    ("training/_devices", ("training/test_devices",)),
    ("training/_plan", ("training/test_results_shown",)),
    ("training/_r[eu]*", ("training/test_run", "training/test_results_shown")),
    ("training/_stored", ("training/test_results_shown", "training/test_recorders")),
    ("training/_tracers", ("training/test_path_positional",)),
    ("training/_setup", ("training/test_run", "training/test_train")),
    (
        "training/*",
        (
            "training/test_seed_parts",
            "training/test_train",
            "training/test_run",
            "training/test_config",
        ),
    ),
    ("kernels/_lambda_min", (MARGINS, "kernels/test_lambda_min", "kernels/test_spectrum")),
    ("kernels/_margin", (MARGINS, "kernels/test_margin", "kernels/test_head_groups")),
)
"""Which tests concern which file: the first pattern that fits, cheapest tests first."""


def tests_of(path: str, root: Path) -> list[str]:
    """The test files for a source file such as theory/_falsify.py; those that exist."""
    stem = path.removesuffix(".py")
    for pattern, tests in TESTS:
        if fnmatch.fnmatchcase(stem, pattern):
            cheap = CHEAP.get(stem.split("/")[0], ())
            named = [test.format(key=stem.rsplit("_path_", 1)[-1]) for test in (*cheap, *tests)]
            split = [test.partition("::") for test in named]
            there = [part for part in split if (root / "tests" / f"{part[0]}.py").exists()]
            return [f"tests/{file}.py{colons}{own}" for file, colons, own in there]
    raise SystemExit(f"no tests are named for {path}")
