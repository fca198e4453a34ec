"""A paper from outside: one model, one claim, one figure, an audit."""

from headcount.papers import Paper

paper = Paper(
    key="smith2030",
    title="Averages of tokens",
    citation="Smith (2030)",
    models={"averager": "smith2030.model:RECIPE"},
    setting="smith2030.audit:Setting",
    claims=("smith2030.claims",),
    figures=("smith2030.figure",),
    subject="smith2030.audit:subject",
    slack="smith2030.audit:slack",
    leading=("smith2030/softmax-norm",),
)
