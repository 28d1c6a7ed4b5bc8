# Volumes on each node's disk: csi/local's driver, its provisioner, and the default StorageClass. KEELSON_STORAGE=none
# leaves all of it out.
KEELSON_STORAGE=${KEELSON_STORAGE:-local}
KEELSON_CSI_HEALTHZ_PORT=${KEELSON_CSI_HEALTHZ_PORT:-10263}
PROGRAMS+=(keelson-csi-local keelson-csi-controller)
DAEMONS+=(keelson-csi-local keelson-csi-controller)

storage_is_on() { [ "$KEELSON_STORAGE" != none ]; }

# What the node in use (node_use) is to have.
storage_daemons() {
  ! storage_is_on || printf '%s\n' keelson-csi-local keelson-csi-controller
}

# storage_command NAME: sets COMMAND. The path of a socket has at most 107 bytes: so it is in run/, not below the kubelet. Each node's
# controller serves its node alone, also with expansion: the driver's --controller-expansion stays on.
storage_command() {
  case $1 in
    keelson-csi-local)
      mkdir -p "$NODE_DIR/kubelet/plugins_registry"
      COMMAND=("$BIN/keelson-csi-local" --csi-endpoint "unix://$NODE_RUN/csi.sock" --node-id "$NODE"
        --data-dir "$NODE_DIR/storage" --kubelet-registration-dir "$NODE_DIR/kubelet/plugins_registry")
      # shellcheck disable=SC2206
      COMMAND+=(${KEELSON_STORAGE_FLAGS:-})
      ;;
    keelson-csi-controller)
      COMMAND=("$BIN/keelson-csi-controller" --csi-address "$NODE_RUN/csi.sock" --kubeconfig "$CONF/keelson-csi-controller.kubeconfig"
        --node-deployment --node-name "$NODE" --strict-topology --immediate-topology=false
        --enable-capacity --capacity-namespace kube-system --leader-election-namespace kube-system
        --http-endpoint "127.0.0.1:$KEELSON_CSI_HEALTHZ_PORT")
      # shellcheck disable=SC2206
      COMMAND+=(${KEELSON_STORAGE_CONTROLLER_FLAGS:-})
      ;;
  esac
}

storage_healthy() {
  case $1 in
    keelson-csi-local) python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' "$NODE_RUN/csi.sock" ;;
    keelson-csi-controller) in_node curl -fsS -m 2 "http://127.0.0.1:$KEELSON_CSI_HEALTHZ_PORT/healthz" ;;
  esac
}

storage_pki() {
  storage_is_on || return 0
  pki_cert keelson-csi-controller "/O=keelson:csi-controller/CN=keelson:csi-controller"
  pki_kubeconfig keelson-csi-controller "$CONF/keelson-csi-controller.kubeconfig"
}

storage_objects() {
  storage_is_on || return 0
  local deploy=$ROOT/csi/controller/deploy
  run_kubectl apply -f "$deploy/rbac.yaml" -f "$deploy/snapshot-crds.yaml" >/dev/null
  # By force: a CSIDriver of an earlier version may differ in what cannot change.
  run_kubectl apply --force -f "$ROOT/tools/dev/storage.yaml" >/dev/null
  run_kubectl wait --for condition=Established --timeout 60s crd volumesnapshotclasses.snapshot.storage.k8s.io >/dev/null
  run_kubectl apply -f "$ROOT/csi/local/deploy/snapshot-class.yaml" >/dev/null
}

# Raw devices stay attached until their volume is unstaged: without a kubelet nothing does that.
storage_forget() {
  local file
  for file in /sys/block/loop*/loop/backing_file; do
    [[ $(cat "$file" 2>/dev/null) != "$KEELSON_DIR"/nodes/*/storage/* ]] || losetup -d "/dev/$(basename "${file%/loop/backing_file}")" 2>/dev/null || true
  done
}
