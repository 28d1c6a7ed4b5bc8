#!/usr/bin/env python3
"""clang-tidy on the translation units of the sources that changed since a revision, the newest first, or on all.

Three things make it quick: it takes the joined units of the build (cmake/unity.py), a plugin (tidy_scope.cc) shows checks
this tree's declarations alone, and clang precompiles the header that the build precompiles. What has passed is remembered
by the hash of the unit, of what it includes from this tree and of .clang-tidy. What does not fit into the time is named.

usage: tidy.py ROOT BUILD_DIR --since REVISION | --all [--minutes N] [--checks GLOBS]
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import threading
import time

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
WITH_OPERAND = {"-I", "-isystem", "-D", "-include"}
WARNINGS = ["-Wall", "-Wextra", "-Wthread-safety", "-Wno-missing-field-initializers", "-Wno-unused-command-line-argument"]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "keelson-tidy"


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


class Unit:
    """What the compiler gets: a source or several joined, each by its path below the root."""

    def __init__(self, root, entry):
        self.path = entry["file"]
        path = pathlib.Path(self.path)
        self.sources = INCLUDE.findall(path.read_text()) if "/units/" in self.path else [path.relative_to(root).as_posix()]
        self.flags, self.precompiled = [], None
        words = iter(shlex.split(entry["command"]))
        for word in words:
            operand = next(words) if word in WITH_OPERAND else None
            if word == "-include":
                self.precompiled = operand
            elif word.startswith(("-I", "-isystem", "-D", "-std")):
                self.flags += [word] if operand is None else [word, operand]


def units_of(root, build):
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        ours = root in file.parents and file.suffix == ".cc" and (build not in file.parents or "/units/" in entry["file"])
        if ours and file.name != "pch.cc" and file.exists():
            yield Unit(root, entry)


class Tree:
    """Contents, and a hash of all that decides what clang-tidy says of a unit, but for the system's packages."""

    def __init__(self, root, checks):
        self.root = root
        self.texts = {}
        tools = [(root / name).read_bytes() for name in (".clang-tidy", "tests/lint/tidy_scope.cc")]
        self.start = b"\0".join([run("clang-tidy", "--version").stdout.encode(), (checks or "").encode(), *tools])

    def text(self, name):
        if name not in self.texts:
            path = self.root / name
            self.texts[name] = path.read_bytes() if path.is_file() else None
        return self.texts[name]

    def key(self, unit):
        seen, waiting = set(unit.sources), list(unit.sources)
        while waiting:
            for target in INCLUDE.findall(self.text(waiting.pop()).decode()):
                if target not in seen and self.text(target) is not None:
                    seen.add(target)
                    waiting.append(target)
        digest = hashlib.sha256(self.start + " ".join(unit.flags).encode())
        for one in [*unit.sources, *sorted(seen)]:
            digest.update(one.encode() + b"\0" + self.text(one))
        return digest.hexdigest()


def changed(root, since):
    """Sources and headers, the one that was changed last first."""
    log = run("git", "-C", root, "log", "--name-only", "--format=", f"{since}..HEAD", check=True).stdout
    work = run("git", "-C", root, "diff", "--name-only", "HEAD", check=True).stdout
    return list(dict.fromkeys(line for line in (work + log).split("\n") if line.endswith((".cc", ".h"))))


def touched(units, names):
    """The units of these sources, in their order. A header counts with the source or the test of its name."""
    homes = {source: unit for unit in units for source in unit.sources}
    found = []
    for name in names:
        stem = name.rsplit(".", 1)[0]
        found += [homes[one] for one in (name, f"{stem}.cc", f"{stem}_test.cc") if one in homes][:1]
    return list(dict.fromkeys(found))


class Compiler:
    """The plugin and the precompiled headers, made in the build directory when what they are made of has changed."""

    def __init__(self, root, build):
        self.folder = build / "tidy"
        self.folder.mkdir(exist_ok=True)
        self.headers, self.lock = {}, threading.Lock()
        self.plugin = self.folder / "scope.so"
        source = root / "tests/lint/tidy_scope.cc"
        if not self.plugin.exists() or self.plugin.stat().st_mtime < source.stat().st_mtime:
            prefix = re.search(r"LLVM version (\d+)", run("clang-tidy", "--version").stdout).group(1)
            run("clang++", "-std=c++17", "-fno-rtti", "-fPIC", "-shared", f"-I/usr/lib/llvm-{prefix}/include", source,
                "-o", self.plugin, check=True)

    def header(self, unit):
        """Flags that stand for the unit's precompiled header."""
        if unit.precompiled is None:
            return []
        with self.lock:
            if unit.precompiled not in self.headers:
                # Flags that another unit has in addition do not reach what this header declares.
                out = self.folder / (hashlib.sha256(unit.precompiled.encode()).hexdigest()[:12] + ".pch")
                run("clang++", "-x", "c++-header", "-Wno-everything", *unit.flags, unit.precompiled, "-o", out, check=True)
                self.headers[unit.precompiled] = ["-include-pch", str(out)]
        return self.headers[unit.precompiled]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--since")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--checks", help="in addition to, or instead of, those of .clang-tidy")
    options = parser.parse_args()
    root, build = options.root.resolve(), options.build.resolve()
    end = time.monotonic() + 60 * options.minutes
    tree, units = Tree(root, options.checks), list(units_of(root, build))
    units.sort(key=lambda unit: unit.sources[0].endswith("_test.cc"))  # programs first, should time run out
    if not options.all:
        units = touched(units, changed(root, options.since))
    CACHE.mkdir(parents=True, exist_ok=True)
    todo = [(unit, CACHE / tree.key(unit)) for unit in units]
    todo = [(unit, mark) for unit, mark in todo if not mark.exists()]
    compiler = Compiler(root, build)
    lock, failed, left, told = threading.Lock(), [], [], set()

    def check(unit, mark):
        if time.monotonic() > end:
            left.append(unit)
            return
        checks = [f"--checks={options.checks}"] if options.checks else []
        result = run("clang-tidy", f"--load={compiler.plugin}", "--quiet", *checks, unit.path, "--", *unit.flags, *WARNINGS,
                     *compiler.header(unit), cwd=root)
        if result.returncode == 0:
            mark.touch()
            return
        with lock:
            failed.append(unit)
            text = result.stdout.strip() or result.stderr.strip()
            for finding in re.split(r"\n(?=/\S+:\d+:\d+: (?:warning|error))", text):  # one in a header comes once
                if finding not in told:
                    told.add(finding)
                    print(finding.replace(f"{root}/", ""), flush=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(lambda one: check(*one), todo):
            pass
    print(f"clang-tidy: {len(units)} units, {len(units) - len(todo)} as they had passed before, {len(failed)} with findings"
          + (f", {len(left)} left for lack of time:" if left else ""))
    for unit in left:
        print("  " + " ".join(unit.sources))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
