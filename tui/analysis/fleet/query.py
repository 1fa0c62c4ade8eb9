"""Filter job lists: ``llama status:running gpu:h100 -user:bob age<2d "exact words"``.

Terms are combined with "and"; a comma inside a field's value means "or"; ``-`` or ``!`` before a term
negates it. Plain words match loosely: anywhere in a row's texts and ids, or letter by letter in its name.
No input is an error: invalid terms are ignored and reported in ``problems``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from api_client.vocabulary import RUNNABLE_STATUSES, WAITING_STATUSES, JobStatus, full_status, short_status
from tui.analysis.fleet.snapshot import JobRow
from tui.text.units import UNIT_S

FIELDS = ("name", "id", "project", "status", "gpu", "user", "age", "is")

TRAITS = ("bookmarked", "alarmed", "spot")
"""Values that ``is:`` accepts; a row without such data has none of them."""


_TERM = re.compile(
    r"""(?P<no>[-!]?)(?:(?P<field>[A-Za-z]+)(?P<sign><=|>=|[:=<>]))?(?P<value>(?:"[^"]*"?|'[^']*'(?=\s|,|$)|[^\s"])*)"""
)
_AGE = re.compile(r"\d{1,9}(?:\.\d{1,9})?[smhdw]")


@dataclass(frozen=True, slots=True)
class Term:
    """A single condition: a field match, a loose match (with an empty ``field``), or an age comparison."""

    field: str
    sign: str
    values: tuple[str, ...]
    negated: bool = False

    def matches(self, row: JobRow) -> bool:
        if self.field == "age":
            is_match = any(_compare(row.age_s, self.sign, value) for value in self.values)
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
    """A parsed filter: all ``terms`` must match; ``problems`` explain the terms left out."""

    text: str = ""
    terms: tuple[Term, ...] = ()
    problems: tuple[str, ...] = ()

    def matches(self, row: JobRow) -> bool:
        return all(term.matches(row) for term in self.terms)

    def __bool__(self) -> bool:
        return bool(self.terms)


def parse(text: str, statuses: Collection[str] | None = None) -> Query:
    """Parse a filter. Never raises.

    ``statuses`` are those of existing jobs, which may include some that this version does not know. If
    given, any other unknown status is reported as a problem.
    """
    terms: list[Term] = []
    problems: list[str] = []
    for match in filter(re.Match.group, _TERM.finditer(text)):
        try:
            terms += _terms(match, statuses)
        except ValueError as error:
            problems.append(str(error))
    return Query(text, tuple(terms), tuple(problems))


def _terms(match: re.Match[str], statuses: Collection[str] | None) -> list[Term]:
    """Return the term, if any. Raises ValueError with a message if it is invalid."""
    field, sign, value = (match["field"] or "").lower(), match["sign"] or ":", match["value"]
    negated = bool(match["no"])
    if not field:
        plain = _unquoted(value).lower()
        return [Term("", ":", (plain,), negated)] if plain else []
    if field != "age" and sign not in ":=":
        raise ValueError(f"only age can be compared, not {field!r}")
    if field not in FIELDS:
        raise ValueError(f"unknown field {field!r}; use {', '.join(FIELDS)}")
    values = tuple(part for part in (_unquoted(part).lower() for part in _split(value)) if part)
    choices = ", ".join(_CHOICES.get(field, ()))
    if not values:
        raise ValueError(f"{field}{sign} needs a value" + (choices and f"; use {choices}"))
    if field == "age":
        wrong = next((part for part in values if _AGE.fullmatch(part) is None), None)
        if wrong is not None:
            raise ValueError(f"{wrong!r} isn't a duration; use {choices}")
        # "age:2d" and "age=2d" mean: at most that old.
        return [Term(field, "<=" if sign in ":=" else sign, values, negated)]
    trait = next((part for part in values if part not in TRAITS), None)
    if field == "is" and trait is not None:
        raise ValueError(f"unknown is:{trait}; use {choices}")
    if field == "status" and (unknown := _unknown_status(values, statuses)) is not None:
        raise ValueError(f"unknown status {unknown!r}; use {choices}")
    return [Term(field, ":", values, negated)]


def _unknown_status(values: Sequence[str], statuses: Collection[str] | None) -> str | None:
    if statuses is None:
        return None
    present = [*JobStatus, *statuses]
    return next(
        (
            value
            for value in values
            if value not in _STATUS_GROUPS and not any(_status_matches(status, value) for status in present)
        ),
        None,
    )


def _split(value: str) -> list[str]:
    """Split a value into its alternatives at commas outside quotes."""
    return re.findall(r"""(?:"[^"]*"?|[^,"])+""", value)


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1]
    return value.replace('"', "")


def _compare(age_s: float, sign: str, value: str) -> bool:
    """Compare an age with a duration such as ``2d``; an unknown age (NaN) is neither below nor above it."""
    bound_s = float(value[:-1]) * UNIT_S[value[-1]]
    return {"<": age_s < bound_s, "<=": age_s <= bound_s, ">": age_s > bound_s, ">=": age_s >= bound_s}[sign]


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
    """Return True if the status matches: ``run`` matches running, ``failed`` matches only failed.

    ``deploy`` matches both statuses that begin with it.
    """
    full = full_status(status)
    group = _STATUS_GROUPS.get(value)
    if group is not None:
        return group(full)
    return short_status(full).startswith(short_status(full_status(value)))


def _matches_loosely(row: JobRow, word: str) -> bool:
    name = (row.name or "").lower()
    if word in name:
        return True
    texts = (row.project, row.user, row.gpu, short_status(row.status.name), row.note)
    if any(word in (text or "").lower() for text in texts):
        return True
    # shorter words would match ids, and names letter by letter, almost anywhere
    if len(word) < 3:
        return False
    return any(word in text.lower() for text in (row.id, row.project_id)) or _letters_in_order(word, name)


def _letters_in_order(word: str, text: str) -> bool:
    letters = iter(text)
    return all(letter in letters for letter in word)


def filtered(rows: Sequence[JobRow], *, project_id: str, query: Query) -> Sequence[JobRow]:
    """Return a project's jobs (all if "") that match the query, in the same order."""
    of_project = rows if not project_id else [row for row in rows if row.project_id == project_id]
    return [row for row in of_project if query.matches(row)] if query else of_project
