"""Two small networks, trained and measured by loops over neurons, centres and points."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from support import literal

K, D, N, M, H, ETA, STEPS = 3, 400, 60, 2, 2, 0.02, 40
RECORD = [1, 2, 5, 12, 40]
WEIGHT, BIAS = 1e-4, 2e-4


def measured_by_loops(small):
    """Return the same networks, trained and measured by loops."""
    train, test = small.train, small.test
    mu, c = train.centers, train.cluster
    xi = train.x - mu[c]
    coarse_net, fine_net = small.coarse.run.initial_net, small.fine.run.initial_net
    start = coarse_net.weights, coarse_net.biases
    sides = {}
    for name, times in (
        (
            "b",
            literal.binary(train.x, train.y, *start, ETA, STEPS + 1),
        ),
        ("c", literal.multiclass(train.x, c, fine_net.weights, H, ETA, STEPS + 1)),
    ):
        times = list(times)
        for s in times:
            s.lam = np.array([[D * row[c == j].sum() for j in range(K)] for row in s.C])
            s.sig = s.C * np.square(np.linalg.norm(xi, axis=1))
        neurons = range(len(times[0].W))
        speaks = (
            [train.law.signs == (1 if r < M else -1) for r in neurons]
            if name == "b"
            else [np.arange(K) == r // H for r in neurons]
        )
        width = M if name == "b" else H
        own = [(r, i) for r in neurons for i in range(N) if speaks[r][c[i]]]
        other = [(r, i) for r in neurons for i in range(N) if not speaks[r][c[i]]]
        pairs = [(r, j) for r in neurons for j in range(K)]
        for s in times:
            s.q = train.y * s.F[0] if name == "b" else s.F[c, np.arange(N)]
            s.qhat = np.zeros(N)
            for r, i in own:
                s.qhat[i] += (s.lam[r, c[i]] + s.sig[r, i]) / width
            s.on = np.mean([s.Z[r, i] >= 0 for r, i in own])
        sides[name] = SimpleNamespace(
            all=[times[t] for t in (0, *RECORD)],
            later=[times[t] for t in RECORD],
            steps=[times[t + 1] for t in RECORD],
            own=own,
            other=other,
            own_pairs=[(r, j) for r, j in pairs if speaks[r][j]],
            other_pairs=[(r, j) for r, j in pairs if not speaks[r][j]],
            speaks=np.array(speaks),
        )
    size = N / K
    cross = 4 * np.sqrt(D) * np.log(D)
    eps = max(2 * np.log(size) / (np.sqrt(size) - np.log(size)), K**2 * cross / D, K**2 / N)
    return SimpleNamespace(
        e=small, train=train, test=test, mu=mu, c=c, xi=xi, b=sides["b"], c_=sides["c"],
        cross=cross, eps=eps, balance=2.0, tiny=np.exp(-(np.log(D) ** 2)),
    )  # fmt: skip
