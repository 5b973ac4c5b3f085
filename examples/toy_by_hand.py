"""A network small enough to be checked by hand: two clusters in the plane.

With k = 2 and d = 2 the centres have norm sqrt(2) and are orthogonal; without noise every point
is a centre. Turned so that they lie on the axes, they are (sqrt 2, 0) and (0, sqrt 2), and all
numbers below can be worked out on paper.
"""

import numpy as np

import featavg as fa
from featavg.networks import reference

ROOT2 = np.sqrt(2)


def main() -> None:
    law = fa.MultiCluster(clusters=2, dim=2, noise=0.0)
    centers = np.array([[ROOT2, 0.0], [0.0, ROOT2]])
    cluster = np.array([0, 1])
    train = fa.Sample(
        law=law,
        centers=centers,
        x=centers,
        y=np.array([1, -1]),
        cluster=cluster,
        noise_norms=np.zeros(2),
    )

    # One gradient step from zero. Every neuron is active (its pre-activation is 0, which counts),
    # f = 0, so each point pulls with sigmoid(0) = 1/2. With eta = 1, n = 2 and m = 1 the positive
    # neuron becomes (1/2)(1/2)(x1 - x2) = (sqrt 2, -sqrt 2)/4, the negative one its opposite.
    run = fa.descend(fa.BinaryNet(np.zeros((2, 2))), train, learning_rate=1.0, steps=1)
    print("after one step:", run.net.weights.round(4).tolist())
    assert np.allclose(run.net.weights, np.array([[1, -1], [-1, 1]]) * ROOT2 / 4)

    # Lemma 5.1: lambda is ||mu||² = 2 times the coefficient of each point, 1/4 here.
    print("feature coefficients:", run.feature_coefficients[-1].round(4).tolist())
    assert np.allclose(run.feature_coefficients[-1], [[0.5, -0.5], [-0.5, 0.5]])

    # f_FA(x) = relu(sqrt2·x1) - relu(sqrt2·x2). At (sqrt 2, 0) it is 2, and the nearest point
    # with x1 = x2 is (1, 1)/sqrt(2), at the distance 1 = sqrt(d/k).
    net = reference.averaging(train)
    print("score at the first centre:", net.score(centers[:1]).round(4).tolist())
    assert np.allclose(net.score(centers), [2, -2])
    curve = fa.robust_curve(
        net,
        centers,
        train.y,
        radii=[0.99, 1.01],
        method="direction",
        direction=fa.averaged_direction(train),
    )
    print("robust accuracy at 0.99 and 1.01:", curve.accuracy.tolist())
    assert np.allclose(curve.accuracy, [1, 0])


if __name__ == "__main__":
    main()
