"""What an attempt sends while it runs: its log, with secrets masked, and its progress.

Only the attempt package imports it. It never blocks the job: output is bounded and sent in order.
"""
