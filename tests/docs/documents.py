#!/usr/bin/env python3
"""The commands in documents: whether they exist, and those that a test runs.

A fenced block whose first line says `runnable` is run by tests/machines, in the document's order:

    ```sh runnable on=one,two next      on which machines; `next`: beside the packages of the next version
    ```toml runnable on=one file=PATH   the block is that file

documents.py check PROGRAMS FILE...     each command of the documents against the programs' help; PROGRAMS: a directory
documents.py blocks DIRECTORY FILE [FROM [UNTIL]]   writes the runnable blocks between two headings to DIRECTORY/NUMBER, and their
                                        "NUMBER MACHINE,MACHINE PLACE PATH" (PLACE: first, next; PATH: of file=, or -) to its output
"""
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

FENCE = re.compile(r"^```(.*)$")
SPAN = re.compile(r"`((?:nodectl|kubectl|systemctl|apt-get) [^`]+)`")
OWN = ("nodectl", "kube-controlplane", "kube-proxy", "kube-cni", "kubelet")
CHECKED = OWN + ("kubectl", "systemctl", "apt-get")


def blocks(path, begin=None, until=None):
    """(line, words after the fence, text) of each fenced block between two headings."""
    inside, words, start, text = begin is None, None, 0, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if words is not None and fence:
            if inside:
                yield start, words, "\n".join(text) + "\n"
            words, text = None, []
        elif words is not None:
            text.append(line)
        elif fence:
            words, start = fence.group(1).split(), number
        elif line.startswith("#"):
            heading = line.lstrip("# ")
            inside = (inside or heading == begin) and heading != until


def commands(path):
    """(line, command) of the documents' blocks and of code in their text."""
    for start, _, text in blocks(path):
        for offset, line in enumerate(text.replace("\\\n", " ").splitlines(), 1):
            yield start + offset, line.removeprefix("# ").strip()
    fenced = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            for span in SPAN.findall(line):
                yield number, span


class Checker:
    def __init__(self, programs):
        self.programs, self.helps, self.missing = programs, {}, set()

    def help(self, *words):
        """What the command prints; "" where it fails; None where the program is not on this machine."""
        if words not in self.helps:
            program = str(self.programs / words[0]) if words[0] in OWN else shutil.which(words[0])
            if not program or not pathlib.Path(program).exists():
                self.missing.add(words[0])
                self.helps[words] = None
            else:
                done = subprocess.run([program, *words[1:]], capture_output=True, text=True, check=False)
                self.helps[words] = done.stdout + done.stderr if done.returncode == 0 else ""
        return self.helps[words]

    def unknown_flags(self, words, *helps):
        for word in words:
            flag = word.split("=")[0]
            if re.match(r"^--?[a-zA-Z]", flag) and not any(re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", text or "") for text in helps):
                yield f"unknown flag {flag}"

    def own(self, words):
        path, rest, text = words[:1], words[1:], self.help(words[0], "--help")
        helps = [text]
        if text is None:
            return []
        while rest:
            word = rest[0]
            # Groups of verbs with headings of their own follow.
            section = re.search(r"^Subcommands:\n((?:.*\n)+)", text, re.M)
            names = re.findall(r"^  ([\w-]+)", section.group(1), re.M) if section else []
            if word.startswith("-"):
                # The global -o json stands before the verb.
                skip = 2 if word in ("-o", "--kubeconfig") and len(rest) > 1 else 1
                if not names:
                    break
                rest = rest[skip:]
                continue
            if word in names:
                path, rest = path + [word], rest[1:]
                text = self.help(*path, "--help")
                helps.append(text)
                continue
            if names and not re.search(r"^Positionals:", text, re.M):
                return [f"unknown command {' '.join(path + [word])}"]
            break
        return list(self.unknown_flags(words[1:], *helps))

    def kubectl(self, words):
        root = self.help("kubectl", "options")
        verb = [word for word in words[1:] if not word.startswith("-")][:1]
        if root is None or not verb:
            return []
        text = self.help("kubectl", verb[0], "--help")
        if f"kubectl {verb[0]}" not in text:
            return [f"unknown command kubectl {verb[0]}"]
        return list(self.unknown_flags(words[1:], root, text))

    def systemctl(self, words):
        text = self.help("systemctl", "--help")
        verb = [word for word in words[1:] if not word.startswith("-")][:1]
        if text is None:
            return []
        wrong = [f"unknown command systemctl {word}" for word in verb if not re.search(rf"^  {re.escape(word)}\b", text, re.M)]
        return wrong + list(self.unknown_flags(words[1:], text))

    def apt(self, words):
        if self.help("apt-get", "--help") is None:
            return []
        flags = [word for word in words[1:] if word.startswith("-")]
        verb = [word for word in words[1:] if not word.startswith("-")][:1]
        wrong = [f"unknown command apt-get {word}" for word in verb if not re.search(rf"^  {re.escape(word)}\b", self.help("apt-get", "--help"), re.M)]
        return wrong + [f"unknown flag {flag}" for flag in flags if not self.help("apt-get", flag, "--help")]

    def check(self, command):
        try:
            words = shlex.split(command, comments=True)
        except ValueError as error:
            return [str(error)]
        if not words or words[0] not in CHECKED or any(sign in command for sign in ("[", "|", "...]", "VERB")):
            return []
        for stop in ("&&", ";", ">", "..."):
            words = words[: words.index(stop)] if stop in words else words
        if words[0] in OWN:
            return self.own(words)
        return {"kubectl": self.kubectl, "systemctl": self.systemctl, "apt-get": self.apt}[words[0]](words)


def check(programs, paths):
    checker, wrong, count = Checker(programs), [], 0
    for path in paths:
        for line, command in commands(path):
            count += command.split(" ")[0] in CHECKED
            wrong += [f"{path}:{line}: {problem}: {command}" for problem in checker.check(command)]
    for program in sorted(checker.missing):
        print(f"not checked: {program} is not on this machine")
    if not count:
        wrong.append("no command was found")
    print("\n".join(wrong) if wrong else f"{count} commands of {len(paths)} documents")
    return 1 if wrong else 0


def write_blocks(directory, path, begin=None, until=None):
    number = 0
    for line, words, text in blocks(path, begin, until):
        if "runnable" not in words:
            continue
        options = dict(word.split("=", 1) for word in words if "=" in word)
        unknown = set(words[1:]) - {"runnable", "next"} - {f"{key}={value}" for key, value in options.items() if key in ("on", "file")}
        if unknown or "on" not in options:
            sys.exit(f"{path}:{line}: a runnable block has on=MACHINE, perhaps file=PATH or next: {' '.join(words)}")
        number += 1
        (directory / str(number)).write_text(text)
        print(number, options["on"], "next" if "next" in words else "first", options.get("file", "-"))
    if not number:
        sys.exit(f"{path}: no runnable block")
    return 0


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] == "check":
        sys.exit(check(pathlib.Path(sys.argv[2]), [pathlib.Path(name) for name in sys.argv[3:]]))
    if len(sys.argv) > 3 and sys.argv[1] == "blocks":
        sys.exit(write_blocks(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), *sys.argv[4:6]))
    sys.exit(__doc__)
