"""The screens of the dashboard and their pages, found by importing all modules of the screens."""

from importlib import import_module
from pkgutil import walk_packages
from typing import TypeVar

import tui.screens

Kind = TypeVar("Kind")

for module in walk_packages(tui.screens.__path__, "tui.screens."):
    import_module(module.name)


def all_of(base: type[Kind]) -> set[type[Kind]]:
    """Return the product's classes that derive from ``base`` and that no other derives from."""
    derived = [one for one in base.__subclasses__() if one.__module__.startswith("tui.")]
    return set().union(*map(all_of, derived)) if derived else {base}
