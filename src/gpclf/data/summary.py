"""What the training rows were like, column by column: what later tables are compared with.

A column of numbers falls into tenths: `quantiles` are their ends, `shares` the rows in each, which
are not all alike where values repeat. A column of levels has the share of each level.
"""

from typing import NamedTuple

import numpy as np

from gpclf.data.survey import Survey

TENTHS = np.linspace(0, 1, 11)


class Summary(NamedTuple):
    """Of `n_rows` rows; shares are by weight, and those of a column add up to 1 with `missing`."""

    n_rows: int
    class_shares: np.ndarray  # (C,)
    missing: np.ndarray  # (D,): the share without a number, or of levels that are not known
    quantiles: np.ndarray  # (D, 11), NaN for levels
    shares: tuple[np.ndarray, ...]  # of tenths or levels

    @classmethod
    def of(
        cls, X: np.ndarray, y: np.ndarray, weight: np.ndarray, levels: np.ndarray, n_classes: int
    ) -> "Summary":
        """Of codes X (N, D) and class indices y (N,); `levels` of each column, 0 for numbers."""
        return cls.found(Survey.of(X, weight, levels > 0, y, n_classes=n_classes), levels)

    @classmethod
    def found(cls, survey: Survey, levels: np.ndarray) -> "Summary":
        """Of what one pass has found: classes of all rows, columns of its sample."""
        sample = survey.sample
        weight = np.asarray(sample.weight, np.float64)
        quantiles = np.full((len(levels), len(TENTHS)), np.nan)
        missing, shares = np.zeros(len(levels)), []
        for column, count in enumerate(levels):
            values = sample.column(column)
            there = ~np.isnan(values)
            if count == 0 and there.any():
                quantiles[column] = np.quantile(
                    values[there], TENTHS, weights=weight[there], method="inverted_cdf"
                )
            shares.append(shares_of(values, quantiles[column], int(count), weight))
            missing[column] = weight[~there].sum() / weight.sum()
        counts = survey.of_classes
        return cls(survey.n_rows, counts / counts.sum(), missing, quantiles, tuple(shares))


def shares_of(
    values: np.ndarray, quantiles: np.ndarray, count: int, weight: np.ndarray | None = None
) -> np.ndarray:
    """The share of rows in each tenth, or at each of `count` levels; NaN is in none of them."""
    weight = np.ones(len(values)) if weight is None else weight
    there = ~np.isnan(values)
    if count == 0:
        places, count = np.searchsorted(quantiles[1:-1], values[there]), len(TENTHS) - 1
    else:
        places = values[there].astype(np.intp)
    return np.bincount(places, weight[there], count) / weight.sum()
