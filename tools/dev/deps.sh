# Debian packages: for building, for running a cluster, for the tests.

# What runs at a build, or is the same for every processor; and what programs are linked with (packages.sh: for another processor).
BUILD_TOOLS=(
  g++ cmake ninja-build python3 pkg-config ccache lld git ca-certificates
  protobuf-compiler protobuf-compiler-grpc libexpected-dev libcli11-dev clang llvm
)
BUILD_LIBRARIES=(
  libnghttp2-dev libssl-dev libsodium-dev zlib1g-dev libgrpc++-dev libprotobuf-dev libabsl-dev
  libnl-3-dev libnl-route-3-dev libnl-genl-3-dev libnftnl-dev libmnl-dev
  libsystemd-dev libblkid-dev libyaml-cpp-dev libldns-dev libre2-dev libspdlog-dev libfmt-dev
  libgtest-dev libgmock-dev libbenchmark-dev libbpf-dev
)
BUILD_PACKAGES=("${BUILD_TOOLS[@]}" "${BUILD_LIBRARIES[@]}")
RUN_PACKAGES=(containerd runc etcd-server nftables iproute2 util-linux e2fsprogs busybox-static umoci skopeo openssl curl procps kmod tzdata)
# libclang-dev and llvm-dev: a plugin of clang-tidy includes their headers (tests/lint/tidy_scope.cc).
# containernetworking-plugins: a cluster is tested with other CNI plugins than ours as well.
TEST_PACKAGES=(clang-format clang-tidy libclang-dev llvm-dev etcd-client nghttp2-client containernetworking-plugins bird2 iptables patchelf systemd dbus knot-dnsutils musl-tools xfsprogs debootstrap debhelper dpkg-dev fakeroot lintian rpm ruby strace mkdocs mkdocs-material man-db)
VM_PACKAGES=(qemu-system-x86 ipset ipvsadm nfs-kernel-server)  # ./dev test vm

# Boost is versioned in Debian: 1.81 on Debian 12, the default one later.
boost_packages() {
  if [ -n "$(apt-cache madison libboost1.81-dev 2>/dev/null)" ]; then
    echo libboost1.81-dev libboost-json1.81-dev libboost-url1.81-dev libboost-system1.81-dev
  else
    echo libboost-dev libboost-json-dev libboost-url-dev libboost-system-dev
  fi
}

deps_missing() {
  local wanted=("${RUN_PACKAGES[@]}")
  if [ -z "${KEELSON_BIN:-}" ]; then
    # shellcheck disable=SC2207
    wanted+=("${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}" $(boost_packages))
  elif [ ! -x "$BIN/pause" ]; then
    wanted+=(gcc libc6-dev)  # the pause image's one program is compiled on the spot
  fi
  # Multi-arch packages print as NAME:ARCH with some formats: ${Package} is the bare name.
  comm -23 <(printf '%s\n' "${wanted[@]}" | sort -u) \
    <(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null | sed -n 's/^installed //p' | sort -u)
}

deps_install() {
  command -v apt-get >/dev/null || die "only Debian 12 and 13 are supported: apt-get is missing"
  local missing
  # Without package lists apt-cache knows no Boost version: fetch them before asking.
  [ -n "$(apt-cache madison busybox-static 2>/dev/null)" ] || { need_root; step "apt-get update"; apt-get update -qq; }
  missing=$(deps_missing)
  [ -n "$missing" ] || return 0
  need_root
  step "installing $(wc -w <<<"$missing") packages"
  apt-get update -qq
  # A host's own containerd or etcd is left as it is; freshly installed ones are not started.
  local policy=/usr/sbin/policy-rc.d made_policy=
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod 755 $policy
    made_policy=1
  fi
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
    { [ -z "$made_policy" ] || rm -f $policy; die "apt-get install failed"; }
  [ -z "$made_policy" ] || rm -f $policy
}
