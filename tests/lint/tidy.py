#!/usr/bin/env python3
"""clang-tidy on the translation units of the sources that changed since a revision, the newest first, or on all.

Three things make it quick: it takes the joined units of the build (cmake/unity.py), a plugin (tidy_scope.cc) shows checks
this tree's declarations alone, and clang precompiles the header that the build precompiles. What has passed is remembered
by the hash of the unit, of what it includes from this tree and of .clang-tidy. What does not fit into the time is named.

Exit status: 0 without findings, 1 with findings, 2 when clang-tidy could not look: it is missing, crashes, hangs, or
passes over a mistake made for the purpose.

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
SECONDS_A_UNIT = 300  # a clang-tidy that takes longer hangs
MISTAKE = "void Act();\nvoid Mistaken(bool when) {\n  if (when);\n  Act();\n}\n"  # what .clang-tidy has to find
MISTAKE_CHECK = "bugprone-suspicious-semicolon"
FINDING = re.compile(r"\n(?=/\S+:\d+:\d+: (?:warning|error))")
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "keelson-tidy"


class Broken(Exception):
    """clang-tidy cannot look. The text says why, and which unit it was."""


def run(*command, **options):
    try:
        return subprocess.run(command, capture_output=True, text=True, **options)
    except FileNotFoundError:
        raise Broken(f"{command[0]} is missing: ./dev deps installs it") from None
    except subprocess.CalledProcessError as error:
        raise Broken(f"{command[0]} failed: {error.stderr.strip()[-2000:]}") from None


class Unit:
    """What the compiler gets: a source or several joined, each by its path below the root."""

    def __init__(self, root, build, entry):
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
                # What protoc writes is the system's, whichever way the unit finds it.
                self.flags += ["-isystem", str(build)] if word == f"-I{build}" else [word] if operand is None else [word, operand]


def units_of(root, build):
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        ours = root in file.parents and file.suffix == ".cc" and (build not in file.parents or "/units/" in entry["file"])
        if ours and file.name != "pch.cc" and file.exists():
            yield Unit(root, build, entry)


class Tree:
    """Contents, and a hash of all that decides what clang-tidy says of a unit, but for the system's packages."""

    def __init__(self, root, checks):
        self.root = root
        self.texts = {}
        tools = [(root / name).read_bytes() for name in (".clang-tidy", "tests/lint/tidy_scope.cc")]
        version = run("clang-tidy", "--version", check=True).stdout
        self.start = b"\0".join([version.encode(), (checks or "").encode(), *tools])

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
    def lines(*command):
        return run("git", "-C", root, *command, check=True).stdout.splitlines()

    work = lines("ls-files", "--others", "--exclude-standard") + lines("diff", "--name-only", "HEAD")
    names = dict.fromkeys(work + lines("log", "--name-only", "--format=", f"{since}..HEAD"))
    return [name for name in names if name.endswith((".cc", ".h")) and (root / name).is_file()]


def touched(units, names, tree):
    """The units of these sources, in their order, and the names that no unit has. A header counts with the source or the
    test of its name, or with the first source that includes it."""
    homes, readers = {source: unit for unit in units for source in unit.sources}, {}
    for source in homes:
        for target in INCLUDE.findall(tree.text(source).decode()):
            readers.setdefault(target, source)
    found, homeless = {}, []
    for name in names:
        stem = name.rsplit(".", 1)[0]
        home = next((one for one in (name, f"{stem}.cc", f"{stem}_test.cc", readers.get(name)) if one in homes), None)
        if home:
            found[homes[home]] = None
        else:
            homeless.append(name)
    return list(found), homeless


class Compiler:
    """The plugin and the precompiled headers, made in the build directory when what they are made of has changed."""

    def __init__(self, root, build):
        self.folder = build / "tidy"
        self.folder.mkdir(exist_ok=True)
        self.headers, self.lock = {}, threading.Lock()
        self.plugin = self.folder / "scope.so"
        source = root / "tests/lint/tidy_scope.cc"
        if not self.plugin.exists() or self.plugin.stat().st_mtime < source.stat().st_mtime:
            prefix = re.search(r"LLVM version (\d+)", run("clang-tidy", "--version", check=True).stdout).group(1)
            run("clang++", "-std=c++17", "-fno-rtti", "-fPIC", "-shared", f"-I/usr/lib/llvm-{prefix}/include", source,
                "-o", self.plugin, check=True)

    def header(self, unit):
        """Flags that stand for the unit's precompiled header."""
        if unit.precompiled is None:
            return []
        with self.lock:
            if unit.precompiled not in self.headers:
                # What this header declares depends on no macro of a single program, which would have to be the same in all.
                out = self.folder / (hashlib.sha256(unit.precompiled.encode()).hexdigest()[:12] + ".pch")
                flags = [flag for flag in unit.flags if not flag.startswith("-DKEELSON_")]
                run("clang++", "-x", "c++-header", "-Wno-everything", *flags, unit.precompiled, "-o", out, check=True)
                self.headers[unit.precompiled] = ["-include-pch", str(out)]
        return self.headers[unit.precompiled]

    def tidy(self, root, path, *arguments):
        """Findings of clang-tidy, empty without any."""
        try:
            result = run("clang-tidy", f"--load={self.plugin}", "--quiet", *arguments, cwd=root, timeout=SECONDS_A_UNIT)
        except subprocess.TimeoutExpired:
            raise Broken(f"clang-tidy did not end within {SECONDS_A_UNIT} s: {path}") from None
        if result.returncode == 0:
            return ""
        if result.returncode == 1 and FINDING.search("\n" + result.stdout):
            return result.stdout.strip()
        end = f"was ended by signal {-result.returncode}" if result.returncode < 0 else f"ended with status {result.returncode}"
        raise Broken(f"clang-tidy {end}: {path}\n{(result.stderr or result.stdout).strip()[-2000:]}")

    def prove(self, root):
        """Refuses a clang-tidy, plugin or .clang-tidy that would pass everything."""
        sample = self.folder / "mistake.cc"
        sample.write_text(MISTAKE)
        if MISTAKE_CHECK not in self.tidy(root, sample, str(sample), "--", "-std=c++20"):
            raise Broken(f"clang-tidy passes a mistake that {MISTAKE_CHECK} has to find: {sample}")


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
    gone = [source for unit in units for source in unit.sources if tree.text(source) is None]
    if gone:
        raise Broken(f"{build} is older than the tree, which has no {gone[0]}: configure again")
    units.sort(key=lambda unit: unit.sources[0].endswith("_test.cc"))  # programs first, should time run out
    homeless = []
    if not options.all:
        units, homeless = touched(units, changed(root, options.since), tree)
    CACHE.mkdir(parents=True, exist_ok=True)
    todo = [(unit, CACHE / tree.key(unit)) for unit in units]
    todo = [(unit, mark) for unit, mark in todo if not mark.exists()]
    compiler = Compiler(root, build)
    compiler.prove(root)
    lock, failed, broken, left, told = threading.Lock(), [], [], [], set()

    def check(unit, mark):
        if time.monotonic() > end:
            left.append(unit)
            return
        checks = [f"--checks={options.checks}"] if options.checks else []
        try:
            text = compiler.tidy(root, " ".join(unit.sources), *checks, unit.path, "--", *unit.flags, *WARNINGS,
                                 *compiler.header(unit))
        except Broken as error:
            broken.append(unit)
            print(error, flush=True)
            return
        if not text:
            mark.touch()
            return
        with lock:
            failed.append(unit)
            for finding in FINDING.split(text):  # one in a header comes once
                if finding not in told:
                    told.add(finding)
                    print(finding.replace(f"{root}/", ""), flush=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(lambda one: check(*one), todo):
            pass
    print(f"clang-tidy: {len(units)} units, {len(units) - len(todo)} as they had passed before, {len(failed)} with findings"
          + (f", {len(broken)} that it could not look at" if broken else ""))
    for reason, names in (("this build has no unit of them", homeless),
                          (f"the {options.minutes:g} minutes were over", [name for unit in left for name in unit.sources])):
        if names:
            print(f"clang-tidy: {len(names)} files were NOT checked, {reason}:\n  " + "\n  ".join(names))
    return 2 if broken else 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Broken as error:
        print(error)
        sys.exit(2)
