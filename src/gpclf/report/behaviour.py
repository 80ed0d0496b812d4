"""What the model does, as sections: what matters and how, where it does not know, and drift."""

import numpy as np

from gpclf.report import figures
from gpclf.report.answers import matters
from gpclf.report.dependence import Dependence
from gpclf.report.drift import MUCH, SOME
from gpclf.report.findings import SHOWN, Findings
from gpclf.report.markup import Markup, element, figure, joined, table
from gpclf.report.subject import Subject, Table
from gpclf.report.words import count, listed, number, percent, short

COLUMNS = 5  # of a row, in tables of rows
LEAST = 0.01  # change of a mean probability that is drawn


def importance(subject: Subject, found: Findings) -> Markup:
    """Relevance and permutation importance."""
    weights = found.importance
    first = int(weights.features[0])
    loss = "log-loss" if weights.by_labels else "expected log-loss"
    finding = f"“{short(subject.names[first])}” matters most"
    if weights.low[0] <= 0:
        finding = "No feature matters on its own"
    how = (
        f"How much the {loss} rises once the entries of a feature are shuffled, so that they tell "
        f"nothing: means and 95 % intervals over {count(weights.n_rows)} rows. Of features that "
        "say the same each may seem not to matter."
    )
    shown = weights.features[:SHOWN]
    rows = [
        [
            short(subject.names[f], 60),
            number(weights.rise[place]),
            f"{number(weights.low[place])} to {number(weights.high[place])}",
            percent(float(subject.relevance[f]), 1),
        ]
        for place, f in enumerate(shown)
    ]
    headings = ["Feature", "Rise", "95 % interval", "Relevance"]
    numbers = table("Rise and relevance of each feature", headings, rows)
    left_out = len(subject.names) - len(shown)
    more = f" The {count(left_out)} features that matter less are left out." if left_out else ""
    words = (
        "Relevance is what the kernel itself says: how fast predictions may change along a "
        "feature, from its lengthscales, together 100 %."
    )
    picture = figures.importance(weights, subject.names, f"Importance of features. {finding}.")
    return joined(
        [
            element("p", matters(subject, found)),
            figure(finding, how + more, picture, None),
            element("p", words),
            numbers,
        ]
    )


def dependence(subject: Subject, found: Findings) -> Markup:
    """Partial dependence on the features that matter most."""
    if not found.dependence:
        return element("p", "No feature has more than one value here.")
    words = (
        "The mean probability if all rows had one value of a feature and kept the rest, "
        "without errors. Shaded bands and lines through points show how unsure the model itself is "
        "of a row's probability (one standard deviation)."
    )
    shown = [each for each in found.dependence if np.ptp(each.mean, axis=0).max() >= LEAST]
    flat = [
        f"“{short(subject.names[e.feature])}”"
        for e in found.dependence
        if np.ptp(e.mean, axis=0).max() < LEAST
    ]
    parts = [_one_dependence(subject, each) for each in shown]
    rest = None
    if flat:
        rest = (
            f"By itself {listed(flat)} changes the mean probability by less than {percent(LEAST)}."
        )
    return joined(
        [
            element("p", words) if shown else None,
            *parts,
            None if rest is None else element("p", rest),
        ]
    )


def _one_dependence(subject: Subject, found: Dependence) -> Markup:
    name = short(subject.names[found.feature])
    k = int(np.argmax(np.ptp(found.mean, axis=0)))
    who = short(subject.class_name(int(found.classes[k])))
    low, high = int(np.argmin(found.mean[:, k])), int(np.argmax(found.mean[:, k]))
    places = sorted([low, high])
    ends = [percent(found.mean[place, k], 0) for place in places]
    at = [short(subject.value(found.feature, found.grid[place])) for place in places]
    finding = f"Probability of “{who}”: {ends[0]} where “{name}” is {at[0]}, {ends[1]} at {at[1]}"
    headings = ["Value"]
    for c in found.classes:
        headings += [short(subject.class_name(int(c)), 40), "±"]
    rows = []
    for place, code in enumerate(found.grid):
        row = [short(subject.value(found.feature, code), 60)]
        for k in range(len(found.classes)):
            row += [percent(found.mean[place, k], 1), percent(found.spread[place, k], 1)]
        rows.append(row)
    caption = None
    if found.left_out:
        caption = f"{count(found.left_out)} levels with fewer training rows are left out."
    numbers = table(f"Probabilities along {name}", headings, rows)
    picture = figures.dependence(found, subject, f"Partial dependence on {name}. {finding}.")
    return figure(finding, caption, picture, numbers)


def uncertainty(subject: Subject, rows: Table, found: Findings, logs: np.ndarray) -> Markup:
    """The split of uncertainty, and the rows to look at."""
    unsure = found.unsure
    last = float(unsure.model[-1] / max(unsure.model[-1] + unsure.data[-1], 1e-12))
    finding = (
        f"In the least sure tenth of the rows, {percent(last)} of the uncertainty is the model's"
    )
    caption = (
        f"The entropy of the predicted class of {count(unsure.n_split)} rows. “Data”: classes "
        "overlap, and no label would help. “Model”: there were few training rows like it, and "
        "labels near by would help."
    )
    tenths = [
        [count(place + 1), number(data), number(model), number(data + model)]
        for place, (data, model) in enumerate(zip(unsure.data, unsure.model, strict=True))
    ]
    headings = ["Tenth", "Data", "Model", "Together"]
    numbers = table("Uncertainty of tenths of the rows, in nats", headings, tenths)
    picture = figures.uncertainty(unsure, f"Uncertainty. {finding}.")
    extra = {
        "Uncertainty": [number(each) for each in unsure.rows_total],
        "of the model": [number(each) for each in unsure.rows_model],
    }
    parts = [
        figure(finding, caption, picture, numbers),
        element("h3", "The most uncertain rows"),
        element(
            "p", "Rows count from 0. Labels of those with a large part of the model help most."
        ),
        _row_table(subject, rows, logs, unsure.rows, "The most uncertain rows", extra),
    ]
    if found.judged is not None:
        chosen = found.judged.surprising
        parts += [
            element("h3", "The most surprising rows"),
            element(
                "p",
                "Those whose own class was given the least probability: a rare case, a wrong "
                "label, or something that the features do not tell.",
            ),
            _row_table(subject, rows, logs, chosen, "The most surprising rows", {}),
        ]
    return joined(parts)


def _row_table(
    subject: Subject,
    rows: Table,
    logs: np.ndarray,
    chosen: np.ndarray,
    caption: str,
    extra: dict[str, list[str]],
) -> Markup:
    """Rows with what was predicted, their class if it is known, and entries that matter."""
    shown = np.argsort(-subject.relevance, kind="stable")[:COLUMNS]
    known = rows.y is not None
    headings = ["Row", "Predicted", *(["Its class"] if known else []), "Probability"]
    if known:
        headings.append("of its class")
    headings += [*extra, *(short(subject.names[f], 40) for f in shown)]
    lines = []
    for place, row in enumerate(chosen.tolist()):
        likeliest = int(logs[row].argmax())
        line = [str(row), short(subject.class_name(likeliest), 40)]
        if rows.y is not None:
            line.append(short(subject.class_name(int(rows.y[row])), 40))
        line.append(percent(float(np.exp(logs[row, likeliest])), 1))
        if rows.y is not None:
            line.append(percent(float(np.exp(logs[row, rows.y[row]])), 1))
        line += [column[place] for column in extra.values()]
        line += [short(subject.value(int(f), float(rows.X[row, f])), 40) for f in shown]
        lines.append(line)
    return table(caption, headings, lines, words=3 if known else 2, narrow=True)


def drift(subject: Subject, found: Findings) -> Markup:
    """Each column beside the training rows."""
    shown = found.drift[:SHOWN]
    moved = [each for each in found.drift if each.reading != "as in training"]
    finding = "No column differs from the training rows by more than chance"
    if moved:
        first = short(subject.names[moved[0].column])
        finding = f"“{first}” differs most from the training rows ({moved[0].reading})"
        if len(moved) > 1:
            finding += f"; {count(len(moved))} columns do by more than chance"
    caption = (
        "The population stability index: 0 where a column is as in training. Strokes mark what "
        f"chance alone may give; dashed lines the usual marks, {SOME} and {MUCH}."
    )
    left_out = len(found.drift) - len(shown)
    if left_out:
        caption += f" The {count(left_out)} columns that differ less are left out."
    rows = [
        [
            short(subject.names[each.column], 60),
            each.reading,
            number(each.psi),
            percent(each.missing_before, 1),
            percent(each.missing_now, 1),
            percent(each.unseen, 1),
        ]
        for each in shown
    ]
    headings = ["Column", "Reading", "Index", "Missing before", "Missing now", "Not known"]
    numbers = table("Columns beside the training rows", headings, rows, words=2)
    picture = figures.drift(shown, subject.names, f"Drift. {finding}.")
    classes = np.argsort(-subject.summary.class_shares, kind="stable")[:SHOWN]
    shares = [
        [
            short(subject.class_name(int(c)), 60),
            percent(float(subject.summary.class_shares[c]), 1),
            percent(float(found.predicted_shares[c]), 1),
        ]
        for c in classes
    ]
    headings = ["Class", "In training", "Mean probability here"]
    return joined(
        [
            figure(finding, caption, picture, numbers),
            table("Shares of the classes", headings, shares),
        ]
    )
