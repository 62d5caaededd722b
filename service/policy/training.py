"""Fits a calibration on labelled observations. Needs scikit-learn, which only workers and the command line load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from service.policy.boundary import BLOCKS, LEARNED_FROM, Budget, Outcome, choose_boundary, missing_labels, strict
from service.policy.calibrated import Calibration
from service.policy.model import Floats, Logistic, Model, Trees, sigmoid
from service.policy.signals import Signals

_LEAST_OF_A_CLASS = 20
_BAGS = 3  # of trees, each grown by draws of its own: their mean orders what is nearly certain steadier than one
_TREES = 100
_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Observation:
    """One candidate of one labelled request. `request` groups the candidates of a request; order is in time.

    `cluster` is what is right or wrong together (the entry's answer), `signals` what the policy saw then. `weight` is
    how many requests it stands for in the bound; 0: it was not drawn at random, and only the model learns from it.
    """

    request: int
    signals: Signals
    correct: bool
    cluster: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Trained:
    """A model, and what it would serve of the requests that came after those which each part of it had learned from.

    `model` None: too few right or wrong candidates. labelled: requests that were drawn at random.
    """

    model: Model | None
    outcomes: Sequence[Outcome]
    labelled: int


def fit_calibration(observations: Sequence[Observation], budget: Budget, *, exact_hits: int = 0) -> Calibration:
    """A calibration from the observations of one window, oldest first. `exact_hits` are those of the same window."""
    labelled = _labelled(observations)
    if missing := missing_labels(budget, labelled):
        return Calibration(budget, strict(missing), None, labelled)
    return calibrate(train(observations), budget, exact_hits=exact_hits)


def train(observations: Sequence[Observation], *, kind: str = "trees") -> Trained:
    """The model of observations, oldest first, with the outcomes that a cut can be chosen on.

    Their probabilities are from models that saw only what came before the block of time which they judge, as it will
    be when it serves; so what changes with time counts against it. `kind` is `trees` (gradient-boosted) or `logistic`.
    """
    labelled, right = _labelled(observations), sum(o.correct for o in observations)
    if min(right, len(observations) - right) < _LEAST_OF_A_CLASS:
        return Trained(None, [], labelled)
    x = np.asarray([o.signals for o in observations], dtype=np.float64)
    y = np.asarray([o.correct for o in observations])
    blocks = _time_blocks(np.asarray([o.request for o in observations]))
    model, held_out = _forward_fit(x, y, blocks, kind)
    later = [o for o, block in zip(observations, blocks, strict=True) if block >= LEARNED_FROM]
    return Trained(model, _outcomes(later, held_out), labelled)


def calibrate(trained: Trained, budget: Budget, *, exact_hits: int = 0) -> Calibration:
    """The calibration of a trained model for a budget. `exact_hits` are those of the window that it learned from."""
    missing = missing_labels(budget, trained.labelled)
    if missing or trained.model is None:
        both = f"{_LEAST_OF_A_CLASS} right and {_LEAST_OF_A_CLASS} wrong candidates among the labelled ones"
        return Calibration(budget, strict(missing or both), None, trained.labelled)
    exact = exact_hits * (BLOCKS - LEARNED_FROM) // BLOCKS
    return Calibration(
        budget, choose_boundary(trained.outcomes, budget, exact_hits=exact), trained.model, trained.labelled
    )


def _labelled(observations: Sequence[Observation]) -> int:
    return len({o.request for o in observations if o.weight})


def _time_blocks(requests: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Contiguous blocks of requests, about equally many each."""
    _, order = np.unique(requests, return_inverse=True)
    return np.asarray(order * BLOCKS // (order.max() + 1))


def _forward_fit(x: Floats, y: Any, blocks: Any, kind: str) -> tuple[Model, Floats]:
    """The model of all rows, and the probabilities of those of later blocks from models of what came before."""
    later = range(LEARNED_FROM, BLOCKS)
    scores = np.concatenate([_scores(x[blocks < b], y[blocks < b], x[blocks == b], kind) for b in later])
    if kind == "logistic":
        return _fit_logistic(x, y), sigmoid(scores)
    slope, shift = _platt(scores, y[blocks >= LEARNED_FROM])
    return replace(_fit_trees(x, y), slope=slope, shift=shift), sigmoid(slope * scores + shift)


def _platt(scores: Floats, y: Any) -> tuple[float, float]:
    """Slope and shift that make probabilities of scores. Scores that tell nothing of later rows get the slope 0."""
    right = int(y.sum())
    if right in (0, len(y)):
        return 0.0, float(np.log((right + 1) / (len(y) - right + 1)))
    fitted = _fit_logistic(scores[:, None], y)
    slope = max(0.0, float(fitted.weights[0] / fitted.scale[0]))
    return slope, float(fitted.bias - slope * fitted.centre[0])


def _scores(x: Floats, y: Any, unseen: Floats, kind: str) -> Floats:
    """Log-odds of rows by a model of others; where those are all right, or all wrong, the same for each row."""
    right = int(y.sum())
    if right in (0, len(y)):
        return np.full(len(unseen), np.log((right + 1) / (len(y) - right + 1)))
    model = _fit_logistic(x, y) if kind == "logistic" else _fit_trees(x, y)
    return model.scores(unseen.tolist())


def _fit_logistic(x: Floats, y: Any) -> Logistic:
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]  # noqa: PLC0415 - untyped, heavy, not installed with the service

    centre, scale = x.mean(axis=0), x.std(axis=0)
    scale[scale == 0] = 1.0
    fitted = LogisticRegression(C=1.0, max_iter=2000).fit((x - centre) / scale, y)
    return Logistic(centre, scale, fitted.coef_[0], float(fitted.intercept_[0]))


def _fit_trees(x: Floats, y: Any) -> Trees:
    parts = [part for seed in range(_BAGS) for part in _boosted(x, y, seed)]
    rate = float(np.mean(y))
    return Trees(
        features=np.asarray([p[0] for p in parts], dtype=np.intp),
        thresholds=np.asarray([p[1] for p in parts]),
        leaves=np.asarray([p[2] for p in parts]) / _BAGS,
        bias=float(np.log(rate / (1 - rate))),
    )


def _boosted(x: Floats, y: Any, seed: int) -> list[tuple[list[int], list[float], list[float]]]:
    from sklearn.ensemble import GradientBoostingClassifier  # type: ignore[import-untyped]  # noqa: PLC0415 - as above

    booster = GradientBoostingClassifier(
        n_estimators=_TREES,
        learning_rate=0.1,
        max_depth=_DEPTH,
        min_samples_leaf=20,
        subsample=0.7,
        max_features=0.5,
        random_state=seed,
    ).fit(x, y)
    return [_complete(tree.tree_, booster.learning_rate) for tree in booster.estimators_[:, 0]]


def _complete(tree: Any, rate: float) -> tuple[list[int], list[float], list[float]]:
    """A tree filled up to full depth: below an early leaf every branch has its value."""
    features, thresholds = [], []
    level = [0]
    for _ in range(_DEPTH):
        below = []
        for node in level:
            leaf = tree.children_left[node] < 0
            features.append(0 if leaf else int(tree.feature[node]))
            thresholds.append(0.0 if leaf else float(tree.threshold[node]))
            below += [node, node] if leaf else [tree.children_left[node], tree.children_right[node]]
        level = below
    return features, thresholds, [rate * float(tree.value[node, 0, 0]) for node in level]


def _outcomes(observations: Sequence[Observation], probabilities: Floats) -> list[Outcome]:
    """Each request's best candidate: the one that the policy would serve."""
    best: dict[int, Outcome] = {}
    for observation, probability in zip(observations, probabilities.tolist(), strict=True):
        held = best.get(observation.request)
        if held is None or probability > held.probability:
            best[observation.request] = Outcome(
                probability, observation.correct, observation.cluster, observation.weight
            )
    return [outcome for outcome in best.values() if outcome.weight]


__all__ = ["Observation", "Trained", "calibrate", "fit_calibration", "train"]
