"""Runs programs of the solver within limits, and cleans up after them.

Contains the runner, the process guard, workspaces and the disk-full error. Every other
package of fuzzing may import it; it must not import any of them.
"""
