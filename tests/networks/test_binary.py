from __future__ import annotations

import numpy as np

import featavg as fa
from support.literal import relu


def test_binary_score_is_the_formula_of_section_3_2(binary, rng):
    x = rng.standard_normal((7, 4))
    W, b = binary.weights, binary.biases
    expected = [
        sum(relu(W[r] @ p + b[r]) for r in range(3)) / 3
        - sum(relu(W[r] @ p + b[r]) for r in range(3, 6)) / 3
        for p in x
    ]
    np.testing.assert_allclose(binary.score(x), expected)


def test_a_score_of_zero_is_the_decision_minus_one():
    silent = fa.BinaryNet([[1.0], [2.0]])
    np.testing.assert_array_equal(silent.score([[-1.0]]), [0.0])
    np.testing.assert_array_equal(silent.predict([[-1.0]]), [-1])
