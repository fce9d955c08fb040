"""How features and classifiers are trained: one loop, batches, row-wise optimisers, checkpoints.

- A training: `run`, `schedule`, `loop`, `early_stopping`, `state`, `checkpoints`, `fingerprint`,
  `tensorboard`
- Batches: `batches`, `neighbourhood_batches`, `neighbourhoods`, `chosen_bags`
- Classifiers: `one_vs_all`, `label_table`, `vectors_with_bias`
- Losses that rank: `ranking_loss` by torch, `ranking_slope` by hand
- Weights of networks: `module_adam`, `clipping`, `weight_average`; `adamw` of a small one
- What steps leave out: `dropout`, `dropped_rows`
- Threads, processes, memory: `threads`, `processes`, `products`, `scratch`, `peak_memory`

Twins do the same work, the first on numpy's arrays in main memory, the second on torch's tensors,
on any device:

- rows of length 1, and the way back: `units`, `unit_rows`
- steps of few rows of a table: `row_adagrad`, `optimisers`
- label vectors on the unit sphere: `unit_labels`, `unit_labels_on_device`
"""
