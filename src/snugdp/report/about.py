"""What an outsider asks about a release that no computation knows: whose data, what for, of when."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path


@dataclass(frozen=True)
class About:
    """Told by whoever writes a report, and shown as it is told: public words, checked by nobody.

    ``owner``: who answers for the data. ``purpose``: what the release is for. ``period``: of the data, such as
    "January to October 2026". ``dataset``: its name, if the ledger does not say it. ``contact``: whom to ask.
    """

    owner: str | None = None
    purpose: str | None = None
    period: str | None = None
    dataset: str | None = None
    contact: str | None = None

    @classmethod
    def from_toml(cls, schema: str | Path) -> About:
        r"""What the section [about] of a schema file tells.

        >>> About.from_toml('[about]\nowner = "The shop"\n')
        About(owner='The shop', purpose=None, period=None, dataset=None, contact=None)
        """
        from snugdp.tables.schema.toml import about

        return cls(**about(schema))

    @property
    def told(self) -> tuple[tuple[str, str], ...]:
        """What was told, in order.

        >>> About(period="2026", owner="The shop").told
        (('owner', 'The shop'), ('period', '2026'))
        """
        held = ((one.name, getattr(self, one.name)) for one in fields(self))
        return tuple((name, text) for name, text in held if text)
