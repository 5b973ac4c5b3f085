# %% [markdown]
# # A new learner, law and activation in the laboratory
#
# featavg asks an object what it can do, and not for its type. So a law of the data, an activation and a rule of
# training of your own are each a few lines, and everything that makes sense for them works.

# %%
import matplotlib.pyplot as plt
import numpy as np

import featavg as fa

# %% [markdown]
# ## A law: heavy-tailed noise
#
# Clusters as in the paper, with Student's noise. Only how noise is drawn changes.


# %%
class HeavyTailed(fa.MultiCluster):
    """Clusters with Student's noise of 5 degrees of freedom and variance 1."""

    def draw_noise(self, shape, rng, dtype):
        return (rng.standard_t(5, shape) * np.sqrt(3 / 5)).astype(dtype)


rng = np.random.default_rng(0)
train = HeavyTailed(clusters=6, dim=600).sample(300, rng=rng)
test = train.fresh(100, rng=rng)

# %% [markdown]
# What is not possible for it is refused in one sentence. Its noise is not rotation invariant, so it has no
# coordinates of the span:

# %%
try:
    HeavyTailed(clusters=6, dim=10**6).sample(300, rng=rng, coordinates="span")
except fa.InputError as error:
    print(error)

# %% [markdown]
# ## An activation: the absolute value
#
# `pieces`, the slopes left and right of 0, enable exact radii; `degree` says that it is homogeneous. Both promises
# are checked when a network is made.


# %%
class Absolute(fa.Activation):
    """The absolute value."""

    pieces, degree = (-1.0, 1.0), 1

    def value(self, z):
        return np.abs(z)

    def slope(self, z):
        return np.where(z >= 0, 1.0, -1.0)


# %% [markdown]
# ## A learner: gradient descent with momentum and a limit
#
# A rule has `init` and `update`, as in Optax.


# %%
class Limited(fa.Rule):
    """Momentum whose steps are no longer than a limit."""

    def init(self, parameters):
        return {name: np.zeros_like(value) for name, value in parameters.items()}

    def update(self, gradients, state, parameters, learning_rate):
        state = {name: 0.9 * state[name] + g for name, g in gradients.items()}
        length = np.sqrt(sum(np.square(v).sum() for v in state.values()))
        step = learning_rate / max(1.0, length)
        return {name: -step * v for name, v in state.items()}, state


# %% [markdown]
# ## Does it average?
#
# Each new piece alone, and all together.

# %%
start = {"width": 3, "weight_scale": 1e-4, "bias_scale": 1e-4}
learners = {
    "the paper's": (fa.ReLU(), fa.GradientDescent()),
    "absolute value": (Absolute(), fa.GradientDescent()),
    "limited momentum": (fa.ReLU(), Limited()),
    "both": (Absolute(), Limited()),
}
runs = {}
for name, (activation, rule) in learners.items():
    net = fa.BinaryNet.init(train, **start, rng=np.random.default_rng(1), activation=activation)
    run = fa.descend(net, train, learning_rate=5e-3, steps=100, rule=rule, record=20)
    radius = np.median(fa.exact_radii(run.net, test.x[:40], test.y[:40]).upper)
    accuracy = fa.clean_accuracy(run.net, test.x, test.y)
    index = fa.averaging_index(run.net, train)
    runs[name] = run
    print(f"{name:18} index {index:.2f}, accuracy {accuracy:.0%}, median radius {radius:.1f}")

# %% [markdown]
# Theory's radius of averages is √(d/k) = 10, that of decoupled features √(d/2) = 17.3. The rule changes nothing. The
# absolute value averages less and is more robust: a neuron answers to a centre and to its negative alike, so that
# the sign with which it learns a centre of its side is free. The index counts positive cosines only.

# %%
_, panels = plt.subplots(1, 4, figsize=(18, 4.2), layout="constrained")
for ax, (name, run) in zip(panels, runs.items(), strict=True):
    fa.plot.alignment(run.net, train, ax=ax)
    ax.set_title(f"{name}: {fa.averaging_index(run.net, train):.2f}")

# %% [markdown]
# ## Through training
#
# The rule is not linear in the gradients, so coefficients are projections onto the centres; the trajectory says so.

# %%
print(runs["both"].exact_coefficients)
runs["both"].plot()
