"""A fitted classifier as one file, and back."""

import json
import os
from typing import Any

import numpy as np
from equinox import Module

import gpclf.posterior as posteriors
from gpclf import storage
from gpclf.data import Columns, Missing, Scaling, Summary
from gpclf.inference.engines import KINDS, Engine

FITTED = ("elbo_", "loo_score_", "loo_unsure_", "selection_", "stopped_", "jitter_")
FITTED += ("n_features_in_", "n_samples_seen_")
KEPT = Engine | Module | np.ndarray | np.generic | bool | int | float | str | None  # parameters
ARRAYS = ("inducing_points_", "relevance_", "input_noise_std_")


def save(classifier: Any, path: str | os.PathLike, notes: dict[str, Any] | None) -> None:
    """Write what prediction needs, the parameters, a summary of the training, and `notes`."""
    from gpclf import __version__  # which has the classifier itself

    arrays: dict[str, np.ndarray] = {}
    parameters = {
        name: _described(value, arrays)
        for name, value in classifier.get_params(deep=False).items()
        if isinstance(value, KEPT)
    }
    names = getattr(classifier, "feature_names_in_", None)
    header = {
        "version": __version__,
        "parameters": parameters,
        "posterior": posteriors.parts(classifier.posterior_, arrays),
        "columns": [_listed(levels) for levels in classifier._columns.levels],
        "gaps": list(classifier._columns.gaps),
        "scaling": [storage.describe(part, arrays) for part in classifier._scaling],
        "summary": [storage.describe(part, arrays) for part in classifier.training_summary_],
        "classes": _listed(classifier.classes_),
        "feature_names": None if names is None else [str(name) for name in names],
        "history": {k: _listed(v) for k, v in classifier.history_.items()},
        "fitted": {name: getattr(classifier, name) for name in FITTED},
        "arrays": {name: storage.describe(getattr(classifier, name), arrays) for name in ARRAYS},
        "notes": _as_json(notes),
    }
    storage.write(path, header, arrays)


def _as_json(notes: dict[str, Any] | None) -> dict[str, Any] | None:
    """Notes as they will come back, or one sentence about what cannot."""
    if notes is not None and not isinstance(notes, dict):
        raise ValueError(f"notes must be a dict or None, got {type(notes).__name__}.")
    try:
        return json.loads(json.dumps(notes))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"notes must hold what JSON can: {error}.") from None


def _described(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A parameter as JSON; an engine by its name and options."""
    if isinstance(value, Engine):
        if KINDS.get(value.name) is not type(value):
            name = type(value).__name__
            raise ValueError(f"{name} is not an engine of gpclf, so a model file cannot hold it.")
        options = value.get_params(deep=False).items()
        return {"engine": value.name, "options": {k: _described(v, arrays) for k, v in options}}
    plain = value.item() if isinstance(value, np.generic) else value  # else an array comes back
    return storage.describe(plain, arrays)


def _restored(description: Any, arrays: dict[str, np.ndarray]) -> Any:
    if "engine" not in description:
        return storage.restore(description, arrays)
    options = {k: storage.restore(v, arrays) for k, v in description["options"].items()}
    return KINDS[description["engine"]](**options)


def _listed(array: np.ndarray | None) -> list | None:
    """An array as JSON, of words or numbers."""
    return None if array is None else [array.dtype.str, array.tolist()]


def _array(listed: list | None) -> np.ndarray | None:
    return None if listed is None else np.array(listed[1], dtype=listed[0])


def load(kind: type, path: str | os.PathLike) -> Any:
    """The classifier that `save` wrote; a `callback` or a random generator is not kept."""
    header, arrays = storage.read(path)
    try:
        parameters = {k: _restored(v, arrays) for k, v in header["parameters"].items()}
        classifier = kind(**parameters)
        classifier.posterior_ = posteriors.from_parts(header["posterior"], arrays)
        *units, missing = (storage.restore(part, arrays) for part in header["scaling"])
        classifier._scaling = Scaling(*units, missing=Missing(*missing))
        levels = tuple(_array(levels) for levels in header["columns"])
        classifier._columns = Columns(levels, tuple(header["gaps"]))
        parts = (storage.restore(part, arrays) for part in header["summary"])
        classifier.training_summary_ = Summary(*parts)
        classifier.classes_ = _array(header["classes"])
        if header["feature_names"] is not None:
            classifier.feature_names_in_ = np.array(header["feature_names"], dtype=object)
        classifier.history_ = {k: _array(v) for k, v in header["history"].items()}
        for name in FITTED:
            setattr(classifier, name, header["fitted"][name])
        for name in ARRAYS:
            setattr(classifier, name, storage.restore(header["arrays"][name], arrays))
    except storage.MOST_DAMAGE as error:
        raise ValueError(f"{path} is damaged: its header lacks {error}.") from None
    classifier.loo_log_proba_ = None  # it belongs to the rows
    classifier.notes_ = header.get("notes")
    classifier.kernel_ = classifier.posterior_.prepared.model.kernel
    classifier.likelihood_ = classifier.posterior_.likelihood
    return classifier
