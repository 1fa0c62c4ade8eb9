"""The demo world: its projects and all of its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from api_client.emulator.fleet.cache_trees import CACHES, CacheTree
from api_client.emulator.fleet.clock import NS_PER_S
from api_client.emulator.fleet.demo_jobs import PAST_JOBS, RUNNING_JOBS, WAITING_JOBS
from api_client.emulator.fleet.plans import JobPlan
from api_client.emulator.formats import ID_ALPHABET, ID_LENGTH

TEAM_NAME = "Research"
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class ProjectPlan:
    """A project of the demo world and its age in days at the world's epoch."""

    name: str
    age_days: int

    @property
    def id(self) -> str:
        """Project id, the same in every world."""
        return demo_id("project", self.name)

    @property
    def age_ns(self) -> int:
        return self.age_days * _DAY_S * NS_PER_S


def demo_id(kind: str, name: str) -> str:
    """Return a platform-style short id, always the same for the same object."""
    number = int.from_bytes(sha256(f"{kind}:{name}".encode()).digest()[:8])
    return "".join(ID_ALPHABET[number // 30**digit % len(ID_ALPHABET)] for digit in range(ID_LENGTH))


PROJECTS: tuple[ProjectPlan, ...] = (
    ProjectPlan("llama-sft", 48),
    ProjectPlan("qwen3-grpo", 33),
    ProjectPlan("whisper-asr", 61),
    ProjectPlan("flux-lora", 27),
    ProjectPlan("retrieval-embed", 74),
    ProjectPlan("pretraining", 19),
    ProjectPlan("evals", 90),
)


@dataclass(frozen=True, slots=True)
class DemoScript:
    """Everything that a simulated world contains; ``caches`` are the cache contents by project name.

    A recreated job shares the plan of the original.
    """

    projects: tuple[ProjectPlan, ...]
    plans: tuple[JobPlan, ...]
    caches: Mapping[str, CacheTree]


DEMO_SCRIPT = DemoScript(PROJECTS, (*RUNNING_JOBS, *WAITING_JOBS, *PAST_JOBS), CACHES)
