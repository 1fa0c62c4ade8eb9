"""Connect to a node's SSH server: TLS to the proxy, the token, then bytes in both directions."""

from __future__ import annotations

import asyncio
import os
import ssl
import struct
from collections.abc import Mapping

from api_client.addresses import is_loopback
from api_client.errors import ConfigurationError, Unreachable
from api_client.ssh.tickets import Ticket

PLAIN_VARIABLE = "BASETEN_SSH_PROXY_INSECURE"
CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 30.0
CHUNK_BYTES = 65_536
_ACCEPTED = b"\x00"
_YES = frozenset({"1", "true"})


async def relay(ticket: Ticket, *, source: int, sink: int, environ: Mapping[str, str]) -> None:
    """Connect, and copy bytes between the proxy and two file descriptors until either side ends.

    Raises Unreachable if the node cannot be reached, AddressRefused for an address that a server must not
    direct us to, and ConfigurationError for an unusable one.
    """
    reader, writer = await _connect(ticket, environ)
    try:
        upwards = asyncio.create_task(_upwards(source, writer))
        downwards = asyncio.create_task(_downwards(reader, sink))
        done, pending = await asyncio.wait({upwards, downwards}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        for task in done:
            task.result()
    except (ConnectionError, ssl.SSLError, BrokenPipeError):
        return
    finally:
        writer.close()


async def _connect(
    ticket: Ticket, environ: Mapping[str, str]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = ticket.proxy_address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ConfigurationError(f"unusable SSH proxy address from the server: {ticket.proxy_address[:100]}")
    host = host.strip("[]")
    # The token would be sent unencrypted, so allow this only on this machine.
    is_plain = environ.get(PLAIN_VARIABLE, "").lower() in _YES and is_loopback(host)
    context = None if is_plain else ssl.create_default_context()
    problem = ""
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            addresses = await asyncio.to_thread(ticket.destinations.resolve, host, int(port))
            reader, writer = await _open_first(addresses, int(port), host, context)
    except (OSError, TimeoutError, UnicodeError) as error:
        problem = getattr(error, "strerror", None) or type(error).__name__
    if problem:
        raise Unreachable(f"can't reach the SSH proxy {ticket.proxy_address}: {problem}")
    token = ticket.token.get_secret_value().encode()
    try:
        writer.write(struct.pack("!I", len(token)) + token)
        await writer.drain()
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            answer = await reader.read(1)
    except (OSError, TimeoutError):
        answer = b""
    if answer != _ACCEPTED:
        writer.close()
        raise Unreachable("the SSH proxy refused the connection: is the node running, with its SSH server?")
    return reader, writer


async def _open_first(
    addresses: list[str], port: int, host: str, context: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address that answers; TLS verifies the host name."""
    problem: OSError | None = None
    for address in addresses:
        try:
            return await asyncio.open_connection(
                address, port, ssl=context, server_hostname=host if context else None
            )
        except OSError as error:
            problem = error
    raise problem or OSError(f"{host} has no address")


async def _upwards(source: int, writer: asyncio.StreamWriter) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    pipe = os.fdopen(os.dup(source), "rb", buffering=0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    finally:
        transport.close()


async def _downwards(reader: asyncio.StreamReader, sink: int) -> None:
    while chunk := await reader.read(CHUNK_BYTES):
        while chunk:
            written = await asyncio.to_thread(_write, sink, chunk)
            chunk = chunk[written:]


def _write(sink: int, chunk: bytes) -> int:
    os.set_blocking(sink, True)  # stdin and stdout may be one socket, which asyncio made non-blocking
    return os.write(sink, chunk)
