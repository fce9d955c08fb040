"""How features and classifiers are trained: one loop, batches, row-wise optimisers, checkpoints."""
