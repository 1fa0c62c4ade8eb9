"""SSH to the nodes of a job: a key pair, a certificate per connection, and the proxy connection.

The protocol is the official client's (truss 0.18, ``truss ssh setup``). The API signs a public key for
one node and names the proxy that leads there. The proxy speaks TLS, expects a token first, and then
forwards SSH.
"""
