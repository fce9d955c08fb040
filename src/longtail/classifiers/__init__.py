"""Module IV: classifiers on shortlists or hard negatives, being trained, and the re-ranker."""
