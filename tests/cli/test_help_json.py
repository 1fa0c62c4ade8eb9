"""``bt-tui --help-json``: what programs read about the commands."""

from support.cli import RunCli
from tui.cli import cli as program
from tui.commands.support.catalogue import walk
from tui.commands.support.output import ExitCode


def test_help_json_has_every_listed_command_and_every_exit_code(cli: RunCli) -> None:
    document = cli("--help-json", environ={}).json
    shown = {words for words, command in walk(program) if words and not command.hidden}
    assert {each["name"] for each in document["commands"]} == shown
    assert {each["code"] for each in document["exit_codes"]} == set(map(int, ExitCode))


def test_help_json_describes_parameters_as_help_does(cli: RunCli) -> None:
    commands = {each["name"]: each for each in cli("--help-json", environ={}).json["commands"]}
    (argument,) = commands["compare"]["arguments"]
    assert (argument["names"], argument["required"], argument["repeatable"]) == (["job_ids"], True, True)
    options = {each["names"][-1]: each for each in commands["stop"]["options"]}
    assert (options["--all"]["value"], options["--project"]["value"]) == (None, "PROJECT")
    assert "json" in next(each for each in commands["jobs"]["options"] if "-o" in each["names"])["choices"]
    assert not any("--non-interactive" in each["names"] for each in commands["stop"]["options"])


def test_no_two_options_of_a_command_have_the_same_help(cli: RunCli) -> None:
    for command in cli("--help-json", environ={}).json["commands"]:
        helps = [option["help"] for option in command["options"] if option["help"]]
        assert len(set(helps)) == len(helps), command["name"]
