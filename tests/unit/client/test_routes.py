"""Routes: paths and words for any ids, and what counts as a change."""

import httpx
import pytest
from hypothesis import given, strategies as st

from api_client import routes
from api_client.errors import RequestError
from api_client.routes import ROUTES, Route

ID = st.text(min_size=1, max_size=20) | st.sampled_from(["", ".", ".."])


@given(st.sampled_from([each for each in ROUTES if "{" in each.path]), st.data())
def test_ids_never_change_the_route(route: Route[object], data: st.DataObject) -> None:
    ids = [data.draw(ID) for _ in range(route.path.count("{"))]
    try:
        path = route.path_of(*ids)
    except RequestError as error:
        assert {"", ".", ".."} & set(ids)
        assert "not a valid id" in str(error)
        return
    raw_path = httpx.URL("https://host" + path).raw_path.decode()
    assert raw_path == path
    assert route.matches(path)
    assert path.count("/") == route.path.count("/")


@pytest.mark.parametrize(
    ("route", "ids", "words"),
    [
        (routes.UPDATE_JOB, ("p", "Zürich"), "update job Zürich"),
        (routes.STOP_JOB, ("p", "a/b\x1b[31m"), "stop job a/b\ufffd[31m"),
        (routes.PROJECT, ("x" * 500,), f"read project {'x' * 59}…"),
        (routes.PROJECT, ("{project_id}",), "read project {project_id}"),
    ],
)
def test_words_have_the_ids_as_harmless_text(route: Route[object], ids: tuple[str, ...], words: str) -> None:
    assert route.words(*ids) == words


def test_route_that_says_nothing_is_a_change_unless_get() -> None:
    assert not Route("GET", "/v1/new", "do", str).is_change
    assert all(Route(each, "/v1/new", "do", str).is_change for each in ("POST", "PATCH", "DELETE"))
    assert {each for each in ROUTES if each.method != "GET" and not each.is_change} == {
        routes.SEARCH_JOBS,
        routes.GRAPHQL_QUERY,
    }
