"""Where a script's push goes when it names the remote that everybody names."""

from pathlib import Path

import pytest

from api_client.errors import ConfigurationError
from api_client.programmatic import choose_remote

APP, STAGING, HERE = "https://app.baseten.co", "https://app.staging.baseten.co", "http://127.0.0.1:8100"
SECTIONS = f"[baseten]\nremote_url = {APP}\napi_key = k2\n[staging]\nremote_url = {STAGING}\napi_key = k3\n"
LOCAL = {"BASETEN_API_KEY": "k1", "BASETEN_REMOTE_URL": HERE}
PAIR = {"BASETEN_TRUSS_AUTH_REMOTE_URL": HERE, "BASETEN_TRUSS_AUTH_API_KEY": "k"}


def test_an_environment_that_points_elsewhere_goes_before_the_default_alone(tmp_path: Path) -> None:
    (tmp_path / "trussrc").write_text(SECTIONS)
    for name, variables, app_url in (
        ("baseten", {"BASETEN_API_KEY": "k1"}, APP),
        ("baseten", LOCAL, HERE),
        ("baseten", PAIR, HERE),
        ("baseten", {"USER_TRUSSRC_PATH": "/none", "BASETEN_API_KEY": "k1"}, APP),
        ("staging", LOCAL, STAGING),
    ):
        environ = {"USER_TRUSSRC_PATH": str(tmp_path / "trussrc")} | variables
        assert choose_remote(name, environ).app_url == app_url
        with pytest.raises(ConfigurationError, match="no remote 'nowhere'"):
            choose_remote("nowhere", environ)
