"""Remote sessions into a running job."""

from __future__ import annotations

from typing import Annotated

from api_client.definitions.base import StrictDefinition, TextEnum, members_only

SESSION_TIMEOUT_MINUTES = 8 * 60
"""How long a session lasts if the job does not say (API facts, 3.1)."""


class InteractiveSessionTrigger(TextEnum):
    """When a session opens."""

    ON_STARTUP = "on_startup"
    ON_FAILURE = "on_failure"
    ON_DEMAND = "on_demand"


class InteractiveSessionProvider(TextEnum):
    """What it is opened with."""

    VS_CODE = "vs_code"
    CURSOR = "cursor"
    SSH = "ssh"


class InteractiveSessionAuthProvider(TextEnum):
    """Whose account it is opened with."""

    GITHUB = "github"
    MICROSOFT = "microsoft"


class InteractiveSession(StrictDefinition):
    """A remote session. The SDK's default account is Microsoft's, the API's own is GitHub's."""

    trigger: Annotated[InteractiveSessionTrigger, members_only(InteractiveSessionTrigger)] = (
        InteractiveSessionTrigger.ON_DEMAND
    )
    timeout_minutes: int = SESSION_TIMEOUT_MINUTES
    session_provider: Annotated[InteractiveSessionProvider, members_only(InteractiveSessionProvider)] = (
        InteractiveSessionProvider.VS_CODE
    )
    auth_provider: Annotated[InteractiveSessionAuthProvider, members_only(InteractiveSessionAuthProvider)] = (
        InteractiveSessionAuthProvider.MICROSOFT
    )
