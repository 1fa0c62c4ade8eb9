"""A cache's listing is read the same in windows as in one piece, whatever lies across their edges."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api_client.models import cache
from api_client.models.cache import NotAListing, read_listing

FILES = st.lists(
    st.fixed_dictionaries(
        {"path": st.text(max_size=12)},
        optional={
            "size_bytes": st.none() | st.integers(-5, 2**70) | st.floats(allow_nan=False),
            "modified": st.none() | st.text(max_size=5) | st.integers(),
            "file_type": st.sampled_from(("file", "directory")),
            "extra": st.lists(
                st.dictionaries(st.text(max_size=2), st.text(alphabet='{}[],"\\ ', max_size=6))
            ),
        },
    ),
    max_size=12,
)


@given(FILES, st.sampled_from((16, 64, 200, 10_000)), st.sampled_from((None, 2)), st.booleans())
def test_the_size_of_the_windows_changes_nothing(
    files: list[dict[str, Any]], window: int, indent: int | None, ascii_only: bool
) -> None:
    document = {"timestamp": "now", "file_summaries": files, "project_id": "p"}
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "WINDOW_BYTES", window)
        listing = read_listing(text.encode(errors="replace"))
    assert listing is not None
    assert (listing.timestamp, listing.project_id) == ("now", "p")
    sent = [file["path"] for file in json.loads(text.encode(errors="replace"))["file_summaries"]]
    assert [file.path for file in listing.files] == sent


@pytest.mark.parametrize("content", [b"null", b"{}", b" {} "])
def test_nothing_is_no_cache(content: bytes) -> None:
    assert read_listing(content) is None


def test_broken_letters_and_null_lists_are_read() -> None:
    listing = read_listing(b'{"file_summaries": [{"path": "a\xffb"}, {"path": "\\ud800"}]}')
    assert listing is not None
    assert [file.path for file in listing.files] == ["a\ufffdb", "\ud800"]
    empty = read_listing(b'{"timestamp": null, "file_summaries": null}')
    assert empty is not None
    assert empty.files == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'"x"',
        b'{"file_summaries": [{"path": "a"},]}',
        b'{"file_summaries": [{"path": "a"} {"path": "b"}]}',
        b'{"file_summaries": [{"path": "a"}',
        b'{"file_summaries": [{"path": "a"}]',
        b'{"file_summaries": [{"path": 7}]}',
        b'{"file_summaries": [null]}',
        b'{"file_summaries": {"path": "a"}}',
        b'{"file_summaries": [' + b'{"path":' * 100_000,
    ],
)
def test_what_is_no_listing_is_refused(content: bytes) -> None:
    with pytest.raises(NotAListing):
        read_listing(content)
