#!/usr/bin/env python3
"""Joins the sources of one target into fewer translation units, so that each parses its headers once.

Two files share a unit only if neither uses unqualified, itself or in the headers of its library, a name that the other
keeps to itself (anonymous namespaces, static, using; the same alias in both is no obstacle): then joining cannot change
what a name means. A file that defines macros
or has a using-directive at namespace scope stays alone, and so does one that says so (ALONE): programs link a unit as a
whole, with all that its global variables need.

usage: unity.py ROOT TARGETS OUTPUT   TARGETS: lines of NAME UNITS_DIR SOURCE...; OUTPUT: what to compile, as CMake's commands
"""
import functools
import pathlib
import re
import sys

MOST_FILES, MOST_LINES = 8, 1600
ALONE = "// unity: alone"

LITERALS = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*(?:.|\n)*?\*/')
NAMESPACE = re.compile(r"(?:inline )?namespace\s*([\w:]*)\s*\Z")
PARENTHESES = re.compile(r"\([^()]*\)")
WORD = re.compile(r"(?<!::)(?<!->)(?<![.\w])[A-Za-z_]\w*")  # a word after these means something of another scope
ALIAS = re.compile(r"\b(?:using|namespace)\s+(\w+)\s*=([^;]*);")
USING = re.compile(r"\busing\s+([\w:\s]*::\s*)(\w+)\s*;")
INITIALIZER = re.compile(r"(?<![=!<>+*/|&-])=(?!=)[^;,]*")
BASES = re.compile(r":\s*(?:public|protected|private|virtual)\b[^;{]*")
KEYWORDS = set("const constexpr static inline if for while return struct class enum using operator namespace template "
               "typename auto void int bool char double default delete override noexcept final public private true false "
               "TEST TEST_F TEST_P INSTANTIATE_TEST_SUITE_P".split())


# The kernel's headers give way to those of the C library only where these come first (linux/libc-compat.h).
FIRST = "#include <net/if.h>\n#include <netinet/in.h>\n\n"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


class Headers:
    """Words of what a file includes of its own library."""

    def __init__(self, root):
        self.root, self.known = root, {}

    def words(self, name, library):
        if name not in self.known:
            self.known[name] = set()  # while it is being read
            path = self.root / name
            text = path.read_text() if path.is_file() else ""
            code = re.sub(r"^\s*#.*$", "", LITERALS.sub(" ", text), flags=re.M)
            self.known[name] = set(WORD.findall(code)) if name.endswith(".h") else set()
            for target in INCLUDE.findall(text):
                if target.startswith(library):
                    self.known[name] |= self.words(target, library)
        return self.known[name]


class File:
    def __init__(self, path, headers):
        self.path = path
        text = path.read_text()
        marked = ALONE in text
        text = LITERALS.sub(lambda found: " ", text)
        directives = "\n".join(re.findall(r"^\s*#.*$", text, re.M))
        code = re.sub(r"^\s*#.*$", "", text, flags=re.M)
        self.lines = text.count("\n")
        name = path.relative_to(headers.root).as_posix()
        library = "/".join(name.split("/")[:2]) + "/" if name.startswith(("lib/", "controlplane/")) else name.split("/")[0] + "/"
        self.words = set(WORD.findall(code)) | headers.words(name, library)
        self.own = {}  # name -> what it stands for, or None if this file defines it
        self.alone = marked or bool(re.search(r"^\s*#\s*(define|if|undef)", directives, re.M)) or bool(
            re.search(r"^using namespace", code, re.M))
        self._pairs = pairs(code)
        self._collect(code, 0, len(code), False)

    def _collect(self, code, begin, end, hidden):
        """Names declared between two places, at the depth of a namespace."""
        flat, at = [], begin
        while (brace := code.find("{", at, end)) >= 0:
            close = self._pairs.get(brace, end)
            head = NAMESPACE.search(code, max(at, brace - 200), brace)
            if head:
                flat.append(code[at:head.start()])
                self._collect(code, brace + 1, close, hidden or not head.group(1))
            else:
                flat += [code[at:brace], "{}"]
            at = close + 1
        flat.append(code[at:end])
        text = without_parentheses("".join(flat))
        for statement in re.split(r";|\{\}", text) if not hidden else ():
            if re.match(r"\s*(?:\[\[.*?\]\]\s*)?static\b", statement):
                self._define(declared(statement))
        if hidden:
            self._define(declared(text))
        for name, target in ALIAS.findall(text):
            self.own[name] = "".join(target.split())
        for target, name in USING.findall(text):
            self.own[name] = "".join(target.split()) + name

    def _define(self, names):
        self.own.update(dict.fromkeys(names - KEYWORDS))

    def fits(self, other):
        return not (self._hides(other) or other._hides(self))

    def _hides(self, other):
        """Whether a name of this file would mean something else in the other. The same alias in both would not."""
        return any(name in other.words and (target is None or other.own.get(name) != target)
                   for name, target in self.own.items())


def declared(text):
    text = INITIALIZER.sub("=", BASES.sub(" ", text))
    names = set(re.findall(r"\b(?:class|struct|enum|union)\s+(?:\[\[.*?\]\]\s*)?(\w+)", text))
    names |= set(re.findall(r"(\w+)\s*\(\)", text))
    names |= set(re.findall(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=|\{\}|;)", text))
    return names


def pairs(code):
    """Where each opening brace closes."""
    out, open_braces = {}, []
    for brace in re.finditer(r"[{}]", code):
        if brace.group() == "{":
            open_braces.append(brace.start())
        elif open_braces:
            out[open_braces.pop()] = brace.start()
    return out


def without_parentheses(text):
    """What is inside of them left out, however deep."""
    while True:
        shorter = PARENTHESES.sub("\1", text)
        if shorter == text:
            return text.replace("\1", "()")
        text = shorter


def pack(files):
    units = []
    for file in files:
        for unit in units if not file.alone else ():
            if len(unit) < MOST_FILES and sum(f.lines for f in unit) + file.lines <= MOST_LINES and not unit[0].alone \
                    and all(file.fits(f) for f in unit):
                unit.append(file)
                break
        else:
            units.append([file])
    return units


def units_of(root, folder, name, sources, known):
    """What to compile in place of the sources."""
    # Generated sources come as whole paths and stay alone.
    ours = [p for p in sources if root in p.parents and p.suffix == ".cc" and p.exists() and folder not in p.parents]
    out = [p.as_posix() for p in sources if p not in ours]
    folder.mkdir(parents=True, exist_ok=True)
    for number, unit in enumerate(pack([known(p) for p in ours])):
        if len(unit) == 1:
            out.append(unit[0].path.as_posix())
            continue
        text = FIRST + "".join(f'#include "{file.path.relative_to(root).as_posix()}"\n' for file in unit)
        path = folder / f"{name}_{number}.cc"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        out.append(path.as_posix())
    return out


def main():
    root, targets, output = map(pathlib.Path, sys.argv[1:])
    headers, commands = Headers(root), []
    known = functools.cache(lambda path: File(path, headers))
    for line in targets.read_text().splitlines():
        name, folder, *sources = line.split(" ")
        units = units_of(root, pathlib.Path(folder), name, [pathlib.Path(source) for source in sources], known)
        commands.append(f"target_sources({name} PRIVATE\n  " + "\n  ".join(units) + ")\n")
    output.write_text("".join(commands))


if __name__ == "__main__":
    main()
