#!/usr/bin/env python3
"""Braces in one style: the body of if, else, for, while and do stands on the same line or in braces.

Goes by the shape that clang-format gives the code: a body on lines of its own is indented below its statement.

usage: braces.py SOURCE_DIR [--fix]
"""
import pathlib
import re
import sys

FOLDERS = ("lib", "kubelet", "proxy", "cni", "csi", "controlplane", "ctl", "tests", "images")
HEAD = re.compile(r"^(\s*)(?:\} )?(?:else if|if|for|while|else|do)\b(?! \{)")
TOKEN = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*(?:.|\n)*?\*/')


def blanked(text):
    """Literals and comments as spaces, every line and column where it was."""
    return TOKEN.sub(lambda found: re.sub(r"[^\n]", lambda c: "x" if found.group()[0] in "R\"'" else " ", found.group()), text)


def indent(line):
    return len(line) - len(line.lstrip())


def end_of_head(lines, at):
    """The line on which the statement's parenthesis closes, and what stands behind it; None: not such a statement."""
    line = lines[at]
    word = HEAD.match(line)
    rest = line[word.end():]
    if re.search(r"\b(?:else|do)$", line[:word.end()]):
        return at, rest
    depth = 0
    start = word.end()
    for number in range(at, min(at + 40, len(lines))):
        text = lines[number]
        for column in range(start if number == at else 0, len(text)):
            if text[column] == "(":
                depth += 1
            elif text[column] == ")":
                depth -= 1
                if depth == 0:
                    return number, text[column + 1:]
    return None


def inside_literals(text):
    """Numbers of the lines that begin inside a literal: their indentation says nothing."""
    out = set()
    for found in TOKEN.finditer(text):
        first = text.count("\n", 0, found.start())
        out.update(range(first + 1, first + 1 + found.group().count("\n")))
    return out


def bare(text):
    """(first line, last line of the head, last line of the body) of each statement with a bare body on lines of its own."""
    lines, inside = blanked(text).split("\n"), inside_literals(text)
    for at, line in enumerate(lines):
        if not HEAD.match(line) or line.lstrip().startswith("#"):
            continue
        if at and lines[at - 1].rstrip().endswith("\\"):
            continue  # a macro
        found = end_of_head(lines, at)
        if not found or found[1].strip():
            continue
        head = found[0]
        if lines[head].rstrip().endswith("\\") or head + 1 >= len(lines):
            continue
        own = indent(line)
        last = head
        for number in range(head + 1, len(lines)):
            if number in inside:
                last = number
                continue
            if not lines[number].strip() or lines[number].lstrip().startswith("#"):
                continue  # empty, a comment, or the preprocessor's
            if indent(lines[number]) <= own:
                break
            last = number
        if last > head:
            yield at, head, last


def fix(text):
    while True:
        lines = text.split("\n")
        shape = blanked(text).split("\n")
        todo = list(bare(text))
        if not todo:
            return text
        at, head, last = todo[-1]  # the innermost of nested ones comes last
        own = " " * indent(lines[at])
        lines[head] = with_brace(lines[head], shape[head])
        closing = own + "}"
        following = lines[last + 1] if last + 1 < len(lines) else ""
        if re.match(re.escape(own) + r"else\b", following) or (
                re.match(r"\s*(?:\} )?do\b", lines[at]) and re.match(re.escape(own) + r"while\b", following)):
            lines[last + 1] = closing + " " + following.lstrip()
        else:
            lines.insert(last + 1, closing)
        text = "\n".join(lines)


def with_brace(line, shape):
    code = shape.rstrip()
    comment = line[len(code):].strip()
    return line[:len(code)] + " {" + ("  " + comment if comment else "")


def main():
    root, fixing = pathlib.Path(sys.argv[1]), "--fix" in sys.argv
    files = [p for d in FOLDERS for p in sorted((root / d).rglob("*")) if p.suffix in (".h", ".cc", ".c")]
    problems = 0
    for file in files:
        text = file.read_text()
        if fixing:
            fixed = fix(text)
            if fixed != text:
                file.write_text(fixed)
            continue
        for at, _, _ in bare(text):
            print(f"{file.relative_to(root)}:{at + 1}: the body stands on a line of its own without braces")
            problems += 1
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
