"""Module I: surrogate tasks, on which the features of points are learnt (DeepXML, section 3.1).

Most have far fewer targets than there are labels, and are like enough to the real task that
features learnt for them serve it, too. How labels are clustered, other recipes use as well.
"""
