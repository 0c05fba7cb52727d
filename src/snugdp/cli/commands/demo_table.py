"""The table of the demonstration: orders of customers of a shop, made up by a formula."""

from __future__ import annotations

from datetime import date, timedelta
from statistics import NormalDist

import numpy as np
import polars as pl
from numpy.typing import NDArray

CUSTOMERS = 6_000
TRUTH = {"items": 8.0, "city=Oslo": 15.0, "express=yes": 12.0, "voucher": -1.0}  # of the formula, in its currency
_CITIES = np.array(["Lima", "Oslo", "Rome"])
_FIRST = date(2026, 1, 1)


def orders() -> pl.DataFrame:
    """Orders with the usual flaws: identifiers, remarks, gaps, and customers who order far more often than others.

    An amount is 20, and 8 for every item, 15 in Oslo, 12 by express, less the voucher, and luck. Every other customer
    has a voucher, and all vouchers are worth 20: no column to ask for a median.
    """
    person = np.arange(CUSTOMERS)
    number = np.minimum(1 + np.floor(-1.6 * np.log1p(-_spread(person, 2))), 25).astype(int)  # of orders
    who = np.repeat(person, number)
    order = np.arange(len(who))
    city = _CITIES[np.floor(3 * _spread(person, 3)).astype(int)][who]
    items = np.floor(1 + 6 * _spread(order, 5) ** 1.5).astype(int)
    express, voucher = _spread(order, 7) < 0.3, 20 * (who % 2)
    luck = np.array([NormalDist(0, 6).inv_cdf(float(part)) for part in _spread(order, 11)])
    amount = 20 + 8 * items + 15 * (city == "Oslo") + 12 * express - voucher + luck
    days = np.floor(300 * _spread(order, 13)).astype(int)
    return pl.DataFrame(
        {
            "order_id": order + 100_000,
            "customer_id": [f"c{one:04d}" for one in who],
            "day": [_FIRST + timedelta(days=int(day)) for day in days],
            "city": [None if gap else str(one) for gap, one in zip(order % 41 == 0, city, strict=True)],
            "items": ["n/a" if gap else str(count) for gap, count in zip(order % 29 == 0, items, strict=True)],
            "express": np.where(express, "yes", "no"),
            "voucher": voucher,
            "comment": [f"remark {one}" for one in order],
            "amount": np.round(amount, 2),
        }
    )


def _spread(index: NDArray[np.int64], prime: int) -> NDArray[np.float64]:
    """Numbers between 0 and 1 that fill it evenly, the same in every run."""
    fraction: NDArray[np.float64] = np.modf((index + 0.5) * np.sqrt(float(prime)))[0]
    return fraction
