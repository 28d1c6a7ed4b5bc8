# kubectl from PATH, or unpacked from Debian 13's package (Debian 12 has none that is recent enough).

KUBECTL_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/keelson/kubectl

kubectl_path() {
  if command -v kubectl >/dev/null; then
    command -v kubectl
    return
  fi
  [ -x "$KUBECTL_CACHE/usr/bin/kubectl" ] || kubectl_unpack
  echo "$KUBECTL_CACHE/usr/bin/kubectl"
}

# A private apt configuration: the machine's own sources, with trixie in place of its own suite.
kubectl_unpack() {
  local apt=$KUBECTL_CACHE/apt mirror
  mkdir -p "$apt"/{lists/partial,archives/partial,parts}
  : >"$apt/status"  # what is installed here must not sway the choice
  mirror=$(sed -nE 's/^URIs: *([^ ]+\/debian) *$/\1/p; s/^deb (\[[^]]*\] )?([^ ]+\/debian)\/? .*/\2/p' \
    /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror:-http://deb.debian.org/debian} trixie main" >"$apt/sources.list"
  local options=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o "Dir::Etc::sourceparts=$apt/parts" -o "Dir::State::lists=$apt/lists"
    -o "Dir::Cache::archives=$apt/archives" -o "Dir::State::status=$apt/status" -o APT::Get::List-Cleanup=0 -o APT::Sandbox::User=root)
  step "fetching kubectl from Debian 13's package" >&2
  apt-get "${options[@]}" update -qq >&2 || die "no package list of Debian 13 to be had"
  (cd "$apt" && apt-get "${options[@]}" download kubectl >&2) || die "kubectl cannot be downloaded: install it by hand"
  dpkg -x "$apt"/kubectl_*.deb "$KUBECTL_CACHE"
  rm -rf "$apt"
}

admin_kubeconfig() {
  [ -f "$CONF/admin.kubeconfig" ] || die "no cluster in $KEELSON_DIR: run ./dev up"
  echo "$CONF/admin.kubeconfig"
}

run_kubectl() {
  local kubeconfig
  kubeconfig=$(admin_kubeconfig)
  # The file names the first control plane.
  if several_control_planes; then
    KUBECONFIG=$kubeconfig "$(kubectl_path)" --server "https://$(api_ip):$KEELSON_API_PORT" "$@"
    return
  fi
  KUBECONFIG=$kubeconfig "$(kubectl_path)" "$@"
}
