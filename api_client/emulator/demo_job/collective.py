"""Average arrays across all ranks over TCP connections to the leader."""

from __future__ import annotations

import socket
import time
import zlib
from array import array
from collections.abc import Mapping

RENDEZVOUS_TIMEOUT_S = 120.0
ANSWER_TIMEOUT_S = 120.0
RETRY_S = 0.1
FIRST_PORT = 20_000
PORT_RANGE = 20_000
PORTS_TRIED = 16
"""Number of consecutive ports to try, because another job may hold the first one."""

_RANK_BYTES = 4
_GREETING_BYTES = 32


class LostPeer(Exception):
    """Another rank disconnected or never connected."""


class Group:
    """All ranks of one run. Sums are made in rank order, so that every run gives identical bits."""

    def __init__(self, rank: int, ranks: int, peers: list[socket.socket]) -> None:
        self.rank = rank
        self.ranks = ranks
        self._peers = peers

    def average(self, values: array[float]) -> array[float]:
        """Return the element-wise mean over all ranks, identical on each; raise ``LostPeer`` on failure."""
        if self.ranks == 1:
            return values
        size = len(values) * values.itemsize
        try:
            if self.rank != 0:
                self._peers[0].sendall(values.tobytes())
                return array("d", _receive(self._peers[0], size))
            total = values
            for peer in self._peers:
                total = array("d", map(float.__add__, total, array("d", _receive(peer, size))))
            mean = array("d", [value / self.ranks for value in total])
            for peer in self._peers:
                peer.sendall(mean.tobytes())
        except OSError as error:
            raise LostPeer(str(error) or type(error).__name__) from error
        return mean

    def close(self) -> None:
        for peer in self._peers:
            peer.close()


def join(environ: Mapping[str, str]) -> Group:
    """Connect to the other ranks at BT_LEADER_ADDR; raise ``LostPeer`` if they do not connect in time.

    The port is MASTER_PORT or derived from the job id. A greeting that contains the job id keeps two jobs
    on one machine apart.
    """
    rank, ranks = int(environ.get("BT_NODE_RANK", "0")), int(environ.get("BT_GROUP_SIZE", "1"))
    if ranks == 1:
        return Group(rank, ranks, [])
    job_id = environ.get("BT_TRAINING_JOB_ID", "")
    address = environ.get("BT_LEADER_ADDR", "127.0.0.1")
    first = int(environ.get("MASTER_PORT") or FIRST_PORT + zlib.crc32(job_id.encode()) % PORT_RANGE)
    greeting = job_id.encode()[:_GREETING_BYTES].ljust(_GREETING_BYTES)
    ports = range(first, first + PORTS_TRIED)
    if rank == 0:
        return Group(rank, ranks, _lead(address, ports, greeting, ranks))
    return Group(rank, ranks, [_follow(address, ports, greeting, rank)])


def _lead(address: str, ports: range, greeting: bytes, ranks: int) -> list[socket.socket]:
    with _listen(address, ports) as listener:
        listener.settimeout(RENDEZVOUS_TIMEOUT_S)
        peers: dict[int, socket.socket] = {}
        while len(peers) < ranks - 1:
            try:
                peer, _ = listener.accept()
                peer.settimeout(ANSWER_TIMEOUT_S)
                said = _receive(peer, _GREETING_BYTES + _RANK_BYTES)
            except TimeoutError as error:
                raise LostPeer(f"{ranks - 1 - len(peers)} ranks did not connect") from error
            except OSError:
                continue  # an unrelated client that disconnected
            if said.startswith(greeting):
                peer.sendall(greeting)
                peers[int.from_bytes(said[_GREETING_BYTES:])] = peer
            else:
                peer.close()
    return [peers[rank] for rank in sorted(peers)]


def _listen(address: str, ports: range) -> socket.socket:
    for port in ports:
        try:
            return socket.create_server((address, port))
        except OSError:
            continue  # another run holds this port
    raise LostPeer(f"no free port in {ports.start}–{ports.stop - 1}")


def _follow(address: str, ports: range, greeting: bytes, rank: int) -> socket.socket:
    deadline = time.monotonic() + RENDEZVOUS_TIMEOUT_S
    while time.monotonic() < deadline:
        for port in ports:
            leader = _greeted(address, port, greeting, rank)
            if leader is not None:
                return leader
        time.sleep(RETRY_S)
    raise LostPeer("the leader did not respond")


def _greeted(address: str, port: int, greeting: bytes, rank: int) -> socket.socket | None:
    leader: socket.socket | None = None
    try:
        leader = socket.create_connection((address, port), timeout=ANSWER_TIMEOUT_S)
        leader.sendall(greeting + rank.to_bytes(_RANK_BYTES))
        if _receive(leader, _GREETING_BYTES) == greeting:
            return leader
    except OSError:
        pass  # no listener, or another job's leader
    if leader is not None:
        leader.close()
    return None


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise ConnectionResetError("the connection was closed")
        received += part
    return bytes(received)
