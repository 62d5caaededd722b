"""Models that give the probability that a candidate's answer is right, read from JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -40, 40))))


@dataclass(frozen=True, slots=True, eq=False)
class Logistic:
    """p = sigmoid(bias + sum of weight[i] (x[i] - centre[i]) / scale[i])."""

    centre: Floats
    scale: Floats
    weights: Floats
    bias: float

    def probabilities(self, rows: Sequence[Sequence[float]]) -> Floats:
        return sigmoid(self.scores(rows))

    def scores(self, rows: Sequence[Sequence[float]]) -> Floats:
        """Log-odds."""
        x = (np.asarray(rows, dtype=np.float64) - self.centre) / self.scale
        return np.asarray(self.bias + x @ self.weights)

    def to_json(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).tolist() for name in ("centre", "scale", "weights")}
        return {"kind": "logistic", "bias": self.bias, **arrays}


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """p = sigmoid(slope (bias + sum of leaves) + shift) over complete binary trees of one depth.

    `features` and `thresholds` are trees by inner nodes in breadth-first order: the child of node i is 2i+1 where
    x ≤ threshold, else 2i+2. `leaves` are trees by leaves. Slope and shift are Platt's scaling.
    """

    features: NDArray[np.intp]
    thresholds: Floats
    leaves: Floats
    bias: float
    slope: float = 1.0
    shift: float = 0.0

    def probabilities(self, rows: Sequence[Sequence[float]]) -> Floats:
        return sigmoid(self.slope * self.scores(rows) + self.shift)

    def scores(self, rows: Sequence[Sequence[float]]) -> Floats:
        """Log-odds before the scaling."""
        x = np.asarray(rows, dtype=np.float64)
        row, tree = np.ogrid[: len(x), : len(self.features)]
        node = np.zeros((len(x), len(self.features)), dtype=np.intp)
        for _ in range(self._depth):
            node = 2 * node + 1 + (x[row, self.features[tree, node]] > self.thresholds[tree, node])
        return np.asarray(self.bias + self.leaves[tree, node - self.features.shape[1]].sum(axis=1))

    @property
    def _depth(self) -> int:
        return int(self.leaves.shape[1]).bit_length() - 1

    def to_json(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).tolist() for name in ("features", "thresholds", "leaves")}
        return {"kind": "trees", "bias": self.bias, "slope": self.slope, "shift": self.shift, **arrays}


Model = Logistic | Trees


def read_model(value: dict[str, Any]) -> Model:
    """The model that `to_json` wrote."""
    if value["kind"] == "logistic":
        centre, scale, weights = (np.asarray(value[n], dtype=np.float64) for n in ("centre", "scale", "weights"))
        return Logistic(centre, scale, weights, float(value["bias"]))
    return Trees(
        features=np.asarray(value["features"], dtype=np.intp),
        thresholds=np.asarray(value["thresholds"], dtype=np.float64),
        leaves=np.asarray(value["leaves"], dtype=np.float64),
        bias=float(value["bias"]),
        slope=float(value["slope"]),
        shift=float(value["shift"]),
    )


__all__ = ["Floats", "Logistic", "Model", "Trees", "read_model", "sigmoid"]
