"""Accounting: what a pair of distributions leaks, as pure functions of public numbers.

Every answer is the safe end of a proved bracket: deltas and epsilons are rounded up, an affordable mu is
rounded down. Numbers are read exactly as typed. Each module's statements are proved in the file beside it.

- ``gaussian``: Gaussian DP. ``composition``: how a Gaussian, a pure and a failure part and atoms compose.
- ``pairs``: hockey sticks of single pairs. ``renyi``: Renyi curves and their conversion.
- ``discrete``: integer noise and its thresholds. ``variation``: the charge for a float solver or sampler.
- ``selection``: the price of keeping the best of a random number of runs.
- ``objective``, ``output``: objective and output perturbation. The tools they all stand on are in ``numerics``.
"""
