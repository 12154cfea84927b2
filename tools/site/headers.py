# SPDX-License-Identifier: Apache-2.0
"""The public headers as a reference: functions with their sections and comments, and the pages made of them.

A function's comment is the last `/** */` before it; the functions that follow without a comment or an empty line share it. A section begins with
`/* ---- name ----`, and its comment holds for all functions in it. Functions with the prefix `pnccl` are aliases, and stand with their namesakes.
"""
import dataclasses
import pathlib
import re

SINCE = pathlib.Path(__file__).with_name("since.txt")
TOKEN = re.compile(r"/\*.*?\*/|\n[ \t]*\n|\n?[ \t]*#(?:[^\n]*\\\n)*[^\n]*|[{}();]|[^\s{}();/#]+|\s+|/", re.S)
DEVICE_CODE = re.compile(r"^#if defined\(__cplusplus\) && defined\(__CUDACC__\)$.*?^#endif /\* kernels \*/$", re.M | re.S)
CXX_ONLY = re.compile(r"^#ifdef __cplusplus\n.*?^#endif$", re.M | re.S)
CODES = ("ncclSuccess ncclInProgress ncclInvalidArgument ncclInvalidUsage ncclSystemError ncclRemoteError ncclInternalError "
         "ncclUnhandledCudaError ncclTimeout").split()
DONE = ("ncclSuccess", "ncclInProgress")


@dataclasses.dataclass
class Function:
    name: str
    declaration: str
    comment: str
    section: str
    aliases: list = dataclasses.field(default_factory=list)

    @property
    def codes(self):
        """The result codes that its comment names, but those that are no errors."""
        return [c for c in CODES if c not in DONE and re.search(rf"\b{c}\b", self.comment)]

    @property
    def summary(self):
        """The first sentence of its comment."""
        return re.split(r"(?<=\.)\s", " ".join(self.comment.split()), maxsplit=1)[0]


@dataclasses.dataclass
class Header:
    name: str
    intro: str
    sections: dict  # {name: comment}
    functions: list


def text_of(comment):
    """The text of a comment, without stars and common indentation."""
    lines = re.sub(r"^/\*+\s?|\s*\*/$", "", comment).split("\n")
    return "\n".join(re.sub(r"^\s*\* ?", "", line) for line in lines).strip()


def declared(words):
    """(name, declaration) if a statement declares a function."""
    text = re.sub(r"\s+", " ", "".join(words)).strip()
    text = re.sub(r"^__attribute__\(\(.*?\)\)\) |^NCCL_TEAM_INLINE ", "", text)
    m = re.fullmatch(r"((?!typedef\b)(?:const )?\w+[ *]+)(p?(?:nccl|kolo)\w+)\s?\((.*)\)", text)
    return (m.group(2), f"{m.group(1)}{m.group(2)}({m.group(3)})") if m else None


def parse(path):
    source = CXX_ONLY.sub("", DEVICE_CODE.sub("", pathlib.Path(path).read_text(encoding="utf-8")))
    header = Header(pathlib.Path(path).name, "", {}, [])
    comment, section, words, braces, parens = "", "", [], 0, 0
    for token in TOKEN.findall(source):
        if token.startswith("/*") and not braces:
            named = re.match(r"---- (.*?) ----\s*(.*)", text_of(token), re.S)
            if named:
                section, comment, words = named.group(1), "", []
                header.sections[section] = named.group(2)
            elif token.startswith("/**") and not header.intro:
                header.intro = text_of(token)
            elif token.startswith("/**"):
                comment, words = text_of(token), []
        elif token.lstrip("\n \t").startswith("#"):
            continue
        elif re.fullmatch(r"\n[ \t]*\n", token) and not braces and not parens and not words:
            comment = ""
        else:
            parens += (token == "(") - (token == ")")
            if token in "{}" or (token == ";" and not braces and not parens):
                found = declared(words) if not braces else None
                if found:
                    add(header, Function(*found, comment, section))
                braces += (token == "{") - (token == "}")
                if not braces:
                    words = []
            elif not braces and (words or token.strip()):
                words.append(token)
    return header


def add(header, function):
    owner = next((f for f in header.functions if "p" + f.name == function.name), None)
    if owner:
        owner.aliases.append(function.name)
    else:
        header.functions.append(function)


def since():
    """{function: (release of NCCL, support, remark)} of since.txt."""
    rows = (line.split(None, 3) for line in SINCE.read_text(encoding="utf-8").splitlines() if line.strip() and not line.startswith("#"))
    return {r[0]: (r[1], r[2], r[3] if len(r) > 3 else "") for r in rows}


# ---- the page ----

def wrapped(declaration):
    """A declaration, an argument a line where it is long."""
    if len(declaration) <= 90:
        return declaration + ";"
    head, arguments = declaration[:-1].split("(", 1)
    return f"{head}(\n    " + ",\n    ".join(arguments.split(", ")) + ");"


def marked(text):
    """A comment as Markdown: names as code, examples and tables in their place as they stand."""
    blocks = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.split("\n")
        if all(line.startswith("    ") for line in lines) or re.search(r"^\S+:  ", block, re.M):
            blocks.append("```text\n" + block + "\n```")
        else:
            parts = re.split(r"(`[^`]*`)", block)
            parts[::2] = [re.sub(r"(?<![\w`])((?:p?nccl|kolo(?:plan)?)[A-Z]\w*|(?:NCCL|KOLO|KOLOPLAN)_[A-Z_]+|CUDA_VISIBLE_DEVICES|\*?[A-Za-z_]+\[[^\]]*\])"
                                 r"(?![\w`])", r"`\1`", p) for p in parts[::2]]
            parts[::2] = [re.sub(r"(?<![\w`*])\*(?=\w)", r"\\*", p).replace("<", "&lt;") for p in parts[::2]]
            blocks.append("".join(parts))
    return "\n\n".join(b for b in blocks if b.strip())


def support(function, table):
    if function.name in table:
        release, supported, remark = table[function.name]
        return release.replace("-", " or before"), supported, remark
    return "Kolo only", "yes", ""


def row(function, table):
    release, supported, remark = support(function, table)
    remark = remark or function.summary or "see its section"
    errors = ", ".join(f"`{c}`" for c in function.codes) or "see above"
    return f"| [`{function.name}`](#{function.name.lower()}) | {release} | {supported} | {marked(remark).replace('|', chr(92) + '|')} | {errors} |"


def page(header, table, title, lead):
    """The reference of a header: a table of all functions, then each with its declaration and comment."""
    out = [f"# {title}", "", lead, "", marked(header.intro), "",
           "| function | since NCCL | supported | remarks | errors |", "|---|---|---|---|---|"]
    out += [row(f, table) for f in header.functions]
    section, comment = None, None
    for f in header.functions:
        if f.section != section:
            section = f.section
            out += ["", f"## {section[:1].upper()}{section[1:]}" if section else "## Functions", "", marked(header.sections.get(section, ""))]
        release, supported, _ = support(f, table)
        out += ["", f"### {f.name}", "", f"```c\n{wrapped(f.declaration)}\n```", ""]
        facts = [f"Since NCCL {release}" if release != "Kolo only" else "Kolo's own", f"supported: {supported}"]
        facts += [f"also as `{a}`" for a in f.aliases]
        out += ["; ".join(facts) + ".", "", "As the function before it." if f.comment and f.comment == comment else marked(f.comment)]
        comment = f.comment
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)) + "\n"
