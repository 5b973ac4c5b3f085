"""Image classifiers, attacks on them, and embeddings: everything that needs the extra `vision`."""
