"""The unit of privacy: whom a guarantee protects."""

from __future__ import annotations

import enum


class Unit(enum.Enum):
    """Whom a plan protects: who it is that two neighbouring data sets differ in.

    ``ROW``: one row of a table, which stands for one person. ``TEACHER``: one teacher with all its votes.
    """

    ROW = "row"
    TEACHER = "teacher"
