"""The last sections: how the model was learned, and its card."""

import numpy as np

from gpclf.report import figures
from gpclf.report.markup import Markup, element, figure, joined, table
from gpclf.report.subject import Subject
from gpclf.report.words import number

STEPS = 12  # of a history, as a table


def history(subject: Subject) -> Markup:
    """The bound against time."""
    seconds = np.asarray(subject.history["seconds"], np.float64)
    bound = np.asarray(subject.history["elbo"], np.float64)
    if not len(bound):
        return element("p", "The model file has no history.")
    first, last, took = (float(each) for each in (bound[0], bound[-1], seconds[-1]))
    finding = (
        f"The bound went from {number(first)} to {number(last)} nats per row in {number(took, 1)} s"
    )
    caption = (
        "What was climbed: a bound on the log-probability of the training labels, less a price for "
        "how complicated the model is. Each stage has an objective of its own, so that it may jump "
        "in between."
    )
    kept = np.unique(np.linspace(0, len(bound) - 1, STEPS).astype(int))
    stages = subject.history["stage"]
    rows = [
        [str(step), str(stages[step]), number(float(seconds[step]), 1), number(float(bound[step]))]
        for step in kept
    ]
    numbers = table(
        "Learning history", ["Step", "Stage", "Seconds", "Bound per row"], rows, words=2
    )
    picture = figures.history(subject.history, f"Learning history. {finding}.")
    return figure(finding, caption, picture, numbers)


LIMITS = (
    "Probabilities hold for rows that come about as the training rows did. Look at “Drift” before "
    "trusting them elsewhere.",
    "Far from all training rows they go back towards equal ones, and the model's part of the "
    "uncertainty is large.",
    "What matters to the model need not be what causes the class.",
    "A category that no training row had counts as an average one; a missing number as its mean "
    "given the others of the row.",
)


def card(subject: Subject) -> Markup:
    """Data, parameters, versions, limits, and how to load the model."""
    parts = []
    for heading, items in subject.card.items():
        pairs = [
            element("div", element("dt", name), element("dd", value))
            for name, value in items.items()
        ]
        parts += [element("h3", heading), element("dl", *pairs, class_="facts")]
    load = (
        "from gpclf import GPClassifier\n\n"
        'clf = GPClassifier.load("model.gpclf")\n'
        "probabilities = clf.predict_proba(X)"
    )
    code = Markup(load.replace("&", "&amp;").replace("<", "&lt;"))
    parts += [
        element("h3", "Limits"),
        element("ul", *(element("li", limit) for limit in LIMITS)),
        element("h3", "How to load it"),
        element("pre", element("code", code), tabindex="0", role="region", aria_label="Code"),
    ]
    return joined(parts)
