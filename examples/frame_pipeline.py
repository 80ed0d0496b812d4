"""A polars frame with a column of words, through a pipeline, a search, a file and a new process.

    python examples/frame_pipeline.py [folder for the model and the picture]

Needs: pip install "gpclf[plot]" polars
"""

# %% A frame: when do ferries sail? Wind and visibility are numbers, the harbour is a word.
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline

from gpclf import GPClassifier

rng = np.random.default_rng(0)
frame = pl.DataFrame(
    {
        "wind": rng.gamma(4.0, 3.0, 400),
        "visibility": rng.uniform(0.1, 20.0, 400),
        "harbour": rng.choice(["north", "south", "west"], 400),
        "day": rng.integers(1, 366, 400),
    }
)
shelter = frame["harbour"].replace_strict({"north": 14.0, "south": 20.0, "west": 10.0})
sails = (frame["wind"] + rng.normal(0, 2, 400) < shelter) & (frame["visibility"] > 1.0)
y = np.where(sails.to_numpy(), "sails", "stays")
train, test, y_train, y_test = train_test_split(frame, y, random_state=0)

# %% A pipeline, and a search over kernel and likelihood in two processes.
pipeline = Pipeline([("classifier", GPClassifier(random_state=0))])
search = GridSearchCV(
    pipeline,
    {"classifier__kernel": ["matern52", "rbf"], "classifier__likelihood": ["logit", "probit"]},
    scoring="neg_log_loss",
    cv=3,
    n_jobs=2,
).fit(train, y_train)
best = search.best_estimator_["classifier"]
print("best:", search.best_params_)
print(f"test log loss: {-search.score(test, y_test):.3f}, accuracy: {best.score(test, y_test):.3f}")

# %% What mattered: how sharply the answer turns with each feature. Not the day.
folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
for name, share in zip(best.feature_names_in_, best.relevance_, strict=True):
    print(f"{name:<12} {share:6.1%}")
best.plot_relevance().figure.savefig(folder / "relevance.png")

# %% Into a file, and out of it in a new process: the same probabilities.
best.save(folder / "ferries.gpclf")
test.write_json(folder / "test.json")
code = """
import sys, polars as pl
from gpclf import GPClassifier
clf = GPClassifier.load(sys.argv[1] + "/ferries.gpclf")
print(clf.predict_proba(pl.read_json(sys.argv[1] + "/test.json")).tolist())
"""
done = subprocess.run(
    [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
)
again = np.array(json.loads(done.stdout))
assert np.array_equal(again, best.predict_proba(test))
print("the same probabilities in a new process;", "files in", folder)
