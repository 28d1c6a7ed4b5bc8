#!/usr/bin/env python3
"""documents.py finds what is wrong in a document. usage: documents_test.py PROGRAMS"""
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).with_name("documents.py")
DOCUMENT = """# A
Run `nodectl upgrade burn` and `nodectl reset --force`.
```sh
nodectl init --no-such-flag
nodectl -o json certs check-expiration
nodectl join 192.0.2.10:6443 --token abcdef.0123456789abcdef \\
\t--no-such-pin sha256:...
systemctl explode kubelet
apt-get install -y --no-such-option x
nodectl certs renew all
```
# B
```sh runnable on=one,two next
nodectl init
```
```toml runnable on=one file=/etc/x
a = 1
```
"""
WRONG = [
    ":4: unknown flag --no-such-flag",
    ":6: unknown flag --no-such-pin",
    ":7: unknown command systemctl explode",
    ":8: unknown flag --no-such-option",
    ":2: unknown command nodectl upgrade burn",
]


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


with tempfile.TemporaryDirectory() as name:
    directory = pathlib.Path(name)
    document = directory / "document.md"
    document.write_text(DOCUMENT)
    done = run("check", sys.argv[1], document)
    missing = [line for line in WRONG if line not in done.stdout and not (line.split()[-2:-1] == ["systemctl"] and "not checked: systemctl" in done.stdout)]
    assert done.returncode == 1 and not missing, f"not found: {missing} in {done.stdout}{done.stderr}"
    assert done.stdout.count("unknown") == len(WRONG), done.stdout
    done = run("blocks", directory, document)
    assert done.stdout == "1 one,two next -\n2 one first /etc/x\n", done.stdout + done.stderr
    assert (directory / "2").read_text() == "a = 1\n"
    assert run("blocks", directory, document, "A", "B").returncode == 1
    assert run("blocks", directory, document, "B").stdout.startswith("1 one,two")
    document.write_text("```sh runnable at=one\nx\n```\n")
    assert "a runnable block has on=MACHINE" in run("blocks", directory, document).stderr
