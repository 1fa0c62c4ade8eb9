"""Which team a project goes to when nobody is asked."""

import pytest

from api_client.errors import ConfigurationError
from api_client.models import Team, TrainingProject
from api_client.submission.submitting import TeamChoice, likely_team, named_team

RESEARCH = Team(id="t1", name="Research", default=True)
PRODUCT = Team(id="t2", name="Product")


def project(name: str, team: str | None) -> TrainingProject:
    return TrainingProject.model_validate(
        {
            "id": f"{team}-{name}",
            "name": name,
            "team_name": team,
            "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z",
        }
    )


def test_a_team_that_was_named_is_taken_even_if_it_is_the_default() -> None:
    assert named_team([RESEARCH, PRODUCT], "Product") == TeamChoice("t2", "Product")
    assert named_team([RESEARCH, PRODUCT], "Research") == TeamChoice("t1", "Research")


@pytest.mark.parametrize(
    ("teams", "known"), [([RESEARCH, PRODUCT], "Product, Research"), ([], "none visible to this key")]
)
def test_a_team_that_is_not_there_is_refused_with_those_that_are(teams: list[Team], known: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"no team 'Sales' \(known: {known}\)"):
        named_team(teams, "Sales")


def test_the_only_team_is_taken() -> None:
    assert likely_team([PRODUCT], [], "sft") == TeamChoice("t2", "Product")
    assert likely_team([RESEARCH], [], "sft") == TeamChoice()
    assert likely_team([], [], "sft") == TeamChoice()


def test_a_project_stays_in_its_team() -> None:
    projects = [project("other", "Research"), project("sft", "Product")]
    assert likely_team([RESEARCH, PRODUCT], projects, "sft") == TeamChoice("t2", "Product")


def test_a_new_project_goes_to_the_default_team_and_that_is_said() -> None:
    choice = likely_team([RESEARCH, PRODUCT], [project("other", "Product")], "sft")
    assert (choice.team_id, choice.name) == (None, None)
    assert choice.warning == "'sft' is a new project and goes to the default team 'Research'"


def test_the_same_name_in_several_teams_is_for_the_user_to_decide() -> None:
    projects = [project("sft", "Research"), project("sft", "Product")]
    with pytest.raises(ConfigurationError, match=r"several teams have a project 'sft' \(Product, Research\)"):
        likely_team([RESEARCH, PRODUCT], projects, "sft")
