# Container images made on the spot, without a registry, and their import into nodes.

PAUSE_IMAGE=registry.k8s.io/pause:3.10
BUSYBOX_IMAGE=localhost/busybox:1

ctr_() { ctr --address "$NODE_SOCKET" --namespace k8s.io "$@"; }

# image_archive NAME:TAG FILE UMOCI-CONFIG-OPTIONS... (root file system in $KEELSON_DIR/images/rootfs)
image_archive() {
  local reference=$1 archive=$2 work=$KEELSON_DIR/images/oci rootfs=$KEELSON_DIR/images/rootfs
  shift 2
  rm -rf "$work"
  umoci init --layout "$work" >/dev/null
  umoci new --image "$work:image" >/dev/null
  local entry
  for entry in "$rootfs"/*; do
    umoci insert --image "$work:image" "$entry" "/$(basename "$entry")" >/dev/null
  done
  umoci config --image "$work:image" "$@" --config.env PATH=/bin:/usr/bin >/dev/null
  rm -f "$archive.new"
  skopeo --insecure-policy copy -q "oci:$work:image" "oci-archive:$archive.new:$reference"
  mv "$archive.new" "$archive"
  rm -rf "$work" "$rootfs"
}

images_make() {
  local dir=$KEELSON_DIR/images rootfs=$KEELSON_DIR/images/rootfs
  mkdir -p "$dir"
  if [ ! -f "$dir/pause.tar" ]; then
    rm -rf "$rootfs" && mkdir -p "$rootfs"
    if [ -x "$BIN/pause" ]; then
      cp "$BIN/pause" "$rootfs/pause"
    else
      cc -Os -static -s -o "$rootfs/pause" "$ROOT/images/pause/pause.c"
    fi
    image_archive $PAUSE_IMAGE "$dir/pause.tar" --config.entrypoint /pause --config.user 65535:65535
  fi
  if [ ! -f "$dir/busybox.tar" ]; then
    rm -rf "$rootfs" && mkdir -p "$rootfs"/{bin,etc,tmp,root,home,var,dev,proc,sys}
    chmod 1777 "$rootfs/tmp"
    cp "$(command -v busybox)" "$rootfs/bin/busybox"
    local applet
    for applet in $(busybox --list); do
      [ "$applet" = busybox ] || ln -s busybox "$rootfs/bin/$applet"
    done
    echo 'root:x:0:0:root:/root:/bin/sh' >"$rootfs/etc/passwd"
    echo 'root:x:0:' >"$rootfs/etc/group"
    image_archive $BUSYBOX_IMAGE "$dir/busybox.tar" --config.cmd /bin/sh
  fi
}

# Into the node in use (node_use).
images_import() {
  local file
  for file in "$@"; do
    [ -f "$file" ] || die "no such archive: $file"
    ctr_ images import "$file" >/dev/null || die "import of $file into $NODE failed"
  done
}

import_where_on() {
  daemon_pid containerd >/dev/null || { echo "dev: $NODE: containerd is not running, nothing imported" >&2; return 0; }
  images_import "$@"
}

images_command() {
  local verb=${1:-}
  [ "$verb" = import ] && [ $# -gt 1 ] || die "usage: ./dev images import FILE..."
  shift
  need_root
  each_node_at_once import_where_on "$@"
}
