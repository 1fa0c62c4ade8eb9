"""Handle errors, and observe every retry.

python examples/errors_and_retries.py
"""

import asyncio
import os
import sys

from api_client import (
    ConfigurationError,
    ErrorAnswer,
    NotFound,
    RemoteNotConfigured,
    RequestError,
    RequestEvent,
    RetryPolicy,
    TrainingClient,
    Unauthorized,
    resolve_remote,
)


def report_event(event: RequestEvent) -> None:
    """Print every request, response and wait. Events never contain a key."""
    if event.kind == "waiting":
        print(f"retrying in {event.delay_s:.1f} s: {event.reason}", file=sys.stderr)
    else:
        print(f"{event.kind} {event.method} {event.path}", file=sys.stderr)


async def main() -> int:
    """Request a job that does not exist, and print the error."""
    try:
        remote = resolve_remote(environ=os.environ)
    except RemoteNotConfigured:
        print("no key: set BASETEN_API_KEY or run bt-tui login", file=sys.stderr)
        return 2
    except ConfigurationError as error:
        print(f"invalid configuration: {error}", file=sys.stderr)
        return 2
    async with TrainingClient(remote, retry=RetryPolicy(max_attempts=3), on_event=report_event) as client:
        try:
            await client.jobs.get("no-such-project", "no-such-job")
        except NotFound as error:
            print(f"not found: status {error.status}, {error.server_message}")
        except Unauthorized as error:
            print(f"not allowed: {error}")  # names the remote and the source of its key
        except ErrorAnswer as error:
            print(f"refused: {error} (request {error.request_id})")
        except RequestError as error:
            print(f"no response after {error.attempts} attempts: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
