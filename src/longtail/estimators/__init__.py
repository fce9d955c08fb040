"""What all recipes are to their users: scikit-learn estimators that fit, answer and save."""
