"""The emulator's catalog: instance types, prices and GPU limits.

The routes (instance types, prices, capacity), the local runner and the simulated fleet share it. Prices
and limits are invented but realistic, so that the demo's costs add up.
"""

from __future__ import annotations

from api_client.models import InstanceType, InstanceTypePrice

MIB_PER_GIB = 1024


def _cpu_machine(cores: int, memory_gib: int) -> InstanceType:
    return InstanceType(
        id=f"cpu-{cores}x{memory_gib}",
        name=f"{cores}x{memory_gib}",
        memory_limit_mib=memory_gib * MIB_PER_GIB,
        millicpu_limit=cores * 1000,
    )


def _gpu_machine(gpu_type: str, gpu_gib: int, count: int, cores: int, memory_gib: int) -> InstanceType:
    return InstanceType(
        id=f"{gpu_type.lower()}-{count}-{cores}x{memory_gib}",
        name=f"{gpu_type}:{count} {cores}x{memory_gib}",
        memory_limit_mib=memory_gib * MIB_PER_GIB,
        millicpu_limit=cores * 1000,
        gpu_count=count,
        gpu_type=gpu_type,
        gpu_memory_limit_mib=gpu_gib * MIB_PER_GIB,
    )


_PRICED: tuple[tuple[InstanceType, float], ...] = (
    (_cpu_machine(1, 2), 0.00058),
    (_cpu_machine(4, 16), 0.00346),
    (_cpu_machine(16, 64), 0.01382),
    (_cpu_machine(64, 256), 0.05528),
    (_gpu_machine("L4", 24, 1, 4, 16), 0.01414),
    (_gpu_machine("L4", 24, 4, 48, 192), 0.06672),
    (_gpu_machine("A10G", 24, 1, 8, 32), 0.02424),
    (_gpu_machine("A10G", 24, 4, 48, 192), 0.09454),
    (_gpu_machine("H100", 80, 1, 26, 234), 0.10833),
    (_gpu_machine("H100", 80, 2, 52, 468), 0.21667),
    (_gpu_machine("H100", 80, 4, 104, 936), 0.43333),
    (_gpu_machine("H100", 80, 8, 208, 1872), 0.86667),
    (_gpu_machine("H200", 141, 1, 26, 234), 0.12500),
    (_gpu_machine("H200", 141, 8, 208, 1872), 1.00000),
)

INSTANCE_TYPES: tuple[InstanceType, ...] = tuple(machine for machine, _ in _PRICED)
"""All instance types, CPU first, then by GPU type and count."""

PRICES_USD_PER_MINUTE: dict[str, float] = {machine.id: price for machine, price in _PRICED}
"""Price of one node per minute in US dollars, by instance type id."""

PRICES: tuple[InstanceTypePrice, ...] = tuple(
    InstanceTypePrice(instance_type=machine, price=price) for machine, price in _PRICED
)
"""The same prices in the form of the prices route."""

GPU_LIMITS = {"H100": (64, 96), "H200": (32, 32), "A10G": (4, 8), "L4": (4, 8)}
"""The organization's GPUs by type: how many it owns (the baseline), and how many it may use."""


def instance(name_or_id: str) -> InstanceType:
    """Return the instance type with that id or name; raise LookupError if there is none."""
    for machine in INSTANCE_TYPES:
        if name_or_id in (machine.id, machine.name):
            return machine
    raise LookupError(f"no instance type {name_or_id!r}")


def instance_for(gpu_type: str | None, gpu_count: int, cpu_cores: float = 0) -> InstanceType | None:
    """Return the smallest instance type that is large enough, or None.

    The GPU type must match exactly; a CPU job (``gpu_count`` 0) gets a machine without GPUs.
    """
    for machine in INSTANCE_TYPES:
        wanted_type = gpu_type if gpu_count else None
        enough = machine.gpu_count >= gpu_count and machine.millicpu_limit >= cpu_cores * 1000
        if machine.gpu_type == wanted_type and enough:
            return machine
    return None
