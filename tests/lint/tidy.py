#!/usr/bin/env python3
"""clang-tidy on the sources that changed since a revision, newest first, with the flags that the build has for them.

What has passed is remembered by the hash of the file, of what it includes from this tree and of .clang-tidy, so that
only new contents cost time. What does not fit into the time is named and left.

usage: tidy.py ROOT BUILD_DIR --since REVISION | --all [--minutes N]
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
DROPPED = {"-c", "-o", "-Winvalid-pch"}  # with the words that follow -c and -o
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "keelson-tidy"


class Tree:
    def __init__(self, root):
        self.root = root
        self.version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
        self.settings = (root / ".clang-tidy").read_bytes()
        self.texts = {}

    def text(self, name):
        if name not in self.texts:
            path = self.root / name
            self.texts[name] = path.read_bytes() if path.is_file() else None
        return self.texts[name]

    def key(self, name):
        """The hash of all that decides what clang-tidy says of a file, but for packages of the system."""
        seen, waiting = {name}, [name]
        while waiting:
            for target in INCLUDE.findall(self.text(waiting.pop()).decode()):
                if target not in seen and self.text(target) is not None:
                    seen.add(target)
                    waiting.append(target)
        digest = hashlib.sha256(self.version + self.settings)
        for one in sorted(seen):
            digest.update(one.encode() + b"\0" + self.text(one))
        return digest.hexdigest()


def commands(root, build):
    """{source: compiler flags}: of the file itself, or of the unit that it is compiled in (cmake/unity.py)."""
    out = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        flags, skip = [], True  # the compiler's own name
        for word in words:
            if skip:
                skip = False
            elif word in DROPPED:
                skip = word in ("-c", "-o")
            else:
                flags.append(word)
        file = pathlib.Path(entry["file"])
        if root in file.parents and "/units/" not in entry["file"]:
            out.setdefault(file.relative_to(root).as_posix(), flags)
        elif "/units/" in entry["file"]:
            for source in INCLUDE.findall(file.read_text()):
                out.setdefault(source, flags)
    return out


def changed(root, since):
    """Names, the one that was changed last first."""
    log = subprocess.run(["git", "-C", root, "log", "--name-only", "--format=", f"{since}..HEAD"], capture_output=True,
                         text=True, check=True).stdout
    work = subprocess.run(["git", "-C", root, "diff", "--name-only", "HEAD"], capture_output=True, text=True, check=True).stdout
    return list(dict.fromkeys(line for line in (work + log).split("\n") if line.endswith(".cc")))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--since")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--minutes", type=float, default=1e9)
    options = parser.parse_args()
    root = options.root.resolve()
    tree, flags = Tree(root), commands(root, options.build.resolve())
    names = sorted(flags) if options.all else changed(root, options.since)
    names = [name for name in names if name in flags and tree.text(name) is not None]
    CACHE.mkdir(parents=True, exist_ok=True)
    todo = [(name, CACHE / tree.key(name)) for name in names]
    todo = [(name, mark) for name, mark in todo if not mark.exists()]
    end, lock, failed, left = time.monotonic() + 60 * options.minutes, threading.Lock(), [], []

    def check(name, mark):
        if time.monotonic() > end:
            left.append(name)
            return
        run = subprocess.run(["clang-tidy", "--quiet", "--warnings-as-errors=*", name, "--", "-Wno-unknown-warning-option",
                              *flags[name]], cwd=root, capture_output=True, text=True)
        if run.returncode == 0:
            mark.touch()
            return
        with lock:
            failed.append(name)
            print(run.stdout.strip() or run.stderr.strip(), flush=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(lambda one: check(*one), todo):
            pass
    print(f"clang-tidy: {len(names)} files, {len(names) - len(todo)} as they had passed before, {len(failed)} with findings"
          + (f", {len(left)} left for lack of time" if left else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
