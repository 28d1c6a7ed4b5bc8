#!/bin/bash
# keelson-csi-local under its unit: runs below a systemd of its own (tests/systemd/run.sh). Also the driver's tests of mounts and
# devices with the unit's restrictions around them.
# usage: csi_local_unit.sh REPOSITORY KEELSON-CSI-LOCAL CSI_LOCAL_DRIVER_TEST
set -euo pipefail
packaging=$1/packaging program=$2 tests=$3 unit=keelson-csi-local.service
fail() {
  echo "FAILED: $1"
  journalctl --no-pager -u $unit -u csi-local-test.service | tail -n 30
  exit 1
}
property() { systemctl show -P "$1" $unit; }

mount --make-rshared /
# This systemd has a /dev of a few nodes.
[ -e /dev/loop-control ] || mknod /dev/loop-control c 10 237
for number in $(seq 0 63); do [ -e "/dev/loop$number" ] || mknod "/dev/loop$number" b 7 "$number"; done
cp "$program" /usr/bin/keelson-csi-local
install -m 644 "$packaging/default/keelson-csi-local" /etc/default/keelson-csi-local
install -m 644 "$packaging/systemd/$unit" /etc/systemd/system/$unit
mkdir -p /etc/systemd/system/$unit.d
printf '[Service]\nWatchdogSec=6\n' >/etc/systemd/system/$unit.d/test.conf
systemd-tmpfiles --create "$packaging/tmpfiles/keelson-csi-local.conf"
systemctl daemon-reload

systemctl start $unit || fail "without a kubelet the start fails"
[ "$(property ActiveState)" = inactive ] || fail "without a kubelet it is $(property ActiveState)"
[ "$(property ConditionResult)" = no ] || fail "it does not wait for a kubelet"

mkdir -p /var/lib/kubelet
touch /var/lib/kubelet/config.yaml
timeout 120 systemctl start $unit || fail "the start"
[ "$(property ActiveState)" = active ] || fail "it is $(property ActiveState)"
# Started means ready: nothing is waited for here.
[ -S /var/lib/kubelet/plugins/local.csi.keelson.dev/csi.sock ] || fail "it has no socket"
fed=$(property WatchdogTimestampMonotonic)
for _ in $(seq 600); do
  [ "$(property WatchdogTimestampMonotonic)" = "$fed" ] || break
  sleep 0.1
done
[ "$(property WatchdogTimestampMonotonic)" -gt "$fed" ] || fail "the watchdog is not fed"
[ -S /var/lib/kubelet/plugins_registry/local.csi.keelson.dev-reg.sock ] || fail "it does not register"
[ "$(property NRestarts)" = 0 ] || fail "it was restarted"
systemctl stop $unit
[ "$(property Result)" = success ] || fail "its end: $(property Result)"

# A test has mounts of its own, which the driver has not: no other restriction is lifted.
sed -e 's/^Type=.*/Type=oneshot/' -e '/^\(WatchdogSec\|Restart\|RestartSec\|EnvironmentFile\|ConditionPathExists\|Before\)=/d' \
  -e 's/^RestrictNamespaces=.*/RestrictNamespaces=mnt/' \
  -e "s#^ExecStart=.*#ExecStart=$tests --gtest_color=no --gtest_filter=MountsTest.ContentIsKept*:MountsTest.CapacityIsHeld:NodeTest.DevicesAreBound*:NodeTest.TheNodeGrows*:DirectoryTest.Copies*\nStandardOutput=file:/tmp/csi-local-test.log#" \
  "$packaging/systemd/$unit" >/etc/systemd/system/csi-local-test.service
systemctl daemon-reload
timeout 240 systemctl start csi-local-test.service || { cat /tmp/csi-local-test.log; fail "volumes cannot be used with the unit's restrictions"; }
grep -q '\[  PASSED  \] 5 tests' /tmp/csi-local-test.log || { cat /tmp/csi-local-test.log; fail "not all tests have run"; }
echo "[  PASSED  ] 1 unit"
