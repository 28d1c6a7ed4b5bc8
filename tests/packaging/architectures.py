#!/usr/bin/env python3
"""Packages are made for any processor by the same rules: nothing in packaging or in the programs' sources is one processor's alone.

With a cross compiler for arm64 (Debian: g++-aarch64-linux-gnu) it also compiles the sources of lib/base for it: libraries of other
rooms would need Debian's packages of that processor.

usage: architectures.py REPOSITORY"""
import pathlib
import re
import shutil
import subprocess
import sys

PROCESSORS = re.compile(r"\b(?:amd64|x86_64|x86-64|i[36]86|arm64|aarch64)\b")
# Of sources: what exists for one processor, unless the lines around offer the other one too.
OF_ONE = re.compile(r"__x86_64__|__amd64|__i386|[ex]mmintrin\.h|immintrin\.h|x86intrin\.h|cpuid\.h|\basm\s*(?:volatile\s*)?\(|__asm__")
FLAGS = re.compile(r"-m(?:arch|tune)=|-mcpu=(?!v\d)|-m(?:avx|sse|64\b|32\b)")
CROSS = "aarch64-linux-gnu-g++"


def paragraphs(text):
    for paragraph in text.split("\n\n"):
        yield dict(re.findall(r"^([\w-]+): (.*)$", paragraph, re.MULTILINE))


def problems(root):
    for package in paragraphs((root / "packaging/debian/control").read_text()):
        if "Package" not in package:
            continue
        # Meta packages alone are the same everywhere: they hold no program.
        wanted = "all" if package.get("Section") == "metapackages" else "any"
        if package["Architecture"] != wanted:
            yield f"debian/control: {package['Package']} has Architecture: {package['Architecture']}, not {wanted}"
    spec = (root / "packaging/rpm/keelson.spec").read_text()
    for tag in re.findall(r"^(?:ExclusiveArch|ExcludeArch|BuildArch):.*", spec, re.MULTILINE):
        yield f"keelson.spec: {tag}"
    for file in sorted((root / "packaging").rglob("*")):
        if file.is_file():
            for word in PROCESSORS.findall(file.read_text(errors="replace")):
                yield f"{file.relative_to(root)}: {word}"
    for file in [root / "CMakeLists.txt", root / "CMakePresets.json", *sorted((root / "cmake").rglob("*.cmake")), *sorted(root.glob("*/**/CMakeLists.txt"))]:
        if "build" not in file.relative_to(root).parts:
            for word in FLAGS.findall(file.read_text()) + PROCESSORS.findall(file.read_text()):
                yield f"{file.relative_to(root)}: {word}"
    for folder in ("cni", "controlplane", "csi", "ctl", "kubelet", "lib", "proxy"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in (".cc", ".h", ".c"):
                for word in OF_ONE.findall(file.read_text(errors="replace")):
                    yield f"{file.relative_to(root)}: {word}"


def cross_compile(root):
    sources = [file for file in sorted((root / "lib/base").glob("*.cc")) if not file.name.endswith(("_test.cc", "_bench.cc"))]
    assert sources
    for file in sources:
        done = subprocess.run([CROSS, "-std=c++20", "-fsyntax-only", f"-I{root}", "-isystem", "/usr/include", str(file)], capture_output=True, text=True)
        if done.returncode:
            yield f"{file.relative_to(root)} does not compile for arm64:\n{done.stderr}"
    print(f"{len(sources)} sources of lib/base compile for arm64")


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    found = list(problems(root))
    if shutil.which(CROSS):
        found += cross_compile(root)
    else:
        print(f"nothing is compiled for arm64: there is no {CROSS}")
    print(*found, sep="\n")
    return 1 if found else 0


sys.exit(main())
