from __future__ import annotations

import numpy as np

from featavg.networks import reference
from support.literal import relu


def test_reference_networks_are_the_paper_formulas(small_train):
    mu, x, d = small_train.centers, small_train.x, 40
    plus, minus = [0, 3, 4], [1, 2]
    mu_plus, mu_minus = mu[plus].mean(axis=0), mu[minus].mean(axis=0)
    np.testing.assert_allclose(  # Definition 4.1
        reference.averaging(small_train).score(x),
        3 * relu(x @ mu_plus) - 2 * relu(x @ mu_minus),
    )
    np.testing.assert_allclose(  # Appendix D.1
        reference.averaging(small_train, positive_bias=2.0, negative_bias=-5.0).score(x),
        relu(x @ mu[plus].sum(axis=0) + 2) - relu(x @ mu[minus].sum(axis=0) - 5),
    )
    np.testing.assert_allclose(  # Theorem D.3, up to a positive factor
        3 * reference.decoupled(small_train).score(x),
        relu(x @ mu[plus].T - d / 2).sum(axis=1) - relu(x @ mu[minus].T - d / 2).sum(axis=1),
    )
    sums = np.where(np.isin(np.arange(5), plus)[:, None], mu[plus].sum(0), mu[minus].sum(0))
    np.testing.assert_allclose(  # Proposition 4.8
        reference.averaging_multiclass(small_train).logits(x), relu(x @ (mu + sums).T)
    )
