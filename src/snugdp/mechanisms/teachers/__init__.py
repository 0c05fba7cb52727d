"""Noisy labels from the votes of teachers, and what they give away.

``labels``: the draws and the plain Gaussian cost. ``ball``: how likely a label misses the plurality, within vote moves.
``pair``, ``distance_test``: one dominating pair for one label, the best pass bit, and the distance test
made of them. ``loss``, ``table``, ``confident``: Renyi losses, and labels behind a threshold.
``smooth_test``: smooth sensitivity and the paper's test. ``planning``: beliefs and proposals.
"""
