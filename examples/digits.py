"""Handwritten digits, 0-4 against 5-9: the coarse label is all that is given.

A network trained on the coarse label averages the digits of a side. `DecoupledClassifier` finds
subclasses by itself, learns them one by one, and every prediction comes with a radius in which
nothing can change it, here in units of pixel intensity (0 to 16, 64 pixels).
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import featavg as fa


def main() -> None:
    x, digit = load_digits(return_X_y=True)
    x, x_test, digit, digit_test = train_test_split(x, digit, test_size=0.4, random_state=0)
    y, y_test = digit >= 5, digit_test >= 5

    linear = LogisticRegression(C=0.01, max_iter=5000).fit(x, y)
    radii = np.abs(linear.decision_function(x_test)) / np.linalg.norm(linear.coef_)
    print(f"LogisticRegression: {linear.score(x_test, y_test):.3f}, radius {np.median(radii):.1f}")

    averaging = fa.AveragingClassifier(random_state=0).fit(x, y)
    decoupled = fa.DecoupledClassifier(random_state=0).fit(x, y)
    print(f"found: {decoupled.subclasses_}")
    for model in (averaging, decoupled):
        median = np.median(model.predict_radius(x_test, n_jobs=1))
        print(f"{type(model).__name__}: {model.score(x_test, y_test):.3f}, radius {median:.1f}")

    # Where training stops is the robustness knob. `frontier_` has the whole of it.
    frontier = decoupled.frontier_
    for i in range(0, len(frontier.values), 3):
        print(
            f"  {frontier.values[i]:4} steps: accuracy {frontier.accuracy[i]:.3f}, "
            f"radius {frontier.radius[i]:.1f}"
        )


if __name__ == "__main__":
    main()

# Result: logistic regression 0.889 with a median radius of 4.2; AveragingClassifier 0.932 with 7.5;
# DecoupledClassifier, which found 12 + 12 subclasses (ways of writing five digits each), 0.972
# with 11.1: more accurate and 1.5 times as robust, from the same labels.
