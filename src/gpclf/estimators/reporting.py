"""A fitted classifier as a report sees it, and the table that the report is about."""

import platform
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length, column_or_1d

from gpclf import report
from gpclf.data import encode, refuse_missing
from gpclf.estimators.measurement_error import as_the_kernel_sees, errors_of
from gpclf.estimators.tables import table
from gpclf.prediction import log_probabilities, spread
from gpclf.report.words import count, number, percent, short

LIBRARIES = ("jax", "numpy", "scikit-learn")
SCORES = {"nll": "log-loss", "brier": "Brier score", "auc": "AUC", "ece": "calibration error"}
MOST_WORDS = 12  # classes or features that are named


def subject_of(clf: Any) -> report.Subject:
    """What a report asks of a classifier."""
    names = getattr(clf, "feature_names_in_", None)
    if names is None:
        names = [f"feature {i}" for i in range(clf.n_features_in_)]

    def seen(X: np.ndarray, std: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        rows = clf._scaling.forward(X, clf.posterior_.row_dtype)
        return rows, as_the_kernel_sees(std, X, clf._scaling)

    def unknown(X: np.ndarray, std: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        found = spread(clf.posterior_, *seen(X, std))
        return np.asarray(found.std), np.asarray(found.information)

    notes = getattr(clf, "notes_", None) or {}
    label = notes.get("label")
    label = label.get("name") if isinstance(label, dict) else label
    return report.Subject(
        names=tuple(str(name) for name in names),
        columns=clf._columns,
        classes=clf.classes_,
        label=None if label is None else str(label),
        relevance=np.asarray(clf.relevance_, np.float64),
        summary=clf.training_summary_,
        history=clf.history_,
        card=_card(clf, names),
        log_proba=lambda X, std: log_probabilities(clf.posterior_, *seen(X, std)),
        spread=unknown,
    )


def table_of(clf: Any, X: Any, y: Any, X_std: Any) -> report.Table:
    """Rows, labels and errors, checked; one sentence about what is wrong with them."""
    if y is not None:
        refuse_missing(y)
    codes = np.asarray(table(clf, X, clf._columns), np.float64)
    if not len(codes):
        raise ValueError("X has no rows, and a report needs one at least.")
    index = None
    if y is not None:
        check_consistent_length(codes, y)
        index = encode(column_or_1d(y), clf.classes_)[1]
    usual = clf.input_noise_std_ if X_std is None else X_std
    std = errors_of(usual, codes, clf._columns, getattr(clf, "feature_names_in_", None))
    if std is not None and not np.any(std > 0):
        std = None
    return report.Table(codes, index, std)


def _card(clf: Any, names: Any) -> dict[str, dict[str, str]]:
    """Headings of the model card, and what is to be said below each."""
    from gpclf import __version__  # which has the classifier itself

    summary = clf.training_summary_
    shares = summary.class_shares
    order = np.argsort(-shares, kind="stable")[:MOST_WORDS]
    classes = [f"{short(str(clf.classes_[c]))} {percent(float(shares[c]))}" for c in order]
    if len(shares) > len(order):
        classes.append(f"and {count(len(shares) - len(order))} more")
    features = [short(str(name)) for name in names[:MOST_WORDS]]
    if len(names) > len(features):
        features.append(f"and {count(len(names) - len(features))} more")
    notes = getattr(clf, "notes_", None) or {}
    told = {"Table": "data", "Learned on": "created"}
    data = {title: short(str(notes[key]), 120) for title, key in told.items() if key in notes}
    data |= {
        "Training rows": count(clf.n_samples_seen_),
        "Classes": ", ".join(classes),
        f"Features ({count(len(names))})": ", ".join(features),
        "Columns of levels": count(int(np.sum(clf._columns.counts > 0))),
        "Missing entries": percent(float(np.mean(summary.missing)), 1),
    }
    if clf.input_noise_std_ is not None:
        noisy = [short(str(n)) for n, std in zip(names, clf.input_noise_std_, strict=True) if std]
        data["Features with errors"] = ", ".join(noisy[:MOST_WORDS]) or "none"
    left_out = notes.get("dropped")
    left_out = left_out if isinstance(left_out, list) else []
    dropped = [each["name"] for each in map(_dictionary, left_out) if "name" in each]
    if dropped:
        named = ", ".join(short(str(name)) for name in dropped[:MOST_WORDS])
        data["Columns left out"] = named + (", …" if len(dropped) > MOST_WORDS else "")
    scores = _scores_at_the_fit(notes.get("scores"))
    return {
        "Data": data,
        "What was learned": learned(clf),
        **({"Scores at the fit": scores} if scores else {}),
        "Parameters": _parameters(clf),
        "Versions": {"gpclf": __version__, "Python": platform.python_version()}
        | {name: version(name) for name in LIBRARIES},
    }


def _scores_at_the_fit(notes: Any) -> dict[str, str]:
    """Of this model and its rivals, as the command writes them into a model file."""
    found = {}
    for how, methods in _dictionary(notes).items():
        for method, scores in _dictionary(methods).items():
            values = {
                name: _dictionary(one).get("value") for name, one in _dictionary(scores).items()
            }
            found[short(f"{method}, {how}", 60)] = ", ".join(
                f"{SCORES.get(name, name)} {number(float(value))}"
                for name, value in values.items()
                if isinstance(value, int | float)
            )
    return found


def _dictionary(value: Any) -> dict:
    """Notes are the user's own, and may hold anything."""
    return value if isinstance(value, dict) else {}


def learned(clf: Any) -> dict[str, str]:
    """The model after the fit, in a few words."""
    found = {
        "Kernel": short(repr(clf.kernel_), 400),
        "Likelihood": short(repr(clf.likelihood_), 200),
        "Inducing points": count(np.asarray(clf.inducing_points_).shape[-2]),
        "Bound (ELBO) per row": number(clf.elbo_ / max(clf.n_samples_seen_, 1)),
    }
    if clf.loo_score_ is not None:
        unsure = "" if (clf.loo_unsure_ or 0) <= 0.01 else " (not to be trusted: few rows)"
        found["Score of rows left out"] = f"{number(clf.loo_score_)} nats per row{unsure}"
    found["Why the fit ended"] = short(str(clf.stopped_), 200)
    return found


def _parameters(clf: Any) -> dict[str, str]:
    """Those that are not their defaults."""
    usual = type(clf)().get_params(deep=False)
    given = {
        name: short(repr(value), 200)
        for name, value in clf.get_params(deep=False).items()
        if repr(value) != repr(usual[name]) and not callable(value)
    }
    return given or {"All": "defaults"}
