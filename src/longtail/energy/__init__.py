"""Structured prediction by energies of whole label vectors: SPEN and ICNN, as torch trains them."""
