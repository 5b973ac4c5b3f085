"""The table of claims: every measurable statement of the paper.

Appendix B (2 classes) and Appendix C (k classes) prove the same statements in the same order, with
other constants, and Section 5 repeats some of them. The table has each statement once, with all its
numbers in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import softmax

from featavg.arrays import FloatArray
from featavg.networks import reference
from featavg.theory import chances
from featavg.theory import measurements as m
from featavg.theory import points as p
from featavg.theory.claim import Claim, Finding, at_least, at_most, between, not_stated
from featavg.theory.evidence import Evidence, ProofQuantities
from featavg.theory.pairs import pulls_by_margins, pulls_by_margins_of_classes

# The section of a claim, by its kind or else by the first character of its number.
_SECTIONS = {
    "assumption": "Assumptions",
    "a": "Appendix A: the data and the start",
    "5": "Section 5: the proof in short",
    "b": "Appendix B: 2 classes",
    "c": "Appendix C: k classes",
    "4": "Section 4: the theorems",
    "d": "Appendix D: reference networks",
    "frei": "Appendix D: reference networks",
}
# Words for the 2-class and for the k-class network.
_WORDS = {
    "label": ("side", "class"),
    "others": ("the opposite side", "other classes"),
    "centers": ("the sum of its side's centres", "its own centre"),
    "width": ("m", "h"),
}
_ERROR = "exp(-Ω(log² d)), read with the constant 1"
_SHARE = ", where λ grows with time: milder than an absolute 1/10 where λ > 1, else stricter"
_READINGS = {
    "assumption-3.3": "c is any constant: it cannot fail",
    "assumption-4.3.width": "Θ(k), read as k/2 to 2k",
    **dict.fromkeys(
        (f"assumption-4.3.{part}" for part in ("dim", "samples", "samples-limit", "rate", "init")),
        "no constant given; read with 1",
    ),
    "proposition-a.6.6": "printed for all i, j; read as i ≠ j",
    "proposition-a.6.6.self": "the case i = j, which is printed too",
    "lemma-a.8": "a chance; read as the share of the noises that were drawn",
    "lemma-a.9": "computed from the normal distribution for l = 2m, as Proposition A.12 uses it",
    "lemma-5.3": "only ε(k) → 0 is said; 65 ε is of Lemma B.7",
    "corollary-b.5": "printed with < 0; the start is 0: read as <= 0",
    "corollary-c.9": "printed as 'iff'; 0 is both: read as in B.5",
    "lemma-b.9": "under Lemma B.7; measured at all recorded times from 1 on",
    "lemma-b.7.epsilon": "o(k^-2.5), read as at most k^-2.5",
    "lemma-c.10.7": "printed for t = 1 only; read as for all t, as B.7",
    "lemma-c.10.8": "σ is printed with the index c(i); read i",
    "lemma-c.21": "σ is printed with the class 1; read as the own class",
    **dict.fromkeys(("lemma-b.25", "lemma-c.25"), "o(1), read as λ/10" + _SHARE),
    **dict.fromkeys(("theorem-4.5.1", "theorem-4.5.3", "theorem-4.7.1", "theorem-d.4"), _ERROR),
    **dict.fromkeys(("proposition-4.8.accuracy", "proposition-4.8.robustness"), _ERROR),
    "theorem-4.5.window": "no constants given; read with 1",
    **dict.fromkeys(
        ("theorem-4.5.2", "theorem-4.7.2"), "o(d^-1/2), read as λ d^-1/2 / 10" + _SHARE
    ),
    "theorem-4.5.2.lambda": "Ω(1), read with 1",
    "theorem-4.5.2.biases": "o(1), read as 1/10",
    "theorem-4.6": (
        "o(1), read against the size of f: milder than an absolute 1/10 where C sup|f_FA| > 1, "
        "else stricter; the distance is bounded from above, which is stricter"
    ),
    "theorem-4.7.window": "no constants given; with 1",
    "theorem-4.7.2.lambda": "Ω(log k), read with 1",
    "theorem-4.7.3": _ERROR + "; the radius is of the proof",
    "proposition-4.8.loss": "exp(-Ω(d)), read as exp(-d/2)",
    "theorem-d.1": "1 - o(1), read as in Theorem 4.5",
    "theorem-d.2": (
        "Ω(√(d/k)), read as 2(1+c) √(d/k) as for Theorem 4.5; for all biases on a grid of steps "
        "d/4 up to ±2(1+c) d with which 9 of 10 fresh points are right, read for 1 - o(1)"
    ),
    "theorem-d.3": "the radius is garbled; √d/3 in the proof",
    "frei-4.2": "of KKT points, which training only approaches; no constant given, read with 1",
}
_POWERS_OF_K = ("", " k", " k²", " k³")
_DECAY = "a pull decays exponentially in n/k times the noise coefficient."


def _claims(
    ids: str,
    statement: str,
    bound: str,
    measure: Callable[..., Finding],
    constants: Sequence[tuple[int, ...]] = (),
) -> list[Claim]:
    """Return the claims of a statement, one for each id.

    Parameters
    ----------
    ids : str
        The ids, of which those of Appendix C are about the k-class network, all others about the
        2-class network.
    statement, bound : str
        Templates: the words of ``_WORDS`` depend on the network, and ``{c}`` is the constant. Where
        ε has no meaning, statements that mention it are not made.
    measure : callable
        ``measure(evidence, quantities)`` or, with constants, ``measure(evidence, quantities, c)``.
    constants : sequence of (int,) or (int, int)
        For each id a number and the power of k that multiplies it.
    """

    def claim_of(name: str, factor: int | None = None, power: int = 0) -> Claim:
        kind, _, number = name.partition("-")
        section = _SECTIONS[kind if kind in _SECTIONS else number[0]]
        fine = number.startswith("c")
        words = {name: pair[fine] for name, pair in _WORDS.items()}
        words["c"] = f"{factor}{_POWERS_OF_K[power]}"

        def measured(e: Evidence) -> Finding:
            if "ε" in statement + bound and np.isnan(e.epsilon):
                return not_stated("ε has no meaning: √(n/k) is not above ln(n/k)")
            constant = () if factor is None else (factor * e.k**power,)
            return measure(e, e.fine if fine else e.coarse, *constant)

        texts = statement.format(**words), bound.format(**words)
        return Claim(name, section, *texts, _READINGS.get(name, ""), measured)

    names = ids.split()
    rows = zip(names, constants or [()] * len(names), strict=True)
    return [claim_of(name, *constant) for name, constant in rows]


def _within(
    values: Callable[[ProofQuantities], FloatArray], factor: float = 1.0, offset: float = 0.0
) -> Callable[..., Finding]:
    """Return the measurement of values <= offset + c · ε, where c is `factor` if not given."""

    def measure(e: Evidence, quantities: ProofQuantities, c: float = factor) -> Finding:
        return m.in_units_of_epsilon(e, values(quantities), c, offset)

    return measure


_CLAIMS = [
    *_claims("assumption-3.2", "centres are orthogonal and have the norm √d.", "rounding",
        lambda e, _: at_most(np.abs(e.center_gram / e.d - np.eye(e.k)), e.rounding)),
    *_claims("assumption-3.3", "neither side has more than c times the clusters of the other.", "c",
        lambda e, _: at_most(e.balance, e.balance, f"c = {e.balance:.3g}")),
    *_claims("assumption-4.3.dim", "the dimension is at least of order k^10.", "k^10",
        lambda e, _: at_least(e.d, e.k**10)),
    *_claims("assumption-4.3.samples", "there are at least of order k^7 points.", "k^7",
        lambda e, _: at_least(e.n, e.k**7)),
    *_claims("assumption-4.3.samples-limit",
        "and not more than exp(O(log² d)); compared as logarithms.", "exp(ln² d)",
        lambda e, _: at_most(np.log(e.n), np.log(e.d) ** 2)),
    *_claims("assumption-4.3.width", "the width m is of order k.", "k",
        lambda e, _: between(e.m, e.k / 2, 2 * e.k)),
    *_claims("assumption-4.3.rate", "the learning rate is at most of order d^-2.", "d^-2",
        lambda e, _: at_most(e.eta, float(e.d) ** -2 * (1 + 1e-12))),
    *_claims("assumption-4.3.init",
        "the variances of initial weights and biases are at most η k^-5.", "η k^-5",
        lambda e, _: at_most(
            max(e.weight_scale, e.bias_scale) ** 2, e.eta * float(e.k) ** -5 * (1 + 1e-12))),

    *_claims("proposition-a.6.1", "the norm of each training noise is near √d.", "2 ln d",
        lambda e, of: at_most(
            np.abs(of.sample.noise_norms.astype(np.float64) - np.sqrt(e.d)), 2 * np.log(e.d))),
    *_claims("proposition-a.6.2", "no training point is longer than three times a centre.", "3 √d",
        lambda e, of: at_most(np.linalg.norm(of.sample.x, axis=1), 3 * np.sqrt(e.d))),
    *_claims("proposition-a.6.3",
        "the noises of two points are nearly orthogonal.", "Δ = 4 √d ln d",
        lambda e, _: at_most(p.largest_product_of_noises(e), e.cross)),
    *_claims("proposition-a.6.4",
        "each noise is nearly orthogonal to each centre.", "Δ = 4 √d ln d",
        lambda e, _: at_most(np.abs(e.training_noise_products), e.cross)),
    *_claims("proposition-a.6.5",
        "points of different clusters are nearly orthogonal.", "Δ = 4 √d ln d",
        lambda e, _: at_most(p.extreme_products(e)[0], e.cross)),
    *_claims("proposition-a.6.6",
        "two points of one cluster have an inner product of d/2 to 2d.", "d/2 to 2d",
        p.products_within_clusters),
    *_claims("proposition-a.6.6.self",
        "the same for a point and itself, whose squared norm is about 2d.", "2d", p.squared_norms),
    *_claims("proposition-a.6.7", "clusters have nearly n/k points each.", "√(2n/k) ln(n/k)",
        lambda e, of: at_most(
            np.abs(np.bincount(of.sample.cluster, minlength=e.k) - e.n / e.k),
            np.sqrt(2 * e.n / e.k) * np.log(e.n / e.k))),

    *_claims("lemma-a.8", "a noise is hardly ever far along a vector that it does not depend on.",
        "2 d^(-ln(d)/2)", chances.noise_along_centers),
    *_claims("lemma-a.9", "the least and the largest of l normal numbers are near ∓√(2 ln l).",
        "exp(-t²/2)/2; exp(-e^(t/2) / (√(2π) (√(2 ln l) + 1)))",
        lambda e, _: chances.extremes_of_normal_numbers(2 * e.m)),

    *_claims("proposition-a.10.weights proposition-c.1",
        "the norm of each initial weight is near σ_w √d.", "2 σ_w ln d", m.initial_norms),
    *_claims("proposition-a.10.biases",
        "no initial bias is far beyond its scale.", "2 σ_b √(2 ln m)",
        lambda e, of: at_most(
            np.abs(of.biases[0]), 2 * e.bias_scale * np.sqrt(2 * np.log(e.m)))),
    *_claims("proposition-a.12 proposition-c.3",
        "at the start each neuron is on for some points of every cluster.",
        "n / ({c} {width}²)", m.initially_active, [(3, 1), (3, 3)]),
    *_claims("lemma-a.13", "pre-activations are tiny at the start.", "η √d / (n m)",
        lambda e, of: at_most(
            np.abs(of.preactivations[0]), e.eta * np.sqrt(e.d) / (e.n * e.m))),
    *_claims("lemma-a.14", "at the start every point pulls with 1/3 to 2/3.", "1/3 to 2/3",
        lambda _, of: between(np.exp(of.log_pull[0]), 1 / 3, 2 / 3)),
    *_claims("lemma-a.15", "at any time every point pulls with 0 to 1.", "0 to 1",
        lambda _, of: between(np.exp(of.log_pull), 0.0, 1.0)),
    *_claims("lemma-c.4",
        "at the start every class has a probability of 1/(2k) to 2/k at every point.",
        "1/(2k) to 2/k",
        lambda e, of: between(softmax(of.outputs[0], axis=0), 1 / (2 * e.k), 2 / e.k)),
    *_claims("lemma-b.1 lemma-c.5",
        "after one step every point switches on all neurons of its {label}.",
        "1", lambda _, of: m.always_on(of, slice(1, 2))),
    *_claims("lemma-5.1 lemma-c.6",
        "a weight is its start plus multiples λ of the centres and σ of the noises.",
        "rounding", m.decomposition),
    *_claims("corollary-b.4 corollary-c.7",
        "a feature coefficient is the sum of the noise coefficients of its cluster.",
        "rounding", m.balance_of_coefficients),
    *_claims("lemma-5.2 corollary-c.8",
        "the coefficients change in a step by the pulls of the points that are on.",
        "rounding", m.updates),
    *_claims("corollary-b.5 corollary-c.9",
        "own coefficients are never negative, all others never positive.", "0", m.signs),
    *_claims("lemma-b.6", "two pulls differ by the exponential of the margins' gap, or its root.",
        "exp(gap/2) to exp(gap)", pulls_by_margins),
    *_claims("lemma-b.7.epsilon",
        "the ε in which everything below is measured is itself small.", "k^-2.5",
        lambda e, _: at_most(e.epsilon, float(e.k) ** -2.5)),
    *_claims("lemma-b.7.1 lemma-c.10.1", "own noise coefficients grow like the logarithm of time.",
        "(k/2n) ln(ηt) to (2k/n) ln(t+1)", m.growth_of_noise),
    *_claims("lemma-b.7.2 lemma-c.10.2",
        "estimated margins are nearly the same within a cluster.", "{c} ε",
        _within(lambda of: m.gaps_within_clusters(of, of.estimated_margin[1:])), [(5,), (5, 1)]),
    *_claims("lemma-b.7.3 lemma-c.10.3",
        "estimated margins are nearly the same everywhere.", "{c} ε",
        _within(lambda of: m.gaps(of.estimated_margin[1:])), [(63,), (32, 2)]),
    *_claims("lemma-5.3", "all training margins are nearly the same at all times.", "65 ε",
        _within(lambda of: m.gaps(of.margin[1:]), 65)),
    *_claims("lemma-b.7.4 lemma-c.10.4", "margins are nearly the same everywhere.", "{c} ε",
        _within(lambda of: m.gaps(of.margin[1:])), [(65,), (33, 2)]),
    *_claims("lemma-b.7.5 lemma-c.10.5",
        "the pulls of two points of a cluster have nearly the ratio 1.", "1 + {c} ε",
        _within(lambda of: np.exp(m.gaps_within_clusters(of, of.log_pull[1:])), offset=1.0),
        [(14,), (14, 1)]),
    *_claims("lemma-b.7.6 lemma-c.10.6",
        "the pulls of any two points have nearly the ratio 1.", "1 + {c} ε",
        _within(lambda of: np.exp(m.gaps(of.log_pull[1:])), offset=1.0), [(130,), (67, 2)]),
    *_claims("lemma-5.5 lemma-b.7.7 lemma-c.10.7",
        "every point switches on all neurons of its {label}, at all times from 1 on.",
        "1", lambda _, of: m.always_on(of, slice(1, None))),
    *_claims("lemma-b.7.8 lemma-c.10.8",
        "coefficients of {others} stay small.", "ε and 2 ε", m.others_small),
    *_claims("lemma-b.9",
        "own coefficients change in a step by the pulls of all points: all neurons are on.",
        "rounding", m.updates_without_activations),
    *_claims("lemma-b.10", "biases stay small.", "ε/6",
        _within(lambda of: np.abs(of.biases), 1 / 6)),
    *_claims("lemma-b.11 lemma-c.11",
        "a weight's inner product with a centre is nearly its coefficient λ.",
        "ε/6", _within(lambda of: np.abs(of.center_products - of.feature), 1 / 6)),
    *_claims("lemma-b.12 lemma-c.12",
        "a weight's inner product with a training noise is nearly its coefficient σ.",
        "ε/6", _within(lambda of: np.abs(of.noise_products - of.noise), 1 / 6)),
    *_claims("lemma-b.13 lemma-c.13",
        "a weight's inner product with a training point is nearly λ + σ.",
        "ε/3", _within(lambda of: np.abs(of.point_products - of.estimated_products), 1 / 3)),
    *_claims("lemma-b.14 lemma-c.14", "margins are nearly what the coefficients say.",
        "ε", _within(lambda of: np.abs(of.margin - of.estimated_margin)[1:])),
    *_claims("corollary-b.15 corollary-c.15", "so are differences of margins.",
        "2 ε", _within(lambda of: m.gaps((of.margin - of.estimated_margin)[1:]), 2)),
    *_claims("lemma-b.16 lemma-c.16",
        "coefficients of {others} stay small (again, as a lemma).", "ε and 2 ε", m.others_small),
    *_claims("lemma-c.17", "no class but its own answers to a training point.", "ε",
        _within(lambda of: of.outputs[1:][:, of.members.T == 0])),
    *_claims("lemma-c.18", "two pulls differ by about the exponential of the margins' gap.",
        "(e^gap + k - 1)/(k(1+2ε)) to e^gap (1+2ε)", pulls_by_margins_of_classes),
    *_claims("lemma-b.19 lemma-c.19", "any two own noise coefficients are nearly the same.",
        "(1 ± {c} ε) σ ± 1/(nd)", m.similar_noise, [(200,), (200, 2)]),
    *_claims("lemma-b.20 lemma-c.20",
        "a margin is of the order of n/k times any own noise coefficient.",
        "(n/2k) σ - 2ε to (2n/k) σ + 2ε", m.margin_by_noise),
    *_claims("lemma-b.21", _DECAY, "exp(-2nσ/k)/3 to 2 exp(-nσ/2k)",
        lambda e, of: m.pull_by_noise(e, of, 1 / 3, 2)),
    *_claims("lemma-c.21", _DECAY, "exp(-2nσ/k)/2 to 2k exp(-nσ/2k)",
        lambda e, of: m.pull_by_noise(e, of, 1 / 2, 2 * e.k)),
    *_claims("lemma-b.23 lemma-c.23",
        "own feature coefficients are of the order of the logarithm of time.",
        "ln(ηT)/4 to 4 ln(T+1)", m.growth_of_features),
    *_claims("lemma-b.24 lemma-c.24", "any two own feature coefficients have nearly the ratio 1.",
        "1 + {c} ε", m.ratio_of_features, [(204,), (204, 2)]),
    *_claims("lemma-b.25 lemma-c.25",
        "each weight is λ times {centers}, up to o(d^-1/2).", "λ/10", m.distance_to_centers),
    *_claims("lemma-b.26 lemma-c.26", "weights are nearly orthogonal to the noise of fresh points.",
        "ε/6", p.fresh_noise_products),

    *_claims("theorem-4.5.window",
        "the 2-class network is trained for a number of steps in this range.", "1/η to exp(√k)",
        lambda e, _: m.in_window(e.coarse, 1 / e.eta, e.k)),
    *_claims("theorem-4.5.1",
        "trained on 2 classes, the network is right on nearly every fresh point.", "exp(-ln² d)",
        lambda e, _: p.error_rate(e, e.coarse.run.net)),
    *_claims("theorem-4.5.2",
        "each weight is nearly λ times the sum of the centres of its side.", "λ/10",
        lambda e, _: m.distance_to_centers(e, e.coarse)),
    *_claims("theorem-4.5.2.lambda", "and this λ does not vanish.", "1",
        lambda e, _: at_least(e.coarse.own_feature[-1].mean(), 1.0)),
    *_claims("theorem-4.5.2.biases", "the biases are small.", "1/10",
        lambda e, _: at_most(np.abs(e.coarse.biases[-1]), m.SMALL)),
    *_claims("theorem-4.5.3",
        "moved by 2(1+c) √(d/k) along the averaged centres, nearly none is right.", "exp(-ln² d)",
        lambda e, _: p.broken_by_average(e, e.coarse.run.net, 2 * (1 + e.balance))),
    *_claims("theorem-4.6", "on the sphere of radius √d the network is nearly a multiple of f_FA.",
        "C sup|f_FA|/10", m.distance_to_averaging),
    *_claims("theorem-4.7.window",
        "the k-class network is trained for a number of steps in this range.", "k^8/η to exp(√k)",
        lambda e, _: m.in_window(e.fine, float(e.k) ** 8 / e.eta, e.k)),
    *_claims("theorem-4.7.1",
        "trained on k classes, its binary decision is right nearly everywhere.", "exp(-ln² d)",
        lambda e, _: p.error_rate(e, e.fine_net)),
    *_claims("theorem-4.7.2", "each weight is nearly λ times its own centre.", "λ/10",
        lambda e, _: m.distance_to_centers(e, e.fine)),
    *_claims("theorem-4.7.2.lambda", "and this λ is at least of the order of log k.", "ln k",
        lambda e, _: at_least(e.fine.own_feature[-1].mean(), np.log(e.k))),
    *_claims("theorem-4.7.3",
        "nearly every fresh point stays right within the radius √d/10.", "exp(-ln² d)",
        lambda e, _: p.certified(e, e.fine_net, np.sqrt(e.d) / 10)),
    *_claims("proposition-4.8.loss",
        "the averaging k-class network has a tiny loss; its logarithm.", "-d/2", p.tiny_loss),
    *_claims("proposition-4.8.accuracy", "it is right on nearly every fresh point.", "exp(-ln² d)",
        lambda e, of: p.error_rate(e, reference.averaging_multiclass(of.sample))),
    *_claims("proposition-4.8.robustness",
        "moved by 3(1+c) √(d/k), nearly none is right.", "exp(-ln² d)", p.averaging_classes_break),

    *_claims("theorem-d.1",
        "the averaging network is right on nearly every fresh point.", "exp(-ln² d)",
        lambda e, of: p.error_rate(e, reference.averaging(of.sample))),
    *_claims("theorem-d.2",
        "moved along the averaged centres, it is right on nearly none, whatever its biases.",
        "exp(-ln² d)", chances.broken_with_any_biases),
    *_claims("theorem-d.3",
        "the decoupled network is right on nearly every point within √d/3.", "exp(-ln² d)",
        lambda e, of: p.certified(e, reference.decoupled(of.sample), np.sqrt(e.d) / 3)),
    *_claims("theorem-d.4",
        "the averaging k-class network fails within 3(1+c) √(d/k); Proposition 4.8.",
        "exp(-ln² d)", p.averaging_classes_break),
    *_claims("frei-4.2", "one direction, Σ y μ, fools the 2-class network on 99 % of fresh points.",
        "√(d/(c² k))", p.fooled_by_average),
]  # fmt: skip

_ORDER = list(_SECTIONS.values())
LEDGER: dict[str, Claim] = {
    claim.id: claim for claim in sorted(_CLAIMS, key=lambda claim: _ORDER.index(claim.section))
}
"""Every claim by its id, in the order of the argument."""
