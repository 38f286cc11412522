"""Blob stores for logs and artifacts: a directory, an S3 bucket, or memory.

Each implements `ports/blobs.py`. They know keys and bytes, never jobs or namespaces.
"""
