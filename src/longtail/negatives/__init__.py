"""Module II: which few labels a point's true ones are most likely to be confused with."""
