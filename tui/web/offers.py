"""Files that pages may fetch, each by an unguessable key while its page is open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

OK_STATUS, PARTIAL_STATUS = 200, 206


class Owner(Protocol):
    """The dashboard that offers a file."""

    async def notify_fetched(self, key: str) -> None:
        """Handle that the file was delivered: it can be deleted."""
        ...


@dataclass(slots=True, eq=False)
class Offer:
    """A file on this machine, and its name in the browser (see ``tui.system.saved_files.safe_name``)."""

    path: Path
    save_as: str
    owner: Owner
    fetching: int = 0
    """Number of active requests: browsers may fetch several parts at once."""
    is_last_byte_sent: bool = False


class Offers:
    """The files available for download."""

    def __init__(self) -> None:
        self._offers: dict[str, Offer] = {}

    def add(self, key: str, offer: Offer) -> None:
        self._offers[key] = offer

    def withdraw(self, owner: Owner) -> None:
        """Remove the files of a closed page; transfers in progress continue."""
        self._offers = {key: one for key, one in self._offers.items() if one.owner is not owner}

    def answer(self, key: str) -> web.StreamResponse:
        """Return the response for a file or the requested range. Raises HTTPNotFound for an unknown key.

        The response has a length, so a browser detects an interrupted download and can resume it. The
        owner is notified only after the last byte has been sent.
        """
        offer = self._offers.get(key)
        if offer is None:
            raise web.HTTPNotFound(text="This file is no longer available; save it again.\n")

        async def over() -> None:
            if self._offers.pop(key, None) is not None:
                await offer.owner.notify_fetched(key)

        return OfferedFile(offer, over)


class OfferedFile(web.FileResponse):
    """A response with an offered file; calls ``over`` after the last byte when no request is active."""

    def __init__(self, offer: Offer, over: Callable[[], Awaitable[None]]) -> None:
        super().__init__(
            offer.path,
            headers={
                "Content-Type": "application/octet-stream",
                "Content-Disposition": f'attachment; filename="{offer.save_as}"',
            },
        )
        self._offer = offer
        self._over = over

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        offer = self._offer
        offer.fetching += 1
        try:
            writer = await super().prepare(request)
            offer.is_last_byte_sent |= request.method == "GET" and self._reaches_file_end()
        finally:
            offer.fetching -= 1
            if offer.is_last_byte_sent and not offer.fetching:
                await self._over()
        return writer

    def _reaches_file_end(self) -> bool:
        if self.status == OK_STATUS:
            return True
        if self.status != PARTIAL_STATUS:
            return False
        part, _, size = self.headers["Content-Range"].rpartition("/")
        return part.rpartition("-")[2] == str(int(size) - 1)
