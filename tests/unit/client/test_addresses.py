"""Base URLs, loopback, and ids in paths."""

import httpx
import pytest
from hypothesis import given, settings, strategies as st

from api_client.addresses import is_loopback, parse_base_url
from api_client.errors import ConfigurationError


def test_this_machine_and_others() -> None:
    for host in ("localhost", "LOCALHOST", "127.0.0.1", "127.8.9.1", "::1", "api.localhost", "localhost."):
        assert is_loopback(host), host
    for host in ("a.com", "localhost.a.com", "10.0.0.1", "0.0.0.0", "127.1", "::", "notlocalhost", ""):
        assert not is_loopback(host), host


def test_base_urls_are_normalised() -> None:
    for text, normal in {
        **dict.fromkeys(("HTTPS://API.Baseten.co/", "https://api.baseten.co:443"), "https://api.baseten.co"),
        "http://[::1]:80/": "http://[::1]",
        "  https://proxy.example.com:8443/baseten/v2/ ": "https://proxy.example.com:8443/baseten/v2",
    }.items():
        assert str(parse_base_url(text, source="X")) == normal


@pytest.mark.parametrize(
    "text",
    [
        *("", "api.baseten.co", "ftp://api.baseten.co", "https:///path", "https://a b", "https://a\nb"),
        *("https://exämple.com", "https://host:99999", "https://host:port", "https://[::1"),
        *("https://user:hunter2@host", "https://host\\@evil.com", "https://host/path\\@evil.com"),
        *("https://host/?query", "https://host/#fragment", "https://-host", "http://api.baseten.co"),
        *("http://localhost.evil.com", "http://10.0.0.1"),
    ],
)
def test_unusable_addresses_are_refused_by_the_name_of_their_source(text: str) -> None:
    with pytest.raises(ConfigurationError, match="BASETEN_REMOTE_URL") as caught:
        parse_base_url(text, source="BASETEN_REMOTE_URL")
    assert "hunter2" not in str(caught.value)


@given(st.text())
@settings(max_examples=50)
def test_any_text_is_an_address_or_a_configuration_error(text: str) -> None:
    try:
        url = parse_base_url("https://" + text, source="X")
    except ConfigurationError:
        return
    assert httpx.URL(str(url)).host == url.host
