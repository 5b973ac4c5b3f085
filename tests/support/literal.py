"""Gradient descent and the coefficients of the paper by the letter: loops, no cleverness."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np


def binary(x, y, W, b, eta, steps):
    """Train the 2-class network; yield what each time looks like."""
    m = len(W) // 2
    signs = np.array([1] * m + [-1] * m)
    W, b = W.copy(), b.copy()
    C = np.zeros((2 * m, len(x)))
    for t in range(steps + 1):
        Z = W @ x.T + b[:, None]
        f = (signs[:, None] * np.maximum(Z, 0)).sum(axis=0) / m
        pull = 1 / (1 + np.exp(y * f))  # minus y times the loss derivative
        yield SimpleNamespace(t=t, W=W.copy(), b=b.copy(), Z=Z, F=f[None], pull=pull, C=C.copy())
        for r in range(2 * m):
            for i in range(len(x)):
                if Z[r, i] >= 0:
                    step = eta / (len(x) * m) * signs[r] * y[i] * pull[i]
                    C[r, i] += step
                    W[r] += step * x[i]
                    b[r] += step


def multiclass(x, cluster, W, h, eta, steps):
    """Train the k-class network; yield what each time looks like."""
    k = len(W) // h
    W = W.copy()
    C = np.zeros((k * h, len(x)))
    for t in range(steps + 1):
        Z = W @ x.T
        F = np.maximum(Z, 0).reshape(k, h, -1).mean(axis=1)
        p = np.exp(F) / np.exp(F).sum(axis=0)
        pull = 1 - p[cluster, np.arange(len(x))]
        b = np.zeros(k * h)
        yield SimpleNamespace(t=t, W=W.copy(), b=b, Z=Z, F=F, pull=pull, C=C.copy(), p=p)
        for r in range(k * h):
            for i in range(len(x)):
                if Z[r, i] >= 0:
                    step = eta / (len(x) * h) * ((r // h == cluster[i]) - p[r // h, i])
                    C[r, i] += step
                    W[r] += step * x[i]


def relu(z):
    return np.maximum(z, 0)
