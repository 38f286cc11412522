"""Object storage: the bucket protocol, its three implementations and the layout of keys.

Every package above may import it. It must not know what the stored objects mean.
"""
