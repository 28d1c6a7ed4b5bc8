#!/bin/bash
# The life of a cluster of two machines, in namespaces of its own (run.sh).
# usage: life.sh WORK LOWER REPOSITORY VERSION
set -euo pipefail
work=$1 lower=$2 repository=$3 version=$4
fail() {
  echo "FAILED: $1"
  for name in one two; do
    [ -f "$MACHINES/$name/pid" ] || continue
    echo "--- $name"
    machine_run "$name" journalctl --no-pager -o cat -n 40 -u kubelet -u kube-controlplane -u kube-proxy -u kube-cni || true
  done
  exit 1
}
mount -t tmpfs ram "$work/ram"
MACHINES=$work/ram
source "$(dirname "$0")/machine.sh"
trap machines_clean EXIT
machines_network
control=$MACHINE_NET.10 node=$MACHINE_NET.11 token=abcdef.0123456789abcdef

step() { echo "--- $(date +%T) $1"; }
within() {  # SECONDS WHAT COMMAND...: until it succeeds
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >"$work/last" 2>&1; do
    [ $SECONDS -lt $deadline ] || { cat "$work/last"; fail "$what"; }
    sleep 0.2
  done
}
kube() { machine_run one kubectl --kubeconfig /etc/kubernetes/admin.conf "$@"; }
took() { echo "$1: $(((${EPOCHREALTIME/./} - $2) / 1000)) ms"; }
now() { echo "${EPOCHREALTIME/./}"; }

for name in one two; do
  machine_make "$name" "$lower"
  root=$(machine_root "$name")
  mkdir -p "$root/packages" "$root/provision"
  : >"$root/etc/apt/sources.list"  # no mirror can be reached
  # Where this machine lacks CAP_SYS_RESOURCE, so do its containers.
  mkdir -p "$root/etc/systemd/system/containerd.service.d"
  cat >"$root/etc/systemd/system/containerd.service.d/test.conf" <<'UNIT'
[Service]
ExecStartPre=/bin/sh -c '{ cat /etc/containerd/config.toml; echo "[plugins.\\"io.containerd.grpc.v1.cri\\"]"; echo restrict_oom_score_adj = true; echo disable_apparmor = true; } >/run/containerd.toml'
ExecStart=
ExecStart=/usr/bin/containerd --config /run/containerd.toml
UNIT
  cp "$work"/first/*.deb "$work"/first/Packages "$root/packages/"
  cp "$repository"/vagrant/provision/*.sh "$root/provision/"
  cp "$work"/images/*.tar "$root/"
  cp "$KEELSON_KUBECTL" "$root/usr/bin/kubectl"
done

step "two machines boot"
machine_boot one $control
machine_boot two $node

step "packages from a local repository"
machine_run one /provision/packages.sh /packages keelson >"$work/last" 2>&1 || { cat "$work/last"; fail "packages on one"; }
machine_run two /provision/packages.sh /packages keelson-node >"$work/last" 2>&1 || { cat "$work/last"; fail "packages on two"; }
for name in one two; do
  # Debian's containerd asks for an older one.
  machine_run $name sh -c 'for image in /*.tar; do ctr --namespace k8s.io images import "$image"; done
    ctr --namespace k8s.io images tag registry.k8s.io/pause:3.10 registry.k8s.io/pause:3.6' >"$work/last" 2>&1 || { cat "$work/last"; fail "images on $name"; }
done

step "nodectl init and join"
machine_run one /provision/address.sh $control
machine_run two /provision/address.sh $node
begin=$(now)
machine_run one /provision/control-plane.sh $control $token >"$work/last" 2>&1 || { cat "$work/last"; fail "init"; }
took init "$begin"
hash=$(machine_run one sh -c 'openssl x509 -pubkey -noout -in /etc/kubernetes/pki/ca.crt | openssl pkey -pubin -outform der | sha256sum' | cut -d ' ' -f 1)
begin=$(now)
machine_run two /provision/node.sh $control $token "sha256:$hash" >"$work/last" 2>&1 || { cat "$work/last"; fail "join"; }
took join "$begin"
kube wait --for=condition=Ready nodes --all --timeout=60s || fail "nodes are not ready"
took "join to Ready" "$begin"
[ "$(kube get nodes -o name | wc -l)" = 2 ] || fail "not two nodes"

step "a second time nothing happens"
machine_run one /provision/control-plane.sh $control $token | grep -q already || fail "init again"
machine_run two /provision/node.sh $control $token "sha256:$hash" | grep -q already || fail "join again"

step "pods, a Service and a volume"
kube apply -f - <"$repository/tests/machines/web.yaml" || fail "web.yaml"
kube rollout status deployment/web --timeout=60s || fail "the pods do not start"
service=$(kube get service web -o 'jsonpath={.spec.clusterIP}')
for name in one two; do
  within 30 "$name does not reach the Service" machine_run $name curl -fsS -m 2 "http://$service/"
done
grep -qx kept "$work/last" || fail "the page is: $(cat "$work/last")"

pods_on_two() { kube get pods -o 'jsonpath={range .items[?(@.spec.nodeName=="two")]}{.metadata.uid} {.status.containerStatuses[0].containerID}{"\n"}{end}'; }
ready_pods() { [ "$(kube get pods -l app=web -o 'jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}' | grep -c True)" = 2 ]; }

restarted() { [ "$(kube get pods -l app=web -o 'jsonpath={.items[*].status.containerStatuses[0].restartCount}' | tr ' ' '\n' | grep -c '[1-9]')" -gt 0 ]; }

step "an upgrade keeps pods running"
before=$(pods_on_two)
[ -n "$before" ] || fail "no pod on two"
cp "$work"/next/*.deb "$work"/next/Packages "$(machine_root two)/packages/"
begin=$(now)
machine_run two /provision/packages.sh /packages keelson-node >"$work/last" 2>&1 || { cat "$work/last"; fail "the upgrade"; }
took upgrade "$begin"
[ "$(machine_run two dpkg-query -W -f '${Version}' keelson-kubelet)" = "$version.1" ] || fail "two has not got the next version"
within 60 "two is not ready after its upgrade" kube wait --for=condition=Ready node/two --timeout=1s
within 60 "the pods are not ready after the upgrade" ready_pods
[ "$(pods_on_two)" = "$before" ] || fail "containers were restarted: $before, then $(pods_on_two)"
machine_run one curl -fsS -m 2 "http://$service/" >/dev/null || fail "the Service does not answer after the upgrade"

step "a reboot"
machine_off two
begin=$(now)
machine_boot two $node
within 120 "the pod on two was not started again" restarted
within 120 "the pods are not ready after the reboot" ready_pods
took "reboot to ready pods" "$begin"
within 30 "two does not reach the Service after its reboot" machine_run two curl -fsS -m 2 "http://$service/"

step "reset"
kube delete -f - <"$repository/tests/machines/web.yaml" --timeout=60s || fail "web.yaml cannot be deleted"
machine_run two nodectl reset --force >"$work/last" 2>&1 || { cat "$work/last"; fail "reset of two"; }
kube delete node two || fail "node two cannot be deleted"
machine_run one nodectl reset --force >"$work/last" 2>&1 || { cat "$work/last"; fail "reset of one"; }
for name in one two; do
  left=$(machine_run $name sh -c 'ls -d /etc/kubernetes/*.conf /etc/kubernetes/pki/* /var/lib/kubelet/config.yaml /var/lib/keelson/controlplane/* /etc/cni/net.d/* 2>/dev/null; nft list tables; ip -o link show | grep -E "keelson|veth"; pgrep -al "^(kubelet|kube-|etcd)"') || true
  [ -z "$left" ] || fail "reset leaves on $name: $left"
done
echo "--- passed"
