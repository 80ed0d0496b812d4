"""A fitted classifier as one file, and back."""

import os
from typing import Any

import numpy as np
from equinox import Module

import gpclf.posterior as posteriors
from gpclf import storage
from gpclf.data import Scaling

FITTED = ("elbo_", "stopped_", "jitter_", "n_features_in_")
ARRAYS = ("inducing_points_", "relevance_")


def save(classifier: Any, path: str | os.PathLike) -> None:
    """Write what prediction needs, the parameters and a summary of the training."""
    arrays: dict[str, np.ndarray] = {}
    parameters = {
        name: storage.describe(value, arrays)
        for name, value in classifier.get_params(deep=False).items()
        if isinstance(value, Module | bool | int | float | str | None)
    }
    names = getattr(classifier, "feature_names_in_", None)
    header = {
        "parameters": parameters,
        "posterior": posteriors.parts(classifier.posterior_, arrays),
        "scaling": [storage.describe(part, arrays) for part in classifier._scaling],
        "classes": [classifier.classes_.dtype.str, classifier.classes_.tolist()],
        "feature_names": None if names is None else [str(name) for name in names],
        "history": {k: [v.dtype.str, v.tolist()] for k, v in classifier.history_.items()},
        "fitted": {name: getattr(classifier, name) for name in FITTED},
        "arrays": {name: storage.describe(getattr(classifier, name), arrays) for name in ARRAYS},
    }
    storage.write(path, header, arrays)


def load(kind: type, path: str | os.PathLike) -> Any:
    """The classifier that `save` wrote; a `callback` or a random generator is not kept."""
    header, arrays = storage.read(path)
    try:
        parameters = {k: storage.restore(v, arrays) for k, v in header["parameters"].items()}
        classifier = kind(**parameters)
        classifier.posterior_ = posteriors.from_parts(header["posterior"], arrays)
        classifier._scaling = Scaling(*(storage.restore(p, arrays) for p in header["scaling"]))
        dtype, classes = header["classes"]
        classifier.classes_ = np.array(classes, dtype=dtype)
        if header["feature_names"] is not None:
            classifier.feature_names_in_ = np.array(header["feature_names"], dtype=object)
        classifier.history_ = {k: np.array(v, dtype=d) for k, (d, v) in header["history"].items()}
        for name in FITTED:
            setattr(classifier, name, header["fitted"][name])
        for name in ARRAYS:
            setattr(classifier, name, storage.restore(header["arrays"][name], arrays))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: its header lacks {error}.") from None
    classifier.kernel_ = classifier.posterior_.prepared.model.kernel
    classifier.likelihood_ = classifier.posterior_.likelihood
    return classifier
