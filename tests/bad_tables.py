"""Tables that are legal and difficult: every engine must give finite probabilities on them."""

import numpy as np

BAD = {
    "one row per class": (np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]), [0, 1, 2]),
    "a constant column": (np.c_[np.arange(20.0), np.full(20, 3.0)], np.arange(20) % 2),
    "every row twice": (np.repeat(np.arange(10.0), 2)[:, None], np.arange(20) // 10),
    "wild scales": (
        np.random.default_rng(0).normal(size=(30, 3)) * [1e12, 1e-12, 1],
        np.arange(30) % 3,
    ),
    "zeros beside heavy tails": (
        np.c_[np.zeros(40), np.random.default_rng(0).standard_cauchy(40) ** 5],
        np.arange(40) % 2,
    ),
    "two rows": (np.array([[0.0], [1.0]]), [0, 1]),
    "all rows equal": (np.ones((6, 2)), [0, 1, 0, 1, 0, 1]),
    "a row and a column missing": (
        np.array([[np.nan] * 3, [1, np.nan, np.nan], [np.nan, 2, np.nan], [3, 1, np.nan]] * 3),
        np.arange(12) % 2,
    ),
    "huge": (np.array([[1e300], [-1e300], [1e299], [0.0]]), [0, 1, 0, 1]),
}
# for engines that share their first steps with others
WORST = ["all rows equal", "huge", "one row per class", "zeros beside heavy tails"]
