#!/bin/bash
# nodectl makes a control plane of the packages' unit: runs below a systemd of its own (tests/systemd/run.sh).
# usage: unit.sh REPOSITORY KUBE-CONTROLPLANE NODECTL
set -euo pipefail
packaging=$1/packaging program=$2 nodectl=$3 unit=kube-controlplane.service
fail() {
  echo "FAILED: $1"
  journalctl --no-pager -u $unit | tail -n 30
  exit 1
}
# PID 1 of a whole machine has its mounts shared; mount namespaces of units build on that.
mount --make-rshared /
cp "$program" /usr/bin/kube-controlplane
install -D -m 644 "$packaging/systemd/kube-controlplane.env" /usr/lib/keelson/kube-controlplane.env
install -m 644 "$packaging/default/kube-controlplane" /etc/default/kube-controlplane
install -m 644 "$packaging/systemd/$unit" /etc/systemd/system/$unit
# This systemd has a /dev of a few nodes, from which it cannot make a private one.
mkdir -p /etc/systemd/system/$unit.d
printf '[Service]\nPrivateDevices=no\n' >/etc/systemd/system/$unit.d/test.conf
systemd-sysusers "$packaging/sysusers/keelson-controlplane.conf"
systemd-tmpfiles --create "$packaging/tmpfiles/keelson-controlplane.conf"
systemctl daemon-reload
ip link add uplink type dummy 2>/dev/null || ip link add uplink type veth peer name far
ip address add 192.0.2.1/24 dev uplink
ip link set uplink up

# No kubelet here: a node is not what this is about.
init() {
  "$nodectl" init --apiserver-advertise-address=192.0.2.1 --node-name=control-1 --ignore-preflight-errors=all \
    --cri-socket=unix:///run/none.sock --skip-phases=kubelet-start,mark-control-plane,addon/kube-proxy,addon/kube-cni
}
init || fail "init"
[ "$(stat -c '%G %a' /etc/kubernetes/pki/sa.key)" = "kube-controlplane 640" ] || fail "sa.key: $(stat -c '%G %a' /etc/kubernetes/pki/sa.key)"
[ "$(systemctl show -P ActiveState $unit)" = active ] || fail "it is $(systemctl show -P ActiveState $unit)"
[ "$(ps -o user:20= -p "$(systemctl show -P MainPID $unit)" | tr -d ' ')" = kube-controlplane ] || fail "it is not the user kube-controlplane"
"$nodectl" token list --kubeconfig /etc/kubernetes/admin.conf | grep -q "default bootstrap token" || fail "no token"
"$nodectl" reset --force || fail "reset"
[ "$(systemctl show -P ActiveState $unit)" = inactive ] || fail "after reset it is $(systemctl show -P ActiveState $unit)"
[ -z "$(find /etc/kubernetes /var/lib/keelson/controlplane -type f)" ] || fail "reset leaves $(find /etc/kubernetes /var/lib/keelson/controlplane -type f)"
! pgrep -x etcd >/dev/null || fail "its etcd is still there"
echo "[  PASSED  ] 1 unit"
