"""The emulator's catalog: instance types, prices and GPU limits.

The routes (instance types, prices, capacity), the local runner and the simulated fleet share it. Prices
and limits are invented but realistic, so that the demo's costs add up.
"""

from __future__ import annotations

from api_client.models import InstanceType, InstanceTypePrice

MIB_PER_GIB = 1024


def _instance_type(
    cores: int, memory_gib: int, gpu_type: str | None = None, gpu_count: int = 0, gpu_gib: int = 0
) -> InstanceType:
    size = f"{cores}x{memory_gib}"
    return InstanceType(
        id=f"{gpu_type.lower()}-{gpu_count}-{size}" if gpu_type else f"cpu-{size}",
        name=f"{gpu_type}:{gpu_count} {size}" if gpu_type else size,
        memory_limit_mib=memory_gib * MIB_PER_GIB,
        millicpu_limit=cores * 1000,
        gpu_count=gpu_count,
        gpu_type=gpu_type,
        gpu_memory_limit_mib=gpu_gib * MIB_PER_GIB or None,
    )


_PRICED_INSTANCE_TYPES: tuple[tuple[InstanceType, float], ...] = (
    (_instance_type(1, 2), 0.00058),
    (_instance_type(4, 16), 0.00346),
    (_instance_type(16, 64), 0.01382),
    (_instance_type(64, 256), 0.05528),
    (_instance_type(4, 16, "L4", 1, 24), 0.01414),
    (_instance_type(48, 192, "L4", 4, 24), 0.06672),
    (_instance_type(8, 32, "A10G", 1, 24), 0.02424),
    (_instance_type(48, 192, "A10G", 4, 24), 0.09454),
    (_instance_type(26, 234, "H100", 1, 80), 0.10833),
    (_instance_type(52, 468, "H100", 2, 80), 0.21667),
    (_instance_type(104, 936, "H100", 4, 80), 0.43333),
    (_instance_type(208, 1872, "H100", 8, 80), 0.86667),
    (_instance_type(26, 234, "H200", 1, 141), 0.12500),
    (_instance_type(208, 1872, "H200", 8, 141), 1.00000),
)

INSTANCE_TYPES: tuple[InstanceType, ...] = tuple(machine for machine, _ in _PRICED_INSTANCE_TYPES)
"""All instance types, CPU first, then by GPU type and count."""

PRICES_USD_PER_MINUTE: dict[str, float] = {machine.id: price for machine, price in _PRICED_INSTANCE_TYPES}
"""Price of one node per minute in US dollars, by instance type id."""

PRICES: tuple[InstanceTypePrice, ...] = tuple(
    InstanceTypePrice(instance_type=machine, price=price) for machine, price in _PRICED_INSTANCE_TYPES
)
"""Prices of all instance types, as the prices route returns them."""

GPU_LIMITS = {"H100": (64, 96), "H200": (32, 32), "A10G": (4, 8), "L4": (4, 8)}
"""The organization's GPUs by type: the number it owns (the baseline), and the number it may use."""


def find_instance_type(name_or_id: str) -> InstanceType:
    """Return the instance type with that id or name; raise LookupError if there is none."""
    for machine in INSTANCE_TYPES:
        if name_or_id in (machine.id, machine.name):
            return machine
    raise LookupError(f"no instance type {name_or_id!r}")


def smallest_instance_type(gpu_type: str | None, gpu_count: int, cpu_cores: float = 0) -> InstanceType | None:
    """Return the smallest instance type that is large enough, or None.

    The GPU type must match exactly; a CPU job (``gpu_count`` 0) gets a machine without GPUs.
    """
    matches = (
        machine
        for machine in INSTANCE_TYPES
        if machine.gpu_type == (gpu_type if gpu_count else None)
        and machine.gpu_count >= gpu_count
        and machine.millicpu_limit >= cpu_cores * 1000
    )
    return next(matches, None)
