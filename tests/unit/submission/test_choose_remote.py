"""Where a script's push goes when it names the remote that everybody names."""

from pathlib import Path

import pytest

from api_client.errors import ConfigurationError
from api_client.programmatic import choose_remote

LOCAL = {"BASETEN_API_KEY": "k1", "BASETEN_REMOTE_URL": "http://127.0.0.1:8100"}
PAIR = {"BASETEN_TRUSS_AUTH_REMOTE_URL": "http://127.0.0.1:8200", "BASETEN_TRUSS_AUTH_API_KEY": "k"}
SECTIONS = """[baseten]
remote_url = https://app.baseten.co
api_key = k2
[staging]
remote_url = https://app.staging.baseten.co
api_key = k3
"""


@pytest.mark.parametrize(
    ("name", "environ", "app_url"),
    [
        ("baseten", {}, "https://app.baseten.co"),
        ("baseten", {"BASETEN_API_KEY": "k1"}, "https://app.baseten.co"),
        ("baseten", LOCAL, "http://127.0.0.1:8100"),
        ("baseten", PAIR, "http://127.0.0.1:8200"),
        ("baseten", {"USER_TRUSSRC_PATH": "/none", "BASETEN_API_KEY": "k1"}, "https://app.baseten.co"),
        ("staging", LOCAL, "https://app.staging.baseten.co"),
        ("nowhere", LOCAL, None),
    ],
)
def test_an_environment_that_points_elsewhere_goes_before_the_default_alone(
    tmp_path: Path, name: str, environ: dict[str, str], app_url: str | None
) -> None:
    (tmp_path / "trussrc").write_text(SECTIONS)
    environ = {"USER_TRUSSRC_PATH": str(tmp_path / "trussrc")} | environ
    if app_url is None:
        with pytest.raises(ConfigurationError, match=f"no remote '{name}'"):
            choose_remote(name, environ)
    else:
        assert choose_remote(name, environ).app_url == app_url
