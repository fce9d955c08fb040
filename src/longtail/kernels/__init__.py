"""Compiled inner loops (numba), each held by the tests to a plain numpy twin.

One answer, in the order of its steps (`docs/answer.md` follows them):

- text to weighted tokens: `answer_text`, the whole of it; `text`, `token_tables`, `digit_sort`
- tokens to labels: `answer`, the whole of it; `answer_parts`, what it is given
- the point's vector: `bag_vector`
- walks: `coded_graph`, `code_search`, `walk_lanes`; where they start, found once: `own_rows`
- texts of labels: `label_links`
- what sources say of candidates: `label_angles`, `sparse_lookup`; one score of it: `wide_network`
- labels that follow: `further_labels`

Batches of points:

- candidates and evidence of a blend: `blend`, `relations`
- scores of shortlisted or of all labels: `scoring`, `sparse_scoring`, `one_vs_rest`, `exact`,
  `hashed_labels`
- trees: `label_tree`, `forest`, `ranking_tree`; AnnexML's partitions: `annexml`
- networks: `networks`, `attention`; energies: `energy`, `bundle`

Training:

- vectors of tokens and labels: `bags`, `unit_rows`, `softmax`, `corrections`, `optimisers`,
  `half_rows`, `random_rows`; the network that blends: `ranking_network`
- linear classifiers: `dual_coordinate`, `dense_dual_coordinate`, `sparse_logistic`,
  `sparse_points`, `shortlists`
- clusters of labels and points: `clusters`; links between labels: `own_labels`

Graphs and searches by vectors: `graph`, `graph_building`, `best_keys`,
`nearest_codes`, `byte_codes`, `tile_products`.

Texts of a training set: `token_numbers`, `word_order`; twins among them: `word_sets`, `row_keys`;
files of them: `entries`.

How numbers are kept: `rows`, `half_numbers`, `byte_rows`, `packed_codes`, `packed_ids`,
`sparse_splitting`.

How code is written out for a processor: `instructions`, `lanes`, `sparse_lanes`, `byte_products`,
`prefetch`, `exponential`; random numbers in it: `random_bits`. How it is compiled, kept and called:
`jit`, `code_cache`, `held_signals`, `handle`, `arrays`, `growing`.
"""
