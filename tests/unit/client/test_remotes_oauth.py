"""An OAuth login that ends while it is used: renewed over a real socket, and kept."""

import asyncio
import errno
import gzip
import json
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from remote_world import World

from api_client import Remote, RequestEvent, RetryPolicy, TrainingClient, Unauthorized, resolve_remote
from api_client.errors import InvalidAnswer, RedirectRefused
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest
from support.log_server import FastClock

TOKEN_PATH = "/v1/users/auth/device/token"
LONG_AGO, FAR_AWAY = 1_000_000_000, 4_000_000_000
QUICK = RetryPolicy(base_s=0.0)


class Issuer(FakeBaseten):
    """A server whose tokens are good for a while: it hands out a-1, a-2 … for r-0, r-1 …"""

    def __init__(self) -> None:
        super().__init__()
        self.issued = 0
        self.renewals: list[ReceivedRequest] = []
        self.refusal: Answer | None = None

    def answer(self, asked: ReceivedRequest) -> Answer:
        if asked.path != TOKEN_PATH:
            self.key = f"a-{self.issued}"
            return super().answer(asked)
        self.renewals.append(asked)
        if self.refusal is not None:
            return self.refusal
        if asked.body.get("refresh_token") != f"r-{self.issued}":
            return Answer({"error": "invalid_grant", "error_description": "spent"}, status=400)
        self.issued += 1
        tokens = {"access_token": f"a-{self.issued}", "refresh_token": f"r-{self.issued}"}
        return Answer(tokens | {"expires_in": 3600})


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as server:
        yield server


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trussrc"


def keep_login(path: Path, issuer: Issuer, *, expires_at: int, access="a-0", refresh="r-0") -> None:
    path.write_text(
        f"# mine\n[acme]\nauth_type = oauth\nremote_url = {issuer.url}\noauth_access_token = {access}\n"
        + (f"oauth_refresh_token = {refresh}\n" if refresh else "")
        + f"oauth_expires_at = {expires_at}\n"
    )


def written(path: Path) -> tuple[str, int]:
    return path.read_text(), stat.S_IMODE(path.stat().st_mode)


def remote_of(path: Path) -> Remote:
    return resolve_remote(environ={"USER_TRUSSRC_PATH": str(path)})


def client_of(path: Path) -> TrainingClient:
    return TrainingClient(remote_of(path), clock=FastClock(), retry=QUICK)


async def test_a_login_that_has_ended_is_renewed_once_before_any_request(issuer: Issuer, path: Path) -> None:
    keep_login(path, issuer, expires_at=LONG_AGO)
    for _ in range(2):
        async with client_of(path) as client:
            await asyncio.gather(*(client.projects.list() for _ in range(6)))
    [renewal] = issuer.renewals
    assert renewal.body == {"grant_type": "refresh_token", "refresh_token": "r-0", "client_id": "baseten-cli"}
    assert renewal.authorization == ""
    assert [asked.authorization for asked in issuer.asked] == ["Bearer a-1"] * 12
    text, mode = written(path)
    assert mode == 0o600
    assert "# mine\n[acme]\nauth_type = oauth\n" in text
    assert "oauth_access_token = a-1\noauth_refresh_token = r-1\n" in text


async def test_a_login_ended_by_the_server_is_renewed_and_used_at_once(issuer: Issuer, path: Path) -> None:
    keep_login(path, issuer, expires_at=FAR_AWAY, access="revoked")
    async with client_of(path) as client:
        await client.projects.list()
    assert [asked.authorization for asked in issuer.asked] == ["Bearer revoked", "Bearer a-1"]


async def test_what_another_program_has_renewed_is_used(issuer: Issuer, path: Path) -> None:
    keep_login(path, issuer, expires_at=LONG_AGO)
    async with client_of(path) as client:
        issuer.issued = 5
        keep_login(path, issuer, expires_at=FAR_AWAY, access="a-5", refresh="r-5")
        await client.projects.list()
    assert issuer.renewals == []


async def test_without_a_refresh_token_the_server_s_refusal_stands(issuer: Issuer, path: Path) -> None:
    keep_login(path, issuer, expires_at=LONG_AGO, access="old", refresh="")
    async with client_of(path) as client:
        with pytest.raises(Unauthorized, match="'acme'"):
            await client.projects.list()
    assert issuer.renewals == []


async def test_an_outage_of_the_renewal_is_waited_out(issuer: Issuer, path: Path) -> None:
    keep_login(path, issuer, expires_at=LONG_AGO)
    issuer.refusal = Answer({"message": "busy"}, status=503)

    def heard(event: RequestEvent) -> None:
        if event.kind == "waiting":
            issuer.refusal = None

    async with TrainingClient(remote_of(path), clock=FastClock(), retry=QUICK, on_event=heard) as client:
        await client.jobs.search()
    assert (len(issuer.renewals), len(issuer.asked)) == (2, 1)


SPENT = {"error": "invalid_grant", "error_description": "r-secret-0 is spent"}
TO_DO = r"'acme'.*has expired.*bt-tui login --remote acme"


@pytest.mark.parametrize(
    ("refusal", "kind", "words"),
    [
        (Answer(b"<html>"), InvalidAnswer, None),
        (Answer({"access_token": "a b", "expires_in": 1}), InvalidAnswer, None),
        (Answer(b"", status=302, headers={"Location": "https://evil.example/"}), RedirectRefused, None),
        *((Answer(SPENT, status=status), Unauthorized, TO_DO) for status in (400, 403)),
    ],
)
async def test_answers_that_renew_nothing(
    issuer: Issuer, path: Path, refusal: Answer, kind: type[Exception], words: str | None
) -> None:
    keep_login(path, issuer, expires_at=LONG_AGO, refresh="r-secret-0")
    issuer.refusal = refusal
    async with client_of(path) as client:
        with pytest.raises(kind, match=words) as caught:
            await client.projects.list()
    assert "r-secret-0" not in str(caught.value)
    assert issuer.asked == []
    assert "a-0" in written(path)[0]


async def test_a_profile_of_the_go_cli_is_renewed_too(issuer: Issuer, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.add_profile("other", x=1)
    tokens = {"access_token": "a-0", "refresh_token": "r-0", "expiry": "2020-01-01T00:00:00Z"}
    world.add_profile("me", current=True, remote_url=issuer.url, auth_type="oauth", oauth_credential=tokens)
    file = world.go_folder / "auth.json"
    other = json.loads(file.read_text())["profiles"]["other"]
    async with TrainingClient(world.resolve(), retry=QUICK) as client:
        await client.projects.list()
    text, mode = written(file)
    profiles = json.loads(text)["profiles"]
    kept = profiles["me"]["oauth_credential"]
    assert (kept["access_token"], kept["refresh_token"], mode) == ("a-1", "r-1", 0o600)
    assert datetime.fromisoformat(kept["expiry"]) > datetime.now(UTC)
    assert profiles["other"] == other


async def test_renewed_tokens_that_cannot_be_kept_are_used_and_told_of(
    issuer: Issuer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    keep_login(path, issuer, expires_at=LONG_AGO)
    monkeypatch.setattr(os, "fsync", full_disk)
    remote = remote_of(path)
    async with TrainingClient(remote, retry=QUICK) as client:
        assert len(await client.projects.list()) == 1
    assert remote.login is not None
    assert f"{path}: the disk is full" in str(remote.login.save_problem)


@pytest.mark.parametrize("is_renewal", [False, True])
async def test_login_answer_over_limit_is_refused(is_renewal: bool, issuer: Issuer, path: Path) -> None:
    keep_login(path, issuer, expires_at=LONG_AGO if is_renewal else FAR_AWAY, access="a-0")
    bomb = Answer(gzip.compress(b" " * 20_000_000), headers={"Content-Encoding": "gzip"}, status=401)
    if is_renewal:
        issuer.refusal = bomb
    else:
        issuer.on("GET", ".*", bomb)
    async with client_of(path) as client:
        with pytest.raises(InvalidAnswer, match=r"over .* bytes"):
            await client.projects.list()
