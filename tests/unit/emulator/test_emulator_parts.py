"""The small parts behind the emulator's routes, each by its own door."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api_client.emulator.answers import ApiFault
from api_client.emulator.job_spec import requested_instance
from api_client.emulator.presign import PRESIGNED_LIFETIME_S, UPLOAD_LIFETIME_S, Signer
from api_client.emulator.routes.graphql import top_level_fields
from api_client.emulator.routes.sessions import PUBLIC_KEY
from api_client.emulator.store.blobs import BlobStore
from api_client.emulator.stored_bytes import UnsatisfiableRange, parse_range


@pytest.mark.parametrize(
    ("header", "span"),
    [
        (None, None),
        ("bytes=0-0", (0, 1)),
        ("bytes=2-", (2, 10)),
        ("bytes=2-100", (2, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-30", (0, 10)),
        ("bytes=5-4", None),
        ("bytes=-", None),
        ("bytes=0-1,3-4", None),
        ("lines=1-2", None),
        ("bytes=٣-٤", None),
        ("bytes=" + "9" * 5000 + "-", None),
    ],
)
def test_single_ranges(header: str | None, span: tuple[int, int] | None) -> None:
    assert parse_range(header, 10) == span


def test_ranges_outside_the_content() -> None:
    for header in ("bytes=10-", "bytes=99-100", "bytes=-0"):
        with pytest.raises(UnsatisfiableRange):
            parse_range(header, 10)


def test_a_signature_holds_for_its_path_purpose_and_time() -> None:
    signer = Signer(b"secret")
    url = signer.presigned("/a", now_s=1000)
    query = dict(part.split("=") for part in url.partition("?")[2].split("&"))
    expires, signature = query["X-Emulator-Expires"], query["X-Emulator-Signature"]
    assert expires == str(1000 + PRESIGNED_LIFETIME_S)
    assert signer.presigned_is_ours("/a", expires, signature)
    assert not signer.presigned_is_ours("/b", expires, signature)
    assert not signer.presigned_is_ours("/a", expires, "ü")
    assert not signer.presigned_is_ours("/a", "soon", signature)
    assert not signer.upload_token_is_valid("/a", f"{expires}.{signature}", now_s=1000)
    assert not Signer(b"other").presigned_is_ours("/a", expires, signature)
    token = signer.upload_token("/a", now_s=1000)
    assert signer.upload_token_is_valid("/a", token, now_s=1000 + UPLOAD_LIFETIME_S)
    assert not signer.upload_token_is_valid("/a", token, now_s=1001 + UPLOAD_LIFETIME_S)
    assert "secret" not in repr(signer)


def test_a_document_is_told_by_its_top_level_fields() -> None:
    query = 'query Q($a: Int = 1) { x: f(a: "}", b: {c: [1]}) { g, h { j } } i }'
    assert top_level_fields(query) == ("query", {"x": "f", "i": "i"})
    assert top_level_fields("mutation M($r: R!) { do(r: $r) { x } }") == ("mutation", {"do": "do"})


@given(st.text(alphabet='{}()[]:,"#$! abc\n', max_size=60))
def test_any_text_is_a_document_or_an_error(text: str) -> None:
    try:
        assert top_level_fields(text)[1]
    except ApiFault as fault:
        assert fault.message


def test_objects_cannot_leave_their_folder(tmp_path) -> None:
    store = BlobStore(tmp_path / "blobs")
    for key in ("../../escape", "/etc/passwd", "a/../../b", "\x00", "x" * 5000):
        with store.receive("bucket", key) as incoming:
            incoming.write(b"content")
            incoming.keep()
        path = store.path("bucket", key)
        assert path is not None
        assert path.resolve().is_relative_to(tmp_path / "blobs")
        assert path.read_bytes() == b"content"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blobs"]
    assert store.receive_part("../../x", 1) is None
    assert not store.abort_upload("..")


def test_an_object_that_was_not_finished_is_not_there(tmp_path) -> None:
    store = BlobStore(tmp_path)
    with store.receive("bucket", "key") as incoming:
        incoming.write(b"half of it")
    assert store.path("bucket", "key") is None
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_job_gets_the_machine_it_asks_for() -> None:
    for compute, machine in (
        ({}, (None, 0)),
        ({"accelerator": {"accelerator": "H100", "count": 3}}, ("H100", 4)),
        ({"accelerator": {"accelerator": "H100", "count": 0}}, (None, 0)),
        ({"accelerator": {"accelerator": "A100_40GB", "count": 8}}, ("A100-40GB", 8)),
        ({"cpu_count": 500}, (None, 0)),
    ):
        found = requested_instance({"image": {"base_image": "python:3.11"}, "compute": compute})
        assert (found.gpu_type, found.gpu_count) == machine


@pytest.mark.parametrize(
    "text", ["", "ssh-rsa", "ssh-rsa ???????????????????", f"key {'A' * 40}", "ssh-rsa AAAA"]
)
def test_what_is_no_public_key(text: str) -> None:
    assert PUBLIC_KEY.fullmatch(text) is None
