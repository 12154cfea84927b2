#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Man pages and completion for bash, zsh and fish, from the option tables of the tools: `kolo help --json`, `kolo-nvcc --list-options`.

usage: manual.py VERSION FOLDER KOLO [KOLO_NVCC]

FOLDER gets kolo/ (for `cmake --install`) and kolocc/ (for the Python package), each with man/man1, bash-completion/completions,
zsh/site-functions and fish/vendor_completions.d.
"""
from __future__ import annotations

import datetime
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap
from typing import Any

Command = dict[str, Any]
Option = dict[str, Any]

# ---- kinds of values ----


def choices(option: Option) -> list[str]:
    """The values that a table lists in the argument's name: text|xml|json."""
    argument = option.get("argument") or ""
    return argument.split("|") if re.fullmatch(r"[a-z0-9]+(\|[a-z0-9]+)+", argument) else []


def takes_value(option: Option) -> bool:
    return option["value"] not in ("none", "optional")


def is_file(option: Option) -> bool:
    return (option.get("argument") or "").startswith("FILE")


def is_folder(option: Option) -> bool:
    return option.get("argument") == "DIR"


def is_machine(option: Option) -> bool:
    return option.get("name") == "machine"


def forms(option: Option) -> list[str]:
    """-w, --watch."""
    return [dash + option[key] for dash, key in (("-", "letter"), ("--", "name")) if key in option]


# ---- man pages ----


def day() -> str:
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc) if seconds else datetime.datetime.now(datetime.timezone.utc)
    return when.strftime("%Y-%m-%d")


def roff(text: str) -> str:
    """Text as a line of roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    return "\\&" + text if text.startswith(".") else text


def fill(text: str) -> list[str]:
    """Flowing text, already in roff, as lines of at most 78 characters, none of which looks like a request."""
    lines = textwrap.wrap(text, 78, break_long_words=False, break_on_hyphens=False)
    return [("\\&" if line[0] in ".'" else "") + line for line in lines]


def bold(text: str) -> str:
    return f"\\fB{roff(text)}\\fR"


def blocks(text: str) -> list[str]:
    """Paragraphs flow; lines that are indented stay as they are."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        lines.append(".PP")
        for indented, group in itertools.groupby(paragraph.split("\n"), lambda line: line.startswith("  ")):
            if indented:
                lines += [".nf"] + [roff(line.rstrip()) for line in group] + [".fi"]
            else:
                lines += fill(roff(" ".join(line.strip() for line in group)))
    return lines


def head(name: str, version: str, summary: str) -> list[str]:
    return ['.\\" made by tools/manual/manual.py', f'.TH "{name.upper()}" "1" "{day()}" "kolo {version}" "Kolo"', ".SH NAME",
            *fill(f"{roff(name)} \\- {roff(summary)}")]


def synopsis(usage: list[str]) -> list[str]:
    lines = [".SH SYNOPSIS", ".nf"]
    for line in usage:
        words = line.replace("usage: ", "", 1).strip().split(" ")
        n = next((i for i, word in enumerate(words) if not re.fullmatch(r"[a-z-]+", word) or word.startswith("-")), len(words))
        lines.append(" ".join([bold(" ".join(words[:n]))] + [roff(word) for word in words[n:]]))
    return lines + [".fi"]


def option_entry(option: Option) -> list[str]:
    argument = option.get("argument")
    value = f" \\fI{roff(argument)}\\fR" if argument else ""
    doc = option["doc"] + (" (may be repeated)" if option["repeats"] else "")
    return [".TP", ", ".join(bold(form) for form in forms(option)) + value, *fill(roff(doc))]


def see_also(names: list[str]) -> list[str]:
    return [".SH SEE ALSO", ",\n".join(f"{bold(name)}(1)" for name in names)]


def command_page(command: Command, version: str, others: list[str]) -> str:
    name = f"kolo-{command['name']}"
    paragraphs = re.split(r"\n\s*\n", command["about"].strip("\n"), maxsplit=1)
    lines = head(name, version, command["summary"]) + synopsis(paragraphs[0].split("\n"))
    if len(paragraphs) > 1:
        lines += [".SH DESCRIPTION"] + blocks(paragraphs[1])[1:]
    lines.append(".SH OPTIONS")
    for option in command["options"]:
        lines += option_entry(option)
    if command["notes"].strip():
        lines += [".SH NOTES"] + blocks(command["notes"])[1:]
    return "\n".join(lines + see_also(others)) + "\n"


def tool_page(name: str, summary: str, commands: list[Command], version: str, remark: list[str]) -> str:
    lines = head(name, version, summary) + synopsis([f"{name} COMMAND [options]"]) + [".SH DESCRIPTION"]
    for command in commands:
        lines += [".TP", bold(command["name"]), *fill(roff(command["summary"]) + f"; see {bold('kolo-' + command['name'])}(1)")]
    lines += [".TP", bold("help"), f"the commands, or the help of one of them; {bold('--json')}: all of them as JSON",
              ".TP", bold("version"), "the version of Kolo and of the NCCL API"] + remark
    return "\n".join(lines + see_also([f"kolo-{c['name']}" for c in commands])) + "\n"


def nvcc_page(about: str, options: list[tuple[list[str], bool, str]], version: str) -> str:
    paragraphs = re.split(r"\n\s*\n", about.strip("\n"), maxsplit=1)
    lines = head("kolo-nvcc", version, "compile CUDA C++ for CPUs") + synopsis(paragraphs[0].split("\n"))
    lines += [".SH DESCRIPTION"] + blocks(paragraphs[1])[1:] + [".SH OPTIONS"]
    for effect, title in (("used", "These have an effect:"), ("ignored", "These are accepted and do nothing:"),
                          ("refused", "These are refused:")):
        lines += [".PP"] * (effect != "used") + [title]
        for names, value, kind in options:
            if kind == effect:
                lines += [".IP", ", ".join(bold(name) for name in names) + (" \\fIVALUE\\fR" if value else "")]
    return "\n".join(lines + see_also(["kolo", "kolo-run"])) + "\n"


# ---- bash ----

MACHINES = "kolo topo --machines 2>/dev/null | sed -n 's/^\\([a-z][a-z0-9.-]*\\) .*/\\1/p'"


def bash_values(options: list[Option]) -> list[str]:
    """The cases of options with a value."""
    lines = []
    for option in options:
        if not takes_value(option):
            continue
        if choices(option):
            action = f"COMPREPLY=($(compgen -W '{' '.join(choices(option))}' -- \"$cur\"))"
        elif is_machine(option):
            action = f'COMPREPLY=($(compgen -W "$({MACHINES})" -- "$cur"))'
        elif is_folder(option):
            action = 'COMPREPLY=($(compgen -d -- "$cur"))'
        elif is_file(option):
            action = 'COMPREPLY=($(compgen -f -- "$cur"))'
        else:
            action = ":"
        lines.append(f"        {'|'.join(forms(option))}) {action}; return ;;")
    return lines


def bash(program: str, commands: list[Command]) -> str:
    lines = [f"# bash completion of {program}, made by tools/manual/manual.py", f"_{program}() {{",
             "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}", "    COMPREPLY=()",
             "    if ((COMP_CWORD == 1)); then",
             f"        COMPREPLY=($(compgen -W '{' '.join([c['name'] for c in commands] + ['help', 'version'])}' -- \"$cur\"))",
             "        return", "    fi", "    case ${COMP_WORDS[1]} in"]
    for command in commands:
        words = " ".join(form for option in command["options"] for form in forms(option))
        values = bash_values(command["options"])
        lines.append(f"    {command['name']})")
        if values:
            lines += ["        case $prev in"] + values + ["        esac"]
        lines.append(f"        [[ $cur == -* ]] && COMPREPLY=($(compgen -W '{words}' -- \"$cur\")) && return")
        if command.get("operands"):
            lines.append(f"        ((COMP_CWORD == 2)) && COMPREPLY=($(compgen -W '{' '.join(command['operands'])}' -- \"$cur\"))")
        lines.append("        ;;")
    lines += ["    help)", f"        COMPREPLY=($(compgen -W '{' '.join(c['name'] for c in commands)}' -- \"$cur\")) ;;", "    esac", "}",
              f"complete -o default -F _{program} {program}"]
    return "\n".join(lines) + "\n"


def bash_nvcc(options: list[tuple[list[str], bool, str]]) -> str:
    words = " ".join(name for names, _, effect in options if effect != "refused" for name in names)
    return "\n".join(["# bash completion of kolo-nvcc, made by tools/manual/manual.py", "_kolo_nvcc() {",
                      "    local cur=${COMP_WORDS[COMP_CWORD]}", "    COMPREPLY=()",
                      f"    [[ $cur == -* ]] && COMPREPLY=($(compgen -W '{words}' -- \"$cur\"))", "}",
                      "complete -o default -F _kolo_nvcc kolo-nvcc"]) + "\n"


# ---- zsh ----


def zsh_text(text: str) -> str:
    """Text inside single quotes and brackets of an _arguments specification."""
    return re.sub(r"([\[\]:\\])", r"\\\1", text).replace("'", "'\\''")


def zsh_value(option: Option) -> str:
    if not takes_value(option):
        return ""
    argument = zsh_text(option.get("argument") or "value")
    if choices(option):
        return f":{argument}:({' '.join(choices(option))})"
    if is_machine(option):
        return f":{argument}:_kolo_machines"
    return f":{argument}:" + ("_files -/" if is_folder(option) else "_files" if is_file(option) else " ")


def zsh_specs(option: Option) -> list[str]:
    names = forms(option)
    doc = zsh_text(option["doc"])
    before = "*" if option["repeats"] else f"({' '.join(names)})" if len(names) > 1 else ""
    return [f"'{before}{name}{'=' if takes_value(option) and name.startswith('--') else '+' if takes_value(option) else ''}"
            f"[{doc}]{zsh_value(option)}'" for name in names]


def zsh(program: str, commands: list[Command]) -> str:
    lines = [f"#compdef {program}", f"# zsh completion of {program}, made by tools/manual/manual.py", "_kolo_machines() {",
             f"    compadd -- ${{(f)\"$({MACHINES})\"}}", "}", f"_{program}() {{", "    local -a commands=("]
    lines += [f"        '{zsh_text(c['name'])}:{zsh_text(c['summary'])}'" for c in commands]
    lines += ["        'help:the help of a command'", "        'version:print the version'", "    )",
              "    if ((CURRENT == 2)); then", "        _describe command commands", "        return", "    fi",
              "    local command=$words[2]", "    shift words", "    ((CURRENT--))", "    case $command in"]
    for command in commands:
        specs = [spec for option in command["options"] for spec in zsh_specs(option)]
        if command.get("operands"):
            specs.append(f"'1:question:({' '.join(command['operands'])})'")
        lines += [f"    {command['name']})", "        _arguments -s \\"] + [f"            {spec} \\" for spec in specs]
        lines += ["            '*:file:_files'", "        ;;"]
    lines += ["    help)", "        _describe command commands", "        ;;", "    esac", "}", f'_{program} "$@"']
    return "\n".join(lines) + "\n"


def zsh_nvcc(options: list[tuple[list[str], bool, str]]) -> str:
    lines = ["#compdef kolo-nvcc", "# zsh completion of kolo-nvcc, made by tools/manual/manual.py", "local -a options=("]
    lines += [f"    {name}" for names, _, effect in options if effect != "refused" for name in names]
    return "\n".join(lines + [")", "[[ $words[CURRENT] == -* ]] && compadd -- $options", "_files"]) + "\n"


# ---- fish ----


def fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_option(program: str, command: Command, option: Option) -> str:
    line = f"complete -c {program} -n '__fish_seen_subcommand_from {command['name']}'"
    if "letter" in option:
        line += f" -s {option['letter']}"
    if "name" in option:
        line += f" -l {option['name']}"
    if takes_value(option):
        line += " -r" if is_file(option) or is_folder(option) else " -x"
        if choices(option):
            line += f" -a {fish_text(' '.join(choices(option)))}"
        elif is_machine(option):
            line += f" -a {fish_text('(' + MACHINES + ')')}"
    return line + f" -d {fish_text(option['doc'])}"


def fish(program: str, commands: list[Command]) -> str:
    lines = [f"# fish completion of {program}, made by tools/manual/manual.py"]
    for command in commands:
        lines.append(f"complete -c {program} -n __fish_use_subcommand -f -a {command['name']} -d {fish_text(command['summary'])}")
    lines.append(f"complete -c {program} -n __fish_use_subcommand -f -a 'help version'")
    for command in commands:
        if command.get("operands"):
            lines.append(f"complete -c {program} -n '__fish_seen_subcommand_from {command['name']}' -a {fish_text(' '.join(command['operands']))}")
        lines += [fish_option(program, command, option) for option in command["options"]]
    return "\n".join(lines) + "\n"


def fish_nvcc(options: list[tuple[list[str], bool, str]]) -> str:
    lines = ["# fish completion of kolo-nvcc, made by tools/manual/manual.py"]
    for names, value, effect in options:
        for name in names:
            if effect != "refused":
                kind = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" if len(name) == 2 else f"-o {name[1:]}"
                lines.append(f"complete -c kolo-nvcc {kind}{' -r' if value else ''}")
    return "\n".join(lines) + "\n"


# ---- files ----


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def nvcc_options(program: str) -> list[tuple[list[str], bool, str]]:
    """Names, whether there is a value, and used, ignored or refused."""
    rows = [line.split("\t") for line in output(program, "--list-options").splitlines()]
    return [(names.split(), value == "value", effect) for names, value, effect in rows]


def write(folder: pathlib.Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def completions(program: str, commands: list[Command]) -> dict[str, str]:
    return {f"bash-completion/completions/{program}": bash(program, commands), f"zsh/site-functions/_{program}": zsh(program, commands),
            f"fish/vendor_completions.d/{program}.fish": fish(program, commands)}


def main() -> None:
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    version, folder, kolo = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    commands: list[Command] = json.loads(output(kolo, "help", "--json"))["commands"]
    pages = {}
    for command in commands:
        others = ["kolo"] + [f"kolo-{c['name']}" for c in commands if c is not command]
        pages[f"man/man1/kolo-{command['name']}.1"] = command_page(command, version, others)
    summary = "collective communication on CPUs, and plans for GPU clusters"
    files = pages | {"man/man1/kolo.1": tool_page("kolo", summary, commands, version, [])} | completions("kolo", commands)
    if len(sys.argv) > 4:
        options = nvcc_options(sys.argv[4])
        files |= {"man/man1/kolo-nvcc.1": nvcc_page(output(sys.argv[4], "--help"), options, version),
                  "bash-completion/completions/kolo-nvcc": bash_nvcc(options), "zsh/site-functions/_kolo-nvcc": zsh_nvcc(options),
                  "fish/vendor_completions.d/kolo-nvcc.fish": fish_nvcc(options)}
    remark = [".SH NOTES", *fill(f"It is {bold('kolo')}(1) of the Python package; {bold('run')} starts Python scripts as they are: "
              f"{bold('kolocc run -n 4 script.py')}.")]
    write(folder / "kolo", files)
    write(folder / "kolocc", {"man/man1/kolocc.1": tool_page("kolocc", "the tool kolo of the Python package kolocc", commands, version, remark)} |
          completions("kolocc", commands))
    write(folder / "kolocc-pages", pages)


if __name__ == "__main__":
    main()
