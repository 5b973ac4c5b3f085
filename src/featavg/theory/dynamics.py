"""The start and the dynamics of training: Appendices A to C, and Section 5.

Appendix B (2 classes) and Appendix C (k classes) prove the same statements in the same order, with
other constants, and Section 5 repeats some of them. The table `CLAIMS` at the end has each
statement once, with all its numbers in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import softmax

from featavg.arrays import FloatArray
from featavg.theory.appendix_a import DATA
from featavg.theory.claim import Claim, Finding, at_least, at_most, both, claim, not_stated
from featavg.theory.evidence import Evidence, ProofQuantities
from featavg.theory.measurements import (
    NO_EPSILON,
    always_on,
    balance_of_coefficients,
    decomposition,
    distance_to_centers,
    extreme_pair,
    fresh_noise_products,
    gaps,
    gaps_within_clusters,
    growth_of_features,
    growth_of_noise,
    in_units_of_epsilon,
    initial_norms,
    initially_active,
    margin_by_noise,
    others_small,
    pull_by_noise,
    ratio_of_features,
    signs,
    similar_noise,
    updates,
)

SKETCH = "Section 5: the proof in short"
COARSE = "Appendix B: 2 classes"
FINE = "Appendix C: k classes"

# --- statements about one of the networks ------------------------------------------------------


@claim(DATA, bound="2 σ_b √(2 ln m)")
def proposition_a_10_biases(e: Evidence) -> Finding:
    """proposition-a.10.biases: no initial bias is far beyond its scale."""
    return at_most(np.abs(e.coarse.biases[0]), 2 * e.bias_scale * np.sqrt(2 * np.log(e.m)))


@claim(DATA, bound="η √d / (n m)")
def lemma_a_13(e: Evidence) -> Finding:
    """lemma-a.13: pre-activations are tiny at the start."""
    return at_most(np.abs(e.coarse.preactivations[0]), e.eta * np.sqrt(e.d) / (e.n * e.m))


@claim(DATA, bound="1/3 to 2/3")
def lemma_a_14(e: Evidence) -> Finding:
    """lemma-a.14: at the start every point pulls with 1/3 to 2/3."""
    pull = np.exp(e.coarse.log_pull[0])
    return both(at_most(pull, 2 / 3), at_least(pull, 1 / 3))


@claim(DATA, bound="0 to 1")
def lemma_a_15(e: Evidence) -> Finding:
    """lemma-a.15: at any time every point pulls with 0 to 1."""
    pull = np.exp(e.coarse.log_pull)
    return both(at_most(pull, 1.0), at_least(pull, 0.0))


@claim(FINE, bound="1/(2k) to 2/k")
def lemma_c_4(e: Evidence) -> Finding:
    """lemma-c.4: at the start every class has a probability of 1/(2k) to 2/k at every point."""
    probabilities = softmax(e.fine.outputs[0], axis=0)
    return both(at_most(probabilities, 2 / e.k), at_least(probabilities, 1 / (2 * e.k)))


@claim(COARSE, bound="exp(gap/2) to exp(gap)")
def lemma_b_6(e: Evidence) -> Finding:
    """lemma-b.6: two pulls differ by the exponential of the margins' gap, or its root."""
    gap, ratio = extreme_pair(e.coarse)
    note = "the lower side needs margins whose sum is not negative"
    return both(
        at_most(np.exp(ratio), np.exp(gap + 1e-9)),
        at_least(np.exp(ratio), np.exp(gap / 2 - 1e-9), note),
    )


@claim(COARSE, bound="k^-2.5", reading="o(k^-2.5), read as at most k^-2.5")
def lemma_b_7_epsilon(e: Evidence) -> Finding:
    """lemma-b.7.epsilon: the ε in which everything below is measured is itself small."""
    if np.isnan(e.epsilon):
        return not_stated(NO_EPSILON)
    return at_most(e.epsilon, float(e.k) ** -2.5)


@claim(SKETCH, bound="65 ε", reading="only ε(k) → 0 is said; 65 ε is of Lemma B.7")
def lemma_5_3(e: Evidence) -> Finding:
    """lemma-5.3: all training margins are nearly the same at all times."""
    return in_units_of_epsilon(e, gaps(e.coarse.margin[1:]), 65)


@claim(COARSE, bound="ε/6")
def lemma_b_10(e: Evidence) -> Finding:
    """lemma-b.10: biases stay small."""
    return in_units_of_epsilon(e, np.abs(e.coarse.biases), 1 / 6)


@claim(FINE, bound="ε")
def lemma_c_17(e: Evidence) -> Finding:
    """lemma-c.17: no class but its own answers to a training point."""
    others = np.arange(e.k)[:, None] != e.train.cluster
    return in_units_of_epsilon(e, e.fine.outputs[1:][:, others], 1)


@claim(FINE, bound="(e^gap + k - 1)/(k(1+2ε)) to e^gap (1+2ε)")
def lemma_c_18(e: Evidence) -> Finding:
    """lemma-c.18: two pulls differ by about the exponential of the margins' gap."""
    if np.isnan(e.epsilon):
        return not_stated(NO_EPSILON)
    gap, log_ratio = extreme_pair(e.fine)
    ratio = np.exp(log_ratio)
    room = 1 + 2 * e.epsilon
    return both(
        at_most(ratio, np.exp(gap) * room),
        at_least(ratio, (np.exp(gap) + e.k - 1) / e.k / room),
    )


# --- statements about both networks ------------------------------------------------------------

_SECTIONS = {"a": DATA, "5": SKETCH, "b": COARSE, "c": FINE}
_COARSE_WORDS = {
    "label": "side",
    "others": "the opposite side",
    "centers": "the sum of its side's centres",
    "width": "m",
}
_FINE_WORDS = {
    "label": "class",
    "others": "other classes",
    "centers": "its own centre",
    "width": "h",
}
_READINGS = {
    "corollary-b.5": "printed with < 0; the start is 0: read as <= 0",
    "corollary-c.9": "printed as 'iff'; 0 is both: read as in B.5",
    "lemma-c.10.7": "printed for t = 1 only; read as for all t, as B.7",
    "lemma-c.10.8": "σ is printed with the index c(i); read i",
    "lemma-c.21": "σ is printed with the class 1; read as the own class",
    "lemma-b.25": "o(1), read as a tenth of λ",
    "lemma-c.25": "o(1), read as a tenth of λ",
}
_POWERS_OF_K = ("", " k", " k²", " k³")
_DECAY = "a pull decays exponentially in n/k times the noise coefficient."


def _proved(
    ids: str,
    statement: str,
    bound: str,
    measure: Callable[..., Finding],
    constants: Sequence[tuple[int, ...]] = (),
) -> list[Claim]:
    """Return the claims of a statement that is proved for both networks.

    Parameters
    ----------
    ids : str
        The ids, of which those of Appendix C are about the k-class network, all others about the
        2-class network.
    statement, bound : str
        Templates: the words of ``_COARSE_WORDS`` and ``_FINE_WORDS`` depend on the network, and
        ``{c}`` is the constant.
    measure : callable
        ``measure(evidence, quantities)`` or, with constants, ``measure(evidence, quantities, c)``.
    constants : sequence of (int,) or (int, int)
        For each id a number and the power of k that multiplies it.
    """

    def claim_of(name: str, factor: int | None = None, power: int = 0) -> Claim:
        section = _SECTIONS[name.partition("-")[2][0]]
        fine = section == FINE
        words = (_FINE_WORDS if fine else _COARSE_WORDS) | {"c": f"{factor}{_POWERS_OF_K[power]}"}

        def measured(e: Evidence) -> Finding:
            constant = () if factor is None else (factor * e.k**power,)
            return measure(e, e.fine if fine else e.coarse, *constant)

        reading = _READINGS.get(name, "")
        texts = statement.format(**words), bound.format(**words)
        return Claim(name, section, *texts, reading, measured)

    names = ids.split()
    rows = zip(names, constants or [()] * len(names), strict=True)
    return [claim_of(name, *constant) for name, constant in rows]


def _within(
    values: Callable[[ProofQuantities], FloatArray], factor: float = 1.0, offset: float = 0.0
) -> Callable[..., Finding]:
    """Return the measurement of values <= offset + c · ε, where c is `factor` if not given."""

    def measure(e: Evidence, quantities: ProofQuantities, c: float = factor) -> Finding:
        return in_units_of_epsilon(e, values(quantities), c, offset)

    return measure


CLAIMS: list[Claim] = [
    *_proved("proposition-a.10.weights proposition-c.1",
        "the norm of each initial weight is near σ_w √d.",
        "2 σ_w ln d", initial_norms),
    proposition_a_10_biases,
    *_proved("proposition-a.12 proposition-c.3",
        "at the start each neuron is on for some points of every cluster.",
        "n / ({c} {width}²)", initially_active, [(3, 1), (3, 3)]),
    lemma_a_13, lemma_a_14, lemma_a_15, lemma_c_4,
    *_proved("lemma-b.1 lemma-c.5",
        "after one step every point switches on all neurons of its {label}.",
        "1", lambda _, of: always_on(of, slice(1, 2))),
    *_proved("lemma-5.1 lemma-c.6",
        "a weight is its start plus multiples λ of the centres and σ of the noises.",
        "rounding", decomposition),
    *_proved("corollary-b.4 corollary-c.7",
        "a feature coefficient is the sum of the noise coefficients of its cluster.",
        "rounding", balance_of_coefficients),
    *_proved("lemma-5.2 corollary-c.8",
        "the coefficients change in a step by the pulls of the points that are on.",
        "rounding", updates),
    *_proved("corollary-b.5 corollary-c.9",
        "own coefficients are never negative, all others never positive.",
        "0", signs),
    lemma_b_6, lemma_b_7_epsilon,
    *_proved("lemma-b.7.1 lemma-c.10.1",
        "own noise coefficients grow like the logarithm of time.",
        "(k/2n) ln(ηt) to (2k/n) ln(t+1)", growth_of_noise),
    *_proved("lemma-b.7.2 lemma-c.10.2",
        "estimated margins are nearly the same within a cluster.", "{c} ε",
        _within(lambda of: gaps_within_clusters(of, of.estimated_margin[1:])), [(5,), (5, 1)]),
    *_proved("lemma-b.7.3 lemma-c.10.3",
        "estimated margins are nearly the same everywhere.", "{c} ε",
        _within(lambda of: gaps(of.estimated_margin[1:])), [(63,), (32, 2)]),
    lemma_5_3,
    *_proved("lemma-b.7.4 lemma-c.10.4",
        "margins are nearly the same everywhere.", "{c} ε",
        _within(lambda of: gaps(of.margin[1:])), [(65,), (33, 2)]),
    *_proved("lemma-b.7.5 lemma-c.10.5",
        "the pulls of two points of a cluster have nearly the ratio 1.", "1 + {c} ε",
        _within(lambda of: np.exp(gaps_within_clusters(of, of.log_pull[1:])), offset=1.0),
        [(14,), (14, 1)]),
    *_proved("lemma-b.7.6 lemma-c.10.6",
        "the pulls of any two points have nearly the ratio 1.", "1 + {c} ε",
        _within(lambda of: np.exp(gaps(of.log_pull[1:])), offset=1.0), [(130,), (67, 2)]),
    *_proved("lemma-5.5 lemma-b.7.7 lemma-c.10.7",
        "every point switches on all neurons of its {label}, at all times from 1 on.",
        "1", lambda _, of: always_on(of, slice(1, None))),
    *_proved("lemma-b.7.8 lemma-c.10.8",
        "coefficients of {others} stay small.", "ε and 2 ε", others_small),
    lemma_b_10,
    *_proved("lemma-b.11 lemma-c.11",
        "a weight's inner product with a centre is nearly its coefficient λ.",
        "ε/6", _within(lambda of: np.abs(of.center_products - of.feature), 1 / 6)),
    *_proved("lemma-b.12 lemma-c.12",
        "a weight's inner product with a training noise is nearly its coefficient σ.",
        "ε/6", _within(lambda of: np.abs(of.noise_products - of.noise), 1 / 6)),
    *_proved("lemma-b.13 lemma-c.13",
        "a weight's inner product with a training point is nearly λ + σ.",
        "ε/3", _within(lambda of: np.abs(of.point_products - of.estimated_products), 1 / 3)),
    *_proved("lemma-b.14 lemma-c.14",
        "margins are nearly what the coefficients say.",
        "ε", _within(lambda of: np.abs(of.margin - of.estimated_margin)[1:])),
    *_proved("corollary-b.15 corollary-c.15",
        "so are differences of margins.",
        "2 ε", _within(lambda of: gaps((of.margin - of.estimated_margin)[1:]), 2)),
    *_proved("lemma-b.16 lemma-c.16",
        "coefficients of {others} stay small (again, as a lemma).", "ε and 2 ε", others_small),
    lemma_c_17, lemma_c_18,
    *_proved("lemma-b.19 lemma-c.19",
        "any two own noise coefficients are nearly the same.",
        "(1 ± {c} ε) σ ± 1/(nd)", similar_noise, [(200,), (200, 2)]),
    *_proved("lemma-b.20 lemma-c.20",
        "a margin is of the order of n/k times any own noise coefficient.",
        "(n/2k) σ - 2ε to (2n/k) σ + 2ε", margin_by_noise),
    *_proved("lemma-b.21", _DECAY, "exp(-2nσ/k)/3 to 2 exp(-nσ/2k)",
        lambda e, of: pull_by_noise(e, of, 1 / 3, 2)),
    *_proved("lemma-c.21", _DECAY, "exp(-2nσ/k)/2 to 2k exp(-nσ/2k)",
        lambda e, of: pull_by_noise(e, of, 1 / 2, 2 * e.k)),
    *_proved("lemma-b.23 lemma-c.23",
        "own feature coefficients are of the order of the logarithm of time.",
        "ln(ηT)/4 to 4 ln(T+1)", growth_of_features),
    *_proved("lemma-b.24 lemma-c.24",
        "any two own feature coefficients have nearly the ratio 1.",
        "1 + {c} ε", ratio_of_features, [(204,), (204, 2)]),
    *_proved("lemma-b.25 lemma-c.25",
        "each weight is λ times {centers}, up to o(d^-1/2).", "λ/10", distance_to_centers),
    *_proved("lemma-b.26 lemma-c.26",
        "weights are nearly orthogonal to the noise of fresh points.",
        "ε/6", fresh_noise_products),
]  # fmt: skip
"""The claims; those of each section are in the order of the paper."""
