"""Parameters of the classifier and its engines: few, documented, and refused in a sentence."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info

from gpclf import GPClassifier, posterior
from gpclf.estimators import classifier
from gpclf.inference.engines import (
    KINDS,
    NAMES,
    Decoupled,
    Gradient,
    MeanField,
    Natural,
    PowerEP,
)

QUICK = {"n_inducing": 4, "max_epochs": 2, "random_state": 0}
X6, Y6 = np.arange(12.0).reshape(6, 2), [0, 1, 0, 1, 0, 1]


def sentence(name, owner="GPClassifier"):
    """How scikit-learn begins."""
    return f"The '{name}' parameter of {owner} must be"


BAD = {
    "n_inducing": [0, 2.5, "many"],
    "inference": ["magic", None, 3, Natural],
    "input_noise": ["some", 0.1],
    "class_weight": ["even", 3],
    "random_state": ["seed", -1],
    "verbose": ["loud", -1],
    "max_epochs": [0, 2.5, "all"],
    "max_seconds": [0, -1.0, "a minute"],
    "warm_start": ["yes", 3],
    "share": ["yes", 3, True],
    "precision": ["half", 64],
    "tol": [0, -1e-3, "small"],
    "callback": ["print", 3],
    "early_stopping": ["soon", 0.0, 1.0, 3],
    "input_noise_std": [0.1, "guess"],
    "noisy_features": ["first", 3],
    "scaling": ["sturdy", False],
}
BAD_OPTIONS = [
    (Natural, "optimizer", ["sgd", "adadelta"]),
    (Natural, "batch_size", [0, "big", 2.5]),
    (Natural, "learning_rate", [0.0, 1.5]),
    (Natural, "class_subset", [0, "few"]),
    (Natural, "learn_inducing", ["no"]),
    (Decoupled, "n_mean", [-1, "more"]),
    (Decoupled, "batch_size", [0]),
    (PowerEP, "alpha", [0, 0.0, 1.5, "half"]),
    (PowerEP, "optimizer", ["sgd"]),
    (PowerEP, "batch_size", [0]),
    (PowerEP, "learning_rate", [0]),
    (Gradient, "optimizer", ["sgd"]),
    (Gradient, "epsilon", [0.0, "small"]),
    (MeanField, "predictive", ["best"]),
    (MeanField, "optimizer", ["adam"]),
]


@pytest.fixture
def no_work(monkeypatch):
    """A fit that fails where it would look at the data."""

    def looked(*given, **named):
        raise AssertionError("The parameters had not been looked at when the work began.")

    monkeypatch.setattr(classifier, "labelled_table", looked)
    monkeypatch.setattr(classifier, "learn", looked)


@pytest.mark.parametrize(("name", "value"), [(k, v) for k, values in BAD.items() for v in values])
def test_a_bad_parameter_is_named_before_any_work(no_work, name, value):
    for fit in (GPClassifier.fit, GPClassifier.partial_fit):
        with pytest.raises(ValueError, match=sentence(name)) as error:
            fit(GPClassifier(**{name: value}), X6, Y6)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("kind", "name", "value"), [(k, n, v) for k, n, values in BAD_OPTIONS for v in values]
)
def test_a_bad_option_of_an_engine_is_named_before_any_work(no_work, kind, name, value):
    for fit in (GPClassifier.fit, GPClassifier.partial_fit):
        with pytest.raises(ValueError, match=sentence(name, kind.__name__)):
            fit(GPClassifier(inference=kind(**{name: value})), X6, Y6)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"likelihood": "probit!"}, "no likelihood named 'probit!'"),
        ({"likelihood": 3}, "likelihood must be"),
        ({"kernel": "rbff"}, "no kernel named 'rbff'"),
        ({"kernel": 3}, "kernel must be"),
        ({"categorical_features": [7]}, "categorical_features names column 7"),
        ({"n_inducing": [1.0, 2.0]}, "n_inducing must be a number, or points"),
    ],
)
def test_what_has_a_sentence_of_its_own(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        GPClassifier(**parameters).fit(X6, Y6)


def test_every_parameter_but_the_free_ones_has_bad_values_here():
    free = {"likelihood", "kernel", "categorical_features"}
    assert set(BAD) | free == set(GPClassifier().get_params(deep=False))


def test_parameters_are_few_and_all_but_three_have_to_be_named():
    parameters = list(inspect.signature(GPClassifier).parameters.values())
    assert len(parameters) <= 20
    assert [p.name for p in parameters[:3]] == ["likelihood", "kernel", "n_inducing"]
    assert {p.kind for p in parameters[3:]} == {inspect.Parameter.KEYWORD_ONLY}
    with pytest.raises(TypeError):
        GPClassifier("auto", None, "auto", "natural")


def test_every_parameter_is_documented_with_its_default():
    lines = [line.strip() for line in inspect.getdoc(GPClassifier).splitlines()]
    for parameter in inspect.signature(GPClassifier).parameters.values():
        own = [line for line in lines if line.startswith(f"{parameter.name} : ")]
        default = str(parameter.default).replace("0.0001", "1e-4")
        quoted = f'"{default}"' if isinstance(parameter.default, str) else default
        assert len(own) == 1, parameter.name
        assert own[0].endswith(f", default={quoted}"), own[0]


@pytest.mark.parametrize("kind", [KINDS[name] for name in sorted(KINDS)])
def test_every_option_of_an_engine_is_documented_and_refused_when_it_is_bad(kind):
    lines = inspect.getdoc(kind).splitlines()
    named = {name.strip() for line in lines for name in line.split(" : ")[0].split(",")}
    options = set(kind().get_params())
    assert options <= named
    assert options == set(kind._parameter_constraints)


def test_an_unknown_engine_is_answered_with_the_names_of_those_there_are():
    with pytest.raises(ValueError, match="inference") as error:
        GPClassifier(inference="newton").fit(X6, Y6)
    assert all(f"'{name}'" in str(error.value) for name in NAMES)


def test_an_engine_is_searched_over_cloned_and_left_alone():
    X, y = np.random.default_rng(0).normal(size=(24, 2)), np.arange(24) % 2
    engine = PowerEP(alpha=0.5, optimizer=None)
    clf = GPClassifier(inference=engine, **QUICK)
    assert clone(clf).inference is not engine
    assert clone(clf).get_params()["inference__alpha"] == 0.5
    search = GridSearchCV(clf, {"inference__alpha": [0.25, 1.0]}, cv=2).fit(X, y)
    assert search.best_params_["inference__alpha"] in (0.25, 1.0)
    assert engine.get_params() == PowerEP(alpha=0.5, optimizer=None).get_params()


def test_what_is_kept_of_a_fit_is_made_on_one_thread(monkeypatch):
    """Several threads of BLAS add up in an order of their own: other last digits each time."""
    threads, original = [], posterior.find_roots

    def watched(*given):
        threads.extend(b["num_threads"] for b in threadpool_info() if b["user_api"] == "blas")
        return original(*given)

    monkeypatch.setattr(posterior, "find_roots", watched)
    seen = []
    clf = GPClassifier(**QUICK, callback=lambda step: seen.append(step.predict_log_proba(X6)))
    clf.fit(X6, Y6)
    assert len(threads) > len(seen) > 0
    assert set(threads) == {1}
