"""The claims ledger as an experiment: every statement of the paper, at one scale, several seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from featavg.drawing.views import HOLDS, NOT_STATED, VIOLATED, ClaimRow, Claims, View
from featavg.experiments import theorem
from featavg.lab.expectations import Expectation, at_least, at_most, reported
from featavg.lab.experiment import Experiment
from featavg.lab.parameters import CheckedParameters, parameter
from featavg.lab.setting import Pair, SyntheticSetting
from featavg.lab.tables import Measurements, Results, Table, prefixed, stacked
from featavg.networks.multiclass import MultiClassNet
from featavg.progress import counted, wanted
from featavg.theory import LEDGER, OURS, Claim, Evidence, Finding, ProofQuantities
from featavg.theory.measurements import SMALL
from featavg.theory.own_claims import in_between
from featavg.training.descent import descend
from featavg.training.fast_forward import fast_forward
from featavg.training.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CODES = {HOLDS: 1, VIOLATED: 0, NOT_STATED: -1}
# These hold for every run of gradient descent, at any scale: a violation would be a bug.
IDENTITIES = (
    *("lemma-5.1", "lemma-5.2", "lemma-a.15", "corollary-b.4", "corollary-b.5"),
    *("lemma-c.6", "corollary-c.7", "corollary-c.8", "corollary-c.9"),
)


@dataclass(frozen=True, kw_only=True)
class Parameters(CheckedParameters):
    """The scale at which the claims are checked."""

    preset: Literal["paper", "theorem", "poster", "poster-figures"] = parameter(
        "paper",
        "the setting of the paper's figures, of Assumption 4.3, of the poster, or of the poster "
        "at the k, d, n and m of the paper's figures",
    )
    clusters: int | None = parameter(
        None, "k; by default 10 at the sizes of the paper's figures, else 3", least=2
    )
    times: int = parameter(30, "recorded times, evenly spaced in log-time", least=3)
    tolerance: float = parameter(0.05, "tolerance of fast_forward")
    test_samples: int = parameter(10_000, "fresh points for accuracies")
    radius_samples: int = parameter(100, "fresh points for certified radii")

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.setting  # raises InputError for values that cannot be run

    @property
    def k(self) -> int:
        """The number of clusters, whose default depends on the preset."""
        setting = self.setting
        return setting.clusters if isinstance(setting, SyntheticSetting) else setting.k

    @property
    def setting(self) -> SyntheticSetting | theorem.Parameters:
        """The hyper-parameters of the preset."""
        if self.preset == "paper":
            k = self.clusters or SyntheticSetting().clusters
            width = max(1, round(k / 2))
            return SyntheticSetting(clusters=k, width=width, test_samples=self.test_samples)
        return theorem.Parameters(
            clusters=self.clusters,
            preset=self.preset,
            times=self.times,
            tolerance=self.tolerance,
            test_samples=self.test_samples,
        )


def evidence(parameters: Parameters, seed: int) -> Evidence:
    """Train both networks at the requested scale."""
    setting = parameters.setting
    if isinstance(setting, SyntheticSetting):
        pair = setting.train(seed, record=parameters.times)
        scales = setting.weight_scale, setting.bias_scale
    else:
        pair, scales = theorem.train(setting, seed), setting.scales
    coarse, fine = ProofQuantities(pair.coarse), ProofQuantities(pair.fine)
    grouped = _train_groups(setting, pair, scales[0])
    return Evidence(coarse, fine, pair.test, *scales, parameters.radius_samples, grouped)


def _train_groups(
    setting: SyntheticSetting | theorem.Parameters, pair: Pair[Trajectory], scale: float
) -> Trajectory:
    """Train a class for each of some label groups, as the k-class network is trained."""
    sample, rate = pair.train.grouped(in_between(pair.train.law)), setting.learning_rate
    net = MultiClassNet.init(sample, width=1, weight_scale=scale, rng=pair.rng, readout="argmax")
    if isinstance(setting, SyntheticSetting):
        return descend(net, sample, learning_rate=rate, steps=setting.steps, record=2)
    steps, tolerance = setting.horizons[1] / rate, setting.tolerance
    return fast_forward(net, sample, learning_rate=rate, steps=steps, tolerance=tolerance, record=2)


def measure(parameters: Parameters, seed: int) -> Measurements:
    """Measure every claim."""
    seen = evidence(parameters, seed)
    claims = list(LEDGER.values())
    findings = [claims[i].measure(seen) for i in counted(len(claims), "claims", enabled=wanted())]
    codes = np.array([_CODES[finding.verdict] for finding in findings])
    of = dict(zip(LEDGER, findings, strict=True))
    ours = [claim.measure(seen) for claim in OURS.values()]
    distance, error, right = (of[f"theorem-4.5.{item}"] for item in "213")
    own = prefixed("ours", stacked([asdict(finding) for finding in ours]))
    return stacked([asdict(finding) for finding in findings]) | {
        **own,
        "ours_holding": sum(finding.verdict == HOLDS for finding in ours),
        "verdict": codes,
        "claims": len(claims),
        "holding": int((codes == _CODES[HOLDS]).sum()),
        "violated": int((codes == _CODES[VIOLATED]).sum()),
        "not_stated": int((codes == _CODES[NOT_STATED]).sum()),
        "broken_identities": sum(of[name].verdict != HOLDS for name in IDENTITIES),
        "clean_accuracy": 1 - error.measured,
        "distance_share": SMALL * distance.measured / distance.bound,
        "robust_accuracy": right.measured,
    }


def expects(parameters: Parameters) -> list[Expectation]:
    """Return the expectations; the numbers of claims that hold or fail may be anything."""
    at_scale = parameters.preset == "theorem"
    clean, distance, robust = (1, 0.1, 0) if at_scale else (-np.inf, np.inf, np.inf)
    return [
        Expectation("identities of gradient descent that fail", "broken_identities", 0, 0, "0"),
        at_least("Theorem 4.5.1: clean accuracy", "clean_accuracy", clean, "1"),
        at_most("Theorem 4.5.2: distance over λ", "distance_share", distance, "o(1)"),
        at_most("Theorem 4.5.3: accuracy at 2(1+c)√(d/k)", "robust_accuracy", robust, "0"),
        reported(f"claims that hold, of {len(LEDGER)}", "holding", "all"),
        reported("claims that are violated", "violated", "none"),
        reported("claims not stated at this scale", "not_stated", "–"),
        reported(f"claims of our own that hold, of {len(OURS)}", "ours_holding", "–"),
    ]


@dataclass(frozen=True)
class Entry:
    """One line of the ledger: a claim and its findings, one for each seed."""

    claim: Claim
    findings: tuple[Finding, ...]

    @property
    def typical(self) -> Finding:
        """The finding of the seed with the median slack."""
        return sorted(self.findings, key=lambda finding: finding.slack)[len(self.findings) // 2]

    @property
    def violations(self) -> int:
        """The number of seeds in which the claim is violated."""
        return sum(finding.verdict == VIOLATED for finding in self.findings)

    @property
    def verdict(self) -> str:
        """The verdict over all seeds: violated if any seed violates the claim."""
        return VIOLATED if self.violations else self.findings[0].verdict

    def summary(self) -> dict[str, Any]:
        """Return the line as plain data."""
        return _described(self.claim) | {
            "verdict": self.verdict,
            "violations": self.violations,
            "findings": [{**asdict(f), "verdict": f.verdict} for f in self.findings],
        }


def _described(claim: Claim) -> dict[str, Any]:
    names = ("id", "section", "statement", "bound", "reading")
    return {name: getattr(claim, name) for name in names}


def entries(results: Results) -> list[Entry]:
    """Return the lines of the ledger from the results of a run."""
    return _lines(LEDGER, results, "")


def own_entries(results: Results) -> list[Entry]:
    """Return the claims of our own from the results of a run."""
    return _lines(OURS, results, "ours_")


def _lines(claims: Mapping[str, Claim], results: Results, prefix: str) -> list[Entry]:
    columns = [results[f"{prefix}{name}"] for name in ("measured", "bound", "slack", "note")]
    return [
        Entry(
            claim,
            tuple(
                Finding(float(q), float(b), float(s), str(note))
                for q, b, s, note in zip(*(column[:, index] for column in columns), strict=True)
            ),
        )
        for index, claim in enumerate(claims.values())
    ]


def table(_: Parameters, results: Results) -> Table:
    """Return every finding of every seed."""
    rows = [
        (*_described(entry.claim).values(), seed, f.measured, f.bound, f.slack, f.verdict, f.note)
        for entry in (*entries(results), *own_entries(results))
        for seed, f in enumerate(entry.findings)
    ]
    columns = ("claim", "section", "statement", "bound", "reading", "seed", "measured", "limit")
    return Table((*columns, "slack", "verdict", "note"), rows)


def views(parameters: Parameters, results: Results) -> list[View]:
    """Return every claim with what was measured."""
    title = f"The claims at the {parameters.preset} preset, k = {parameters.k}"
    reading = "A statement marked † has no constant in the paper, or is garbled in print."
    if any(len(entry.findings) > 1 for entry in entries(results)):
        reading += (
            " Here a claim holds if it does in every seed; counts elsewhere are means over seeds."
        )
    own = f"Claims of our own, k = {parameters.k}"
    return [
        Claims(title, [_row(entry) for entry in entries(results)], reading),
        Claims(own, [_row(entry) for entry in own_entries(results)]),
    ]


def plot(parameters: Parameters, results: Results) -> Figure:
    """Return the claims of the paper as a figure; those of our own are few, and in the report."""
    from featavg.drawing import draw

    return draw.figure(views(parameters, results)[:1])


def _row(entry: Entry) -> ClaimRow:
    typical = entry.typical
    measured, limit, slack = (
        float(v) if np.isfinite(v) else None
        for v in (typical.measured, typical.bound, typical.slack)
    )
    return ClaimRow(
        **_described(entry.claim),
        verdict=entry.verdict,
        measured=measured,
        limit=limit,
        slack=slack,
        violations=entry.violations,
        seeds=len(entry.findings),
        note=typical.note,
    )


EXPERIMENT = Experiment.of_module(
    __name__,
    id="ledger",
    title="Every measurable statement of the paper, checked",
    paper="All statements",
    parameters=Parameters(),
    quick=replace(Parameters(), times=10, test_samples=1000, radius_samples=20),
    series="figures",
)
