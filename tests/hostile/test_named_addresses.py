"""Addresses that a server names: none of this machine or its networks, unless the remote is there too."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from api_client import Remote, RetryPolicy, TrainingClient, UploadFailed, addresses
from api_client.addresses import Destinations
from api_client.errors import AddressRefused, InvalidAnswer, RedirectRefused, Unreachable
from api_client.models import BlobCredentials
from api_client.ssh import Ticket, relay
from api_client.transfers.uploads import upload_file
from support.certificates import own_certificate
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest

NOWHERE = "https://api.example.test"
ONCE = RetryPolicy(max_attempts=1)
NAME = "files.example.test"
Names = dict[str, list[list[str]]]

REFUSED = {
    "on this machine": "127.0.0.1 127.255.255.254 localhost localhost. LOCALHOST a.b.localhost ::1"
    " ::ffff:127.0.0.1 ::ffff:7f00:1 127.1 2130706433 0x7f000001 0x7f.1 0177.0.0.1 017700000001",
    "unspecified": "0 0.0.0.0 ::",
    "in a private network": "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 ::ffff:192.168.1.1 fd12:3456::1",
    "in a provider's shared network": "100.64.0.1",
    "in a network for tests": "198.18.0.1 192.0.2.1 203.0.113.9 2001:db8::1",
    "link-local": "169.254.1.1 fe80::1",
    "metadata": "169.254.169.254 2852039166 ::ffff:169.254.169.254 fd00:ec2::254 fd20:ce::254"
    " 100.100.100.200 168.63.129.16",
    "multicast": "224.0.0.1 ff02::1",
    "reserved": "255.255.255.255 240.0.0.1 192.88.99.1 ::127.0.0.1 ::ffff:0:7f00:1 64:ff9b::7f00:1"
    " 64:ff9b::a9fe:a9fe 64:ff9b:1::808:808 2002:7f00:1:: 2001:0:7f00:1:: fec0::1 100::1",
}
ALLOWED = ["8.8.8.8", "172.32.0.1", "100.128.0.1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2606:4700::1111"]
ODD = ["127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0x7f000001", "127.0.0.1%2e", "01.2.3.4", "1.2.3.256"]


@pytest.mark.parametrize(("host", "why"), [(host, why) for why in REFUSED for host in REFUSED[why].split()])
def test_what_is_not_connected_to_from_elsewhere(host: str, why: str) -> None:
    with pytest.raises(AddressRefused, match=why) as caught:
        Destinations(["api.example.test", "8.8.8.8"]).resolve(host, 443)
    assert f"not connected to {host}" in str(caught.value)


def test_what_is_of_the_public_internet() -> None:
    assert all(Destinations().resolve(host, 443) for host in ALLOWED)


@pytest.mark.parametrize(
    ("remote", "allowed", "refused"),
    [
        ("127.0.0.1", "::1", "10.0.0.1"),
        ("localhost", "127.0.0.9", "192.168.0.1"),
        ("lab.localhost", "localhost", "100.64.0.1"),
        ("10.1.1.1", "192.168.0.1", "127.0.0.1"),
        ("fd00::1", "10.0.0.1", "fd00:ec2::254"),
        ("100.64.0.1", "100.127.0.1", "100.100.100.200"),
        ("198.18.0.1", "198.19.255.1", "10.0.0.1"),
        ("169.254.1.1", "8.8.8.8", "169.254.1.1"),
        ("0.0.0.0", "8.8.8.8", "127.0.0.1"),
    ],
)
def test_where_the_remote_is_it_may_send_us(remote: str, allowed: str, refused: str) -> None:
    destinations = Destinations([remote])
    assert destinations.resolve(allowed, 443)
    with pytest.raises(AddressRefused):
        destinations.resolve(refused, 443)
    again = Destinations(networks=destinations.networks)
    assert again.resolve(allowed, 443)


def test_a_public_address_of_this_machine_is_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_NETWORKS", [])  # so 127.0.0.1 stands for a public address
    with pytest.raises(AddressRefused, match="on this machine"):
        Destinations(["8.8.8.8"]).resolve("127.0.0.1", 443)
    assert Destinations(["127.0.0.1"]).resolve("127.0.0.1", 443)


class Trap(FakeBaseten):
    """A server on this machine that notes who connects, and answers with the reply that is set."""

    def __init__(self, **where: Any) -> None:
        super().__init__(**where)
        self.heard: list[str] = []
        self.reply = Answer(b"x", headers={"ETag": '"tag"'})

    def answer(self, asked: ReceivedRequest) -> Answer:
        self.heard.append(f"{asked.method} {asked.target}")
        return self.reply


@pytest.fixture
def trap() -> Iterator[Trap]:
    with Trap() as server:
        yield server


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that is trusted, for names of the test."""
    path = own_certificate(tmp_path, NAME, "api.example.test")
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    return path


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """What names of the test lead to: each time the next addresses, the last for ever."""
    known: Names = {}
    real: Any = socket.getaddrinfo

    def resolve(host: Any, port: Any, *arguments: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if not name.endswith(".test"):
            return real(host, port, *arguments, **options)
        if name not in known:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        found = known[name].pop(0) if len(known[name]) > 1 else known[name][0]
        return [entry for each in found for entry in real(each, port, type=socket.SOCK_STREAM)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return known


def client_of(url: str, http_transport: httpx.AsyncBaseTransport | None = None) -> TrainingClient:
    remote = Remote("lab", url, url, SecretStr("sk-key"), "the test")
    return TrainingClient(remote, retry=ONCE, http_transport=http_transport)


def elsewhere() -> TrainingClient:
    """A client of a remote that is somewhere in the internet."""
    empty = httpx.Response(200, json={"training_projects": []})
    return client_of(NOWHERE, httpx.MockTransport(lambda _request: empty))


async def test_presigned_urls_of_this_machine_are_not_requested(trap: Trap) -> None:
    async with elsewhere() as client:
        assert await client.projects.list() == []
        for host in ("127.0.0.1", "localhost", "x.localhost", "[::ffff:127.0.0.1]"):
            with pytest.raises((AddressRefused, InvalidAnswer)):
                await client.objects.read(f"http://{host}:{trap.port}/a?token=secret", length=1)
    assert trap.connections == 0


async def test_odd_spellings_of_addresses_are_no_hosts(trap: Trap) -> None:
    async with client_of(f"http://127.0.0.1:{trap.port}") as client:
        for start in (f"{scheme}://{host}" for scheme in ("http", "https") for host in ODD):
            with pytest.raises(InvalidAnswer, match="an invalid host"):
                await client.objects.read(f"{start}:{trap.port}/a", length=1)
    assert trap.connections == 0


async def test_names_that_lead_there_are_not_requested(trap: Trap, names: Names) -> None:
    async with elsewhere() as client:
        for address in ("127.0.0.1", "10.0.0.5", "169.254.169.254", "::1", "fd00::1"):
            names[NAME] = [["8.8.8.8", address]]
            with pytest.raises(AddressRefused, match=rf"not connected to {NAME} \({address}\)"):
                await client.objects.read(f"https://{NAME}:{trap.port}/a", length=1)
    assert trap.connections == 0


async def test_the_address_that_was_checked_is_connected_to_and_tls_checks_the_name(
    names: Names, certificate: Path
) -> None:
    """A name that leads elsewhere at the second look gains nothing: it is looked up once a connection."""
    with (
        Trap(certificate=certificate) as trap,
        Trap(host="127.0.0.2", port=trap.port, certificate=certificate) as other,
    ):
        names[NAME] = [["127.0.0.1"], ["127.0.0.2"]]
        async with client_of("http://127.0.0.1:1") as client:
            assert await client.objects.read(f"https://{NAME}:{trap.port}/a", length=1) == b"x"
            with pytest.raises(Unreachable, match="certificate"):
                await client.objects.read(f"https://127.0.0.1:{trap.port}/a", length=1)
    assert trap.heard == ["GET /a"]
    assert {*trap.server_names} <= {NAME, None}
    assert names[NAME] == [["127.0.0.2"]]
    assert not other.connections


async def test_upload_is_sent_if_certificate_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = own_certificate(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with Trap(certificate=certificate) as store:
        store.reply = Answer(b"", headers={"ETag": '"tag"'})
        async with client_of("http://127.0.0.1:1") as client:
            await client.blobs.upload(certificate, credentials(f"https://localhost:{store.port}"))
    assert store.heard == ["PUT /bucket/key"]


REDIRECTS = (
    "https://10.0.0.1/x https://169.254.169.254/latest/meta-data https://[fd00:ec2::254]/ http://10.0.0.1/x"
    f" https://[64:ff9b::a00:1]/ https://{NAME}/ http://169.254.169.254/ https://2130706433/"
)


@pytest.mark.parametrize("target", REDIRECTS.split())
async def test_redirects_lead_there_neither(trap: Trap, names: Names, target: str) -> None:
    names[NAME] = [["192.168.0.1"]]
    trap.reply = Answer(b"", status=302, headers={"Location": target})
    async with client_of(f"http://127.0.0.1:{trap.port}") as client:
        with pytest.raises((AddressRefused, RedirectRefused)):
            await client.objects.read(f"http://127.0.0.1:{trap.port}/a", length=1)
    assert trap.heard == ["GET /a"]


@pytest.mark.parametrize("host", ["10.0.0.1", "[::ffff:10.0.0.1]", NAME, "169.254.169.254"])
async def test_a_proxy_is_not_asked_for_what_leads_there(
    trap: Trap, names: Names, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    names[NAME] = [["8.8.8.8", "10.0.0.1"]]
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{trap.port}")
    monkeypatch.setenv("no_proxy", "")
    async with elsewhere() as client:
        for _ in range(2):
            with pytest.raises(AddressRefused):
                await client.objects.read(f"https://{host}/a", length=1)
    with pytest.raises(UploadFailed, match="not connected to"):
        await upload_file(BytesIO(), credentials(f"https://{host}"), Destinations())
    assert trap.connections == 0


@pytest.mark.parametrize("variable", ["https_proxy", "all_proxy"])
async def test_a_proxy_resolves_names_that_are_unknown_here(
    trap: Trap, names: Names, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, f"127.0.0.1:{trap.port}")
    monkeypatch.setenv("no_proxy", "")
    trap.reply = Answer(b"", status=403)
    async with elsewhere() as client:
        with pytest.raises(Unreachable):
            await client.objects.read(f"https://{NAME}/a", length=1)
    assert trap.heard == [f"CONNECT {NAME}:443"]


def credentials(endpoint: str) -> BlobCredentials:
    key = dict.fromkeys(("aws_access_key_id", "aws_secret_access_key", "aws_session_token"), "x")
    given = {"s3_bucket": "bucket", "s3_key": "key", "creds": {**key, "endpoint_url": endpoint}}
    return BlobCredentials.model_validate(given)


@pytest.mark.parametrize("host", ["http://127.0.0.1", "http://x.localhost", f"https://{NAME}"])
async def test_uploads_go_there_neither(trap: Trap, names: Names, host: str) -> None:
    names[NAME] = [["127.0.0.1"]]
    with pytest.raises(UploadFailed, match=r"not connected to .* on this machine"):
        await upload_file(BytesIO(b"code"), credentials(f"{host}:{trap.port}"), Destinations())
    assert trap.connections == 0


async def test_an_ssh_proxy_is_not_there_either(trap: Trap, names: Names) -> None:
    names[NAME] = [["127.0.0.1"]]
    for host in ("127.0.0.1", "localhost", "[::1]", NAME):
        ticket = Ticket(f"{host}:{trap.port}", SecretStr("token"), Destinations(["8.8.8.8"]))
        with pytest.raises(AddressRefused, match="not connected to"):
            await relay(ticket, source=0, sink=1, environ={"BASETEN_SSH_PROXY_INSECURE": "1"})
    assert trap.connections == 0


@pytest.mark.parametrize("proxied", [False, True])
async def test_where_the_remote_is_shows_the_address_that_its_answers_come_from(
    names: Names, certificate: Path, monkeypatch: pytest.MonkeyPatch, proxied: bool
) -> None:
    """Not what its name leads to, nor where a proxy is."""
    names["api.example.test"] = names[NAME] = [["127.0.0.1"]]
    monkeypatch.setenv("no_proxy", "")
    with Trap(certificate=certificate) as api:
        api.reply = Answer({"training_projects": []})
        url, file = f"https://api.example.test:{api.port}", f"https://{NAME}:{api.port}/a"
        if proxied:
            monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{api.port}")
        async with client_of(url) as client:
            with pytest.raises(AddressRefused):
                await client.objects.read(file, length=1)
            if proxied:
                with pytest.raises(Unreachable):
                    await client.projects.list()
                with pytest.raises(AddressRefused):
                    await client.objects.read(file, length=1)
            else:
                assert await client.projects.list() == []
                assert await client.objects.read(file, length=1) == b"{"


async def test_a_server_with_an_unknown_certificate_gets_neither_key_nor_request(tmp_path: Path) -> None:
    with Trap(certificate=own_certificate(tmp_path)) as server:
        async with client_of(server.url) as client:
            with pytest.raises(Unreachable, match="certificate"):
                await client.projects.list()
            with pytest.raises(Unreachable, match="certificate"):
                await client.objects.read(f"{server.url}/object", length=1)
            with pytest.raises(UploadFailed, match="certificate"):
                await client.blobs.upload(Path(__file__), credentials(server.url))
    assert server.connections
    assert server.heard == []
