"""Arguments in GraphQL queries: read as written, filled in from the variables."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api_client.emulator.routes.graphql import QueryError, Variable, parse, resolve


def arguments(query: str) -> Any:
    (field,) = parse(query).fields
    return field.arguments


def test_every_kind_of_value_is_read() -> None:
    query = (
        r"""mutation M($a: Int = 1, $b: [In!]! = {c: [1]}) { do(
        whole: -3, number: 1.5e3, text: "a \"}\" \u00e9", block: """
        + '"""two\nlines"""'
        + r"""
        yes: true no: false nothing: null kind: VLLM list: [1, [$a], {b: $b}] empty: []
    ) { x } }"""
    )
    assert arguments(query) == {
        "whole": -3,
        "number": 1500.0,
        "text": 'a "}" é',
        "block": "two\nlines",
        "yes": True,
        "no": False,
        "nothing": None,
        "kind": "VLLM",
        "list": [1, [Variable("a")], {"b": Variable("b")}],
        "empty": [],
    }


def test_variables_are_filled_in_wherever_they_stand() -> None:
    value = {"a": Variable("x"), "b": [Variable("y"), 1]}
    assert resolve(value, {"x": {"any": "thing"}, "y": None}) == {"a": {"any": "thing"}, "b": [None, 1]}
    with pytest.raises(QueryError, match=r"\$y"):
        resolve(value, {"x": 1})


def test_without_arguments_there_are_none() -> None:
    assert arguments("{ f }") == {}
    assert arguments("{ f() }") == {}


@pytest.mark.parametrize(
    "query",
    [
        "{ f(a) }",
        "{ f(a: ) }",
        "{ f(a: 1 }",
        "{ f(1: a) }",
        "{ f(a: $) }",
        "{ f(a: [1) }",
        "{ f(a: 1.2.3) }",
        "{ f(a: @) }",
        '{ f(a: "\\q") }',
        "{ f(a: " + "[" * 100,
        "{ f(a: " + "{b: " * 100,
    ],
)
def test_arguments_that_make_no_sense_are_refused(query: str) -> None:
    with pytest.raises(QueryError):
        parse(query)


@given(st.text(alphabet='{}()[]:,"#$! ab1.-e\n', max_size=60))
def test_any_arguments_are_read_or_refused(text: str) -> None:
    try:
        for field in parse("{ f(a: " + text + ") }").fields:
            resolve(field.arguments, {})
    except QueryError as error:
        assert str(error)
