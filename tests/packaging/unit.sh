#!/bin/bash
# kube-controlplane under its unit: runs below a systemd of its own (tests/systemd/run.sh).
# usage: unit.sh REPOSITORY KUBE-CONTROLPLANE
set -euo pipefail
packaging=$1/packaging program=$2 unit=kube-controlplane.service
fail() {
  echo "FAILED: $1"
  journalctl --no-pager -u $unit | tail -n 30
  exit 1
}
property() { systemctl show -P "$1" $unit; }

# PID 1 of a whole machine has its mounts shared; mount namespaces of units build on that.
mount --make-rshared /
cp "$program" /usr/bin/kube-controlplane
install -D -m 644 "$packaging/systemd/kube-controlplane.env" /usr/lib/keelson/kube-controlplane.env
install -m 644 "$packaging/default/kube-controlplane" /etc/default/kube-controlplane
install -m 644 "$packaging/systemd/$unit" /etc/systemd/system/$unit
# This systemd has a /dev of a few nodes, from which it cannot make a private one; and nobody waits a minute for a watchdog.
mkdir -p /etc/systemd/system/$unit.d
printf '[Service]\nPrivateDevices=no\nWatchdogSec=6\n' >/etc/systemd/system/$unit.d/test.conf
systemd-sysusers "$packaging/sysusers/keelson-controlplane.conf"
systemd-tmpfiles --create "$packaging/tmpfiles/keelson-controlplane.conf"
systemctl daemon-reload

systemctl start $unit || fail "without certificates the start fails"
[ "$(property ActiveState)" = inactive ] || fail "without certificates it is $(property ActiveState)"
[ "$(property ConditionResult)" = no ] || fail "it does not wait for certificates"

ip link add uplink type dummy 2>/dev/null || ip link add uplink type veth peer name far
ip address add 192.0.2.1/24 dev uplink
ip link set uplink up
"$packaging/examples/make-pki.sh" cluster 192.0.2.1
timeout 120 systemctl start $unit || fail "the start"
[ "$(property ActiveState)" = active ] || fail "it is $(property ActiveState)"
[ "$(ps -o user:20= -p "$(property MainPID)" | tr -d ' ')" = kube-controlplane ] || fail "it is not the user kube-controlplane"
# Started means ready: nothing is waited for here.
curl -fsS --cacert /etc/kubernetes/pki/ca.crt https://192.0.2.1:6443/readyz | grep -qx ok || fail "systemd takes it for ready, and /readyz does not"

fed=$(property WatchdogTimestampMonotonic)
for _ in $(seq 200); do
  [ "$(property WatchdogTimestampMonotonic)" = "$fed" ] || break
  sleep 0.1
done
[ "$(property WatchdogTimestampMonotonic)" -gt "$fed" ] || fail "the watchdog is not fed"
[ "$(property NRestarts)" = 0 ] || fail "it was restarted"

# Neither its workers nor the thread that feeds the watchdog run on.
kill -STOP "$(property MainPID)"
for _ in $(seq 600); do
  [ "$(property NRestarts)" = 0 ] || break
  sleep 0.1
done
[ "$(property NRestarts)" = 1 ] || fail "the watchdog does not restart what has stopped"
for _ in $(seq 600); do
  [ "$(property ActiveState)" != active ] || break
  sleep 0.1
done
[ "$(property ActiveState)" = active ] || fail "it is not ready after the watchdog's restart"

systemctl stop $unit
[ "$(property Result)" = success ] || fail "its end: $(property Result)"
! pgrep -x etcd >/dev/null || fail "its etcd is still there"
echo "[  PASSED  ] 1 unit"
