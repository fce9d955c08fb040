"""Module I tasks: the stand-in targets on which the encoder of short texts is trained.

A surrogate task has far fewer outputs than there are labels, and is like enough to the real one
that the features learned for it serve the real one too.
"""
