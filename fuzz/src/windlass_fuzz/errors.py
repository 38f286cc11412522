"""The error for settings of a pipeline that cannot be used."""

from windlass.domain.values.errors import InvalidInput


class InvalidSetting(InvalidInput):
    """An `InvalidInput` whose message is complete, where "expected X, got Y" reads badly."""

    def __init__(self, field: str, message: str, got: object = None) -> None:
        super().__init__(field, message, got)

    @property
    def message(self) -> str:
        return self.expected
