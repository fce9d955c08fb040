"""The default recipe: candidates, what each source says of them, and the blend of it all."""
