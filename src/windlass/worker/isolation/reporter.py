"""A small program that starts another one and reports its wait status.

In a sandbox or container an init exits with 128 + N if the program was killed by signal N, and
programs also exit with such codes. The reporter runs between the two and passes on the wait status
unchanged, to a place where the program cannot write. Its source is `reporter.c`; it has no C
library, so that it runs in any image.
"""

import base64
import struct
from typing import Final

BASE: Final = 0x40_0000  # its load address
HEADERS: Final = 64 + 2 * 56  # bytes before its code
MACHINES: Final = {"x86_64": 62, "aarch64": 183}  # ELF machine numbers

# The following is written by `python -m tests.worker.isolation.build_reporter`.
MADE_FROM: Final = "ec709f99f7789184e5d85cbce7f9e012c2de50310b5deaa16af3150b072a86eb"
MADE_BY: Final = "clang version 14.0.6"
CODE: Final = {
    "x86_64": (
        "SInnSIPk8OhUAAAAUEFUSD0vdXNyL2xvY2FsL2JpbjovdXNyL2JpbjovYmluAHdpbmRsYXNzOiBmYWlsZWQgdG8g"
        "ZXhlYyAACgAgd2FpdC1zdGF0dXM9AA8fhAAAAAAAVUFXQVZBVUFUU0iB7DgQAABJif5Iix9Ii3cQigZIx0QkEP//"
        "//9Ix0QkCAAAAACIRCQDPC91G7gBAQAAugEACABIx8ec////RTHSRTHADwXrJIoOhMl0HEj/xjHAjQSAD77JjQRB"
        "g8DQig5I/8aEyXXr6wIxwEhj+EUx5LhIAAAAvgIAAAC6AQAAAEiJfCQYRTHSRTHADwW4nQAAAL8EAAAAMfYx0kUx"
        "0kUxwA8FSI10JBBIjVQkCLgOAAAAQboIAAAAMf9FMcAPBbg4AAAAvxEAAAAx9jHSRTHSRTHADwVJicVIhcAPhfkB"
        "AABNjTzeSYPHEEiNdCQIuA4AAAC/AgAAAEG6CAAAADHSRTHADwVIjR2a/v//SI0Fjv7//0mLfhiKF4TSdBxIjU8B"
        "RTHkMfaA+i9AD5TGQQn0ihFI/8GE0nXrSYsPSIXJdCpMif0x9ooUMToUMHUQSP/GSIP+BXXvSIPBBUiJy0iLTQhI"
        "g8UISIXJddlJg8YYRYXkdBu4OwAAAEyJ9kyJ+kUx0kUxwA8FSInF6a8AAABIx8X+////SI18JDBI/8MxwIpL/4TJ"
        "dBmA+Tp0FEg9/wcAAHcHiEwEMEj/wEj/w+vgSIXAdQrGRCQwLrgBAAAAxkQEMC9Jiw5I/8CKEYTSdClIPf4PAAB3"
        "IUj/wYhUBDBIjXABihGE0nQTSP/BSD3+DwAASInwcuTrA0iJxsZENDAAuDsAAABMifZMifpFMdJFMcAPBUiD/f5I"
        "D0ToSIP480gPROiAe/8AD4Vd////SMfC/////0iNNXf9//+AfBYBAEiNUgF19bgBAAAAvwIAAABFMdJFMcAPBUmL"
        "NkjHwv////+AfBYBAEiNUgF19bgBAAAAvwIAAABFMdJFMcAPBUjHwv////9IjTU//f//gHwWAQBIjVIBdfW4AQAA"
        "AL8CAAAARTHSRTHADwUx/0iD/f5AD5THSIPPfrjnAAAAMfYx0kUx0kUxwA8FTYXtD45uAQAASI1sJC5MjXQkBEG8"
        "zczMzEyNfCQwx0QkBAAAAAC4gAAAAEG6CAAAAEiNfCQQMfYx0kUxwA8FSIP4EQ+FAAEAALg9AAAAugEAAABIx8f/"
        "////TIn2RTHSRTHADwVIhcB+tEw56A+FtQAAAIt0JARmx0QkLiAAugoAAABIie9BifFIifiJ80kPr9xIwesjjQwb"
        "jTyJifEp+YDJMIhMFCNI/8pIjXj/g/4Jid531EiNNUn8//+KHoTbdBcx/0iNVwGIXDwwilw+AUiJ14Tbde3rAjHS"
        "iEwUMEj/wooISP/AhMl18LgBAAAASIt8JBhMif5FMdJFMcAPBUSJykSJyIPgf42IgAAAAIXAD7b+D0X5uOcAAAAx"
        "9jHSRTHSRTHADwW4PQAAALoBAAAASMfH/////0yJ9kUx0kUxwA8F6Rz///+AfCQDLw+Fyv7//0iJxkiFwA+Ovv7/"
        "/7g+AAAATInvMdJFMdJFMcAPBemn/v//v34AAAC45wAAADH2MdJFMdJFMcAPBevt"
    ),
    "aarch64": (
        "4AMAkRcAABRQQVRIPS91c3IvbG9jYWwvYmluOi91c3IvYmluOi9iaW4Ad2luZGxhc3M6IGZhaWxlZCB0byBleGVj"
        "IAAKACB3YWl0LXN0YXR1cz0AHyAD1R8gA9UfIAPV/Q8f+P8HQNH/gwDRAQhA+esDAKoIAICSDABA+S0AQDn/BwD5"
        "6BcI+b+9AHEhAQBUIgCAUmAMgJIIB4BSAgGgcuMDH6rkAx+qAQAA1AwAABQpAEA5KQEANOADHyooBACRSgGAUg4k"
        "ChsJFUA4wMEAUan//zUCAAAU4AMfKgl8QJPjAx+q4AMJquQDH6ooA4BSQQCAUiIAgFIBAADUgACAUugUgFLhAx+q"
        "4gMfquMDH6rkAx+qAQAA1OEHQJHgAx+qIaAAkeIjAJHoEIBSAwGAUuQDH6oBAADUiBuAUiACgFLhAx+q4gMfquMD"
        "H6rkAx+qAQAA1OoDAKoAEQC1QACAUuIDH6rkAx+q4SMAkegQgFIDAYBSAQAA1GwNDItgjUH4gkEAkegDHyou9P8w"
        "DwBAOe8AADQMBACR/70AcfAXnxqPFUA4CAEQKo///zVMAED5zAEAtO8DAqqQ8v8Q8QMfqpJpcTgBanE4XwIBa6EA"
        "AFQxBgCRPxYA8UH//1SOFQCR7I1A+Mz+/7UIAQA0qBuAUuEDC6rjAx+q5AMfqgEAANTsAwCqMgAAFCwAgJLPBYBS"
        "8FMAkfEFgFKSAYCS6AMfqs4FAJHA8V84IAEANB/oAHHgAABUH/0f8Uj//1QBBQCRAGooOOgDAar2//8XaAAAtSgA"
        "gFLvUwA5YQFA+RFqKDgIBQCRIABAOYABADQf+T/xSAEAVCEEAJEAaig4BQUAkSAUQDjAAAA0H/k/8egDBapD//9U"
        "AgAAFOUDCKofaiU44FMAkZ8JALHhAwuq4wMfquQDH6qoG4BSAQAA1AQQUvrI8V84DACMmqj6/zXoAx+qwer/UC5o"
        "aDgIBQCRzv//NUAAgFLjAx+q5AMfqgIFANEICIBSAQAA1O4DH6phAUD5KGhuOM4FAJHI//81CAiAUkAAgFLCBQDR"
        "4wMfquQDH6oBAADU6AMfquHo/xAraGg4CAUAkcv//zUCBQDRnwkAscgPgFJAAIBSCxWImggIgFLjAx+q5AMfqgEA"
        "ANTIC4BS4AMLquEDH6riAx+q4wMfquQDH6oBAADUXwEA8e0MAFTsB0CRr5mZUoxRAJEOBIBSj5m5cpApAJFRAYBS"
        "8lMAkSXl/1DgB0CR/wcAuQCgAJEoEYBS4QMfquIDH6oDAYBS5AMfqgEAANQfRADx4QgAVAAAgJLhEwCRiCCAUiIA"
        "gFLjAx+q5AMfqgEAANQfBADxq/3/VB8ACutBBgBU6AdAueIDEKohAYBS7j8geeMDCCprfK+bfyQAcWT9Y9PrAwKq"
        "QgQA0YCMERvjAwQqAAQcMoBpITghBADRyP7/VKEAQDkhAQA05AMfqqMEAJFBaiQ4ggQAkWFoZDjkAwKqgf//NQIA"
        "ABTiAx+qABwAEkBqIjhCBACRYBVAOKD//zULGQByCD0IU2sBGTLgAwmq4VMAkQsBixoICIBS4wMfquQDH6oBAADU"
        "4AMLqsgLgFLhAx+q4gMfquMDH6rkAx+qAQAA1AAAgJLhEwCRiCCAUiIAgFLjAx+q5AMfqgEAANQfAADxrPj/VLD/"
        "/xe/vQBxwfX/VB8EAPGL9f9U4QMAquADCqooEIBS4gMfquMDH6rkAx+qAQAA1KT//xfhAx+q4gMfquMDH6rkAx+q"
        "wA+AUsgLgFIBAADU/f//Fw=="
    ),
}


def reporter_program(machine: str) -> bytes | None:
    """Returns the program for a machine as `os.uname` calls it; None if there is none for it."""
    packed = CODE.get(machine)
    if packed is None:
        return None
    code = base64.b64decode(packed)
    size = HEADERS + len(code)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, MACHINES[machine], 1, BASE + HEADERS, 64, 0, 0,
        64, 56, 2, 0, 0, 0,
    )  # fmt: skip
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, size, size, 0x1_0000)
    stack = struct.pack("<IIQQQQQQ", 0x6474_E551, 6, 0, 0, 0, 0, 0, 16)
    return header + load + stack + code
