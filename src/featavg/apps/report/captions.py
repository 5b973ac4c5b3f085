"""One sentence for each experiment on what to see in its figure, with default or quick parameters.

They are here and not with the experiments, because what an experiment has measured counts only as
long as its code is the same.
"""

from __future__ import annotations

from collections.abc import Mapping

_ABLATION = (
    "Each matrix is one value of {what}: a block of equal entries is a network that averages the "
    "centres of a side, and uneven entries are one that does not."
)
_IMAGES = (
    "The first panel decides, because it has the worst of all attacks: a gain by fine labels that "
    "is seen only under attacks on a network's own loss is one of the attack, not of the network."
)
_FINE_LABELS = (
    "Rows are supplies of labels for the same images: compare the row of a few fine labels with "
    "one score above it, all labels below it, and the controls, which have as many labelled images."
)
_PHASE = (
    "Bright cells of the averaging index are settings at which coarse labels teach averages; where "
    "it falls, the radius beside it says whether anything was gained."
)
_REAL = (
    "Where the blue line is on the dotted one, the law with measured means holds ({sides}); in the "
    "rows below one thing at a time is changed: the means, the noise or the training."
)

CAPTIONS: Mapping[str, str] = {
    "figure1": (
        "For the 2-class network the shortest way out is along the averaged direction, the same "
        "for all points; for the 10-class network this direction has to go much further."
    ),
    "figure2-synthetic": (
        "With coarse labels every neuron has the same cosine with all centres of its side, an "
        "average; with fine labels each has found one centre, a diagonal."
    ),
    "figure2-embeddings": (
        "Rows are classes of images and columns are neurons: blocks for coarse labels are "
        "averages, and a diagonal for fine labels is one class for each neuron."
    ),
    "figure3-synthetic": (
        "The curve for fine labels falls at about twice the radius of the one for coarse "
        "labels; where an attack lies above the exact curve, it overstates robustness."
    ),
    "figure3-mnist": _IMAGES,
    "figure3-cifar10": _IMAGES,
    "figure3-fashion": _IMAGES,
    "figure5": _ABLATION.format(what="the number of points"),
    "figure6": _ABLATION.format(what="the learning rate"),
    "figure7": _ABLATION.format(what="the initial weights"),
    "figure8": _ABLATION.format(what="the signal-to-noise ratio"),
    "figure9": _ABLATION.format(what="the cosine between centres"),
    "figure10": (
        "Blocks along the diagonal are images of one class that are alike: these are the "
        "features that a network on top can average."
    ),
    "averaging": "How much one network averages, and how far its points are from a turn.",
    "ledger": (
        "A bar to the right is room that a statement has left, one to the left is by how much "
        "it is violated; sort by room to see the closest calls."
    ),
    "theorem-regime": (
        "Coefficients of the own centres grow together while everything that the theorems call "
        "o(1) stays small; the exact radius ends at the marked line."
    ),
    "figure-scaling": (
        "Lines that fall are terms that vanish as the theorems say; how steeply they do is how "
        "large a setting has to be."
    ),
    "margin-maximization": (
        "The margin keeps growing with training while the exact radius stays where it is: a "
        "larger margin is no proof of robustness."
    ),
    "margin-mnist": (
        "The margin grows from one stage of training to the next, and the robust accuracy hardly."
    ),
    "min-vidal": (
        "By the conjecture, the activation of power 1 ends near the averaged network and that "
        "of power 3 near the one that has each centre alone; the distances to both say whether "
        "it does."
    ),
    "phase-learning-rate-init": _PHASE,
    "phase-snr-cosine": _PHASE,
    "phase-clusters-width": _PHASE,
    "phase-clusters-samples": _PHASE,
    "phase-imbalance": _PHASE,
    "granularity": (
        "Every dot is a label group: its radius is read off the number of clusters that share "
        "the two labels, and the ratio to this law is near 1."
    ),
    "granularity-real": _REAL.format(sides="concrete against abstract nouns"),
    "granularity-real-cifar10": _REAL.format(sides="animals against vehicles"),
    "readouts": (
        "Decoupled weights keep their radius only where the largest output decides; where "
        "outputs are added it falls with the number of clusters."
    ),
    "learners": (
        "Nearly all learners have an averaging index of about 1 and the radius √(d/k); the ones "
        "to look at are those that leave this line."
    ),
    "orientation": (
        "Gradient descent has the same radius in all three frames of the centres; Adam and sign "
        "descent do not."
    ),
    "radius-training": (
        "Trained on its own radius, the averaging index falls to 0 from coarse labels alone; "
        "the cross-entropy of averaged pieces stays at 1."
    ),
    "imbalance": (
        "The curves of rare clusters lie below those of common ones, and how far is what the "
        "formula beside them says."
    ),
    "label-supply": (
        "One or two fine labels for each cluster have nearly the radius of all of them; wrong "
        "labels lose it late in training."
    ),
    "adversarial-training": (
        "Beyond a training radius the network with latent outputs decouples and its radius "
        "jumps; the 2-class network stays where it was."
    ),
    "published-curve": (
        "A good explanation is near the published value in all panels at once, not in one of them."
    ),
    "fine-labels-mnist": _FINE_LABELS,
    "fine-labels-fashion": _FINE_LABELS,
    "fine-labels-cifar10": _FINE_LABELS,
    "fine-labels-recipes": (
        "A row whose gain is that of the other recipe has the change that makes the difference."
    ),
    "fine-labels-loss": (
        "Fine labels help where their curve is above the other at the same loss; at equal numbers "
        "of epochs one of the networks may only have learned its side further."
    ),
}
"""What to see, by the id of the experiment."""
