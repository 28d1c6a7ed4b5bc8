#!/bin/bash
# Builds Debian packages of ready programs, and installs, upgrades, downgrades, removes and purges them in a root that debootstrap
# has made (./dev test makes it once), under a RAM disk. Nothing of the machine changes.
#
# Of another suite than the machine's: the packages that `./dev packages --root SUITE` has compiled there; without any, packages of this
# machine's programs, which depend on no library and find their own in a directory of the test. Only the machine's suite takes the
# checks of the packages themselves.
#
# usage: run.sh REPOSITORY PROGRAMS [SUITE]      needs root, debhelper, and a Debian mirror for the programs' libraries
set -euo pipefail
repository=$(realpath "$1") programs=$(realpath "$2")
here=$(dirname "$(realpath "$0")")
skip() {
  echo "skipped: $1"
  exit 77
}
[ "$(id -u)" = 0 ] || skip "needs root"
for tool in dpkg-buildpackage dh fakeroot; do
  command -v $tool >/dev/null || skip "$tool is not installed"
done
for program in kubelet kube-proxy kube-cni kube-controlplane nodectl keelson-csi-local keelson-csi-controller bridge; do
  [ -x "$programs/$program" ] || skip "$programs has no $program"
done
own_suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
suite=${3:-$own_suite}
root=$repository/build/packages/roots/$suite
if [ ! -e "$root/.keelson-ready" ]; then
  [ "$suite" = "$own_suite" ] || skip "no root of Debian $suite: KEELSON_TEST_SUITES=$suite ./dev test makes it"
  skip "no root of Debian ${suite:-?}: ./dev test makes it"
fi

work=$(mktemp -d /tmp/keelson-packaging-XXXX)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "FAILED: $1"
  exit 1
}

source "$here/packages.sh"
packages_programs "$programs" "$work/programs"
build() { packages_build "$work/programs" "$1" "$work/$2"; }  # VERSION DIR
# Those that the programs bring along; the C library is the root's.
libraries() {  # DIRECTORY
  local program
  mkdir -p "$1"
  for program in "$work"/programs/*; do ldd "$program"; done | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
    grep -Ev '/(libc|libm|libdl|librt|libpthread|libresolv)\.so' | xargs cp -L -t "$1"
}
version=$(packages_version)
if [ "$suite" = "$own_suite" ]; then
  build "$version" debs/first
  build "$version" again
  packages_renumber "$work/debs/first" "$work/debs/next" "$version.1"
elif ls "$repository/build/packages/$suite"/keelson-nodectl_*.deb >/dev/null 2>&1; then
  echo "--- packages that were compiled in a root of $suite"
  packages_renumber "$repository/build/packages/$suite" "$work/debs/first" "$version"
  packages_renumber "$work/debs/first" "$work/debs/next" "$version.1"
else
  echo "--- packages of this machine's programs: none were compiled in a root of $suite"
  export KEELSON_DEB_SHLIBDEPS=no
  build "$version" debs/first
  packages_renumber "$work/debs/first" "$work/debs/next" "$version.1"
  libraries "$work/libraries"
fi

checks_of_packages() {
  local deb package size to rpm file
  echo "--- reproducible"
  for deb in "$work"/debs/first/*.deb; do
    cmp "$deb" "$work/again/$(basename "$deb")" || fail "two builds differ"
  done

  echo "--- sizes"
  for deb in "$work"/debs/first/*.deb; do
    package=$(dpkg-deb -f "$deb" Package) size=$(dpkg-deb -f "$deb" Installed-Size)
    echo "$package: $size KiB installed"
    [ "$package" = keelson-controlplane ] || [ "$size" -lt 15360 ] || fail "$package is larger than 15 MiB"
  done

  if command -v lintian >/dev/null; then
    echo "--- lintian"
    # Whoever publishes packages sets KEELSON_MAINTAINER: the project has no mail domain.
    lintian --allow-root --fail-on error,warning --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
      "$work"/debs/first/*.deb || fail "lintian has found mistakes"
  fi

  if command -v rpmbuild >/dev/null; then
    echo "--- rpm"
    for to in rpm rpm-again; do
      KEELSON_BIN=$work/programs "$repository/dev" packages --rpm --output "$work/$to" >"$work/build.log" 2>&1 || { cat "$work/build.log"; fail "rpms cannot be built"; }
    done
    for rpm in "$work"/rpm/*.rpm; do
      cmp "$rpm" "$work/rpm-again/$(basename "$rpm")" || fail "two builds differ"
    done
    KEELSON_BIN=$work/programs "$repository/dev" packages --rpm --version "$version.1" --output "$work/rpm-next" >"$work/build.log" 2>&1 ||
      { cat "$work/build.log"; fail "rpms of the next version cannot be built"; }
    mkdir "$work/rpm-root"
    # Scripts need a shell in the root, and dependencies a distribution with rpm.
    rpm --root "$work/rpm-root" -i --nodeps --noscripts "$work"/rpm/*.rpm || fail "rpms do not install together"
    for file in usr/bin/kubelet usr/lib/systemd/system/kubelet.service etc/sysconfig/kubelet opt/cni/bin/portmap; do
      [ -s "$work/rpm-root/$file" ] || fail "no /$file in the rpms"
    done
    rpm --root "$work/rpm-root" -e --noscripts $(rpm --root "$work/rpm-root" -qa --qf '%{NAME} ') || fail "rpms cannot be removed"
    [ ! -e "$work/rpm-root/usr/bin/kubelet" ] || fail "rpms leave the kubelet behind"
    # Debug packages of programs with debug information, here small ones.
    mkdir "$work/small"
    for program in kubelet kube-proxy kube-cni kube-controlplane nodectl keelson-csi-local keelson-csi-controller bridge; do
      printf 'const char name[] = "%s"; int main(void) { return 0; }' "$program" | cc -g -Wl,--build-id -x c -o "$work/small/$program" -
    done
    for program in bandwidth host-local keelson-policy loopback portmap; do ln "$work/small/bridge" "$work/small/$program"; done
    KEELSON_BIN=$work/small "$repository/dev" packages --rpm --output "$work/rpm-debug" >"$work/build.log" 2>&1 || { cat "$work/build.log"; fail "debug rpms cannot be built"; }
    [ "$(ls "$work"/rpm-debug/*-debuginfo-*.rpm | wc -l)" = 7 ] || fail "not seven debug packages"
    [ "$(rpm -qlp "$work"/rpm-debug/keelson-cni-debuginfo-*.rpm | grep -c '^/usr/lib/debug/\.build-id/../.*\.debug$')" = 2 ] || fail "keelson-cni-debuginfo has no symbols"
    ! command -v rpmlint >/dev/null || rpmlint -c "$repository/packaging/rpm/rpmlint.toml" "$work"/rpm/*.rpm || fail "rpmlint has found mistakes"
  fi
}
[ "$suite" != "$own_suite" ] || checks_of_packages

mkdir "$work/ram"
unshare --mount --propagation private bash -euo pipefail -s "$work" "$root" "$here" "$repository" "$version" <<'INSIDE'
work=$1 lower=$2 here=$3 repository=$4 version=$5
mount -t tmpfs ram "$work/ram"
mkdir "$work/ram/upper" "$work/ram/work" "$work/ram/root"
mount -t overlay -o "lowerdir=$lower,upperdir=$work/ram/upper,workdir=$work/ram/work" overlay "$work/ram/root"
root=$work/ram/root
mount -t proc proc "$root/proc"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
mkdir "$root/debs"
cp -r "$work"/debs/* "$root/debs/"
[ ! -d "$work/libraries" ] || cp -r "$work/libraries" "$root/libraries"
for form in rpm rpm-next; do [ ! -d "$work/$form" ] || cp -r "$work/$form" "$root/$form"; done
cp "$here/life.sh" "$root/life.sh"
exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash /life.sh "$version"
INSIDE
