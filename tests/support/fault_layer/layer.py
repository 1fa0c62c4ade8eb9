"""ASGI middleware that injects faults into requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from email.utils import format_datetime
from functools import partial
from random import Random

from starlette.types import ASGIApp, Receive, Scope, Send

from api_client.clock import Clock, SystemClock
from support.fault_layer.exchange import FaultyExchange, OpenConnections, canned_response
from support.fault_layer.specification import REWRITING, Fault, FaultRule

REMEMBERED = 10_000


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
    newer schema) add up. The same ``seed`` picks the same requests if they arrive in the same order.
    ``asked`` holds the last ``REMEMBERED`` requests; ``rules`` may be replaced at any time.
    """

    def __init__(
        self, app: ASGIApp, rules: Sequence[FaultRule] = (), *, seed: int = 0, clock: Clock | None = None
    ) -> None:
        self.app = app
        self.connections = OpenConnections()
        self.asked: deque[ReceivedRequest] = deque(maxlen=REMEMBERED)
        self.clock = clock or SystemClock()
        self._random = Random(seed)
        self._number = 0
        self.rules = rules

    @property
    def rules(self) -> tuple[FaultRule, ...]:
        """Current rules. Setting them resets all counters."""
        return tuple(self._rules)

    @rules.setter
    def rules(self, rules: Sequence[FaultRule]) -> None:
        self._began_s = self.clock.monotonic()
        self._seen = [0] * len(rules)
        self._struck = [0] * len(rules)
        self._down_until_s = 0.0
        self._rules = tuple(rules)

    def reseed(self, seed: int) -> None:
        """Restart the random choices from this seed, as in a new layer."""
        self._random.seed(seed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        self._number += 1
        is_down = self.clock.monotonic() < self._down_until_s
        faults = [] if is_down else self._picked(scope["method"], scope["path"])
        rewriting = [fault for fault in faults if fault.kind in REWRITING]
        fault = Fault("reset") if is_down else next((f for f in faults if f.kind not in REWRITING), None)
        is_passed_on = fault is None or fault.moment != "before" or fault.seconds is not None
        was_handled = is_passed_on and (fault is None or fault.kind != "restart")
        self.asked.append(
            ReceivedRequest(
                scope["method"], scope["path"], (*rewriting, *([fault] if fault else [])), was_handled
            )
        )
        ahead_s = sum(each.seconds or 0.0 for each in rewriting if each.kind == "skew")
        date = format_datetime(self.clock.now() + timedelta(seconds=ahead_s), usegmt=True)
        exchange = FaultyExchange(self.connections, scope, receive, send, date, rewriting)
        if ahead_s:
            exchange.skew(ahead_s)
        await self._serve(exchange, fault)

    def _picked(self, method: str, path: str) -> list[Fault]:
        elapsed_s = self.clock.monotonic() - self._began_s
        picked: list[Fault] = []
        is_struck = False
        for index, rule in enumerate(self._rules):
            if not rule.applies_to(method, path, elapsed_s):
                continue
            self._seen[index] += 1
            is_over = rule.times is not None and self._struck[index] >= rule.times
            if self._seen[index] <= rule.skip or is_over or self._random.random() >= rule.chance:
                continue
            fault = self._random.choice(rule.faults)
            if fault.kind not in REWRITING:
                if is_struck:
                    continue
                is_struck = True
            self._struck[index] += 1
            picked.append(fault)
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
                await self._break_off(exchange, fault)
            case Fault("stall"):
                await self._stall(exchange, fault)
            case Fault("truncated"):
                await exchange.truncate_response(self.app)
            case Fault("slow"):
                await exchange.drip(self.app, fault.seconds or 0.0)
            case _:
                if fault.moment == "handled":
                    await exchange.drop_response(self.app)
                answer = canned_response(fault, number=self._number, now=self.clock.now())
                await answer(exchange.scope, exchange.receive, exchange.send)

    async def _break_off(self, exchange: FaultyExchange, fault: Fault) -> None:
        drop_connection = partial(exchange.drop_connection, orderly=fault.kind == "cut")
        match fault.moment:
            case "during":
                await exchange.interrupted(self.app, drop_connection)
                return
            case "handled":
                await exchange.drop_response(self.app)
            case "after":
                await exchange.answered(self.app)
                await self.connections.flushed(exchange.scope["client"])
        await drop_connection()

    async def _stall(self, exchange: FaultyExchange, fault: Fault) -> None:
        silence = partial(exchange.silence, fault.seconds)
        match fault.moment:
            case "during":
                await exchange.interrupted(self.app, silence)
            case "handled":
                await exchange.delay_response(self.app, silence)
            case _:
                await silence()
                if not exchange.is_dead:
                    await exchange.answered(self.app)
