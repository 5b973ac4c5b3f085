# %% [markdown]
# # The idea, in code
#
# Train a network on coarse labels and it learns the *average* of the features in its data, which is
# easy to attack. Train it on finer labels and it learns the features one by one. Here you see both
# happen, and how far a point is from being misclassified, exactly.

# %%
import numpy as np

import featavg as fa

rng = np.random.default_rng(0)

# %% [markdown]
# ## The data
#
# Ten clusters in 1,000 dimensions, around orthogonal centres. The first five are positive, the others
# negative: the coarse label of a point is its side, the fine label its cluster.

# %%
train = fa.MultiCluster(clusters=10, dim=1000).sample(500, rng=rng)
test = train.fresh(200, rng=rng)
fa.plot.geometry(train)

# %% [markdown]
# ## Coarse labels: an average
#
# A network of five positive and five negative neurons, trained by gradient descent on the sides alone.
# Each neuron ends with the same cosine, about 1/√5, to all five centres of its side. That is averaging,
# and the *averaging index* is 1 for it.

# %%
net = fa.BinaryNet.init(train, width=5, weight_scale=1e-5, bias_scale=1e-5, rng=rng)
coarse = fa.descend(net, train, learning_rate=3e-3, steps=100, record=30)
fa.plot.alignment(coarse.net, train)

# %% [markdown]
# It does so from the first steps on: the coefficients of a neuron's own centres grow together, in a
# narrow band, and the others stay small.

# %%
fa.plot.coefficients(coarse)

# %% [markdown]
# ## Fine labels: one feature for each neuron
#
# The same data and the same ten neurons, trained on the ten clusters. Its decision is still binary: which
# side has the cluster with the largest output.

# %%
net = fa.MultiClassNet.init(train, width=1, weight_scale=1e-5, rng=rng, readout="argmax")
fine = fa.descend(net, train, learning_rate=3e-3, steps=100)
fa.plot.alignment(fine.net, train)

# %%
for name, run in (("coarse", coarse), ("fine", fine)):
    accuracy = fa.clean_accuracy(run.net, test.x, test.y)
    print(f"{name} labels: clean accuracy {accuracy:.0%}")

# %% [markdown]
# ## What it costs
#
# Both are right on every new point. But how far does a point have to be moved until the decision is
# wrong? The radius is computed exactly, not by an attack. Theory says √(d/k) = 10 for the average and
# √(d/2) = 22.4 for single features.

# %%
curves = [fa.robust_curve(run.net, test.x, test.y, radii=np.arange(31)) for run in (coarse, fine)]
fa.plot.robust_curve(*curves, labels=["coarse labels", "fine labels"], theory=np.sqrt([100, 500]))

# %% [markdown]
# ## The short way out
#
# Around one point: the boundary of the network that averages is close, and the way to it is the difference
# of the two averages, the same for every point. The circle is where nothing can turn the decision.

# %%
toward = -test.y[0] * fa.averaged_direction(train)
fa.plot.boundary(coarse.net, test.x[0], toward=toward, reach=40)

# %%
fa.plot.boundary(fine.net, test.x[0], toward=toward, reach=40)

# %% [markdown]
# ## Results show themselves
#
# In a notebook, networks, samples, trainings, curves and radii show a small picture; each has a method
# `plot` that draws it large.

# %%
fa.exact_radii(coarse.net, test.x, test.y)
