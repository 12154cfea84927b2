# SPDX-License-Identifier: Apache-2.0
"""The reference of kolocc, from its sources: signatures of python/kolocc/*.py and _core.pyi, docstrings of these and of python/src/*.c."""
import ast
import pathlib
import re

import ctext

ENTRY = re.compile(r'\{"(\w+)",\s*(?:FAST(?:_CLASS)?\()?(?:\(PyCFunction\)\(void \(\*\)\(void\)\))?(\w+)')
OWNER = {"request": "Request", "stream": "Stream", "event": "Event"}  # of methods in other files than comm.c, by the prefix of their functions


def macros(source):
    """{name: text} of the macros of a C file that are texts."""
    joined = source.replace("\\\n", " ")
    return {m.group(1): next(ctext.literals(m.group(2) + ";"))[1] for m in re.finditer(r'^#define (\w+)\s+(".*)$', joined, re.M)}


def c_docs(folder):
    """{"Class.method", "Class" or "function": docstring} of the extension."""
    found = {}
    for path in sorted(pathlib.Path(folder).glob("*.c")):
        source = path.read_text(encoding="utf-8")
        texts = dict(ctext.literals(source, macros(source)))
        for m in ENTRY.finditer(source):
            text = next((t for at, t in texts.items() if at > m.end() and "}" not in re.sub(r'"(?:[^"\\]|\\.)*"', "", source[m.end():at])), "")
            owner = "Communicator" if path.stem == "comm" else OWNER.get(m.group(2).split("_")[0])
            found[f"{owner}.{m.group(1)}" if owner else m.group(1)] = text.split("--\n\n")[-1].strip()
        for m in re.finditer(r"Py_tp_doc, \(void \*\)", source):
            name = re.search(r'"kolocc\._core\.(\w+)"', source[m.end():])
            if name:
                found[name.group(1)] = texts[m.end()].split("--\n\n")[-1].strip()
    return found


def signature(node):
    arguments = ast.unparse(node.args)
    arguments = re.sub(r"^(self|cls)(, /)?(, )?", "", arguments)
    return f"{node.name}({arguments})" + (f" -> {ast.unparse(node.returns)}" if node.returns else "")


def is_property(node):
    return any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)


def is_public(name):
    return not name.startswith("_")


def members(node, docs):
    """(heading, code, text) of the methods and properties of a class."""
    for f in (n for n in node.body if isinstance(n, ast.FunctionDef) and is_public(n.name)):
        text = ast.get_docstring(f) or docs.get(f"{node.name}.{f.name}", "")
        code = f"{f.name}: {ast.unparse(f.returns)}" if is_property(f) else signature(f)
        yield f"{node.name}.{f.name}", code, text


def fields(node):
    names = [f"{n.target.id}: {ast.unparse(n.annotation)}" for n in node.body
             if isinstance(n, ast.AnnAssign) and is_public(n.target.id)]
    return "\n".join(f"    {n}" for n in names)


def class_code(node):
    bases = ", ".join(ast.unparse(b) for b in node.bases)
    made = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__new__"), None)
    head = f"{node.name}({bases})" if bases else node.name
    if made:
        head = signature(made).split(" -> ")[0].replace("__new__", node.name)
    return f"class {head}" + (":\n" + fields(node) if fields(node) else "")


def entries(package, sources):
    """(heading, code, text) of all that the package exports, its classes with their members."""
    docs = c_docs(sources)
    trees = [ast.parse(p.read_text(encoding="utf-8")) for p in sorted(pathlib.Path(package).glob("*.py*"))
             if p.name not in ("py.typed", "_plan.pyi", "__main__.py")]
    exported = next(ast.literal_eval(n.value) for t in trees for n in t.body
                    if isinstance(n, ast.Assign) and n.targets[0].id == "__all__" and "Communicator" in ast.unparse(n.value))
    nodes = {n.name: n for t in trees for n in t.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    constants = {n.target.id: ast.unparse(n) for t in trees for n in t.body if isinstance(n, ast.AnnAssign)}
    for name in sorted(exported, key=lambda n: (isinstance(nodes.get(n), ast.ClassDef), n)):
        if name not in nodes:
            yield name, constants[name], "A constant, for Communicator.recv and irecv."
            continue
        node = nodes[name]
        text = ast.get_docstring(node) or docs.get(name, "")
        yield name, class_code(node) if isinstance(node, ast.ClassDef) else signature(node), text
        if isinstance(node, ast.ClassDef):
            yield from members(node, docs)
            for base in (ast.unparse(b) for b in node.bases if ast.unparse(b) not in exported):
                for heading, code, text in members(nodes[base], docs) if base in nodes else ():
                    yield heading.replace(base, name), code, text


def rendered(text):
    """A docstring as Markdown: indented blocks are code."""
    out = []
    for block in re.split(r"\n\s*\n", text):
        indented = [line for line in block.split("\n") if line.startswith("    ")]
        if indented and block.startswith("    "):
            out.append(f"```text\n{block}\n```")
        else:
            out.append(re.sub(r"(?<!`)\*", r"\\*", block).replace("<", "&lt;").replace("__dlpack__", "`__dlpack__`"))
    return "\n\n".join(out)


def page(package, sources):
    """The page: module functions, then classes."""
    plans = ast.get_docstring(ast.parse(pathlib.Path(package, "plans.py").read_text(encoding="utf-8")))
    out = ["# Reference of kolocc", "", "Made from the sources of the package `kolocc`; [Kolo in Python](../python.md) introduces it.", "",
           "## Clusters", "", rendered(plans), "", "## Functions", ""]
    inside = False
    for heading, code, text in entries(package, sources):
        if code.startswith("class ") and not inside:
            out += ["## Classes", ""]
            inside = True
        out += [f"### {heading}", "", f"```python\n{code}\n```", "", rendered(text), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out))
