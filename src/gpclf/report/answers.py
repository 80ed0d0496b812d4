"""The summary: five questions of somebody who has to decide, and their answers in sentences."""

import numpy as np

from gpclf.report.findings import Findings, Judged
from gpclf.report.intervals import Interval
from gpclf.report.markup import Markup, element, joined
from gpclf.report.subject import Subject, Table
from gpclf.report.words import count, listed, number, percent, rows, short

FEW_ROWS = 30  # of a class, of which scores say little
LARGE_ERROR = 0.05  # of calibration
UNSURE = 0.01  # the share of rows above which the score of rows left out is not trusted
NAMED = 3  # features


def summary(subject: Subject, table: Table, found: Findings) -> Markup:
    """Four figures and five answers."""
    judged = found.judged
    answers = [("What is it?", _what(subject, table, found))]
    if judged is not None:
        answers.append(("How good is it?", _good(subject, judged)))
        answers.append(("Can its probabilities be trusted?", trusted(judged)))
    answers.append(("What matters most?", matters(subject, found)))
    answers.append(("What to be careful about?", _careful(subject, table, found)))
    parts = [element("div", element("dt", each), element("dd", answer)) for each, answer in answers]
    tiles = None if judged is None else _tiles(judged)
    return joined([tiles, element("dl", *parts, class_="answers")])


def _tiles(judged: Judged) -> Markup:
    scores = judged.scores
    shown = [
        ("Accuracy", _tile_percent(scores["accuracy"])),
        ("Log-loss", _tile_number(scores["nll"])),
        ("AUC", _tile_number(scores["auc"])),
        ("Calibration error", _tile_percent(scores["ece"])),
    ]
    return element(
        "ul",
        *(
            element(
                "li",
                element("span", name, class_="name"),
                " ",
                element("strong", value),
                " ",
                element("span", interval, class_="range"),
            )
            for name, (value, interval) in shown
        ),
        class_="tiles",
        aria_label="Scores with their 95 % intervals",
    )


def _tile_percent(each: Interval) -> tuple[str, str]:
    return percent(each.value, 1), f"{percent(each.low, 1)} to {percent(each.high, 1)}"


def _tile_number(each: Interval) -> tuple[str, str]:
    return number(each.value), f"{number(each.low)} to {number(each.high)}"


def _what(subject: Subject, table: Table, found: Findings) -> str:
    classes = len(subject.classes)
    few = classes <= 6
    names = listed([short(subject.class_name(c)) for c in range(classes)]) if few else ""
    label = "" if subject.label is None else f" of “{short(subject.label)}”"
    features = f"{count(len(subject.names))} feature" + ("s" if len(subject.names) > 1 else "")
    told = "" if table.y is not None else " Their labels are not given, so nothing is scored."
    errors = "" if table.std is None else " The measurement errors of the rows are counted in."
    return (
        f"A Gaussian process classifier that tells {count(classes)} classes{label} apart"
        f"{f', {names},' if few else ''} by {features}. It learned from "
        f"{rows(subject.summary.n_rows)}; this report is about {rows(found.n_rows)}.{told}{errors}"
    )


def _good(subject: Subject, judged: Judged) -> str:
    scores, guess = judged.scores, judged.guess
    right, loss = scores["accuracy"], scores["nll"]
    return (
        f"It names the right class of {percent(right.value)} of the rows (95 % interval "
        f"{percent(right.low)} to {percent(right.high)}); to name the most frequent class always "
        f"would be right for {percent(guess['accuracy'])}. Its log-loss is {number(loss.value)} "
        f"nats per row ({number(loss.low)} to {number(loss.high)}), where the shares of the "
        f"classes alone have {number(guess['nll'])}."
    )


def trusted(judged: Judged) -> str:
    """A verdict on calibration, beside what chance would give."""
    error, found = judged.scores["ece"].value, judged.reliability
    points = f"{100 * error:.1f} percentage points"
    most = f"{100 * found.error_at_most:.1f}"
    if error <= found.error_at_most:
        vague = found.error_at_most > LARGE_ERROR
        verdict = "Nothing speaks against it, but these rows are few" if vague else "Yes"
        return (
            f"{verdict}. What was predicted and what came true differ "
            f"by {points}, and chance alone makes it up to {most} where probabilities are right."
        )
    weights = found.count / found.count.sum()
    sure = float(weights @ (found.confidence - found.accuracy)) > 0
    way = "too sure" if sure else "too modest"
    verdict = "Nearly" if error < LARGE_ERROR else "Not as they are"
    return (
        f"{verdict}: on the whole they are {way}. What was predicted and what came true differ by "
        f"{points}, more than the {most} that chance may give where probabilities are right."
    )


def matters(subject: Subject, found: Findings) -> str:
    """The first few features, and how many make no difference."""
    weights = found.importance
    seen = weights.low > 0
    if not seen.any():
        return "No feature on its own: to shuffle one makes no difference that could be seen."
    names = [f"“{short(subject.names[f])}”" for f in weights.features[seen]][:NAMED]
    rises = [number(rise) for rise in weights.rise[seen]][:NAMED]
    loss = "log-loss" if weights.by_labels else "expected log-loss"
    first = f"{names[0]}: with its entries shuffled, the {loss} rises by {rises[0]} nats per row"
    others = (
        listed([f"{n} ({r})" for n, r in zip(names, rises, strict=True)][1:]) if names[1:] else ""
    )
    nothing = int(np.sum(~seen))
    verb = "makes" if nothing == 1 else "make"
    rest = f" {count(nothing)} of the features {verb} no difference that could be seen."
    return first + (f". Then {others}." if others else ".") + (rest if nothing else "")


def _careful(subject: Subject, table: Table, found: Findings) -> Markup:
    said = [*_of_rows(subject, table, found), *_of_labels(subject, found)]
    model = float(found.unsure.model.sum())
    total = model + float(found.unsure.data.sum())
    if total > 0 and model / total > 0.2:
        said.append(
            f"{percent(model / total)} of the uncertainty is the model's own: more training rows "
            "like these would make predictions surer."
        )
    said.append("All scores hold for rows that come about as these did, and for no others.")
    return element("ul", *(element("li", each) for each in said))


def _of_rows(subject: Subject, table: Table, found: Findings) -> list[str]:
    said = []
    if found.seen_before:
        said.append(
            "These look like the rows that the model has learned from: they are as many, and no "
            "column differs. Scores of such rows are too good; ask rows that it has not seen."
        )
    moved = [each for each in found.drift if each.reading in ("different", "very different")]
    if moved:
        names = [f"“{short(subject.names[each.column])}”" for each in moved[:NAMED]]
        more = f" and {count(len(moved) - NAMED)} more" if len(moved) > NAMED else ""
        verb = "differs" if len(moved) == 1 else "differ"
        said.append(f"{listed(names)}{more} {verb} from the training rows: see “Drift”.")
    unseen = [each for each in found.drift if each.unseen > 0]
    if unseen:
        each = max(unseen, key=lambda each: each.unseen)
        said.append(
            f"“{short(subject.names[each.column])}” has values that no training row had, in "
            f"{percent(each.unseen)} of the rows: the model takes them for an average one."
        )
    return said


def _of_labels(subject: Subject, found: Findings) -> list[str]:
    if found.judged is None:
        return []
    said = []
    few = [each for each in found.judged.by_class if each.rows < FEW_ROWS]
    if few:
        least = min(few, key=lambda each: each.rows)
        name = short(subject.class_name(least.index))
        others = f", and {count(len(few) - 1)} more" if len(few) > 1 else ""
        said.append(
            f"Of some classes there are few rows here ({name}: {count(least.rows)}{others}), so "
            "that their own scores say little."
        )
    if found.judged.scores["nll"].value > found.judged.guess["nll"]:
        said.append("The log-loss is worse than that of the shares of the classes alone.")
    return said
