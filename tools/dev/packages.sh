# Debian and rpm packages of the programs that are compiled (packaging/README.md). SOURCE_DATE_EPOCH, by default the time of the
# commit, is the only time in them; KEELSON_MAINTAINER, "NAME <ADDRESS>", is whom Debian packages name.

PACKAGES_DIR=$ROOT/build/packages

# packages [--root SUITE [--arch ARCHITECTURE]] [--rpm] [--version V] [--output DIR]
packages_command() {
  local suite='' arch='' form=deb version='' output=''
  while [ $# -gt 0 ]; do
    case $1 in
      --root) suite=${2:-} && shift 2 ;;
      --arch) arch=${2:-} && shift 2 ;;
      --rpm) form=rpm && shift ;;
      --version) version=${2:-} && shift 2 ;;
      --output) output=${2:-} && shift 2 ;;
      *) die "usage: ./dev packages [--root SUITE [--arch ARCHITECTURE]] [--rpm] [--version V] [--output DIR]" ;;
    esac
  done
  [ -z "$arch" ] || [ "$arch" != "$(dpkg --print-architecture)" ] || arch=
  [ -z "$arch" ] || [ -n "$suite" ] || die "--arch takes --root: another processor's libraries do not belong on this machine"
  output=$(realpath -m "${output:-$PACKAGES_DIR${suite:+/$suite}${arch:+-$arch}}")
  export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$ROOT" log -1 --format=%ct)}
  if [ -n "$suite" ]; then
    [ "$form" = deb ] || die "--root makes Debian packages"
    packages_in_root "$suite" "$arch" "$version" "$output"
  else
    packages_here "$form" "$version" "$output"
  fi
}

packages_here() {
  local form=$1 version=$2 output=$3
  packages_tools "$form"
  if [ -n "${KEELSON_BIN:-}" ]; then programs_check; else build "${PROGRAMS[@]}" nodectl; fi
  step "packages ($form)"
  mkdir -p "$output"
  "packages_$form" "${version:-$(packages_version)}" "$output"
}

packages_tools() {
  local missing='' tools='dh:debhelper dpkg-buildpackage:dpkg-dev fakeroot:fakeroot' pair
  [ "$1" = deb ] || tools='rpmbuild:rpm'
  for pair in $tools; do
    command -v "${pair%:*}" >/dev/null || missing+=" ${pair#*:}"
  done
  [ -z "$missing" ] || die "packages are missing: apt-get install$missing"
}

packages_version() { sed -n 's/^project(keelson VERSION \([0-9.]*\).*/\1/p' "$ROOT/CMakeLists.txt"; }

# A tree of its own, beside which dpkg puts the packages: parallel runs do not meet, and the repository stays clean.
packages_deb() {
  local version=$1 output=$2 work
  work=$(mktemp -d "$output/.work-XXXXXX")
  mkdir "$work/keelson"
  cp -r "$ROOT/packaging/debian" "$work/keelson/debian"
  ln -s "$ROOT" "$work/keelson/source"
  if [ "$version" != "$(dpkg-parsechangelog -l "$work/keelson/debian/changelog" -S Version)" ]; then
    {
      printf 'keelson (%s) unstable; urgency=medium\n\n  * Built from %s.\n\n' "$version" "$(git -C "$ROOT" rev-parse --short HEAD)"
      printf ' -- Keelson developers <keelson@localhost.localdomain>  %s\n\n' "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")"
      cat "$ROOT/packaging/debian/changelog"
    } >"$work/keelson/debian/changelog"
  fi
  if [ -n "${KEELSON_MAINTAINER:-}" ]; then
    sed -i "s/Keelson developers <keelson@localhost.localdomain>/${KEELSON_MAINTAINER//\//\\/}/" "$work"/keelson/debian/{control,changelog}
  fi
  (cd "$work/keelson" && KEELSON_PROGRAMS=$BIN dpkg-buildpackage -d -b -us -uc ${KEELSON_ARCH:+-a"$KEELSON_ARCH"}) >"$output/build.log" 2>&1 ||
    { tail -n 30 "$output/build.log" >&2; die "packages cannot be built; see $output/build.log"; }
  mv "$work"/*.deb "$work"/*.buildinfo "$work"/*.changes "$output/"
  rm -rf "$work"
  packages_index "$output"
  step "$(cd "$output" && du -ch ./*_"${version}"_*.deb | tail -n 1 | cut -f 1) in $output"
}

# Makes a directory of packages a repository that apt reads: deb [trusted=yes] file:DIRECTORY ./
packages_index() {
  local directory=$1 deb
  for deb in "$directory"/*.deb; do
    dpkg-deb -f "$deb"
    printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "${deb##*/}" "$(stat -c %s "$deb")" "$(sha256sum <"$deb" | cut -d ' ' -f 1)"
  done >"$directory/Packages.new"
  mv "$directory/Packages.new" "$directory/Packages"
}

# One spec file, over the same rules of what packages hold. An rpm belongs to the distribution whose libraries the programs were
# linked with.
packages_rpm() {
  local version=$1 output=$2 work debuginfo=()
  work=$(mktemp -d "$output/.work-XXXXXX")
  # Programs that were stripped before have nothing to put into debug packages.
  ! readelf -S "$BIN/kubelet" | grep '\.debug_info' >/dev/null || debuginfo=(--define "keelson_debuginfo 1")
  rpmbuild -bb "${debuginfo[@]}" --define "_topdir $work" --define "keelson_version $version" --define "keelson_source $ROOT" \
    --define "keelson_programs $BIN" --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
    --define "_buildhost reproducible" "$ROOT/packaging/rpm/keelson.spec" >"$output/rpmbuild.log" 2>&1 ||
    { tail -n 30 "$output/rpmbuild.log" >&2; die "packages cannot be built; see $output/rpmbuild.log"; }
  mv "$work"/RPMS/*/*.rpm "$output/"
  rm -rf "$work"
  step "$(cd "$output" && du -ch ./*-"${version}"-*.rpm | tail -n 1 | cut -f 1) in $output"
}

# A root of that suite, as debootstrap makes it: made once, without any package that only building needs.
packages_root() {
  local suite=$1
  command -v debootstrap >/dev/null || die "packages are missing: apt-get install debootstrap"
  root_once "$PACKAGES_DIR/roots/$suite" '' packages_debootstrap "$suite" || die "debootstrap failed; see $PACKAGES_DIR/debootstrap-$suite.log"
}

packages_debootstrap() {
  local suite=$1 root=$2
  step "debootstrap $suite"
  debootstrap --variant=minbase --include=systemd,dbus "$suite" "$root" "$(packages_mirror)" >"$PACKAGES_DIR/debootstrap-$suite.log" 2>&1
}

packages_mirror() {
  apt-get indextargets --format '$(SITE)' "Created-By: Packages" 2>/dev/null | grep -m1 'debian.org/debian$' || echo http://deb.debian.org/debian
}

# Whether the mirror has that suite, and answers.
packages_mirror_answers() { curl -fsSL -m 30 -o "$PACKAGES_DIR/release-$1" "$(packages_mirror)/dists/$1/Release" 2>/dev/null; }

packages_root_for_building() {
  step "a root for building"
  cp -a --reflink=auto "$PACKAGES_DIR/roots/$1/." "$2/" && rm "$2/.keelson-ready"
}

# What a build in a root installs there. For another processor the tools are the machine's own, the libraries are that processor's,
# and the compiler is Debian's cross compiler. Runs inside of the root.
packages_install_tools() {
  local arch=$1 wanted=(debhelper dpkg-dev fakeroot cmake git python3) libraries=() library triplet
  apt-get update -qq
  if [ -z "${KEELSON_BIN:-}" ]; then
    # shellcheck disable=SC2207
    libraries=("${BUILD_LIBRARIES[@]}" $(boost_packages))
    wanted+=("${BUILD_TOOLS[@]}")
    [ -n "$arch" ] || wanted+=("${libraries[@]}")
  fi
  if [ -n "$arch" ]; then
    dpkg --add-architecture "$arch"
    apt-get update -qq
    wanted+=("crossbuild-essential-$arch")
    for library in "${libraries[@]}"; do wanted+=("$library:$arch"); done
  fi
  apt-get install -y -qq --no-install-recommends "${wanted[@]}" >/dev/null
  [ -n "$arch" ] || return 0
  # The name that a cross compiler looks for with -fuse-ld=lld; lld links for every processor.
  triplet=$(dpkg-architecture -f -a"$arch" -qDEB_HOST_GNU_TYPE)
  ln -sf /usr/bin/ld.lld "/usr/local/bin/$triplet-ld.lld"
}

# Compiles and packs in a copy of that root: what the machine has installed plays no part. The repository has the same path there and
# a build directory of its own, so that ccache knows each unit that the suites' compilers agree on.
packages_in_root() {
  local suite=$1 arch=$2 version=$3 output=$4 cache=${CCACHE_DIR:-$HOME/.cache/ccache}
  local kind=$suite${arch:+-$arch}
  local root=$PACKAGES_DIR/roots/$kind-build tree=$PACKAGES_DIR/roots/$kind-tree
  need_root
  mkdir -p "$PACKAGES_DIR/roots" "$output" "$cache"
  packages_root "$suite"
  root_once "$root" '' packages_root_for_building "$suite"
  mkdir -p "$root$ROOT" "$root/ccache" "$tree"
  step "building in a root of $suite${arch:+ for $arch}"
  export ROOT
  unshare --mount --propagation private bash -euo pipefail -s "$root" "$cache" "$tree" "$arch" "$version" <<'INSIDE' ||
root=$1 cache=$2 tree=$3 arch=$4 version=$5
mount --bind "$ROOT" "$root$ROOT"
mount --bind "$tree" "$root$ROOT/build"
mount --bind "$cache" "$root/ccache"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
if [ -n "${KEELSON_BIN:-}" ]; then
  mkdir -p "$root$KEELSON_BIN"
  mount --bind "$KEELSON_BIN" "$root$KEELSON_BIN"
fi
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
cat >"$root/build.sh" <<BUILD
set -euo pipefail
cd "$ROOT"
export DEBIAN_FRONTEND=noninteractive CCACHE_DIR=/ccache LC_ALL=C.UTF-8
if [ ! -e /.keelson-tools ]; then
  source tools/dev/deps.sh
  source tools/dev/packages.sh
  packages_install_tools "$arch"
  touch /.keelson-tools
fi
if [ -n "$arch" ]; then
  export KEELSON_ARCH=$arch CMAKE_TOOLCHAIN_FILE=$ROOT/cmake/Cross.cmake
  export KEELSON_TRIPLET=\$(dpkg-architecture -f -a"$arch" -qDEB_HOST_GNU_TYPE)
fi
git config --global --add safe.directory "$ROOT"
./dev packages --output "$ROOT/build/packages" ${version:+--version "$version"}
BUILD
exec chroot "$root" bash /build.sh
INSIDE
    die "packages cannot be built in $root"
  mv "$tree/packages"/*.deb "$tree/packages"/*.buildinfo "$tree/packages"/*.changes "$output/"
  packages_index "$output"
  step "packages for $kind are in $output"
}
