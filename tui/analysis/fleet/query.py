"""Filter job lists: ``llama status:running gpu:h100 -user:bob age<2d "exact words"``.

Terms are combined with "and"; a comma inside a field's value means "or"; ``-`` or ``!`` before a term
negates it. A plain word matches loosely: as a substring of a row's texts and ids, or if its letters occur in
the name in the same order. Parsing never fails: invalid terms are ignored and reported in ``problems``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from api_client.vocabulary import RUNNABLE_STATUSES, WAITING_STATUSES, JobStatus, full_status, short_status
from tui.analysis.fleet.snapshot import JobRow
from tui.text.units import SECONDS_PER_UNIT

FIELDS = ("name", "id", "project", "status", "gpu", "user", "age", "is")

TRAITS = ("bookmarked", "alarmed", "spot")
"""Values that ``is:`` accepts: attributes of ``JobRow`` that are True or False."""


_TERM_PATTERN = re.compile(
    r"""(?P<negation>[-!]?)(?:(?P<field>[A-Za-z]+)(?P<operator><=|>=|[:=<>]))?(?P<value>(?:"[^"]*"?|'[^']*'(?=\s|,|$)|[^\s"])*)"""
)
_AGE_PATTERN = re.compile(r"\d{1,9}(?:\.\d{1,9})?[smhdw]")


@dataclass(frozen=True, slots=True)
class Term:
    """A single condition: a field match, a loose match (with an empty ``field``), or an age comparison."""

    field: str
    operator: str
    values: tuple[str, ...]
    negated: bool = False

    def matches(self, row: JobRow) -> bool:
        if self.field == "age":
            is_match = any(_age_matches(row.age_s, self.operator, value) for value in self.values)
        elif self.field == "is":
            is_match = any(getattr(row, value, False) is True for value in self.values)
        elif self.field == "status":
            is_match = any(_status_matches(row.status.name, value) for value in self.values)
        elif self.field:
            texts = [getattr(row, self.field), row.project_id if self.field == "project" else ""]
            is_match = any(value in (text or "").lower() for value in self.values for text in texts)
        else:
            is_match = any(_matches_loosely(row, value) for value in self.values)
        return is_match != self.negated


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed filter: all ``terms`` must match; ``problems`` are error texts for the ignored terms."""

    text: str = ""
    terms: tuple[Term, ...] = ()
    problems: tuple[str, ...] = ()

    def matches(self, row: JobRow) -> bool:
        return all(term.matches(row) for term in self.terms)

    def __bool__(self) -> bool:
        return bool(self.terms)


def parse(text: str, statuses: Collection[str] | None = None) -> Query:
    """Parse a filter. Never raises.

    ``statuses`` are the statuses of existing jobs, which may include new statuses of the API. If given, a
    status in the filter that is neither one of these nor a known status is reported as a problem.
    """
    terms: list[Term] = []
    problems: list[str] = []
    for match in filter(re.Match.group, _TERM_PATTERN.finditer(text)):
        try:
            terms += _terms(match, statuses)
        except ValueError as error:
            problems.append(str(error))
    return Query(text, tuple(terms), tuple(problems))


def _terms(match: re.Match[str], statuses: Collection[str] | None) -> list[Term]:
    """Return the term in a list; an empty list for an empty match. Raises ValueError if it is invalid."""
    field, operator, value = (match["field"] or "").lower(), match["operator"] or ":", match["value"]
    negated = bool(match["negation"])
    if not field:
        word = _unquoted(value).lower()
        return [Term("", ":", (word,), negated)] if word else []
    if field != "age" and operator not in ":=":
        raise ValueError(f"only age can be compared, not {field!r}")
    if field not in FIELDS:
        raise ValueError(f"unknown field {field!r}; use {', '.join(FIELDS)}")
    values = tuple(
        alternative
        for alternative in (_unquoted(alternative).lower() for alternative in _alternatives(value))
        if alternative
    )
    choices = ", ".join(_CHOICES.get(field, ()))
    if not values:
        raise ValueError(f"{field}{operator} needs a value" + (choices and f"; use {choices}"))
    if field == "age":
        invalid_age = next(
            (alternative for alternative in values if _AGE_PATTERN.fullmatch(alternative) is None), None
        )
        if invalid_age is not None:
            raise ValueError(f"{invalid_age!r} isn't a duration; use {choices}")
        # "age:2d" and "age=2d" mean: at most two days old.
        return [Term(field, "<=" if operator in ":=" else operator, values, negated)]
    unknown_trait = next((alternative for alternative in values if alternative not in TRAITS), None)
    if field == "is" and unknown_trait is not None:
        raise ValueError(f"unknown is:{unknown_trait}; use {choices}")
    if field == "status" and (unknown_status := _unknown_status(values, statuses)) is not None:
        raise ValueError(f"unknown status {unknown_status!r}; use {choices}")
    return [Term(field, ":", values, negated)]


def _unknown_status(values: Sequence[str], statuses: Collection[str] | None) -> str | None:
    if statuses is None:
        return None
    known_statuses = [*JobStatus, *statuses]
    return next(
        (
            value
            for value in values
            if value not in _STATUS_GROUPS
            and not any(_status_matches(status, value) for status in known_statuses)
        ),
        None,
    )


def _alternatives(value: str) -> list[str]:
    """Split a value at commas outside quotes."""
    return re.findall(r"""(?:"[^"]*"?|[^,"])+""", value)


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1]
    return value.replace('"', "")


def _age_matches(age_s: float, operator: str, value: str) -> bool:
    """Compare an age with a duration such as ``2d``; an unknown age (NaN) is neither below nor above it."""
    bound_s = float(value[:-1]) * SECONDS_PER_UNIT[value[-1]]
    return {"<": age_s < bound_s, "<=": age_s <= bound_s, ">": age_s > bound_s, ">=": age_s >= bound_s}[
        operator
    ]


_STATUS_GROUPS: dict[str, Callable[[str], bool]] = {
    "active": lambda status: status in RUNNABLE_STATUSES,
    "waiting": lambda status: status in WAITING_STATUSES,
    "finished": lambda status: status not in RUNNABLE_STATUSES,
    "done": lambda status: status not in RUNNABLE_STATUSES,
}
_CHOICES = {
    "is": TRAITS,
    "status": (*map(short_status, JobStatus), *_STATUS_GROUPS),
    "age": ("30m", "12h", "2d"),
}


def _status_matches(status: str, value: str) -> bool:
    """Return True if ``value`` is the beginning of the status's short name, or a group that contains it.

    ``run`` matches running; ``deploy`` matches deploying and deploy-failed.
    """
    full_name = full_status(status)
    group = _STATUS_GROUPS.get(value)
    if group is not None:
        return group(full_name)
    return short_status(full_name).startswith(short_status(full_status(value)))


def _matches_loosely(row: JobRow, word: str) -> bool:
    name = (row.name or "").lower()
    if word in name:
        return True
    texts = (row.project, row.user, row.gpu, short_status(row.status.name), row.note)
    if any(word in (text or "").lower() for text in texts):
        return True
    # shorter words would match almost all ids, and the letters of almost all names
    if len(word) < 3:
        return False
    return any(word in text.lower() for text in (row.id, row.project_id)) or _letters_in_order(word, name)


def _letters_in_order(word: str, text: str) -> bool:
    letters = iter(text)
    return all(letter in letters for letter in word)


def filtered(rows: Sequence[JobRow], *, project_id: str, query: Query) -> Sequence[JobRow]:
    """Return the rows of a project (all projects if "") that match the query, in the same order."""
    project_rows = rows if not project_id else [row for row in rows if row.project_id == project_id]
    return [row for row in project_rows if query.matches(row)] if query else project_rows
