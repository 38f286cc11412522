"""Workers, queues, capability and epochs: enrolment, draining, lost workers, restored stores.

Builds on jobs. It decides what happens to leases when a worker goes, not what a worker claims.
"""
