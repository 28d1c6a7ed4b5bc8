#!/bin/bash
# What the tests of clusters of booted machines share, made once for all of them (run.sh uses it): in OUTPUT packages of two versions
# (first, next) and images, and below build/packages/roots a root with what the packages depend on.
#
# Where something is missing, OUTPUT.skipped says what, and the tests are skipped. Whatever fails after that is a failure; only a mirror that
# does not answer counts as missing.
#
# usage: prepare.sh REPOSITORY PROGRAMS OUTPUT      needs root, debhelper, kubectl, and a Debian mirror the first time
set -euo pipefail
repository=$(realpath "$1") programs=$(realpath "$2") output=$(realpath -m "$3")
here=$(dirname "$(realpath "$0")")
skip() {
  rm -rf "$output"
  echo "$1" | tee "$output.skipped"
  exit 77
}
fail() {
  echo "FAILED: $1"
  exit 1
}
source "$repository/tools/dev/roots.sh"
source "$here/../packaging/packages.sh"

mkdir -p "$(dirname "$output")"
exec 8>"$output.lock"
flock 8
rm -rf "$output" "$output.skipped" "$output.new"
[ "$(id -u)" = 0 ] || skip "needs root"
for tool in dpkg-buildpackage dh fakeroot kubectl umoci skopeo busybox; do
  command -v $tool >/dev/null || skip "$tool is not installed"
done
for program in "${PACKAGED_PROGRAMS[@]}"; do
  [ -x "$programs/$program" ] || skip "$programs has no $program"
done
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
roots=$repository/build/packages/roots
[ -e "$roots/$suite/.keelson-ready" ] || skip "no root of Debian ${suite:-?}: ./dev test makes it"

echo "--- packages"
mkdir "$output.new"
version=$(packages_version)
packages_programs "$programs" "$output.new/programs"
packages_build "$output.new/programs" "$version" "$output.new/first"
packages_renumber "$output.new/first" "$output.new/next" "$version.1"
(ROOT=$repository && source "$repository/tools/dev/packages.sh" && packages_index "$output.new/next")
rm -rf "$output.new/programs"

echo "--- images"
KEELSON_DIR=$output.new BIN=$programs ROOT=$repository bash -euc "source '$repository/tools/dev/images.sh'; images_make" >"$output.log" 2>&1 ||
  { cat "$output.log"; fail "no images"; }

# Beside what the packages depend on: the runtime, etcd and its tools, and what the tests look with.
extra='containerd runc etcd-server etcd-client iproute2 procps kmod nftables openssl curl'
# fill_root DIRECTORY: the suite's root, and what the packages depend on without them. 77: no mirror answers.
fill_root() {
  echo "--- a root with a container runtime"
  cp -a --reflink=auto "$roots/$suite/." "$1/" && rm "$1/.keelson-ready" && mkdir "$1/packages" &&
    cp "$output.new"/first/*.deb "$1/packages/" || return 1
  unshare --mount --propagation private bash -euc '
    mount -t proc proc "$1/proc"
    cp -L /etc/resolv.conf "$1/etc/resolv.conf"
    chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -euc "
      apt-get update -qq -o APT::Update::Error-Mode=any -o Acquire::Retries=3 || exit 77
      apt-get install -y -qq --no-install-recommends -o Acquire::Retries=3 $2 /packages/*.deb
      dpkg --purge \$(dpkg-query -W -f \"\\\${Package} \" \"keelson*\")
      systemctl disable etcd.service
      rm -rf /packages /var/lib/etcd /etc/kubernetes"' - "$1" "$extra" >"$output.log" 2>&1
}
depends=$(echo "$extra"; for part in controlplane kubelet proxy cni nodectl; do dpkg-deb -f "$output.new"/first/keelson-${part}_*.deb Depends; done)
root_once "$roots/$suite-machine" "$depends" fill_root || {
  code=$?
  tail -n 20 "$output.log"
  [ $code != 77 ] || skip "no mirror answers, and the root with a container runtime has not been made yet"
  fail "the root with a container runtime cannot be made"
}
printf '%s\n' "$depends" >"$output.new/depends"
mv -T "$output.new" "$output"
