# %% [markdown]
# # The exact radius of your `MLPClassifier`
#
# You have trained a small network with scikit-learn. How far can each point be moved before its decision
# changes? Not what an attack happens to find: the exact answer, with a proof that can be checked.

# %%
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import featavg as fa

# %%
data = load_breast_cancer()
X, X_test, y, y_test = train_test_split(data.data, data.target, test_size=150, random_state=0)
model = make_pipeline(
    StandardScaler(), MLPClassifier(10, alpha=1.0, max_iter=2000, random_state=0)
).fit(X, y)
print(f"accuracy {model.score(X_test, y_test):.1%}")

# %% [markdown]
# ## Radii
#
# The scaler is folded into the network, so radii are in the units of `X`. To compare features of different
# units, take the scaled points and the network alone.

# %%
scaler, mlp = model[0], model[1]
points, labels = scaler.transform(X_test)[:60], y_test[:60]
found = fa.exact_radii(mlp, points, labels, time_limit=10)
found

# %% [markdown]
# Half of the points are turned by a perturbation of the median radius. Misclassified points have the radius 0.

# %%
found.plot()

# %% [markdown]
# ## Which network is more robust?
#
# A linear classifier of nearly the same accuracy, for comparison.

# %%
linear = LogisticRegression().fit(scaler.transform(X), y)
others = fa.exact_radii(linear, points, labels)
fa.plot.radii(found, others, labels=["MLPClassifier", "LogisticRegression"])

# %% [markdown]
# ## Around a typical point
#
# The plane of the smallest perturbation that turns the decision, with the circle in which nothing does.

# %%
typical = found.lower.argsort()[len(points) // 2]
fa.plot.boundary(mlp, points[typical])

# %% [markdown]
# Which measurements does it change most, in standard deviations?

# %%
rho = found.perturbations[typical]
for i in np.abs(rho).argsort()[::-1][:4]:
    print(f"{data.feature_names[i]:24} {rho[i]:+.2f}")

# %% [markdown]
# ## Check it without trusting the search
#
# Each bound has a proof, and each perturbation is checked in rational arithmetic.

# %%
checked = found.verify(mlp, points)
print(f"all confirmed: {checked.holds}; exact for {found.exact.mean():.0%} of the points")

# %% [markdown]
# The largest change of any feature (the maximum norm) instead of the Euclidean length:

# %%
fa.exact_radii(mlp, points, labels, norm="linf", time_limit=10)
