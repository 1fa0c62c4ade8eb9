"""A server with a certificate that nobody vouches for gets neither key nor request."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from api_client import Remote, RetryPolicy, TrainingClient, Unreachable, UploadFailed
from api_client.models import BlobCredentials
from support.certificates import own_certificate
from support.fake_baseten import FakeBaseten
from support.fake_object_store import FakeObjectStore

KEY = "sk-that-must-stay-here"


async def test_neither_the_key_nor_a_request_reaches_it(tmp_path: Path) -> None:
    with FakeBaseten(certificate=own_certificate(tmp_path)) as server:
        await _is_refused(server.url)
    assert server.connections
    assert server.asked == []


async def _is_refused(url: str) -> None:
    remote = Remote("lab", url, url, SecretStr(KEY), "the test")
    async with TrainingClient(remote, retry=RetryPolicy(max_attempts=1)) as client:
        with pytest.raises(Unreachable, match="certificate"):
            await client.projects.list()
        with pytest.raises(Unreachable, match="certificate"):
            await client.objects.read(f"{url}/object", length=1)
        with FakeObjectStore() as store:
            given = BlobCredentials.model_validate(store.credentials(endpoint_url=url))
        with pytest.raises(UploadFailed, match="certificate"):
            await client.blobs.upload(Path(__file__), given)
