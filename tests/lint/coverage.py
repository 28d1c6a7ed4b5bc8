#!/usr/bin/env python3
"""Checks that every test and file named in docs/kubelet-coverage.md, docs/conformance.md and docs/feature-gates.md exists: Suite.Name
in gtest, test_name in Python, fixtures/ and kubectl/ below tests/api; that each topic of docs/conformance.md has one or says what it
waits for; and that docs/feature-gates.md has one line for each gate that is on by default.

coverage.py --names CONFORMANCE OTHERS compares docs/conformance.md with the names of upstream's end-to-end tests, one a line."""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
KUBELET = ROOT / "docs/kubelet-coverage.md"
CONFORMANCE = ROOT / "docs/conformance.md"
GATES = ROOT / "docs/feature-gates.md"
GATE_TABLE = ROOT / "lib/k8s/feature_gate_table.cc"
# | topic <br> topic | conformance + others | tests |
ROW = re.compile(r"^\| (.+) \| (\d+) \+ (\d+) \| (.*) \|$", re.MULTILINE)


def tests():
    for folder in ("cni", "controlplane", "csi", "kubelet", "lib", "proxy", "tests"):
        for file in (ROOT / folder).rglob("*_test.cc"):
            for suite, name in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", file.read_text(), re.MULTILINE):
                yield f"{suite}.{name}"
        for file in (ROOT / folder).rglob("test_*.py"):
            yield from re.findall(r"^    def (test_\w+)\(", file.read_text(), re.MULTILINE)


def rows():
    """(sig, topics, [conformance tests, others], tests) of each line of docs/conformance.md."""
    for section in re.split(r"^## sig-", CONFORMANCE.read_text(), flags=re.MULTILINE)[1:]:
        sig = section.split("\n", 1)[0]
        for topics, conformance, others, named in ROW.findall(section):
            yield sig, tuple(topics.split(" <br> ")), [int(conformance), int(others)], named


def problems_of_gates():
    on = re.findall(r'^    \{"(\w+)", k\w+, kOn\b', GATE_TABLE.read_text(), re.MULTILINE)
    listed = re.findall(r"^\| `(\w+)` \| .+ \|$", GATES.read_text(), re.MULTILINE)
    for gate in sorted(set(on) ^ set(listed)):
        yield f"{GATES.relative_to(ROOT)}: {gate} {'has no line' if gate in on else 'is not on by default'}"
    for gate in sorted({gate for gate in listed if listed.count(gate) > 1}):
        yield f"{GATES.relative_to(ROOT)}: {gate} has several lines"


def problems():
    yield from problems_of_gates()
    known = set(tests())
    for doc in (KUBELET, CONFORMANCE, GATES):
        named = re.findall(r"`([A-Z]\w*\.[A-Z]\w*|test_\w+)`", doc.read_text())
        for name in sorted(set(named) - known):
            yield f"{doc.relative_to(ROOT)}: there is no test {name}"
        if not named:
            yield f"{doc.relative_to(ROOT)}: names no test"
    for file in re.findall(r"`((?:fixtures|kubectl)/[\w/.-]+)`", CONFORMANCE.read_text()):
        if not (ROOT / "tests/api" / file).is_file():
            yield f"{CONFORMANCE.relative_to(ROOT)}: there is no file tests/api/{file}"
    for sig, topics, _, named in rows():
        if "`" not in named and not re.match("(not yet: needs|none:) .", named):
            yield f"{CONFORMANCE.relative_to(ROOT)}: sig-{sig}, {topics[0]}: neither a test nor a reason"


def differences(lists):
    """Topics whose number of tests is another in `lists` of names: "[sig-node] Pods should ... [Conformance]"."""
    topics = {(sig, topic): (sig, of_row) for sig, of_row, _, _ in rows() for topic in of_row}
    count = collections.defaultdict(lambda: [0, 0])
    for column, file in enumerate(lists):
        for line in pathlib.Path(file).read_text().splitlines():
            # Without the tags, such as [Conformance] and [LinuxOnly].
            match = re.match(r"\[sig-([\w-]+)\] (.*)", re.sub(r"\s*\[[A-Z][^\]]*\]", "", line))
            if not match:
                continue
            sig, name = match.groups()
            found = [topic for of, topic in topics if of == sig and name.startswith(topic)]
            if found:
                count[topics[sig, max(found, key=len)]][column] += 1
            else:
                yield f"no topic: [sig-{sig}] {name}"
    for sig, of_row, listed, _ in rows():
        now = count[sig, of_row]
        if now != listed:
            yield f"sig-{sig}, {of_row[0]}: {now[0]} + {now[1]} tests, listed are {listed[0]} + {listed[1]}"


def main():
    arguments = sys.argv[1:]
    found = list(differences(arguments[1:3]) if arguments[:1] == ["--names"] else problems())
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
