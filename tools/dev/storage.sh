# Volumes on each node's disk: csi/local's driver, its provisioner, and the default StorageClass. KEELSON_STORAGE=none
# leaves all of it out.
KEELSON_STORAGE=${KEELSON_STORAGE:-local}
STORAGE_CONTROLLER=keelson-csi-controller
PROGRAMS+=(keelson-csi-local)
DAEMONS+=(keelson-csi-local "$STORAGE_CONTROLLER")

storage_is_on() { [ "$KEELSON_STORAGE" != none ]; }

# The one place that decides whether claims are provisioned: a build without the controller has no provisioner.
storage_has_controller() { storage_is_on && [ -x "$BIN/$STORAGE_CONTROLLER" ]; }

# What the node in use (node_use) is to have.
storage_daemons() {
  ! storage_is_on || echo keelson-csi-local
  ! storage_has_controller || echo "$STORAGE_CONTROLLER"
}

# storage_command NAME: sets COMMAND. The path of a socket has at most 107 bytes: so it is in run/, not below the kubelet.
storage_command() {
  case $1 in
    keelson-csi-local)
      mkdir -p "$NODE_DIR/kubelet/plugins_registry"
      COMMAND=("$BIN/keelson-csi-local" --csi-endpoint "unix://$NODE_RUN/csi.sock" --node-id "$NODE"
        --data-dir "$NODE_DIR/storage" --kubelet-registration-dir "$NODE_DIR/kubelet/plugins_registry")
      # shellcheck disable=SC2206
      COMMAND+=(${KEELSON_STORAGE_FLAGS:-})
      ;;
    "$STORAGE_CONTROLLER")
      COMMAND=(env "NODE_NAME=$NODE" "$BIN/$STORAGE_CONTROLLER" --csi-address "$NODE_RUN/csi.sock"
        --kubeconfig "$CONF/$STORAGE_CONTROLLER.kubeconfig" --node-deployment --strict-topology --immediate-topology=false
        --enable-capacity --capacity-namespace kube-system)
      # shellcheck disable=SC2206
      COMMAND+=(${KEELSON_STORAGE_CONTROLLER_FLAGS:-})
      ;;
  esac
}

# The driver's socket answers; the controller is known by its process alone.
storage_healthy() {
  [ "$1" != keelson-csi-local ] || python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' "$NODE_RUN/csi.sock"
}

storage_pki() {
  ! storage_has_controller || {
    pki_cert "$STORAGE_CONTROLLER" "/O=keelson:csi-controller/CN=keelson:csi-controller"
    pki_kubeconfig "$STORAGE_CONTROLLER" "$CONF/$STORAGE_CONTROLLER.kubeconfig"
  }
}

storage_objects() {
  storage_is_on || return 0
  run_kubectl apply -f "$ROOT/tools/dev/storage.yaml" >/dev/null
  storage_has_controller || return 0
  run_kubectl apply -f "$ROOT/csi/controller/deploy/rbac.yaml" >/dev/null
  # Without the objects that the controller makes, no pod with a claim would be scheduled.
  run_kubectl patch csidriver local.csi.keelson.dev --type=merge -p '{"spec": {"storageCapacity": true}}' >/dev/null
}

# Raw devices stay attached until their volume is unstaged: without a kubelet nothing does that.
storage_forget() {
  local file
  for file in /sys/block/loop*/loop/backing_file; do
    [[ $(cat "$file" 2>/dev/null) != "$KEELSON_DIR"/nodes/*/storage/* ]] || losetup -d "/dev/$(basename "${file%/loop/backing_file}")" 2>/dev/null || true
  done
}
