"""A small web framework over ASGI and msgspec: routes, argument binding, replies, errors.

Route modules import it; it knows the server's services by type only and contains no route.
"""
