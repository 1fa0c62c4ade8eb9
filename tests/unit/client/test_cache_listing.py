"""The listing of a cache: its records, whatever a server leaves out or adds."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from api_client.http.decoding import NotDecodable, decode
from api_client.models.cache import CacheListing

LISTING = TypeAdapter(CacheListing)
FILES = st.lists(
    st.fixed_dictionaries(
        {"path": st.text(max_size=12)},
        optional={
            "size_bytes": st.none()
            | st.integers(-5, 2**70)
            | st.floats(allow_nan=False, allow_infinity=False),
            "modified": st.none() | st.text(max_size=5) | st.integers(),
            "file_type": st.sampled_from(("file", "directory")),
            "extra": st.text(alphabet='{}[],"\\ ', max_size=6).map(lambda text: [{text: text}]),
        },
    ),
    max_size=12,
)


@given(FILES, st.sampled_from((None, 2)), st.booleans())
def test_every_file_is_read(files: list[dict[str, Any]], indent: int | None, ascii_only: bool) -> None:
    document = {"timestamp": "now", "file_summaries": files, "project_id": "p", "newer": {"a": []}}
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    listing = decode(text.encode(), LISTING)
    assert (listing.timestamp, listing.project_id) == ("now", "p")
    for file, sent in zip(listing.file_summaries, files, strict=True):
        modified, size = sent.get("modified"), sent.get("size_bytes")
        assert (file.path, file.size_bytes) == (sent["path"], int(size or 0))
        assert file.modified == (modified if isinstance(modified, str) else "")


def test_broken_letters_and_null_lists_are_read() -> None:
    listing = decode(b'{"file_summaries": [{"path": "a\xffb"}, {"path": "\\ud800"}]}', LISTING)
    assert [file.path for file in listing.file_summaries] == ["a\ufffdb", "\ufffd"]
    empty = decode(b'{"timestamp": null, "file_summaries": null}', LISTING)
    assert empty == CacheListing()


@pytest.mark.parametrize(
    "content",
    [
        b'"x"',
        b'{"file_summaries": [{"path": "a"}]',
        b'{"file_summaries": [{"path": 7}]}',
        b'{"file_summaries": [null]}',
        b'{"file_summaries": {"path": "a"}}',
        b'{"file_summaries": [' + b'{"path":' * 100_000,
    ],
)
def test_what_is_no_listing_is_refused(content: bytes) -> None:
    with pytest.raises(NotDecodable):
        decode(content, LISTING)
