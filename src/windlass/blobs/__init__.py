"""Where logs and artifacts are kept: a directory, a bucket, or memory."""
