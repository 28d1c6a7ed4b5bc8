#!/bin/bash
# Clusters of machines that systemd has booted (machine.sh), from packages. life.sh: the scripts of vagrant/ install them from a local
# repository and run nodectl init and join; then a node is rebooted, upgraded and reset. documents.sh: the commands of docs/. three.sh: a
# control plane of three. Nothing of this machine changes.
#
# usage: run.sh REPOSITORY PROGRAMS LIFE...      needs root, debhelper, kubectl, and a Debian mirror the first time
set -euo pipefail
repository=$(realpath "$1") programs=$(realpath "$2")
shift 2
here=$(dirname "$(realpath "$0")")
skip() {
  echo "skipped: $1"
  exit 77
}
fail() {
  echo "FAILED: $1"
  exit 1
}
[ "$(id -u)" = 0 ] || skip "needs root"
for tool in dpkg-buildpackage dh fakeroot kubectl umoci skopeo busybox; do
  command -v $tool >/dev/null || skip "$tool is not installed"
done
for program in kubelet kube-proxy kube-cni kube-controlplane nodectl bridge keelson-csi-local keelson-csi-controller; do
  [ -x "$programs/$program" ] || skip "$programs has no $program"
done
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
roots=$repository/build/packages/roots
[ -e "$roots/$suite/.keelson-ready" ] || skip "no root of Debian ${suite:-?}: ./dev test makes it"

work=$(mktemp -d /tmp/keelson-machines-XXXX)
trap 'rm -rf "$work"' EXIT

echo "--- packages"
mkdir -p "$work/programs" "$work/images"
for program in kubelet kube-proxy kube-cni kube-controlplane nodectl bridge keelson-csi-local keelson-csi-controller; do
  strip -o "$work/programs/$program" "$programs/$program"
done
for name in bandwidth host-local keelson-policy loopback portmap; do ln "$work/programs/bridge" "$work/programs/$name"; done
version=$(sed -n 's/^project(keelson VERSION \([0-9.]*\).*/\1/p' "$repository/CMakeLists.txt")
for one in "$version first" "$version.1 next"; do
  built=${one% *} to=${one#* }
  KEELSON_BIN=$work/programs DEB_BUILD_OPTIONS=noautodbgsym KEELSON_DEB_OPTIONS='-Zgzip -z1' "$repository/dev" packages \
    --version "$built" --output "$work/$to" >"$work/build.log" 2>&1 || { cat "$work/build.log"; fail "packages of version $built cannot be built"; }
done
KEELSON_DIR=$work BIN=$programs ROOT=$repository bash -euc "source '$repository/tools/dev/images.sh'; images_make" >"$work/build.log" 2>&1 ||
  { cat "$work/build.log"; fail "no images"; }

# What the packages depend on, without them: made once, as long as it fits.
lower=$roots/$suite-machine
depends=$(dpkg-deb -f "$work"/first/keelson-controlplane_*.deb Depends; dpkg-deb -f "$work"/first/keelson-kubelet_*.deb Depends
  dpkg-deb -f "$work"/first/keelson-proxy_*.deb Depends; dpkg-deb -f "$work"/first/keelson-cni_*.deb Depends; dpkg-deb -f "$work"/first/keelson-nodectl_*.deb Depends)
if [ "$(cat "$lower/.keelson-ready" 2>/dev/null)" != "$depends" ]; then
  echo "--- a root with a container runtime"
  rm -rf --one-file-system "$lower"
  cp -a --reflink=auto "$roots/$suite" "$lower"
  rm "$lower/.keelson-ready"
  mkdir "$lower/packages"
  cp "$work"/first/*.deb "$lower/packages/"
  unshare --mount --propagation private bash -euc '
    mount -t proc proc "$1/proc"
    cp -L /etc/resolv.conf "$1/etc/resolv.conf"
    chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -euc "
      apt-get update -qq
      apt-get install -y -qq --no-install-recommends containerd runc etcd-server iproute2 procps kmod nftables openssl curl /packages/*.deb
      dpkg --purge \$(dpkg-query -W -f \"\\\${Package} \" \"keelson*\")
      systemctl disable etcd.service
      rm -rf /packages /var/lib/etcd /etc/kubernetes"' - "$lower" >"$work/build.log" 2>&1 ||
    { tail -n 20 "$work/build.log"; skip "no root: is there a mirror?"; }
  printf '%s\n' "$depends" >"$lower/.keelson-ready"
fi

mkdir "$work/ram"
for life in "$@"; do
  KEELSON_KUBECTL=$(realpath "$(command -v kubectl)") unshare --mount --propagation private --net bash -euo pipefail "$here/$life" "$work" "$lower" \
    "$repository" "$version"
done
