"""Three real projects and the bugs planted in them: jansson, tinyxml2 and md4c.

Each bug is a change of one file that stands alone, so that a commit is the sources with the bugs
that live in it. Seven parts are the same everywhere; `PUSHES` is what happens to them.
"""

from dataclasses import dataclass
from typing import Final, Literal

from tests.fuzzing.real.sources import Source

Part = Literal["masking", "masked", "partial", "unbuilt", "merged", "renamed", "reverted"]
Replacement = tuple[str, str]


@dataclass(frozen=True)
class Bug:
    """A bug: its kind, what replaces what in a file, and the words that its issue must have.

    `half` is what an incomplete fix leaves of it.
    """

    kind: str
    file: str
    changes: tuple[Replacement, ...]
    words: tuple[str, ...]
    half: tuple[Replacement, ...] = ()


@dataclass(frozen=True)
class Planted:
    """A project with its bugs; `files` are what we add.

    `renamed` is a source file and its later name.
    """

    source: Source
    compiler: str
    files: dict[str, str]
    renamed: tuple[str, str]
    seeds: dict[str, str]
    words: tuple[str, ...]
    bugs: dict[Part, Bug]


@dataclass(frozen=True)
class Change:
    """A commit: what it does to which bug, or nothing of interest."""

    does: Literal["plant", "half", "fix", "plant broken", "repair", "rename", "merge", "tidy"]
    part: Part | None = None
    side: bool = False


# Only the last commit of a push is fuzzed at once. "masking" and its fix are next to "masked".
PUSHES: Final = (
    (Change("tidy"),),
    (Change("plant", "partial"), Change("plant", "masking"), Change("plant", "masked")),
    (Change("fix", "masking"), Change("plant broken", "unbuilt"), Change("repair")),
    (Change("plant", "merged", side=True), Change("plant", "reverted"), Change("merge")),
    (Change("fix", "masked"), Change("half", "partial"), Change("fix", "reverted"),
     Change("plant", "renamed")),
    (Change("rename"), Change("plant", "reverted"), Change("fix", "unbuilt"),
     Change("fix", "merged"), Change("fix", "partial")),
    (Change("fix", "renamed"), Change("fix", "reverted")),
)  # fmt: skip


def before(anchor: str, text: str) -> tuple[Replacement, ...]:
    """Returns the change that puts a text before another."""
    return ((anchor, text + anchor),)


HANG: Final = "for (volatile int left = {}; left;) {{}}\n"
HR_LINE: Final = "    if(n < 3) {\n"
COMMENT: Final = "    // Comment parses as text.\n"
REAL: Final = "    if (jsonp_strtod(&lex->saved_text"
DASHES: Final = (
    "    static const volatile int weights[{}] = {{0, 1, 2}};\n    int dashes = 0;\n"
    "    while (p[dashes] == '-') ++dashes;\n    if (weights[dashes] < 0) return 0;\n"
)

JANSSON_TARGET: Final = """\
#include <stdlib.h>
#include "jansson.h"
/* What was written is read again, and must be the same. */
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  json_error_t error;
  json_t *value = json_loadb((const char *)data, size, JSON_DECODE_ANY, &error);
  char *text = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
  if (text) {
    json_t *again = json_loads(text, JSON_DECODE_ANY, &error);
    assert(json_equal(value, again));
    json_decref(again);
  }
  free(text);
  json_decref(value);
  return 0;
}
"""
JANSSON: Final = Planted(
    source=Source(
        name="jansson",
        package="libjansson-dev",
        archive="jansson_2.14.orig.tar.gz",
        sha256="c739578bf6b764aa0752db9a2fdadcfe921c78f1228c7ec0bb47fa804c55d17b",
        files={
            f"jansson-2.14/{path}": path.rpartition("/")[2]
            for path in (
                "android/jansson_config.h", "src/dump.c", "src/error.c", "src/hashtable.c",
                "src/hashtable.h", "src/hashtable_seed.c", "src/jansson.h",
                "src/jansson_private.h", "src/load.c", "src/lookup3.h", "src/memory.c",
                "src/strbuffer.c", "src/strbuffer.h", "src/strconv.c", "src/utf.c", "src/utf.h",
                "src/value.c",
            )
        },
    ),
    compiler="clang",
    files={
        "fuzz_target.c": JANSSON_TARGET,
        "jansson_private_config.h": "",
    },
    renamed=("strbuffer.c", "buffer.c"),
    seeds={
        "a": '{"a": [1, 2.5, "x"], "b": null}',
        "b": r'["\u00e9\n", true, {"c": "\ud83d\ude00"}]',
        "c": '{"k": {"l": -1e3, "m": []}}',
    },
    words=(
        r"\\uF123", r"\\uFF01", r"\\f", "1.234567", "e100", r"\"\":1", "[1}",
        r"\"abcdefghijklmn",
    ),
    bugs={
        "masking": Bug(
            "overflow", "utf.c",
            (("        buffer[0] = 0xE0 + ((codepoint & 0xF000) >> 12);\n",
              ("        static const volatile unsigned char leads[15] = {\n"
              "            0xE0, 0xE1, 0xE2, 0xE3, 0xE4, 0xE5, 0xE6, 0xE7,\n"
              "            0xE8, 0xE9, 0xEA, 0xEB, 0xEC, 0xED, 0xEE};\n"
              "        buffer[0] = leads[(codepoint & 0xF000) >> 12];\n")),),
            ("overflow", "utf8_encode"),
        ),
        "masked": Bug(
            "hang", "load.c",
            before("                t += length;\n", HANG.format("value >> 8 == 0xFF")),
            ("does not end in lex_scan_string",),
        ),
        "partial": Bug(
            "assertion", "load.c", before(REAL, "    assert(lex->saved_text.length < 8);\n"),
            ("assertion", "saved_text.length"),
            half=before(REAL, "    assert(lex->saved_text.length < 12);\n"),
        ),
        "unbuilt": Bug(
            "leak", "load.c",
            ((("        jsonp_free(key);\n\n        lex_scan(lex, error);\n"
              "        if (lex->token != ',')"),
              ("        if (len) jsonp_free(key);\n\n        lex_scan(lex, error);\n"
              "        if (lex->token != ',')")),),
            ("leak",),
        ),
        "merged": Bug(
            "use after free", "load.c",
            (("error:\n    json_decref(array);\n",
              ("error:\n    json_decref(array);\n"
              "    if (lex->token == '}' && json_array_size(array) > 0)\n"
              '        error_set(error, lex, json_error_invalid_syntax, "not an object");\n')),),
            ("use-after-free", "parse_array"),
        ),
        "renamed": Bug(
            "overflow", "strbuffer.c",
            (("if (size >= strbuff->size", "if (size > strbuff->size"),),
            ("overflow", "strbuffer_append_bytes"),
        ),
        "reverted": Bug(
            "wrong answer", "dump.c", (('text = "\\\\f";', 'text = "\\\\b";'),), ("json_equal",)
        ),
    },
)  # fmt: skip

TINYXML2_TARGET: Final = """\
#include "tinyxml2.h"
using namespace tinyxml2;
/* No node begins after the last line. */
static void check(const XMLNode *node, int lines) {
  assert(node->GetLineNum() <= lines);
  for (const XMLNode *one = node->FirstChild(); one; one = one->NextSibling()) check(one, lines);
}
extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  XMLDocument document;
  if (document.Parse((const char *)data, size) != XML_SUCCESS) return 0;
  int lines = 1;
  for (size_t at = 0; at < size; ++at) lines += data[at] == '\\n';
  check(&document, lines);
  XMLPrinter printer;
  document.Print(&printer);
  return 0;
}
"""
TINYXML2: Final = Planted(
    source=Source(
        name="tinyxml2",
        package="libtinyxml2-dev",
        archive="tinyxml2_9.0.0+dfsg.orig.tar.xz",
        sha256="96510f47a5db537f70dff3e83dd71fd2180cbba4aa76c589a549467e7f34bc9b",
        files={
            "tinyxml2-9.0.0/tinyxml2.cpp": "tinyxml2.cpp",
            "tinyxml2-9.0.0/tinyxml2.h": "tinyxml2.h",
        },
    ),
    compiler="clang++",
    files={"fuzz_target.cpp": TINYXML2_TARGET},
    renamed=("tinyxml2.cpp", "xml.cpp"),
    seeds={
        "a": '<?xml version="1.0"?>\n<!-- note -->\n<a b="c">d &lt; &#65; &#xe9;<e/></a>',
        "b": "<!DOCTYPE a>\n<a>\n  <![CDATA[ x ]]>\n  <b>1</b><c/>\n</a>",
        "c": "<first><second k='v'/>text</first>",
    },
    words=("&#x1F600;", "<!--------", "<!Entity>", "</other>", "<![CDATA[]x", "\\x0d", "second"),
    bugs={
        "masking": Bug(
            "overflow", "tinyxml2.cpp", (("const int buflen = 10;\n", "const int buflen = 3;\n"),),
            ("overflow", "ConvertUTF32ToUTF8"),
        ),
        "masked": Bug(
            "assertion", "tinyxml2.cpp",
            before("                            p = adjusted;\n", "assert( len < 4 );\n"),
            ("assertion", "len <"),
        ),
        "partial": Bug(
            "overflow", "tinyxml2.cpp", before(COMMENT, DASHES.format(3)),
            ("overflow", "XMLComment::ParseDeep"), half=before(COMMENT, DASHES.format(5)),
        ),
        "unbuilt": Bug(
            "leak", "tinyxml2.cpp",
            before("    // Unknown parses as text.\n",
                   "    static char* volatile last;\n"
                   "    if ( *p == 'E' ) { last = new char[16]; last = 0; }\n"),
            ("leak", "XMLUnknown::ParseDeep"),
        ),
        "merged": Bug(
            "use after free", "tinyxml2.cpp",
            before("                _document->SetError( XML_ERROR_MISMATCHED_ELEMENT,",
                   "                StrPair name;\n"
                   "                name.SetStr( ele->Name() );\n"
                   "                const char* text = name.GetStr();\n"
                   "                name.Reset();\n"
                   "                if ( strlen( ele->Name() ) == 5 && text[0] == 0 ) break;\n"),
            ("use-after-free", "XMLNode::ParseDeep"),
        ),
        "renamed": Bug(
            "hang", "tinyxml2.cpp",
            (("    if ( this->CData() ) {\n        p = ",
              "    if ( this->CData() ) {\n        " + HANG.format("*p == ']'") + "        p = "),),
            ("does not end in tinyxml2::XMLText::ParseDeep",),
        ),
        "reverted": Bug(
            "wrong answer", "tinyxml2.cpp",
            (("        } else if (*p == '\\n') {\n",
              "        } else if (*p == '\\n' || *p == '\\r') {\n"),),
            ("GetLineNum",),
        ),
    },
)  # fmt: skip

MD4C_TARGET: Final = """\
#include <stdlib.h>
#include <string.h>
#include "md4c.h"
/* Each block that is entered is left. This version reads a byte beyond the end: so there is one. */
static int enter(MD_BLOCKTYPE type, void *detail, void *depth) { ++*(int *)depth; return 0; }
static int leave(MD_BLOCKTYPE type, void *detail, void *depth) { --*(int *)depth; return 0; }
static int span(MD_SPANTYPE type, void *detail, void *depth) { return 0; }
static int text(MD_TEXTTYPE type, const MD_CHAR *at, MD_SIZE size, void *depth) { return 0; }
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  MD_PARSER parser = {0, MD_DIALECT_GITHUB, enter, leave, span, span, text, NULL, NULL};
  int depth = 0;
  char *copy = calloc(size + 1, 1);
  memcpy(copy, data, size);
  if (md_parse(copy, (MD_SIZE)size, &parser, &depth) == 0) assert(depth == 0);
  free(copy);
  return 0;
}
"""
MD4C: Final = Planted(
    source=Source(
        name="md4c",
        package="libmd4c-dev",
        archive="md4c_0.4.8.orig.tar.gz",
        sha256="4a457df853425b6bb6e3457aa1d1a13bccec587a04c38c622b1013a0da41439f",
        files={
            "md4c-release-0.4.8/src/md4c.c": "md4c.c",
            "md4c-release-0.4.8/src/md4c.h": "md4c.h",
        },
    ),
    compiler="clang",
    files={"fuzz_target.c": MD4C_TARGET},
    renamed=("md4c.c", "markdown.c"),
    seeds={
        "a": "# Title\n\ntext *a* [l](/u)\n\n***\n\n```c\ncode\n```\n",
        "b": "| a | b |\n|---|---|\n| 1 | 2 |\n\n- x\n- y\n",
        "c": '[foo]: /url "t"\n\n[foo] <ftp://a.b>\n\n~~~\ncode\n~~~\n',
    },
    words=("~~~~~~~", "***********", "|---|---|---|---|---|---", "<http://", "[ab]", "######"),
    bugs={
        "masking": Bug(
            "overflow", "md4c.c",
            before("    ctx->code_fence_length = off - beg;\n",
                   "    static const volatile char kinds[6] = {0, 1, 1, 1, 1, 1};\n"
                   "    if(kinds[off - beg] == 2) return FALSE;\n"),
            ("overflow", "md_is_opening_code_fence"),
        ),
        "masked": Bug(
            "use after free", "md4c.c",
            before("    ctx->code_fence_length = off - beg;\n",
                   "    volatile char* copy = malloc(off - beg);\n    free((void*)copy);\n"
                   "    if(off - beg >= 6 && copy[0] == 2) return FALSE;\n"),
            ("use-after-free", "md_is_opening_code_fence"),
        ),
        "partial": Bug(
            "hang", "md4c.c", before(HR_LINE, "    " + HANG.format("n > 6")),
            ("does not end in md_is_hr_line",), half=before(HR_LINE, "    " + HANG.format("n > 9")),
        ),
        "unbuilt": Bug(
            "overflow", "md4c.c",
            (("    unsigned col_count = 0;\n",
              "    unsigned col_count = 0;\n    volatile OFF widths[4];\n"),
             ("        col_count++;\n\n        /* Pipe",
              "        widths[col_count++] = off - cell_beg;\n\n        /* Pipe")),
            ("overflow", "md_is_table_underline"),
        ),
        "merged": Bug(
            "assertion", "md4c.c",
            before("    /* Check the path after the scheme. */\n", "    assert(off - beg != 5);\n"),
            ("assertion", "off - beg"),
        ),
        "renamed": Bug(
            "leak", "md4c.c",
            before("    hash = md_link_label_hash(label, label_size);\n    bucket = ",
                   "    static void* volatile last;\n"
                   "    if(label_size == 2) { last = malloc(16); last = NULL; }\n"),
            ("leak", "md_lookup_ref_def"),
        ),
        "reverted": Bug(
            "wrong answer", "md4c.c",
            (("    if(!is_in_tight_list  ||  block->type != MD_BLOCK_P)\n        MD_LEAVE_BLOCK",
              ("    if((!is_in_tight_list  ||  block->type != MD_BLOCK_P)\n"
              "       &&  det.header.level != 6)\n        MD_LEAVE_BLOCK")),),
            ("assertion", "depth =="),
        ),
    },
)  # fmt: skip
PROJECTS: Final = (JANSSON, TINYXML2, MD4C)
