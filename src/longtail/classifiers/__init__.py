"""Module IV: classifiers over shortlists, the re-ranker, score fusion and ensembles."""
