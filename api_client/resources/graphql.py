"""The few operations that only the app host's GraphQL endpoint supports."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from api_client import routes
from api_client.errors import BadRequest
from api_client.http.failures import clean
from api_client.resources import Resource


def is_query(graphql: str) -> bool:
    """Return True if a GraphQL document only reads; "mutation" anywhere in it makes it a change."""
    return not any(word in graphql for word in ("mutation", "subscription"))


class Graphql(Resource):
    """GraphQL queries and mutations, for what the REST API lacks."""

    async def execute(self, query: str, variables: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the ``data`` of the response. Queries are retried like a GET, mutations are not.

        Raises BadRequest if the response has errors (they come with status 200), RequestError otherwise.
        """
        body: dict[str, Any] = {"query": query}
        if variables is not None:
            body["variables"] = dict(variables)
        route = routes.GRAPHQL_QUERY if is_query(query) else routes.GRAPHQL_MUTATION
        response = await self._transport.request(route, body=body)
        errors = response.get("errors")
        if errors:
            raise self._request_error(errors[0])
        return response.get("data") or {}

    def _request_error(self, error: Mapping[str, Any]) -> BadRequest:
        extensions = error.get("extensions")
        extensions = extensions if isinstance(extensions, dict) else {}
        message = clean(
            extensions.get("description") or error.get("message") or "no reason given", self._transport.remote
        )
        code = extensions.get("code")
        return BadRequest(
            f"the server refused the GraphQL request: {message}",
            status=HTTPStatus.OK,
            code=clean(code, self._transport.remote) if code else None,
            server_message=message,
            method=routes.GRAPHQL_QUERY.method,
            path=routes.GRAPHQL_QUERY.path,
        )
