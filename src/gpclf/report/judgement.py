"""What labels tell, as sections: scores, reliability, confusion, and curves by class."""

import numpy as np

from gpclf.report import figures
from gpclf.report.answers import trusted
from gpclf.report.findings import BINS, ClassScores, Judged
from gpclf.report.markup import Markup, element, figure, joined, table
from gpclf.report.ranking import Curve
from gpclf.report.subject import Subject
from gpclf.report.words import count, number, percent, short

SCORES = {
    "nll": ("Log-loss", "nats of surprise per row, less is better"),
    "brier": ("Brier score", "squared error of the probabilities, 0 to 2, less is better"),
    "accuracy": ("Accuracy", "share of rows whose class is named"),
    "auc": ("AUC", "pairs of rows in the right order, mean over classes"),
    "ece": ("Calibration error", "mean gap between probability and what came true"),
}
RECALL = 0.9  # at which a precision is told
LISTED = 11  # points of a curve, as a table


def scores(subject: Subject, judged: Judged) -> Markup:
    """The table of scores, and that of classes."""
    rows = []
    for name, (title, meaning) in SCORES.items():
        value, low, high = judged.scores[name]
        guess = judged.guess.get(name)
        ends = f"{number(low)} to {number(high)}"
        first = joined([title, element("small", meaning)])
        rows.append([first, number(value), ends, "—" if guess is None else number(guess)])
    headings = ["Score", "Value", "95 % interval", "Class shares"]
    words = element(
        "p",
        "Intervals are by the bootstrap: how far other rows of the same kind would move a score. "
        "“Class shares” is what one gets by giving every row the shares of the training classes.",
    )
    left_out = len(subject.classes) - len(judged.by_class)
    more = f" The {count(left_out)} classes with fewer rows are left out." if left_out else ""
    by_class = [_class_row(subject, each) for each in judged.by_class]
    headings_of_class = [
        "Class",
        "Rows",
        "Predicted",
        "Recall",
        "Precision",
        "AUC",
        "Average prec.",
    ]
    return joined(
        [
            words,
            table("Scores with their intervals", headings, rows),
            element("p", f"Class by class, each against all others.{more}"),
            table("Scores of each class", headings_of_class, by_class),
        ]
    )


def _class_row(subject: Subject, each: ClassScores) -> list[str]:
    shares = [percent(each.recall), percent(each.precision)]
    areas = [number(each.auc), number(each.average_precision)]
    name = short(subject.class_name(each.index), 60)
    return [name, count(each.rows), count(each.predicted), *shares, *areas]


def reliability(judged: Judged) -> Markup:
    """The reliability diagram, with counts and intervals."""
    found = judged.reliability
    largest = int(np.argmax(found.count))
    finding = (
        f"Probabilities of about {percent(found.confidence[largest], 0)} come true "
        f"{percent(found.accuracy[largest], 0)} of the time"
    )
    caption = (
        "Rows by the probability of the class that is predicted: a point on the dashed line says "
        "that as many came true as was said. Lines through points are 95 % intervals (Wilson); "
        "bars below count the rows."
    )
    edges = (np.ceil(found.confidence * BINS) - 1) / BINS
    rows = [
        [
            f"{percent(edge, 0)} to {percent(edge + 1 / BINS, 0)}",
            count(int(n)),
            percent(confidence, 1),
            percent(hits, 1),
            f"{percent(low, 1)} to {percent(high, 1)}",
        ]
        for edge, n, confidence, hits, low, high in zip(
            edges, found.count, found.confidence, found.accuracy, found.low, found.high, strict=True
        )
    ]
    headings = ["Probability", "Rows", "Mean", "Came true", "95 % interval"]
    numbers = table("Reliability of the predicted class", headings, rows)
    picture = figures.reliability(found, f"Reliability diagram. {finding}.")
    return joined([element("p", trusted(judged)), figure(finding, caption, picture, numbers)])


def confusion(subject: Subject, judged: Judged) -> Markup:
    """The confusion matrix."""
    counts = judged.confusion
    names = [subject.class_name(int(c)) for c in judged.shown]
    left_out = len(subject.classes) - len(names)
    if left_out:
        names.append("all others")
    named = len(judged.shown)
    off = (counts - np.diag(np.diag(counts)))[:named, :named]
    i, j = np.unravel_index(np.argmax(off), off.shape)
    finding = "No row is taken for another class"
    if off[i, j]:
        share = percent(off[i, j] / counts[i].sum())
        finding = (
            f"Most often mistaken: “{short(names[int(i)])}” for “{short(names[int(j)])}”, "
            f"{count(int(off[i, j]))} of its rows ({share})"
        )
    caption = "Rows by their class and the class predicted; the darker, the larger the share."
    if left_out:
        caption += f" The {count(left_out)} classes with fewer rows are taken together."
    rows = [
        [short(name, 60), *(count(int(n)) for n in line)]
        for name, line in zip(names, counts, strict=True)
    ]
    headings = ["Class of the row", *(short(name, 40) for name in names)]
    numbers = table("Rows by class and predicted class", headings, rows)
    picture = figures.confusion(counts, names, f"Confusion matrix. {finding}.")
    return figure(finding, caption, picture, numbers)


def curves(subject: Subject, judged: Judged) -> Markup:
    """ROC and precision-recall curves, class by class."""
    if not judged.curves:
        return element("p", "All rows have one class, so there is no curve.")
    roc = [(subject.class_name(c), curve) for c, curve, _ in judged.curves]
    recall = [(subject.class_name(c), curve) for c, _, curve in judged.curves]
    worst, area = min(roc, key=lambda each: each[1].area)
    finding = f"{percent(area.area)} of pairs with a row of “{short(worst)}” are in the right order"
    if len(roc) > 1:
        finding = f"“{short(worst)}” is hardest to tell: {finding}"
    caption = (
        "Each class against all others (ROC): the share of its rows that are found, against that "
        f"of other rows taken for it.{_some(subject, judged)}"
    )
    worst, curve = min(recall, key=lambda each: each[1].area)
    precise = float(np.max(curve.y[curve.x >= RECALL]))
    found = (
        f"To find {percent(RECALL)} of “{short(worst)}”, {percent(1 - precise)} of the alarms "
        "are false"
    )
    second = (
        "Each class against all others: of the rows taken for it, the share that is (precision)."
    )
    first = figures.curves(roc, "roc", f"ROC curves. {finding}.")
    other = figures.curves(recall, "recall", f"Curves of precision against recall. {found}.")
    return joined(
        [
            figure(finding, caption, first, _points(roc, "False alarms", "hits of")),
            figure(found, second, other, _points(recall, "Recall", "precision of")),
        ]
    )


def _some(subject: Subject, judged: Judged) -> str:
    left_out = len(subject.classes) - len(judged.curves)
    if len(subject.classes) == 2 or not left_out:
        return ""
    return f" Those with most rows are drawn, {count(left_out)} are not."


def _points(lines: list[tuple[str, Curve]], first: str, other: str) -> Markup:
    """Curves at a few places, those of a step at its end."""
    places = np.linspace(0, 1, LISTED)
    columns = [np.interp(places, curve.x, curve.y) for _, curve in lines]
    rows = [
        [percent(place, 0), *(percent(column[i], 1) for column in columns)]
        for i, place in enumerate(places)
    ]
    areas = ["Area", *(number(curve.area) for _, curve in lines)]
    headings = [first, *(f"{other} {short(name, 40)}" for name, _ in lines)]
    return table(f"{first} and {other} each class", headings, [*rows, areas])
