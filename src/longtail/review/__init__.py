"""A second look at the labels of a training set: which may be missing, and which may be wrong.

Each point is asked of a model that has learnt from other points only. Where that model is sure of a
label that the point has not, or ranks one that it has far behind where this label usually is, a
person should look.

- `opinions`: what such models answer to each point, and where each of its own labels ranks
- `doubts`: how much less such a model makes of a label than was to be expected
- `kept_opinions`: what was found so far, on disk, so that a review that was cut off goes on
- `findings`: the labels that should be looked at, the surest first; `review_labels`
- `corrections`: the data set with labels put in and taken out
"""

from longtail.review.corrections import corrected
from longtail.review.findings import Findings, LabelReview, review_labels

__all__ = ["Findings", "LabelReview", "corrected", "review_labels"]
