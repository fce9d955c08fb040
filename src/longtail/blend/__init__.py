"""The default recipe: the shared space, candidates, what sources say of them, and the blend."""
