"""What a task says about its jobs before they run: pure, used by servers at submit."""

from windlass.domain.tasks.kind import TaskKind, TaskPlan

__all__ = ["TaskKind", "TaskPlan"]
