#!/usr/bin/env python3
"""Checks that every test named in docs/kubelet-coverage.md exists: Suite.Name in gtest, test_name in Python."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / "docs/kubelet-coverage.md"


def tests():
    for folder in ("kubelet", "tests"):
        for file in (ROOT / folder).rglob("*_test.cc"):
            for suite, name in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", file.read_text(), re.MULTILINE):
                yield f"{suite}.{name}"
        for file in (ROOT / folder).rglob("test_*.py"):
            yield from re.findall(r"^    def (test_\w+)\(", file.read_text(), re.MULTILINE)


def main():
    named = re.findall(r"`([A-Z]\w*\.[A-Z]\w*|test_\w+)`", LIST.read_text())
    absent = sorted(set(named) - set(tests()))
    for name in absent:
        print(f"{LIST.relative_to(ROOT)}: there is no test {name}")
    if not named:
        print(f"{LIST.relative_to(ROOT)}: names no test")
    return 1 if absent or not named else 0


if __name__ == "__main__":
    sys.exit(main())
