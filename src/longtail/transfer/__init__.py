"""Module III: from the intermediate features of the surrogate task to the final ones."""
