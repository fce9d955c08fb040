"""Module IV: classifiers of shortlisted labels, being trained, and the re-ranker."""
