"""Checks the layer law of ARCHITECTURE.md for every #include, and the libraries that the CNI plugins link.

usage: layer_law.py SOURCE_DIR [BUILD_BIN_DIR]
"""
import pathlib
import re
import subprocess
import sys

# lib/ folders by layer: a folder includes lower layers and itself, never a sibling.
LAYERS = {"base": 0, "api": 1, "crypto": 1, "event": 1, "linux": 1, "metrics": 1, "cel": 2, "k8s": 3, "netlink": 3,
          "nft": 3, "bpf": 3, "http": 3, "rpc": 3, "client": 4, "dataplane": 4, "etcd": 4, "component": 5}
PROGRAMS = {"kubelet", "proxy", "cni", "csi", "controlplane", "ctl"}

# Foreign headers and the folders that may include them. A trailing "*" in a home stands for any suffix.
HOMES = [
    (r"netlink/(?!.*libmnl)", ["lib/netlink"]),
    (r"libmnl/", ["lib/netlink", "lib/nft"]),
    (r"libnftnl/", ["lib/nft"]),
    (r"linux/netfilter", ["lib/netlink", "lib/nft", "proxy", "cni"]),
    (r"bpf/", ["lib/bpf", "proxy/ebpf/bpf/"]),
    (r"ldns/", ["proxy"]),
    (r"blkid/", ["lib/linux"]),
    (r"systemd/", ["lib/event", "lib/base", "lib/linux"]),
    (r"grpc(pp)?/", ["lib/rpc", "lib/etcd", "controlplane/etcd", "controlplane/storage/encryption", "csi/controller", "csi/local", "ctl/cri", "ctl/host",
                    "kubelet/cm/devices", "kubelet/cri", "kubelet/plugins", "kubelet/podresources", "kubelet/probe", "kubelet/volume/csi", "tests/bench",
                    "tests/kubelet"]),
    (r"boost/asio", ["lib/event", "lib/http"]),
    (r"boost/beast", ["lib/http"]),
    (r"absl/", ["controlplane/controllers/cronjob", "lib/cel/values"]),
    (r"re2/", ["controlplane/apiserver/request", "ctl/cri", "kubelet/image", "lib/cel", "lib/k8s"]),
    (r"nghttp2/", ["lib/http"]),
    (r"sodium", ["controlplane/storage/encryption"]),
    (r"openssl/", ["lib/crypto"]),
]
# Headers that a public header of lib/ must not include. Public: other folders include it, directly or indirectly.
HIDDEN_IN_PUBLIC_HEADERS = re.compile(r"^(netlink/|libmnl/|libnftnl/|bpf/|blkid/|systemd/|grpc|boost/asio|boost/beast|nghttp2/|openssl/)")
# Start-up time is most of a CNI plugin's cost.
HEAVY_LIBRARIES = re.compile(r"libgrpc|libprotobuf|libssl|libcrypto|libboost_url")
CNI_PLUGINS = ["bridge", "host-local", "loopback", "portmap", "bandwidth", "keelson-policy"]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def folder(path):
    """lib/base/error.h -> lib/base; kubelet/pod/worker.cc -> kubelet."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "lib" else parts[0]


def check_own(path, target, problems):
    here, there = folder(path), folder(target)
    if here == there:
        return
    if here.startswith("lib/"):
        if not there.startswith("lib/"):
            problems.append(f"{path}: lib/ includes {target}")
        elif LAYERS[there[4:]] >= LAYERS[here[4:]]:
            problems.append(f"{path}: layer {LAYERS[here[4:]]} includes {target} of layer {LAYERS[there[4:]]}")
    elif here in PROGRAMS and there in PROGRAMS:
        problems.append(f"{path}: program includes another program's {target}")


def check_foreign(path, target, problems):
    for pattern, homes in HOMES:
        if re.match(pattern, target) and not any(path.startswith(home) for home in homes):
            problems.append(f"{path}: <{target}> belongs to {', '.join(homes)}")


def check_public_headers(includes, problems):
    public = {t for path, targets in includes.items() for b, t in targets if b == '"' and folder(t) != folder(path)}
    waiting = sorted(public)
    while waiting:
        header = waiting.pop()
        for bracket, target in includes.get(header, []):
            if bracket == '"' and target not in public:
                public.add(target)
                waiting.append(target)
            elif bracket == "<" and header.startswith("lib/") and HIDDEN_IN_PUBLIC_HEADERS.match(target):
                problems.append(f"{header}: other folders include it, so it must not show <{target}>")


def check_sources(root):
    problems, includes = [], {}
    files = [p for d in ["lib", *sorted(PROGRAMS), "tests"] for p in (root / d).rglob("*") if p.suffix in (".h", ".cc", ".c")]
    for file in files:
        path = file.relative_to(root).as_posix()
        text = file.read_text()
        includes[path] = INCLUDE.findall(text)
        for bracket, target in includes[path]:
            if bracket == '"':
                if folder(target) in PROGRAMS or target.startswith("lib/") or folder(path) == folder(target) == "tests":
                    check_own(path, target, problems)
                elif not path.startswith("lib/bpf"):
                    problems.append(f'{path}: "{target}" is not named from the root of the tree')
            else:
                check_foreign(path, target, problems)
        lines = text.count("\n")
        if lines > 800 and not path.endswith("_table.cc"):
            problems.append(f"{path}: {lines} lines, split it")
    check_public_headers(includes, problems)
    if not files:
        problems.append(f"no sources below {root}")
    return problems


def check_plugins(bin_dir):
    problems = []
    for name in CNI_PLUGINS:
        program = bin_dir / name
        if not program.exists():
            continue
        out = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"\(NEEDED\).*\[(.+)\]", out):
            if HEAVY_LIBRARIES.search(library):
                problems.append(f"{name}: links {library}")
    return problems


def main():
    problems = check_sources(pathlib.Path(sys.argv[1]))
    if len(sys.argv) > 2:
        problems += check_plugins(pathlib.Path(sys.argv[2]))
    for problem in sorted(set(problems)):
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
