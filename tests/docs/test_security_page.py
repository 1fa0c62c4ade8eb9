"""Every proof that SECURITY.md names is a test that there is."""

from __future__ import annotations

import re

from rooms import REPOSITORY

PAGE = (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8")
PROOF = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_proof_is_there() -> None:
    proofs = PROOF.findall(PAGE)
    assert proofs
    missing = []
    for place, name in proofs:
        path = REPOSITORY / place
        source = path.read_text(encoding="utf-8") if path.exists() else ""
        if not re.search(rf"^ *(?:async )?def {name}\(", source, re.MULTILINE):
            missing.append(f"{place}::{name}")
    assert missing == []


def test_every_promise_has_a_proof() -> None:
    promised = PAGE.split("## What is guaranteed")[1].split("## What is not guaranteed")[0]
    promises = re.split(r"^- ", promised, flags=re.MULTILINE)[1:]
    assert [promise for promise in promises if not PROOF.search(promise)] == []
