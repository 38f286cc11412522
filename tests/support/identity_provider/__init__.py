"""A real identity provider for tests: `oidc-provider` from npm, on the Node.js of a wheel."""
