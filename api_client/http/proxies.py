"""The proxy that the environment names."""

from __future__ import annotations

from urllib.request import getproxies, proxy_bypass

from api_client.addresses import is_loopback


def proxy_of(scheme: str, host: str) -> str:
    """Return the environment's proxy for this host; empty if none. This machine is never proxied."""
    if is_loopback(host) or proxy_bypass(host):
        return ""
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all") or ""
    return proxy if "://" in proxy or not proxy else f"http://{proxy}"
