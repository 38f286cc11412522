"""One adapter a file: each runs a peer's own no-op jobs and answers with jobs per second."""
