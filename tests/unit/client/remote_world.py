"""A home with remotes of every source, and what puts each of them there."""

from __future__ import annotations

import json
from pathlib import Path

from api_client import Remote, resolve_remote


class World:
    """A home with files, and an environment; ``resolve`` asks it."""

    def __init__(self, folder: Path) -> None:
        self.trussrc = folder / "trussrc"
        self.go_folder = folder / "go"
        self.environ = {
            "USER_TRUSSRC_PATH": str(self.trussrc),
            "BASETEN_CONFIG_DIR": str(self.go_folder),
            "BASETEN_TRUSS_AUTH_KEYRING_DISABLED": "1",
        }

    def add_section(self, name: str = "section", **options: str) -> None:
        lines = "".join(f"{option} = {value}\n" for option, value in options.items())
        with self.trussrc.open("a") as file:
            file.write(f"[{name}]\n{lines}")

    def add_profile(self, name: str = "profile", *, current: bool = False, **fields: object) -> None:
        path = self.go_folder / "auth.json"
        content = json.loads(path.read_text()) if path.exists() else {"version": 1, "profiles": {}}
        content["profiles"][name] = {"remote_url": "https://app.baseten.co", "auth_type": "api_key"} | fields
        if current:
            content["current"] = name
        self.go_folder.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))

    def resolve(self, name: str | None = None) -> Remote:
        return resolve_remote(name, environ=self.environ)

    def key(self, name: str | None = None) -> str:
        key = self.resolve(name).key
        assert key is not None
        return key.get_secret_value()


def add_flag_section(world: World) -> None:
    world.add_section("named", api_key="key-of-flag")


def add_pair(world: World) -> None:
    world.environ["BASETEN_TRUSS_AUTH_REMOTE_URL"] = "https://app.baseten.co"
    world.environ["BASETEN_TRUSS_AUTH_API_KEY"] = "key-of-pair"


def add_key(world: World) -> None:
    world.environ["BASETEN_API_KEY"] = "key-of-variable"


def add_profile_variable(world: World) -> None:
    world.add_profile("chosen", api_key="key-of-profile-variable")
    world.environ["BASETEN_PROFILE"] = "chosen"


def add_section(world: World) -> None:
    world.add_section("only", api_key="key-of-section")


def add_current_profile(world: World) -> None:
    world.add_profile("current", current=True, api_key="key-of-current-profile")


IN_ORDER = {
    "key-of-flag": add_flag_section,
    "key-of-pair": add_pair,
    "key-of-variable": add_key,
    "key-of-profile-variable": add_profile_variable,
    "key-of-section": add_section,
    "key-of-current-profile": add_current_profile,
}
"""What adds each source, the first that counts before the others; by the key that it brings."""
