# %% [markdown]
# # Your own embeddings
#
# You have a matrix of features and coarse labels. Does a classifier trained on these labels average
# features, what does that cost, and which classifier is better? Replace `X` and `y` by your own.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import featavg as fa

# %% [markdown]
# Handwritten digits from 0 to 5, with a label that says only whether the digit is one of 0 to 2. The digits themselves
# are the finer labels, which you may or may not have.

# %%
X, digit = load_digits(n_class=6, return_X_y=True)
X, X_test, digit, digit_test = train_test_split(
    X, digit, test_size=60, train_size=400, random_state=0, stratify=digit
)
y, y_test = (np.where(labels < 3, "low", "high") for labels in (digit, digit_test))

# %% [markdown]
# ## Audit
#
# `audit` holds out a quarter of the points, trains a network on the coarse labels and one on the finer ones (or
# on subclasses that it finds itself), and computes the certified radius of held-out points. Without `direct=False` it
# trains a `RadiusClassifier` as well, which comes below.

# %%
found = fa.audit(X, y, subclass=digit, points=100, direct=False)
print(found.verdict)

# %%
found.plot()

# %% [markdown]
# Theory assumes that the means of the subclasses are orthogonal, which after centring means cosines of -1/5 for
# six of them. The verdict says why its gain is not reached.

# %%
fa.plot.geometry(found)

# %% [markdown]
# ## Three classifiers
#
# All three are scikit-learn classifiers that know the certified radius of their predictions.
# `AveragingClassifier` is the network of the paper on coarse labels, `DecoupledClassifier` the one on finer
# labels, and `RadiusClassifier` needs coarse labels only, but is trained on its own certified radius.

# %%
models = {
    "averaging": fa.AveragingClassifier(random_state=0).fit(X, y),
    "decoupled": fa.DecoupledClassifier(random_state=0).fit(X, y, digit),
    "radius": fa.RadiusClassifier(random_state=0).fit(X, y),
}
certified = {name: model.certify(X_test, y_test) for name, model in models.items()}
for name, model in models.items():
    radius = np.median(certified[name].lower)
    print(f"{name:10} accuracy {model.score(X_test, y_test):.3f}, median radius {radius:.2f}")

# %%
fa.plot.radii(*certified.values(), labels=list(models))

# %% [markdown]
# ## The frontier
#
# Each classifier has a path, of training steps or of margins, along which accuracy and robustness are traded.
# It chooses the most robust place that is within a standard error of the best accuracy; `robustness=` moves
# that choice.

# %%
_, panels = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
for ax, (name, model) in zip(panels, models.items(), strict=True):
    fa.plot.frontier(model, ax=ax)
    ax.set_title(name)

# %% [markdown]
# ## The weakest points
#
# The points that the smallest change would turn are where a closer look pays.

# %%
radii = certified["radius"].lower
weakest = np.argsort(radii)[:5]
_, panels = plt.subplots(1, 5, figsize=(10, 2.4), layout="constrained")
for ax, i in zip(panels, weakest, strict=True):
    ax.imshow(X_test[i].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{y_test[i]}: radius {radii[i]:.2f}", fontsize=9)
    ax.set_axis_off()
