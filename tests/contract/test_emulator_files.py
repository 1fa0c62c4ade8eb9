"""Uploads, presigned URLs, ranges, and what must not be reached by them."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from api_client.emulator.backend import StoredFile
from support.served_platform import NOW, Served, counting_bytes

MODIFIED = "2026-03-01T12:00:00Z"


def upload_target(http: httpx.Client) -> tuple[str, dict[str, str], dict[str, str]]:
    """The URL to upload to, the headers that allow it, and where the object will lie."""
    given = http.get("/v1/blobs/credentials/train").json()
    creds = given["creds"]
    url = f"{creds['endpoint_url']}/{given['s3_bucket']}/{given['s3_key']}"
    place = {"s3_bucket": given["s3_bucket"], "s3_key": given["s3_key"]}
    return url, {"X-Amz-Security-Token": creds["aws_session_token"]}, place


def download_url(http: httpx.Client, served: Served, place: dict[str, str]) -> str:
    spec = {"image": {"base_image": "x"}, "runtime": {"artifacts": [place]}}
    made = http.post(f"/v1/training_projects/{served.project_id}/jobs", json={"training_job": spec}).json()
    path = f"/v1/training_projects/{served.project_id}/jobs/{made['training_job']['id']}/download"
    (url,) = http.get(path).json()["artifact_presigned_urls"]
    return str(url)


def test_an_upload_in_parts_is_joined(anyone: httpx.Client, http: httpx.Client, served: Served) -> None:
    url, token, place = upload_target(http)
    started = anyone.post(url + "?uploads", headers=token)
    upload_id = started.text.split("<UploadId>")[1].split("<")[0]
    for number, content in ((2, b"second"), (1, b"first ")):
        query = {"partNumber": str(number), "uploadId": upload_id}
        assert anyone.put(url, params=query, headers=token, content=content).status_code == 200
    parts = "".join(f"<Part><PartNumber>{number}</PartNumber></Part>" for number in (1, 2))
    body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>"
    done = anyone.post(url, params={"uploadId": upload_id}, headers=token, content=body)
    assert done.status_code == 200
    assert anyone.head(url, headers=token).headers["content-length"] == "12"
    assert anyone.get(download_url(http, served, place)).content == b"first second"
    assert anyone.post(url, params={"uploadId": upload_id}, headers=token, content=body).status_code == 404


def test_an_aborted_upload_is_gone_a_chunked_body_refused(anyone: httpx.Client, http: httpx.Client) -> None:
    url, token, _ = upload_target(http)
    upload_id = anyone.post(url + "?uploads", headers=token).text.split("<UploadId>")[1].split("<")[0]
    for status in (204, 404):
        assert anyone.delete(url, params={"uploadId": upload_id}, headers=token).status_code == status
    headers = {**token, "Content-Encoding": "aws-chunked"}
    assert anyone.put(url, headers=headers, content=b"5\r\nhello\r\n0\r\n\r\n").status_code == 501
    assert anyone.get(url, headers=token).status_code == 404


def test_object_that_cannot_be_stored_is_refused_with_the_reason(
    anyone: httpx.Client, http: httpx.Client, served: Served
) -> None:
    url, token, _ = upload_target(http)
    upload_id = anyone.post(url + "?uploads", headers=token).text.split("<UploadId>")[1].split("<")[0]
    part = {"partNumber": "1", "uploadId": upload_id}
    assert anyone.put(url, params=part, headers=token, content=b"part").status_code == 200
    blobs = served.platform.data_dir / "blobs"
    (blobs / "objects").rmdir()
    done = "<Part><PartNumber>1</PartNumber></Part>"
    answers = [
        anyone.put(url, headers=token, content=b"whole"),
        anyone.post(url, params={"uploadId": upload_id}, headers=token, content=done),
    ]
    shutil.rmtree(blobs / "uploads")
    (blobs / "uploads").write_bytes(b"")
    answers.append(anyone.post(url + "?uploads", headers=token))
    for answer in answers:
        assert answer.status_code == 400  # S3 clients repeat 5xx for minutes
        assert "<Code>StorageFailed</Code><Message>the emulator can&#x27;t store the object: " in answer.text


def test_credentials_open_one_object(anyone: httpx.Client, http: httpx.Client, served: Served) -> None:
    url, token, _ = upload_target(http)
    other, _, _ = upload_target(http)
    for place, headers in ((other, token), (url, {}), (url, served.headers)):
        assert anyone.put(place, headers=headers, content=b"x").status_code == 403
    served.clock.moment = NOW + timedelta(days=1)
    assert anyone.put(url, headers=token, content=b"x").status_code == 403


def file_url(http: httpx.Client, served: Served, *files: StoredFile) -> str:
    served.backend.stored_files[served.job_id] = list(files)
    return str(http.get(served.job_path + "/checkpoint_files").json()["presigned_urls"][0]["url"])


def test_a_file_of_any_name(anyone: httpx.Client, http: httpx.Client, served: Served, tmp_path: Path) -> None:
    path = tmp_path / "a-file"
    path.write_bytes(b"0123456789")
    for name in ("checkpoint-1/a b#?%.json", "./x", "ü/☃", "a\nb", "x\udcff"):
        url = file_url(http, served, StoredFile(name, 1, 10, MODIFIED, path=path))
        assert anyone.get(url).content == b"0123456789"


def test_a_file_made_on_demand_has_ranges(anyone: httpx.Client, http: httpx.Client, served: Served) -> None:
    size = 3_000_000  # several chunks
    url = file_url(http, served, StoredFile("model.safetensors", 0, size, MODIFIED, generate=on_demand))
    part = anyone.get(url, headers={"Range": "bytes=400000-2700000"})
    assert (part.status_code, part.content) == (206, on_demand(400_000, 2_700_001))
    assert part.headers["content-range"] == f"bytes 400000-2700000/{size}"
    assert anyone.get(url, headers={"Range": "bytes=-3"}).content == on_demand(size - 3, size)
    assert anyone.get(url, headers={"Range": f"bytes={size}-"}).status_code == 416
    assert anyone.head(url).headers["content-length"] == str(size)


def on_demand(start: int, end: int) -> bytes:
    return (bytes(range(251)) * (end // 251 + 1))[start:end]


@pytest.mark.proves("docs/emulator.md", "Checkpoint files and archives")
def test_a_presigned_url_cannot_be_changed_and_expires(
    anyone: httpx.Client, http: httpx.Client, served: Served
) -> None:
    files = [StoredFile(name, 0, 5, MODIFIED, generate=counting_bytes) for name in ("one", "two")]
    url = file_url(http, served, *files)
    assert anyone.get(url).status_code == 200
    with_key = anyone.get(url, headers=served.headers)
    assert (with_key.status_code, "<Code>InvalidArgument</Code>" in with_key.text) == (400, True), (
        "as from S3"
    )
    assert anyone.get(url.replace("/one?", "/two?")).status_code == 403
    wrong = anyone.get(url.replace("Signature=", "Signature=0"))
    assert (wrong.status_code, "<Code>SignatureDoesNotMatch</Code>" in wrong.text) == (403, True)
    assert anyone.get(url.replace("Expires=", "Expires=9")).status_code == 403
    assert anyone.get(url.split("?")[0], headers=served.headers).status_code == 403
    served.clock.moment = NOW + timedelta(hours=1)
    expired = anyone.get(url)
    assert (expired.status_code, expired.headers["content-type"]) == (403, "application/xml")
    assert "<Message>Request has expired</Message>" in expired.text


def test_a_link_out_of_the_data_folder_is_not_followed(
    anyone: httpx.Client, http: httpx.Client, served: Served, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(__file__)
    answer = anyone.get(file_url(http, served, StoredFile("link", 0, 14, MODIFIED, path=link)))
    assert (answer.status_code, b"import" in answer.content) == (404, False)


def test_files_are_paged_and_urls_lead_to_where_the_client_came_from(http: Any, served: Served) -> None:
    names = [f"file-{number}" for number in range(7)]
    served.backend.stored_files[served.job_id] = [
        StoredFile(name, 0, 1, MODIFIED, generate=counting_bytes) for name in names
    ]
    path = served.job_path + "/checkpoint_files"
    seen: list[str] = []
    token: int | None = 0
    while token is not None:
        page = http.get(path, params={"page_size": 3, "page_token": token}).json()
        assert page["total_count"] == 7
        seen += [file["relative_file_name"] for file in page["presigned_urls"]]
        token = page["next_page_token"]
    assert seen == names
    assert http.get(path, params={"page_token": 7}).json()["presigned_urls"] == []
    for wrong in ({"page_size": 0}, {"page_token": -1}):
        assert http.get(path, params=wrong).status_code == 400
    own = urlsplit(served.url).netloc
    for host, leads_to in (("localhost:9999", "localhost:9999"), ("api.localhost:8000", own)):
        answer = http.get(path, headers={"Host": host}).json()
        assert urlsplit(answer["presigned_urls"][0]["url"]).netloc == leads_to


@pytest.mark.proves("docs/emulator.md", "Checkpoint files and archives")
def test_entity_tag_changes_with_the_file(
    anyone: httpx.Client, http: httpx.Client, served: Served, tmp_path: Path
) -> None:
    path = tmp_path / "a-file"
    path.write_bytes(b"0123456789")
    url = file_url(http, served, StoredFile("a-file", 0, 10, MODIFIED, path=path))
    several = anyone.get(url, headers={"Range": "bytes=0-1,4-5"})
    assert (several.status_code, several.content) == (200, b"0123456789"), "as from S3"
    head = anyone.head(url)
    assert (head.headers["content-length"], head.headers["accept-ranges"]) == ("10", "bytes")
    assert head.headers["etag"] == f'"{hashlib.md5(path.read_bytes()).hexdigest()}"'
    path.write_bytes(b"abcdefghij")
    os.utime(path, (1, 1))
    assert anyone.head(url).headers["etag"] != head.headers["etag"]
    os.truncate(path, 8 * 1024**2 + 1)  # as after an upload in two parts
    large = file_url(http, served, StoredFile("large", 0, path.stat().st_size, MODIFIED, path=path))
    assert re.fullmatch(r'"\w+-2"', anyone.head(large).headers["etag"])
