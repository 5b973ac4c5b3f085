"""Settings worth looking at, each with what to look for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from featavg.apps.play.settings import Settings
from featavg.errors import InputError
from featavg.experiments import ablations, theorem
from featavg.lab.setting import MatrixSetting


@dataclass(frozen=True)
class Preset:
    """A name in the menu, the settings behind it, and a sentence on what to see."""

    group: str
    name: str
    settings: Settings
    note: str


def presets() -> list[Preset]:
    """Return all presets, in the order of the menu.

    Examples
    --------
    >>> [preset.name for preset in presets()][:3]
    ['The paper: Figures 2 and 3', 'The theorems', 'The poster']
    """
    return [
        Preset(
            "The idea",
            "The paper: Figures 2 and 3",
            Settings(),
            "Blocks for coarse labels, a diagonal for fine ones, and twice the radius.",
        ),
        Preset(
            "The idea",
            "The theorems",
            _regime(theorem.Parameters()),
            "d = k¹⁰, n = k⁷, η = d⁻²: Theorems 4.5 and 4.7 at k = 3, by fast-forward.",
        ),
        Preset(
            "The idea",
            "The poster",
            _regime(theorem.Parameters(preset="poster")),
            "The poster's σ_w² = 1/d and η = 1/√d: here the start outweighs what is learned.",
        ),
        Preset(
            "What if",
            "A trillion dimensions",
            Settings(dim=10**12, learning_rate=3e-12, weight_scale=3e-14),
            "The same picture: with η·d and σ_w·d kept, only the radii grow, like √d.",
        ),
        Preset(
            "What if",
            "Initial weights of 0.01",
            Settings(weight_scale=0.01),
            "The start is never forgotten: neurons split the clusters among them.",
        ),
        Preset(
            "What if",
            "A learning rate of 1",
            Settings(learning_rate=1.0),
            "Steps too long for averaging: neurons die or specialise.",
        ),
        *chain.from_iterable(_figure(e.id, e.parameters) for e in ablations.EXPERIMENTS),
    ]


def _regime(parameters: theorem.Parameters) -> Settings:
    weight_scale, bias_scale = parameters.scales
    return Settings(
        clusters=parameters.clusters,
        dim=parameters.dim,
        samples=parameters.samples,
        width=parameters.width,
        learning_rate=_short(parameters.learning_rate),
        weight_scale=_short(weight_scale),
        bias_scale=_short(bias_scale),
        steps=_short(parameters.horizon / parameters.learning_rate),
    )


def _short(value: float) -> float:
    """Return a number with fewer digits, for the sake of the address of the page."""
    return float(f"{value:.6g}")


def _figure(name: str, parameters: ablations.Parameters) -> list[Preset]:
    """Return a preset for each value of an ablation that fits into the playground."""
    number = name.removeprefix("figure")
    found = []
    for value, setting in parameters.settings.items():
        try:
            settings = _of(setting)
        except InputError:  # 50,000 points: what is too much here, 'featavg run' can do
            continue
        label = parameters.ablation.label(value)
        note = f"Figure {number} of the paper: {label}, all else as in Figure 2."
        found.append(Preset(f"Figure {number}", label, settings, note))
    return found


def _of(setting: MatrixSetting) -> Settings:
    return Settings(
        clusters=setting.clusters,
        dim=setting.dim,
        samples=setting.samples,
        width=setting.width,
        learning_rate=setting.learning_rate,
        weight_scale=setting.weight_scale,
        bias_scale=setting.bias_scale,
        snr=setting.signal / setting.noise,
        cosine=setting.cosine,
        steps=setting.steps,
    )
