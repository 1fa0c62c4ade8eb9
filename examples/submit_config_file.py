"""Submit a config.py that was written for the official SDK, with some values replaced.

Run it: ``python examples/submit_config_file.py CONFIG_FILE``

Loading a config runs it: only do that with files you trust.
"""

import sys

from api_client import ConfigurationError, Overrides, RequestError, push


def main(config: str) -> int:
    """Print the ids, or say why there are none."""
    try:
        # No event loop of your own is needed, and none is in the way: this works in a notebook too.
        answer = push(config, overrides=Overrides(job_name="from-a-script", priority=1))
    except ConfigurationError as error:  # no remote, or a config, workspace or override that cannot be
        print(f"cannot submit: {error}", file=sys.stderr)
        return 2
    except RequestError as error:  # the server, the object store, or the way there
        print(f"not submitted: {error}", file=sys.stderr)
        return 1
    print(answer["training_project"]["id"], answer["training_job"]["id"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
