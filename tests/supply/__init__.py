"""Where the packages that we use come from: locks with digests, licences, bills of materials.

The Makefile runs these for `lock`, `lock-hashes`, `licences`, `sbom` and `audit`.
"""
