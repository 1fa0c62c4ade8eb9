"""Submit a config.py written for the official SDK, with some values overridden.

Run it: ``python examples/submit_config_file.py CONFIG_FILE``

Loading a config executes it: load only files you trust.
"""

import sys

from api_client import ConfigurationError, Overrides, RequestError, push


def main(config: str) -> int:
    """Print the ids of the project and the job, or the error."""
    try:
        # Works with and without a running event loop, so also in a notebook.
        fields = push(config, overrides=Overrides(job_name="from-a-script", priority=1))
    except ConfigurationError as error:  # no remote, or an invalid config, workspace or override
        print(f"cannot submit: {error}", file=sys.stderr)
        return 2
    except RequestError as error:  # the server, the object store, or the network
        print(f"not submitted: {error}", file=sys.stderr)
        return 1
    print(fields["training_project"]["id"], fields["training_job"]["id"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
