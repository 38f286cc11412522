"""All parsers."""

from typing import Final

from tests.parsers import of_documents, of_messages, of_sign_in, of_values
from tests.parsers.parser import Parser

ALL: Final[tuple[Parser, ...]] = (
    *of_values.PARSERS,
    *of_documents.PARSERS,
    *of_messages.PARSERS,
    *of_sign_in.PARSERS,
)
BY_NAME: Final = {parser.name: parser for parser in ALL}
