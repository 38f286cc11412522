"""The files of one attempt: its scratch folder, files of its arguments, and artifacts it leaves.

Only attempts import this. It never reads or writes a job's files outside the scratch folder.
"""
