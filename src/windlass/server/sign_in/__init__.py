"""Signs people and machines in that bring tokens of another issuer (OpenID Connect).

Routes and the dispatcher use it. It needs the extra `oidc`, which is loaded only if configured.
"""
