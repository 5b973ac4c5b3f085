"""A second, literal measurement of every claim.

Each oracle takes what `ledger_facts.measured_by_loops` returns and gives the slack of its claim.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

import featavg as fa
from featavg.networks import reference
from support.ledger_facts import BIAS, ETA, STEPS, WEIGHT, D, H, K, M, N


def within(i, j, f):
    return f.c[i] == f.c[j]


PAIRS = list(itertools.combinations(range(N), 2))
INF = np.inf


def upper(values, limit):
    """The slack of an upper bound."""
    values = np.ravel(np.asarray(list(values), dtype=float))
    return min((limit / v if v > 0 else INF) for v in values)


def lower(values, limit):
    values = np.ravel(np.asarray(list(values), dtype=float))
    return min((max(v, 0) / limit if limit > 0 else INF if v >= limit else 0) for v in values)


def gap(values):
    return max(values) - min(values)


def cluster_gap(values, f):
    return max(gap(values[f.c == j]) for j in range(K))


def in_steps(check, side):
    """The least slack over the recorded times from 1 on."""
    return min(check(s) for s in side.later)


def own_range(s, side, i):
    mine = [s.sig[r, p] for r, p in side.own if p == i]
    return min(mine), max(mine)


def growth_of_noise(f, side):
    return in_steps(
        lambda s: min(
            lower([s.sig[p] for p in side.own], K / (2 * N) * np.log(s.t * ETA)),
            upper([s.sig[p] for p in side.own], 2 * K / N * np.log(s.t + 1)),
        ),
        side,
    )


def similar_noise(f, side, factor):
    def check(s):
        own = [s.sig[p] for p in side.own]
        room, grow = 1 / (N * D), factor * f.eps
        return min(
            upper([max(own)], (1 + grow) * min(own) + room),
            lower([min(own)], (1 - grow) * max(own) - room),
        )

    return in_steps(check, side)


def margin_by_noise(f, side):
    def check(s):
        out = []
        for i in range(N):
            small_, large = own_range(s, side, i)
            out.append(lower([s.q[i]], N / (2 * K) * large - 2 * f.eps))
            out.append(upper([s.q[i]], 2 * N / K * small_ + 2 * f.eps))
        return min(out)

    return in_steps(check, side)


def pull_by_noise(f, side, low, high):
    def check(s):
        out = []
        for i in range(N):
            small_, large = own_range(s, side, i)
            out.append(s.pull[i] / (low * np.exp(-2 * N / K * small_)))
            out.append(high * np.exp(-N / (2 * K) * large) / s.pull[i])
        return min(out)

    return in_steps(check, side)


def active_at_start(side, f):
    return [
        sum(side.all[0].Z[r, i] >= 0 for i in range(N) if f.c[i] == j)
        for r in range(len(side.all[0].W))
        for j in range(K)
    ]


def distance(f, side):
    s = side.all[-1]
    typical = np.mean([s.lam[p] for p in side.own_pairs])
    rest = [
        np.sqrt(D) * np.linalg.norm(s.W[r] - typical * sum(f.mu[j] for j in range(K) if row[j]) / D)
        for r, row in enumerate(side.speaks)
    ]
    return upper(rest, 0.1 * typical)


def sup_distance(f):
    s, side = f.b.all[-1], f.b
    sums = side.speaks @ f.mu
    C = (s.W * sums).sum() / (sums**2).sum()
    rest = [
        np.linalg.norm(w - C * v) * np.sqrt(D) + abs(b)
        for w, v, b in zip(s.W, sums, s.b, strict=True)
    ]
    return upper([sum(rest) / M], 0.1 * C * np.sqrt(D) * max(np.linalg.norm(v) for v in sums))


def coarse_score(W, b, x):
    Z = np.maximum(x @ W.T + b, 0)
    return Z[:, :M].mean(axis=1) - Z[:, M:].mean(axis=1)


def fine_score(W, x, h=H):
    F = np.maximum(x @ W.T, 0).reshape(len(x), K, h).mean(axis=2)
    p = np.exp(F - F.max(axis=1, keepdims=True))
    positive = [j for j in range(K) if j in fa.MultiCluster(clusters=K, dim=D).positive_clusters]
    negative = [j for j in range(K) if j not in positive]
    return p[:, positive].sum(axis=1) - p[:, negative].sum(axis=1)


def share_right(score, f):
    return np.mean(np.where(score > 0, 1, -1) == f.test.y)


def moved(f, factor):
    average = sum(f.train.law.signs[j] * f.mu[j] for j in range(K))
    return f.test.x - np.outer(f.test.y, factor / K * average)


def fails_after(score, f):
    return upper([share_right(score, f)], f.tiny)


def averaging_net(x, f):
    signs = f.train.law.signs
    up, down = (sum(f.mu[j] for j in range(K) if signs[j] == s) for s in (1, -1))
    return np.maximum(x @ up, 0) - np.maximum(x @ down, 0)


def averaging_multi(x, f):
    signs = f.train.law.signs
    W = [f.mu[j] + sum(f.mu[i] for i in range(K) if signs[i] == signs[j]) for j in range(K)]
    return np.array(W)


def certified(net, radius, f):
    """No attack within the radius succeeds, or some does: a check from the other side."""
    points = slice(0, 20)
    found = fa.minimal_norm(net, f.test.x[points], f.test.y[points])
    return INF if (found.upper >= radius).all() else 0.0


def smallest_fooling_radius(f):
    s = f.b.all[-1]
    average = sum(f.train.law.signs[j] * f.mu[j] for j in range(K))
    unit = average / np.linalg.norm(average)
    before = coarse_score(s.W, s.b, f.test.x) > 0
    for radius in np.linspace(0, 10 * np.sqrt(D), 4001):
        after = coarse_score(s.W, s.b, f.test.x - radius * np.outer(f.test.y, unit)) > 0
        if np.mean(after != before) >= 0.99:
            return radius
    return INF


def final_lambda(side):
    return [side.all[-1].lam[p] for p in side.own_pairs]


def growth_of_features(side):
    own = final_lambda(side)
    return min(lower(own, np.log(STEPS * ETA) / 4), upper(own, 4 * np.log(STEPS + 1)))


def others(f, side):
    return in_steps(
        lambda s: min(
            upper([abs(s.lam[p]) for p in side.other_pairs], f.eps),
            upper([abs(s.sig[p]) for p in side.other], 2 * f.eps),
        ),
        side,
    )


def products(f, side, part):
    def check(s):
        if part == "mu":
            return upper(np.abs(s.W @ f.mu.T - s.lam), f.eps / 6)
        if part == "xi":
            return upper(np.abs(s.W @ f.xi.T - s.sig), f.eps / 6)
        return upper(np.abs(s.W @ f.train.x.T - s.lam[:, f.c] - s.sig), f.eps / 3)

    return min(check(s) for s in side.all)


def of_all_pairs(s, check):
    """The least slack over all ordered pairs: check(gap of margins, ratio of pulls)."""
    pairs = [(i, j) for i in range(N) for j in range(N) if i != j and s.q[i] >= s.q[j]]
    return min(check(s.q[i] - s.q[j], s.pull[j] / s.pull[i]) for i, j in pairs)


def steps_with_all_on(f, side):
    """Literal steps of own coefficients against the equations without activations."""
    slacks = []
    for s, after in zip(side.later, side.steps, strict=True):
        change = [[0.0] * N for _ in s.C]
        for r, i in side.own:
            change[r][i] = ETA / (N * M) * s.pull[i]
        change = np.array(change)
        lam = np.array([[D * row[f.c == j].sum() for j in range(K)] for row in change])
        sig = change * np.square(np.linalg.norm(f.xi, axis=1))
        for expected, found, own in (
            (lam, after.lam - s.lam, side.own_pairs),
            (sig, after.sig - s.sig, side.own),
        ):
            off = max(abs(expected[p] - found[p]) for p in own) / np.abs(found).max()
            slacks.append(100 * f.e.rounding / off)
    return min(slacks)


def extremes_of_normal_numbers(count):
    """Both bounds of Lemma A.9, by the error function of the standard library."""

    def below(a):
        return (1 + math.erf(a / math.sqrt(2))) / 2

    typical = math.sqrt(2 * math.log(count))
    low = [0.01 * t for t in range(801)]
    high = [typical**2 * t / 800 for t in range(801)]
    return min(
        *(math.exp(-t * t / 2) / 2 / tail_of_least(typical + t, count) for t in low),
        *(
            math.exp(-math.exp(t / 2) / (math.sqrt(2 * math.pi) * (typical + 1)))
            / below(math.sqrt(max(typical**2 - t, 0))) ** count
            for t in high
        ),
    )


def tail_of_least(a, count):
    """P[some of l normal numbers is below -a], without cancellation."""
    tail = math.erfc(a / math.sqrt(2)) / 2
    return -math.expm1(count * math.log1p(-tail))


def broken_with_any_biases(f):
    up, down = (sum(f.mu[j] for j in range(K) if f.train.law.signs[j] == s) for s in (1, -1))
    reach = 2 * (1 + f.balance)
    right = []
    x = moved(f, reach)
    before, after = (f.test.x @ up, f.test.x @ down), (x @ up, x @ down)
    for plus, minus in itertools.product(np.arange(-reach, reach + 0.1, 0.25) * D, repeat=2):
        clean, robust = (
            share_right(np.maximum(a + plus, 0) - np.maximum(b + minus, 0), f)
            for a, b in (before, after)
        )
        if clean >= 0.9:
            right.append(robust)
    assert len(right) > 100
    return upper(right, f.tiny)


def window(start, steps):
    low, last = np.log(start), np.log(steps)
    return min(np.exp(last - low), np.sqrt(K) / last)


SHARED = {
    "lemma-b.1 lemma-c.5": lambda f, s: s.later[0].on,
    "lemma-b.7.1 lemma-c.10.1": growth_of_noise,
    "lemma-b.7.7 lemma-c.10.7": lambda f, s: min(t.on for t in s.later),
    "lemma-b.7.8 lemma-c.10.8": others,
    "lemma-b.16 lemma-c.16": others,
    "lemma-b.11 lemma-c.11": lambda f, s: products(f, s, "mu"),
    "lemma-b.12 lemma-c.12": lambda f, s: products(f, s, "xi"),
    "lemma-b.13 lemma-c.13": lambda f, s: products(f, s, "x"),
    "lemma-b.14 lemma-c.14": lambda f, s: in_steps(lambda t: upper(np.abs(t.q - t.qhat), f.eps), s),
    "corollary-b.15 corollary-c.15": lambda f, s: in_steps(
        lambda t: upper([gap(t.q - t.qhat)], 2 * f.eps), s
    ),
    "lemma-b.20 lemma-c.20": margin_by_noise,
    "lemma-b.23 lemma-c.23": lambda f, s: growth_of_features(s),
    "lemma-b.25 lemma-c.25": distance,
    "theorem-4.5.2 theorem-4.7.2": distance,
    "lemma-b.26 lemma-c.26": lambda f, s: upper(
        np.abs((f.test.x - f.mu[f.test.cluster]) @ s.all[-1].W.T), f.eps / 6
    ),
}

# a factor for the 2-class network, one for the other
SCALED = {
    ("lemma-b.7.2", "lemma-c.10.2"): (5, 5 * K, lambda t, f: cluster_gap(t.qhat, f), 0),
    ("lemma-b.7.3", "lemma-c.10.3"): (63, 32 * K**2, lambda t, f: gap(t.qhat), 0),
    ("lemma-b.7.4", "lemma-c.10.4"): (65, 33 * K**2, lambda t, f: gap(t.q), 0),
    ("lemma-5.3",): (65, 0, lambda t, f: gap(t.q), 0),
    ("lemma-b.7.5", "lemma-c.10.5"): (
        14, 14 * K, lambda t, f: np.exp(cluster_gap(np.log(t.pull), f)), 1,
    ),
    ("lemma-b.7.6", "lemma-c.10.6"): (
        130, 67 * K**2, lambda t, f: np.exp(gap(np.log(t.pull))), 1,
    ),
}  # fmt: skip

ALONE = {
    "assumption-3.3": lambda f: 1.0,
    "assumption-4.3.dim": lambda f: D / K**10,
    "assumption-4.3.samples": lambda f: N / K**7,
    "assumption-4.3.samples-limit": lambda f: np.log(D) ** 2 / np.log(N),
    "assumption-4.3.width": lambda f: min(2 * K / M, M / (K / 2)),
    "assumption-4.3.rate": lambda f: D**-2.0 / ETA,
    "assumption-4.3.init": lambda f: ETA * K**-5.0 / BIAS**2,
    "proposition-a.6.1": lambda f: upper(
        [abs(np.linalg.norm(v) - np.sqrt(D)) for v in f.xi], 2 * np.log(D)
    ),
    "proposition-a.6.2": lambda f: upper([np.linalg.norm(v) for v in f.train.x], 3 * np.sqrt(D)),
    "proposition-a.6.3": lambda f: upper([abs(f.xi[i] @ f.xi[j]) for i, j in PAIRS], f.cross),
    "proposition-a.6.4": lambda f: upper([abs(v @ u) for v in f.xi for u in f.mu], f.cross),
    "proposition-a.6.5": lambda f: upper(
        [abs(f.train.x[i] @ f.train.x[j]) for i, j in PAIRS if not within(i, j, f)], f.cross
    ),
    "proposition-a.6.6": lambda f: min(
        check([f.train.x[i] @ f.train.x[j] for i, j in PAIRS if within(i, j, f)], limit)
        for check, limit in ((upper, 2 * D), (lower, D / 2))
    ),
    "proposition-a.6.6.self": lambda f: upper([v @ v for v in f.train.x], 2 * D),
    "proposition-a.6.7": lambda f: upper(
        [abs(sum(f.c == j) - N / K) for j in range(K)], np.sqrt(2 * N / K) * np.log(N / K)
    ),
    "lemma-a.8": lambda f: upper(
        [np.mean([abs(v @ u) >= np.sqrt(D) * np.log(D) for v in f.xi for u in f.mu])],
        2 * D ** (-np.log(D) / 2),
    ),
    "lemma-a.9": lambda f: extremes_of_normal_numbers(2 * M),
    "proposition-a.10.weights": lambda f: upper(
        [abs(np.linalg.norm(w) - WEIGHT * np.sqrt(D)) for w in f.b.all[0].W],
        2 * WEIGHT * np.log(D),
    ),
    "proposition-c.1": lambda f: upper(
        [abs(np.linalg.norm(w) - WEIGHT * np.sqrt(D)) for w in f.c_.all[0].W],
        2 * WEIGHT * np.log(D),
    ),
    "proposition-a.10.biases": lambda f: upper(
        np.abs(f.b.all[0].b), 2 * BIAS * np.sqrt(2 * np.log(M))
    ),
    "proposition-a.12": lambda f: lower(active_at_start(f.b, f), N / (3 * K * M**2)),
    "proposition-c.3": lambda f: lower(active_at_start(f.c_, f), N / (3 * K**3 * H**2)),
    "lemma-a.13": lambda f: upper(np.abs(f.b.all[0].Z), ETA * np.sqrt(D) / (N * M)),
    "lemma-a.14": lambda f: min(upper(f.b.all[0].pull, 2 / 3), lower(f.b.all[0].pull, 1 / 3)),
    "lemma-a.15": lambda f: min(upper(s.pull, 1) for s in f.b.all),
    "lemma-c.4": lambda f: min(upper(f.c_.all[0].p, 2 / K), lower(f.c_.all[0].p, 1 / (2 * K))),
    "lemma-5.5": lambda f: min(t.on for t in f.b.later),
    "lemma-b.6": lambda f: min(
        of_all_pairs(
            s,
            lambda gap, ratio: min(np.exp(gap + 1e-9) / ratio, ratio / np.exp(gap / 2 - 1e-9)),
        )
        for s in f.b.all
    ),
    "lemma-b.7.epsilon": lambda f: K**-2.5 / f.eps,
    "lemma-b.9": lambda f: steps_with_all_on(f, f.b),
    "lemma-b.10": lambda f: min(upper(np.abs(s.b), f.eps / 6) for s in f.b.all),
    "lemma-b.19": lambda f: similar_noise(f, f.b, 200),
    "lemma-c.19": lambda f: similar_noise(f, f.c_, 200 * K**2),
    "lemma-b.21": lambda f: pull_by_noise(f, f.b, 1 / 3, 2),
    "lemma-c.21": lambda f: pull_by_noise(f, f.c_, 1 / 2, 2 * K),
    "lemma-b.24": lambda f: upper(
        [max(final_lambda(f.b)) / min(final_lambda(f.b))], 1 + 204 * f.eps
    ),
    "lemma-c.24": lambda f: upper(
        [max(final_lambda(f.c_)) / min(final_lambda(f.c_))], 1 + 204 * K**2 * f.eps
    ),
    "lemma-c.17": lambda f: min(
        upper([s.F[j, i] for j in range(K) for i in range(N) if j != f.c[i]], f.eps)
        for s in f.c_.later
    ),
    "lemma-c.18": lambda f: in_steps(
        lambda s: of_all_pairs(
            s,
            lambda gap, ratio: min(
                np.exp(gap) * (1 + 2 * f.eps) / ratio,
                ratio * K * (1 + 2 * f.eps) / (np.exp(gap) + K - 1),
            ),
        ),
        f.c_,
    ),
    "theorem-4.5.window": lambda f: window(1 / ETA, STEPS),
    "theorem-4.7.window": lambda f: window(K**8 / ETA, STEPS),
    "theorem-4.5.1": lambda f: upper(
        [1 - share_right(coarse_score(f.b.all[-1].W, f.b.all[-1].b, f.test.x), f)], f.tiny
    ),
    "theorem-4.5.2.lambda": lambda f: np.mean(final_lambda(f.b)),
    "theorem-4.5.2.biases": lambda f: upper(np.abs(f.b.all[-1].b), 0.1),
    "theorem-4.5.3": lambda f: fails_after(
        coarse_score(f.b.all[-1].W, f.b.all[-1].b, moved(f, 2 * (1 + f.balance))), f
    ),
    "theorem-4.6": sup_distance,
    "theorem-4.7.1": lambda f: upper(
        [1 - share_right(fine_score(f.c_.all[-1].W, f.test.x), f)], f.tiny
    ),
    "theorem-4.7.2.lambda": lambda f: np.mean(final_lambda(f.c_)) / np.log(K),
    "theorem-4.7.3": lambda f: certified(f.e.fine.run.net, np.sqrt(D) / 10, f),
    "proposition-4.8.loss": lambda f: _loss_of_averaging(f) / (D / 2),
    "proposition-4.8.accuracy": lambda f: upper(
        [1 - share_right(fine_score(averaging_multi(None, f), f.test.x, 1), f)], f.tiny
    ),
    "proposition-4.8.robustness": lambda f: fails_after(
        fine_score(averaging_multi(None, f), moved(f, 3 * (1 + f.balance)), 1), f
    ),
    "theorem-d.1": lambda f: upper([1 - share_right(averaging_net(f.test.x, f), f)], f.tiny),
    "theorem-d.2": broken_with_any_biases,
    "theorem-d.3": lambda f: certified(reference.decoupled(f.train), np.sqrt(D) / 3, f),
    "theorem-d.4": lambda f: fails_after(
        fine_score(averaging_multi(None, f), moved(f, 3 * (1 + f.balance)), 1), f
    ),
}


def _loss_of_averaging(f):
    F = np.maximum(f.train.x @ averaging_multi(None, f).T, 0)
    own = F[np.arange(N), f.c]
    excess = np.where(np.arange(K) == f.c[:, None], -np.inf, F - own[:, None])
    logs = np.logaddexp.reduce(excess, axis=1)  # log(1 + z) is z to the last digit here
    return -(np.logaddexp.reduce(logs) - np.log(N))


def oracles():
    for ids, check in SHARED.items():
        for name, side in zip(ids.split(), ("b", "c_"), strict=True):
            yield name, lambda f, check=check, side=side: check(f, getattr(f, side))
    for ids, (coarse, fine, measured, offset) in SCALED.items():
        for name, side, factor in zip(ids, ("b", "c_"), (coarse, fine), strict=False):
            yield (
                name,
                lambda f, side=side, factor=factor, measured=measured, offset=offset: in_steps(
                    lambda t: upper([measured(t, f)], offset + factor * f.eps), getattr(f, side)
                ),
            )
    yield from ALONE.items()
