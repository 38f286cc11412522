"""Issue trackers: where findings are filed, and the rules for what is filed how.

Only the fuzzer and the commands import it. It changes nothing of a finding but its issue.
"""
