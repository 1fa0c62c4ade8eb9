"""The emulator on this machine among the remotes: there is always one, running or not."""

from __future__ import annotations

import io
from dataclasses import replace

from api_client.remotes import Remote
from api_client.remotes.listing import ListedRemote, RemoteListing
from tui.commands.emulator import LOCAL_REMOTE, local_remote, running_local_remote
from tui.commands.output import Output

EMULATOR_SOURCE = "emulator"


def with_own_emulator(listing: RemoteListing, wanted: str | None) -> RemoteListing:
    """The listing with ``local`` at its end, chosen if it is ``wanted``.

    A section of the credentials file that is called so hides it; that one is listed already.
    """
    if any(one.name == LOCAL_REMOTE and one.source == "trussrc" for one in listing.remotes):
        return listing
    is_wanted = wanted == LOCAL_REMOTE
    others = [replace(one, is_selected=one.is_selected and not is_wanted) for one in listing.remotes]
    own = ListedRemote(LOCAL_REMOTE, EMULATOR_SOURCE, is_wanted, running_local_remote(), None)
    return replace(listing, remotes=(*others, own), problem=None if is_wanted else listing.problem)


def started_local_remote() -> Remote:
    """The emulator on this machine, started if need be, without a word on the dashboard's terminal.

    Blocks for as long as the start takes. Raises CommandFailed.
    """
    return local_remote(Output(stdout=io.StringIO(), stderr=io.StringIO()))
