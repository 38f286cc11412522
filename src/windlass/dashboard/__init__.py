"""Serves the dashboard: the files of the page, and how they are sent.

Servers import it, and users who mount the page in an application of their own: `app()`. It knows
nothing of jobs, and must import nothing of Windlass.
"""

from windlass.dashboard.page import Page, app

__all__ = ["Page", "app"]
