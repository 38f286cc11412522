"""What workers report about their attempts, fenced by (job, attempt, incarnation).

Builds on jobs. A report ends, starts or keeps alive the attempt it names, or changes nothing.
"""
