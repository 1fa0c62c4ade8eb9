"""ASGI middleware that injects faults into requests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from email.utils import format_datetime
from functools import partial
from random import Random

from starlette.types import ASGIApp, Receive, Scope, Send

from api_client.clock import Clock, SystemClock
from support.fault_layer.exchange import FaultyExchange, Interrupt, OpenConnections, canned_response
from support.fault_layer.specification import REWRITING, Fault, FaultRule

DRIPS = 20
"""Number of pieces a slow body is split into."""


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A received request, the faults injected, and whether it reached the application."""

    method: str
    path: str
    faults: tuple[Fault, ...]
    was_handled: bool


class FaultLayer:
    """Passes requests to the application, except those that a rule picks for a fault.

    A request gets the first fault picked by the rules. Faults that rewrite answers (a skewed clock, a
    newer schema) add up. ``asked`` holds the requests since the rules were set.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.connections = OpenConnections()
        self.clock: Clock = SystemClock()
        self._number = 0
        self.set_rules(())

    def set_rules(self, rules: Sequence[FaultRule]) -> None:
        self.asked: list[ReceivedRequest] = []
        self._rules = tuple(rules)
        self._seen = [0] * len(rules)
        self._struck = [0] * len(rules)
        self._down_until_s = 0.0
        self._random = Random(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        self._number += 1
        is_down = self.clock.monotonic() < self._down_until_s
        faults = [] if is_down else self._picked(scope["path"])
        rewriting = [fault for fault in faults if fault.kind in REWRITING]
        fault = Fault("reset") if is_down else next((f for f in faults if f.kind not in REWRITING), None)
        is_passed_on = fault is None or fault.moment != "before" or fault.seconds is not None
        was_handled = is_passed_on and (fault is None or fault.kind != "restart")
        struck = (*rewriting, *([fault] if fault else []))
        self.asked.append(ReceivedRequest(scope["method"], scope["path"], struck, was_handled))
        ahead_s = sum(each.seconds or 0.0 for each in rewriting if each.kind == "skew")
        date = format_datetime(self.clock.now() + timedelta(seconds=ahead_s), usegmt=True)
        exchange = FaultyExchange(self.connections, scope, receive, send, date, rewriting)
        if ahead_s:
            exchange.skew(ahead_s)
        await self._serve(exchange, fault)

    def _picked(self, path: str) -> list[Fault]:
        picked: list[Fault] = []
        for index, rule in enumerate(self._rules):
            if rule.paths and not any(part in path for part in rule.paths):
                continue
            self._seen[index] += 1
            is_over = rule.times is not None and self._struck[index] >= rule.times
            is_taken = rule.fault.kind not in REWRITING and any(f.kind not in REWRITING for f in picked)
            is_drawn = rule.share == 1.0 or self._random.random() < rule.share
            if self._seen[index] > rule.skip and is_drawn and not is_over and not is_taken:
                self._struck[index] += 1
                picked.append(rule.fault)
        return picked

    async def _serve(self, exchange: FaultyExchange, fault: Fault | None) -> None:
        match fault:
            case None:
                await exchange.answered(self.app)
            case Fault("restart"):
                self._down_until_s = self.clock.monotonic() + (fault.seconds or 0.0)
                exchange.is_dead = True
                self.connections.reset_all()
                await exchange.wait_until_disconnected()
            case Fault("reset" | "cut"):
                drop = partial(exchange.drop_connection, orderly=fault.kind == "cut")
                await self._interrupt(exchange, fault, drop)
            case Fault("stall"):
                await self._interrupt(exchange, fault, partial(exchange.silence, fault.seconds))
            case Fault("truncated"):
                start, body = await exchange.handled(self.app)
                await exchange.send_parts(start, body[: len(body) // 2])
            case Fault("slow"):
                pause = partial(asyncio.sleep, (fault.seconds or 0.0) / DRIPS)
                await exchange.send_parts(*await exchange.handled(self.app), DRIPS, pause)
            case _:
                if fault.moment == "handled":
                    await exchange.handled(self.app)
                answer = canned_response(fault, number=self._number, now=self.clock.now())
                await answer(exchange.scope, exchange.receive, exchange.send)

    async def _interrupt(self, exchange: FaultyExchange, fault: Fault, interrupt: Interrupt) -> None:
        """Answer, and do that at the fault's moment; what is left is sent if the connection still stands."""
        if fault.moment == "before":
            await interrupt()
            if not exchange.is_dead:
                await exchange.answered(self.app)
            return
        start, body = await exchange.handled(self.app)
        if fault.moment == "handled":
            await interrupt()
        await exchange.send_parts(start, body, 2, interrupt if fault.moment == "during" else None)
        if fault.moment == "after":
            await self.connections.flushed(exchange.scope["client"])
            await interrupt()
