"""Trained models as folders keep them and predictors ask them; none needs torch."""
