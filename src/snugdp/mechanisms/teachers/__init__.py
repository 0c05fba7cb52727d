"""Noisy labels from the votes of teachers, and what they give away.

``labels``: the draws and the plain Gaussian cost. ``ball``: how likely a label misses the plurality, within vote moves.
``pair``, ``passing``, ``sharp``: one dominating pair for one label, the best pass bit, and the distance test made of
them. ``loss``, ``table``, ``tails``, ``renyi``, ``confident``: Renyi losses, the distance test of Theorem B, and labels
behind a threshold. ``smooth``, ``gnss``: smooth sensitivity and the paper's test. ``exact``: the law, for diagnosis.
"""
