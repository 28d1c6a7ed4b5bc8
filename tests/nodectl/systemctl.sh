#!/bin/bash
# An init system for tests, under the name of systemctl. It knows the units in $KEELSON_TEST_ROOT/units. A file there that holds a
# program's path is a unit that really runs, with the command line of its unit below $KEELSON_TEST_ROOT; others are only written down.
set -euf
root=$KEELSON_TEST_ROOT
echo "$*" >>"$root/systemctl.log"
[ "$1" != --no-block ] || shift
verb=$1 unit=${2%.service}
[ -e "$root/units/$unit" ] || exit 4
program=$(cat "$root/units/$unit")
pid_file=$root/units/.$unit.pid

stop() {
  local pid
  pid=$(cat "$pid_file" 2>/dev/null) || return 0
  kill -TERM "$pid" 2>/dev/null || true
  while kill -0 "$pid" 2>/dev/null && [ "$(cut -d' ' -f3 "/proc/$pid/stat" 2>/dev/null)" != Z ]; do sleep 0.05; done
  rm -f "$pid_file"
}

# Sets ARGUMENTS: those of the unit, with the root before each path.
arguments() {
  local file
  for file in "$KEELSON_SYSTEMD/$unit.env" "$root/etc/kubernetes/$unit.env" "$root/var/lib/kubelet/kubeadm-flags.env"; do
    # shellcheck disable=SC1090
    [ ! -e "$file" ] || . "$file"
  done
  case $unit in
    kube-controlplane)
      # shellcheck disable=SC2206
      ARGUMENTS=("--data-dir=$root/var/lib/keelson/controlplane" ${KUBE_CONTROLPLANE_PKI_ARGS//=\/etc/=$root/etc} ${KUBE_CONTROLPLANE_CLUSTER_ARGS//=\/etc/=$root/etc})
      ;;
    kubelet)
      sed "s#/etc/kubernetes#$root/etc/kubernetes#" "$root/var/lib/kubelet/config.yaml" >"$root/units/.kubelet.yaml"
      # shellcheck disable=SC2206
      ARGUMENTS=("--bootstrap-kubeconfig=$root/etc/kubernetes/bootstrap-kubelet.conf" "--kubeconfig=$root/etc/kubernetes/kubelet.conf"
        "--config=$root/units/.kubelet.yaml" "--cert-dir=$root/var/lib/kubelet/pki" "--root-dir=$root/var/lib/kubelet" ${KUBELET_KUBEADM_ARGS})
      ;;
  esac
}

case $verb in
  cat | is-enabled) ;;
  is-active) [ -e "$pid_file" ] && kill -0 "$(cat "$pid_file")" 2>/dev/null ;;
  stop) stop ;;
  restart)
    [ -n "$program" ] || exit 0
    stop
    arguments
    setsid "$program" "${ARGUMENTS[@]}" >>"$root/units/.$unit.log" 2>&1 </dev/null &
    echo $! >"$pid_file"
    ;;
  *) exit 1 ;;
esac
