"""The presets of the playground, each with a note on what to look for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote

from featavg.apps.play.settings import KNOBS, Settings
from featavg.errors import InputError, did_you_mean
from featavg.experiments import ablations, theorem

VIEW = ("at", "radius", "point", "token")
"""What the address of a page holds beside settings."""


@dataclass(frozen=True)
class Preset:
    """An entry of the menu."""

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
        *_worlds(),
        *(preset for e in ablations.EXPERIMENTS for preset in _figure(e.id, e.parameters)),
    ]


def _worlds() -> list[Preset]:
    """Return a preset for each world beyond the paper."""
    worlds = {
        "Adam": (
            Settings(optimiser="adam"),
            "Adam averages as well, and both networks are less robust than by gradient descent.",
        ),
        "The square loss": (
            Settings(loss="square"),
            "Another loss, the same picture: 2-class labels are averaged.",
        ),
        "A few fine labels": (
            Settings(fine_share=0.02, steps=1000),
            "Two fine labels a cluster, sides for the rest: nearly the radius of all fine labels.",
        ),
        "Labels in between: the granularity law": (
            Settings(
                grouping="1,4|2,3", dim=12288, learning_rate=2.5e-4, weight_scale=2.5e-6, steps=300
            ),
            "Fewer clusters to a label, a larger radius: √(d/(q + q′)), q′ the largest opposing.",
        ),
        "Adversarial training": (
            Settings(adversarial=0.7, fine_share=0, samples=300, learning_rate=0.005, steps=300),
            "2-class labels and attacks: outputs that compete decouple, outputs that add average.",
        ),
        "Training on the radius": (
            Settings(objective="radius"),
            "The same labels, another objective: pieces start averaged, and decouple.",
        ),
    }
    return [Preset("Beyond the paper", name, *world) for name, world in worlds.items()]


def settings_of_query(query: Mapping[str, str]) -> Settings:
    """Return the settings that the address of a page holds, or those of the preset it names.

    Settings beside a preset change it.

    Examples
    --------
    >>> settings_of_query({"preset": "the theorems", "seed": "1"}).clusters
    3
    """
    given = dict(query)
    name = given.pop("preset", None)
    if name is not None:
        known = {preset.name.lower(): preset for preset in presets()}
        if name.lower() not in known:
            meant = did_you_mean(name, [preset.name for preset in known.values()])
            raise InputError(f"the playground has no preset {name[:40]!r}{meant}.")
        given = dict(parse_qsl(known[name.lower()].settings.to_query())) | given
    return Settings.from_query(given)


def preset_of_link(link: str) -> Preset:
    """Return the settings of the address of a page, or of its query alone, as an entry of the menu.

    What the address says about the view, such as the radius, is left out.

    Examples
    --------
    >>> preset_of_link("http://127.0.0.1:8080/?clusters=4&at=100").settings.clusters
    4
    """
    query = dict(parse_qsl(link.partition("?")[2] if "?" in link else link))
    settings = settings_of_query({name: query[name] for name in query if name not in VIEW})
    same = [preset for preset in presets() if preset.settings == settings]
    name = unquote(settings.to_query()).replace("=", " = ").replace("&", ", ")
    return same[0] if same else Preset("Own settings", name, settings, "Settings of a link.")


def _settings_of(parameters: object, **more: float) -> Settings:
    """Return the parameters of an experiment as settings, short enough for an address."""
    given: dict[str, Any] = {n: getattr(parameters, n) for n in KNOBS if hasattr(parameters, n)}
    for name, value in (given | more).items():
        given[name] = float(f"{value:.6g}") if isinstance(value, float) else value
    return Settings(**given)


def _regime(parameters: theorem.Parameters) -> Settings:
    weight_scale, bias_scale = parameters.scales
    steps = round(parameters.horizon / parameters.learning_rate)
    return _settings_of(
        parameters,
        clusters=parameters.k,
        weight_scale=weight_scale,
        bias_scale=bias_scale,
        steps=float(steps),
    )


def _figure(name: str, parameters: ablations.Parameters) -> list[Preset]:
    """Return a preset for each value of an ablation that fits into the playground."""
    number = name.removeprefix("figure")
    found = []
    for value, setting in parameters.settings.items():
        try:
            settings = _settings_of(setting, snr=setting.signal / setting.noise)
        except InputError:  # 50,000 points are for 'featavg run'
            continue
        label = parameters.ablation.label(value)
        note = f"Figure {number} of the paper: {label}, all else as in Figure 2."
        found.append(Preset(f"Figure {number}", label, settings, note))
    return found
