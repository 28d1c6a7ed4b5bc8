# Packages of ready programs for tests. To be sourced; the caller has `repository` and `fail`.

PACKAGED_PROGRAMS=(kubelet kube-proxy kube-cni kube-controlplane nodectl keelson-csi-local keelson-csi-controller bridge)

packages_version() { sed -n 's/^project(keelson VERSION \([0-9.]*\).*/\1/p' "$repository/CMakeLists.txt"; }

# packages_programs FROM TO: once stripped here, the programs need not be stripped for each build.
packages_programs() {
  local program
  mkdir -p "$2"
  for program in "${PACKAGED_PROGRAMS[@]}"; do strip -o "$2/$program" "$1/$program"; done
  for program in bandwidth host-local keelson-policy loopback portmap; do ln "$2/bridge" "$2/$program"; done
}

# packages_build PROGRAMS VERSION DIR
packages_build() {
  mkdir -p "$3"
  KEELSON_BIN=$1 DEB_BUILD_OPTIONS=noautodbgsym KEELSON_DEB_OPTIONS='-Zgzip -z1' "$repository/dev" packages \
    --version "$2" --output "$3" >"$3.log" 2>&1 || { cat "$3.log"; fail "packages of version $2 cannot be built"; }
  rm "$3.log"
}

# packages_renumber FROM TO VERSION: the same packages under another version.
packages_renumber() {
  local deb work=$2/.renumber
  mkdir -p "$2"
  for deb in "$1"/keelson*.deb; do
    case $deb in *-dbgsym_*) continue ;; esac
    rm -rf "$work"
    dpkg-deb -R "$deb" "$work"
    sed -i "s/^Version: .*/Version: $3/" "$work/DEBIAN/control"
    dpkg-deb --root-owner-group -Zgzip -z1 -b "$work" "$2/" >/dev/null
  done
  rm -rf "$work"
}
