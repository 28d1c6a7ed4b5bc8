#!/usr/bin/env python3
"""The order of rooms in ARCHITECTURE.md, held against every #include; with it the size of rooms and their namespaces.

A room is a folder of code inside a program or library. The table "Order of rooms" lists the rooms of each from the
bottom up: a room includes rooms of lower levels only, and rooms of one level do not see each other. Test code
(*_test.cc, *_bench.cc, testing/) may include every room; no other code includes test code.

usage: rooms.py SOURCE_DIR
"""
import collections
import pathlib
import re
import sys

PROGRAMS = ("cni", "controlplane", "csi", "ctl", "kubelet", "lib", "proxy")
MOST_FILES = 40  # in one folder, besides tests
# What the path of a namespace leaves out.
UNNAMED = {"lib", "base"}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
# Not where it only declares what another folder defines.
NAMESPACE = re.compile(r"^(?:inline )?namespace (keelson[\w:]*) \{\n(?!(?:(?:class|struct) \w+;\n)+\})", re.M)


def is_test(path):
    return path.endswith(("_test.cc", "_bench.cc")) or "/testing/" in path or path.startswith("tests/")


def folder(path):
    return path.rsplit("/", 1)[0]


def rows(text):
    """{"kubelet": {"config": 0, "cri": 1, ...}} of the table under "Order of rooms"."""
    section = re.search(r"^#+ Order of rooms\n(.*?)(?=^#+ |\Z)", text, re.M | re.S)
    out = {}
    for name, cells in re.findall(r"^\| ([\w/-]+) \| (.+) \|$", section.group(1) if section else "", re.M):
        out[name] = {room: level for level, cell in enumerate(cells.split(" < ")) for room in cell.split()}
    return out


def room_of(path, program, rooms):
    """The deepest room of the row that holds the file; the folder itself if the row has none."""
    rest = folder(path)[len(program):].strip("/") or "."
    here = rest
    while here not in rooms and "/" in here:
        here = here.rsplit("/", 1)[0]
    return here if here in rooms else rest


def check_order(includes, table):
    used = {program: set() for program in table}
    for path, targets in sorted(includes.items()):
        if is_test(path):
            continue
        for program, rooms in table.items():
            if not path.startswith(program + "/"):
                continue
            here = room_of(path, program, rooms)
            used[program].add(here)
            if here not in rooms:
                yield f"{path}: ARCHITECTURE.md has no room {here} in {program}"
                continue
            for target in targets:
                there = room_of(target, program, rooms) if target.startswith(program + "/") else here
                if there != here and rooms.get(there, -1) >= rooms[here]:
                    yield f"{path}: room {here} includes {target} of {there}, which stands no lower in {program}"
    for program, rooms in table.items():
        for room in sorted(rooms.keys() - used[program]):
            yield f"ARCHITECTURE.md: {program} has no room {room}"


def check_rows(includes, table):
    """Who has rooms has a row."""
    for path in sorted(includes):
        parts = path.split("/")
        program = "/".join(parts[:2]) if parts[0] == "lib" else parts[0]
        if parts[0] in PROGRAMS and not is_test(path) and folder(path) != program and program not in table:
            yield f"{path}: ARCHITECTURE.md says nothing of the rooms of {program}"


def check_test_code(includes):
    for path, targets in sorted(includes.items()):
        for target in targets if not is_test(path) else ():
            if is_test(target):
                yield f"{path}: includes test code, {target}"


def check_sizes(includes):
    counts = collections.Counter(folder(path) for path in includes if not is_test(path))
    for name, count in sorted(counts.items()):
        if count > MOST_FILES:
            yield f"{name}: {count} files; {MOST_FILES} is the most a folder holds besides tests"


def check_namespaces(root, includes):
    """keelson:: and folders of the path, in order, and the file's first word: any may be left out, none added."""
    for path in sorted(includes):
        if path.startswith("tests/"):
            continue
        for name in NAMESPACE.findall((root / path).read_text()):
            parts = [part.replace("-", "_") for part in folder(path).split("/") if part not in UNNAMED]
            folders = iter([*parts, re.match(r"[a-z0-9]+", path.rsplit("/", 1)[1]).group()])
            if not all(part in folders for part in name.split("::")[1:]) and not name.startswith("keelson::api::"):
                yield f"{path}: namespace {name} does not follow the folders"


def main():
    root = pathlib.Path(sys.argv[1])
    files = [p for d in (*PROGRAMS, "tests") for p in (root / d).rglob("*") if p.suffix in (".h", ".cc", ".c")]
    includes = {p.relative_to(root).as_posix(): INCLUDE.findall(p.read_text()) for p in files}
    table = rows((root / "ARCHITECTURE.md").read_text())
    problems = [] if table else ["ARCHITECTURE.md: no table under Order of rooms"]
    problems += check_rows(includes, table)
    problems += check_order(includes, table)
    problems += check_test_code(includes)
    problems += check_sizes(includes)
    problems += check_namespaces(root, includes)
    print("\n".join(problems) if problems else f"{len(includes)} files stand in order")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
