"""The address of a ledger in PostgreSQL: what goes to the server, what may be shown, and where it is remembered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from snugdp.ledger.anchors.recognition import state_folder

_SECRETS = ("password", "sslpassword", "oauth_client_secret")
_ONE_AT = (
    "this is not the address of a PostgreSQL ledger, such as postgresql://user:password@host:5432/database#dataset. "
    "Within a name or a password write @ as %40, / as %2F, ? as %3F, # as %23 and % as %25"
)


def driver() -> Any:
    """psycopg, which is loaded with the first ledger that needs it."""
    try:
        import psycopg
    except ImportError:
        raise ImportError('a ledger in PostgreSQL needs the package psycopg: pip install "snugdp[postgres]"') from None
    return psycopg


@dataclass(frozen=True, repr=False)
class Url:
    """A parsed address. Only ``server`` and ``whole`` hold the password; everything that is shown is without it.

    >>> url = Url.parse("postgresql://ann:secret@db.example/privacy#survey%202024")
    >>> url.dataset, str(url)
    ('survey 2024', 'postgresql://ann@db.example/privacy#survey%202024')
    """

    server: str  # for libpq: the text as given, without the data set
    dataset: str | None
    parts: Mapping[str, str] = field(default_factory=dict)  # as libpq reads it, with its defaults

    @classmethod
    def parse(cls, text: str, dataset: str | None = None) -> Url:
        """Read an address; ``dataset`` names the ledger if the address does not. ValueError never shows the text."""
        server, _, fragment = text.partition("#")
        _, _, rest = server.partition("://")
        authority = rest.split("/", 1)[0].split("?", 1)[0]
        if rest.count("@") != authority.count("@") or rest.count("@") > 1 or "@" in fragment:
            raise ValueError(_ONE_AT)
        named = unquote(fragment) or None
        if named and dataset and named != dataset:
            raise ValueError(f"the address names the data set {named!r}, dataset= another one: {dataset!r}")
        url = cls(server, named or dataset, _read(server))
        if not all(port.isdigit() for port in url.parts["port"].split(",") if port):
            raise ValueError(_ONE_AT)
        return url

    def named(self, dataset: str) -> Url:
        """The same server, and this data set."""
        return replace(self, dataset=dataset)

    @property
    def whole(self) -> str:
        """The address as it must be given to find this ledger again, with the password if it was given with one."""
        return self.server + self._fragment()

    def __str__(self) -> str:
        user, host, port, database = (quote(self.parts[name], safe=",") for name in ("user", "host", "port", "dbname"))
        given = "" if port == "5432" else f":{port}"
        return f"postgresql://{user}@{host}{given}/{database}{self._fragment()}"

    __repr__ = __str__

    def _fragment(self) -> str:
        return "" if self.dataset is None else "#" + quote(self.dataset, safe="")

    def scrub(self, text: str) -> str:
        """A message of the server or of libpq on one line, without any password of the address."""
        for name in _SECRETS:
            secret = self.parts.get(name)
            for form in (secret, secret and quote(secret, safe="")):
                text = text.replace(form, "***") if form else text
        return " ".join(text.split())

    def anchor(self) -> Path:
        """Where this user remembers which ledger is at this address: one for each host, port, database and data set."""
        if self.dataset is None:
            raise ValueError(f"{self} names no data set, and the database holds no ledger: give dataset=, or …#dataset")
        name = json.dumps([*(self.parts[part] for part in ("host", "port", "dbname")), self.dataset])
        return Path(state_folder()) / (hashlib.sha256(name.encode()).hexdigest()[:32] + ".anchor")


def _read(server: str) -> dict[str, str]:
    psycopg = driver()
    try:
        given = psycopg.conninfo.conninfo_to_dict(server)
    except psycopg.Error:
        raise ValueError(_ONE_AT) from None
    defaults = {
        option.keyword.decode(): option.val.decode() for option in psycopg.pq.Conninfo.get_defaults() if option.val
    }
    parts = {"host": "localhost", "port": "5432", "user": ""} | defaults | {k: str(v) for k, v in given.items()}
    return {"dbname": parts["user"]} | parts
