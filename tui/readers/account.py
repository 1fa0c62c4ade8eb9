"""Prices of instance types, with the user's own."""

from __future__ import annotations

from collections.abc import Mapping

from api_client.client import TrainingClient
from api_client.errors import ErrorAnswer, InvalidAnswer, Unauthorized


async def listed_prices(client: TrainingClient, own: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return USD per minute and node by instance id; empty if the server has none. Raises RequestError.

    ``own`` prices, by id or name, take precedence over the listed ones.
    """
    known = dict(own or {})
    try:
        priced = await client.account.instance_type_prices()
    except Unauthorized as error:
        if error.status == 401:  # The key itself is invalid.
            raise
        return known
    except (ErrorAnswer, InvalidAnswer) as error:
        if error.retryable:
            raise
        return known
    for one in priced:
        machine = one.instance_type
        price = known.get(machine.id, known.get(machine.name, one.price))
        if price is not None:
            known[machine.id] = price
    return known
