"""Foolbox's minimal-norm attacks on a network, without bounds in the way."""

from __future__ import annotations

import warnings

import eagerpy as ep
import numpy as np
import torch

with warnings.catch_warnings():  # Foolbox imports from a namespace that SciPy is giving up
    warnings.simplefilter("ignore", DeprecationWarning)
    import foolbox


class L2FMN(foolbox.attacks.L2FMNAttack):
    """FMN with the projection it is meant to have: Foolbox 3.3.4 divides a norm by itself."""

    def project(self, x, x0, epsilon):
        difference = x - x0
        norms = ep.norms.l2(difference.flatten(1), axis=-1)
        factor = ep.minimum(1, epsilon / ep.maximum(norms, 1e-12))
        return x0 + foolbox.devutils.atleast_kd(factor, x.ndim) * difference


def library_norms(net, x, y, steps=300) -> dict[str, np.ndarray]:
    """Return the norm that each attack finds for each point; infinity where it fails."""
    limit = 10 * float(np.abs(x).max()) + 1000
    model = foolbox.PyTorchModel(net.to_torch().eval(), bounds=(-limit, limit), device="cpu")
    images = torch.tensor(x)
    labels = torch.tensor((y == 1).astype(np.int64))
    attacks = {
        "DDN": foolbox.attacks.DDNAttack(init_epsilon=float(np.sqrt(x.shape[1])) / 2, steps=steps),
        "FMN": L2FMN(steps=steps, max_stepsize=float(np.sqrt(x.shape[1])) / 4),
    }
    norms = {}
    for name, attack in attacks.items():
        found, _, success = attack(model, images, labels, epsilons=None)
        distance = (found - images).norm(dim=1).numpy()
        norms[name] = np.where(success.numpy(), distance, np.inf)
    return norms
