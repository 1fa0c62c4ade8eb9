"""A home with remotes of every source, and what puts each of them there."""

import json
from collections.abc import Callable, Iterable
from itertools import combinations
from pathlib import Path

from api_client import Remote, resolve_remote


class World:
    """A home with files, and an environment; ``resolve`` asks it."""

    def __init__(self, folder: Path, *sources: str) -> None:
        folder.mkdir(exist_ok=True)
        self.trussrc = folder / "trussrc"
        self.go_folder = folder / "go"
        self.environ = {
            "USER_TRUSSRC_PATH": str(self.trussrc),
            "BASETEN_CONFIG_DIR": str(self.go_folder),
            "BASETEN_TRUSS_AUTH_KEYRING_DISABLED": "1",
        }
        for source in sources:
            IN_ORDER[source](self)

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


def subsets(sources: Iterable[str]) -> list[tuple[str, ...]]:
    """Each that has any."""
    listed = list(sources)
    return [chosen for size in range(len(listed)) for chosen in combinations(listed, size + 1)]


Change = Callable[[World], None]
PAIR_URL, PAIR_KEY = "BASETEN_TRUSS_AUTH_REMOTE_URL", "BASETEN_TRUSS_AUTH_API_KEY"
APP = "https://app.baseten.co"


def section(name: str, **options: str) -> Change:
    return lambda world: world.add_section(name, **options)


def profile(name: str, *, current: bool = False, **fields: object) -> Change:
    return lambda world: world.add_profile(name, current=current, **fields)


def variables(**values: str) -> Change:
    return lambda world: world.environ.update(values)


def both(*changes: Change) -> Change:
    def change(world: World) -> None:
        for each in changes:
            each(world)

    return change


IN_ORDER: dict[str, Change] = {
    "key-of-flag": section("named", api_key="key-of-flag"),
    "key-of-pair": variables(**{PAIR_URL: APP, PAIR_KEY: "key-of-pair"}),
    "key-of-variable": variables(BASETEN_API_KEY="key-of-variable"),
    "key-of-profile-variable": both(
        profile("chosen", api_key="key-of-profile-variable"), variables(BASETEN_PROFILE="chosen")
    ),
    "key-of-section": section("only", api_key="key-of-section"),
    "key-of-current-profile": profile("current", current=True, api_key="key-of-current-profile"),
}
"""What adds each source, the first that counts before the others; by the key that it brings."""
