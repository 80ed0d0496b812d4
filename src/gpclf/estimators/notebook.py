"""How a classifier shows itself in a notebook: scikit-learn's diagram, and after a fit a table."""

from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

import numpy as np

from gpclf.report.markup import Markup, element, joined
from gpclf.report.words import count, listed, number, percent, short

MOST_CLASSES, MOST_FEATURES = 6, 5
PAGE = "reference/"  # of the documentation, which has the parameters
CELL = "text-align:left;padding:.15em 1.2em .15em 0;border-top:1px solid #8884;vertical-align:top"
TABLE = "border-collapse:collapse;margin:.6em 0;font-size:.93em;background:none"


@cache
def documentation() -> str:
    """Where the package says that its reference is; empty if it does not."""
    try:
        links = metadata("gpclf").get_all("Project-URL") or []
    except PackageNotFoundError:  # run from its folder, without being installed
        return ""
    places = dict(link.split(", ", 1) for link in links)
    home = places.get("Documentation")
    return "" if home is None else f"{home.rstrip('/')}/{PAGE}"


class Shown:
    """What notebooks ask of a classifier; comes before scikit-learn's own in the order of bases."""

    def _get_doc_link(self) -> str:
        return documentation()

    def _repr_html_inner(self) -> str:
        parent: Any = super()
        return parent._repr_html_inner() + (
            fitted_table(self) if hasattr(self, "posterior_") else ""
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        parent: Any = super()
        bundle = parent._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle


def fitted_table(clf: Any) -> Markup:
    """Classes, kernel, relevance and the score of rows left out."""
    rows = {
        "Classes": _classes(clf),
        "Training rows": count(clf.n_samples_seen_),
        "Kernel": short(repr(clf.kernel_), 160),
        "Likelihood": short(repr(clf.likelihood_), 120),
        "Relevance": _relevance(clf),
    }
    if clf.loo_score_ is None:
        rows["Bound per row"] = f"{number(clf.elbo_ / max(clf.n_samples_seen_, 1))} nats"
    else:
        doubt = "" if (clf.loo_unsure_ or 0) <= 0.01 else " (few rows: not to be trusted)"
        rows["Score of rows left out"] = f"{number(clf.loo_score_)} nats per row{doubt}"
    lines = [
        element(
            "tr", element("th", name, style=CELL, scope="row"), element("td", value, style=CELL)
        )
        for name, value in rows.items()
    ]
    caption = element("caption", "As fitted", style="text-align:left;font-weight:bold")
    return element("table", caption, element("tbody", joined(lines)), style=TABLE)


def _classes(clf: Any) -> str:
    shares = clf.training_summary_.class_shares
    order = np.argsort(-shares, kind="stable")[:MOST_CLASSES]
    named = [f"{short(str(clf.classes_[c]))} ({percent(float(shares[c]))})" for c in order]
    if len(shares) > len(named):
        named.append(f"{count(len(shares) - len(named))} more")
    return listed(named)


def _relevance(clf: Any) -> str:
    names = getattr(clf, "feature_names_in_", None)
    order = np.argsort(-clf.relevance_, kind="stable")[:MOST_FEATURES]
    named = [f"feature {i}" if names is None else short(str(names[i])) for i in order]
    told = [f"{n} {percent(float(clf.relevance_[i]))}" for n, i in zip(named, order, strict=True)]
    more = len(clf.relevance_) - len(told)
    return ", ".join(told) + (f", {count(more)} more" if more else "")
