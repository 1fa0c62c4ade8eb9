"""SSH to the nodes of a job: a key of one's own, a certificate a connection, and the way through the proxy.

The protocol is the official client's (truss 0.18, ``truss ssh setup``): the API signs a public key for one
node and says which proxy leads there; the proxy speaks TLS, wants a token first, and then passes SSH on.
"""
