"""``bt-tui mcp``: Let coding agents look after runs: a server of the Model Context Protocol."""

from __future__ import annotations

import asyncio
import shlex
import sys
from dataclasses import replace
from functools import wraps
from importlib.util import find_spec
from typing import Any

import click

from api_client.version import __version__
from tui.commands.agents.tools import CHANGING, INSTRUCTIONS, Tool, Tools
from tui.commands.support.exit_codes import CommandFailed, ExitCode
from tui.commands.support.options import CommandSettings, examples, remote_option
from tui.commands.support.session import chosen_remote, read_only_by
from tui.text.sanitize import sanitize_lines

MISSING = "bt-tui mcp needs the MCP SDK: {python} -m pip install 'mcp>=2.3,<3'"


@examples(
    "claude mcp add bt-tui -- bt-tui mcp        Claude Code; docs/agents.md has others",
    "bt-tui --remote staging mcp --allow-changes",
)
@click.command("mcp")
@click.option(
    "--allow-changes",
    is_flag=True,
    help="Also offer tools that stop, submit and deploy. Without it, every change is refused.",
)
@remote_option
@click.pass_obj
def serve_agents(settings: CommandSettings, allow_changes: bool) -> None:
    """Serve runs to a coding agent, as tools over stdin and stdout, until stdin is closed.

    The agent lists jobs, finds those with problems, reads summaries, explanations, logs, metrics and
    checkpoints, and compares runs. Each tool is a command of bt-tui and returns its JSON. Needs the extra
    mcp.
    """
    if find_spec("mcp") is None:
        raise CommandFailed(MISSING.format(python=shlex.quote(sys.executable)), ExitCode.USAGE)
    forbidden_by = read_only_by(settings.readonly)
    if allow_changes and forbidden_by:
        raise click.UsageError(f"--allow-changes is refused: read-only by {forbidden_by}")
    chosen_remote(settings)  # a mistake is reported before an agent waits
    program = click.get_current_context().find_root().command
    tools = Tools(program, replace(settings, readonly=not allow_changes))
    asyncio.run(serve(tools, allow_changes=allow_changes))


async def serve(tools: Tools, *, allow_changes: bool) -> None:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import ToolAnnotations

    def reporting(tool: Tool) -> Tool:
        """Let an agent read why a tool failed; of other errors the SDK shows nothing."""

        @wraps(tool)
        async def run(*arguments: Any, **parameters: Any) -> str:
            try:
                return await tool(*arguments, **parameters)
            except CommandFailed as error:
                raise ToolError(sanitize_lines(str(error))) from None

        return run

    server = MCPServer("bt-tui", instructions=INSTRUCTIONS, version=__version__, log_level="CRITICAL")
    for name, tool in tools.offered(allow_changes=allow_changes).items():
        changes = name in CHANGING
        kind = ToolAnnotations(read_only_hint=not changes, destructive_hint=changes)
        server.add_tool(reporting(tool), annotations=kind, structured_output=False)
    await server.run_stdio_async()
