"""Proofs are checked, and proofs that were tampered with prove nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from featavg.networks.shallow import ShallowNet
from featavg.robustness.exact.checking import proved_bound
from featavg.robustness.exact.contest import Decision, span_basis
from featavg.robustness.exact.geometry import Euclidean
from featavg.robustness.exact.nodes import Budget
from featavg.robustness.exact.proof import Proof, ProofNode, Weights
from featavg.robustness.exact.search import ContestSearch
from support.shallow_oracles import random_shallow, sides


def searched(seed, neurons=12, dim=6, outputs=3):
    rng = np.random.default_rng(seed)
    net = random_shallow(rng, neurons, dim, outputs)
    x = rng.standard_normal(dim)
    own, opposing = sides(net, x)
    problem = Decision(net, span_basis(net)).problem(x, own, opposing)
    found = ContestSearch(problem, Euclidean()).run(Budget(10_000))
    return Decision(net).problem(x, own, opposing), found


def test_proofs_hold_in_other_coordinates_than_those_of_the_search():
    for seed in range(30):
        problem, found = searched(seed, neurons=4, dim=9)
        assert proved_bound(problem, Euclidean(), found.proof) == pytest.approx(
            found.lower, rel=1e-9
        )


def split_search():
    for seed in range(100):
        problem, found = searched(seed)
        if len(found.proof) > 8 and np.isfinite(found.upper):
            return problem, found
    raise AssertionError("no search was split")


def test_a_missing_node_is_noticed():
    problem, found = split_search()
    nodes = found.proof.nodes
    assert proved_bound(problem, Euclidean(), found.proof) == pytest.approx(found.lower)
    last = replace_proof(found.proof, nodes[:-1])
    assert proved_bound(problem, Euclidean(), last) == 0
    without_root = tuple(n for n in nodes if n.parent >= 0 or n.contest > 0)
    assert proved_bound(problem, Euclidean(), replace_proof(found.proof, without_root)) == 0


def test_a_node_on_the_wrong_side_is_noticed():
    problem, found = split_search()
    child = next(i for i, n in enumerate(found.proof.nodes) if n.parent >= 0)
    turned = list(found.proof.nodes)
    turned[child] = replace(turned[child], side=-turned[child].side)
    assert proved_bound(problem, Euclidean(), replace_proof(found.proof, tuple(turned))) == 0


def test_multipliers_that_are_not_admissible_prove_no_more():
    """More of a hindering neuron than there is, or a negative multiplier, is cut back."""
    problem, found = split_search()
    greedy = []
    for node in found.proof.nodes:
        rounds = [
            replace(
                r,
                weights=replace(
                    r.weights,
                    hindering=10 * r.weights.hindering + 1,
                    decided=r.weights.decided - 5,
                ),
            )
            for r in node.rounds
        ]
        greedy.append(replace(node, rounds=rounds, patterns=None))
    bound = proved_bound(problem, Euclidean(), replace_proof(found.proof, tuple(greedy)))
    assert bound <= found.upper


def test_a_larger_distance_than_was_proved_is_not_believed():
    for seed in range(40):
        problem, found = searched(seed, neurons=50, dim=12, outputs=2)
        nodes = list(found.proof.nodes)
        which = [i for i, n in enumerate(nodes) if n.patterns is not None]
        if which:
            break
    assert which, "every search did without patterns"
    for i in which:
        nodes[i] = replace(nodes[i], patterns=replace(nodes[i].patterns, distance=1e3))
    assert proved_bound(problem, Euclidean(), replace_proof(found.proof, tuple(nodes))) < 1e3


def test_an_empty_proof_proves_nothing():
    problem, _ = searched(0)
    assert proved_bound(problem, Euclidean(), Proof(1.0, ())) == 0
    roots = tuple(ProofNode(i, -1, -1, 0) for i in range(len(problem.contests)))
    assert proved_bound(problem, Euclidean(), Proof(1.0, roots)) == 0


def test_bounds_within_a_ball_say_nothing_about_what_is_outside():
    problem, found = split_search()
    nodes = tuple(
        replace(n, rounds=[replace(r, radius=1e-3 * r.radius) for r in n.rounds])
        for n in found.proof.nodes
    )
    bound = proved_bound(problem, Euclidean(), replace_proof(found.proof, nodes))
    assert bound <= 1e-3 * found.upper * (1 + 1e-9)


def test_a_plane_is_not_used_outside_of_the_ball_it_was_proved_in():
    problem, found = split_search()
    nodes = list(found.proof.nodes)
    nodes[0] = replace(
        nodes[0], rounds=[replace(r, radius=0.1 * r.radius) for r in nodes[0].rounds]
    )
    bound = proved_bound(problem, Euclidean(), replace_proof(found.proof, tuple(nodes)))
    assert bound <= found.upper


def test_a_draw_needs_a_multiplier_of_a_strict_rival():
    net = ShallowNet([[1.0], [-1.0]], [-1.0, 1.0], [[1.0, 1.0], [0.0, 0.0]], [0.0, 0.0])
    own, opposing = np.array([True, False]), np.array([False, True])
    problem = Decision(net).problem(np.zeros(1), own, opposing)
    proof = ContestSearch(problem, Euclidean()).run(Budget(100)).proof
    assert proved_bound(problem, Euclidean(), proof) == np.inf
    assert any(n.drawn is not None for n in proof.nodes)
    for n in proof.nodes:
        if n.drawn is not None:
            n.drawn = Weights(0 * n.drawn.rivals, 0 * n.drawn.hindering, 0 * n.drawn.decided)
    assert proved_bound(problem, Euclidean(), proof) <= 1


def replace_proof(proof, nodes):
    return Proof(proof.unit, nodes)
