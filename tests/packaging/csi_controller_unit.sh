#!/bin/bash
# keelson-csi-controller under its unit, beside keelson-csi-local under its own: runs below a systemd of its own (tests/systemd/run.sh).
# There is no API server, and the unit has to be ready all the same.
# usage: csi_controller_unit.sh REPOSITORY KEELSON-CSI-CONTROLLER KEELSON-CSI-LOCAL
set -euo pipefail
packaging=$1/packaging unit=keelson-csi-controller.service
fail() {
  echo "FAILED: $1"
  journalctl --no-pager -u $unit -u keelson-csi-local.service | tail -n 30
  exit 1
}
property() { systemctl show -P "$1" $unit; }
within_a_minute() {  # WHAT COMMAND...: until it succeeds
  for _ in $(seq 600); do
    ! "${@:2}" >/dev/null 2>&1 || return 0
    sleep 0.1
  done
  fail "$1"
}

mount --make-rshared /
[ -e /dev/loop-control ] || mknod /dev/loop-control c 10 237
cp "$2" /usr/bin/keelson-csi-controller
cp "$3" /usr/bin/keelson-csi-local
for name in keelson-csi-controller keelson-csi-local; do
  install -m 644 "$packaging/default/$name" "/etc/default/$name"
  install -m 644 "$packaging/systemd/$name.service" "/etc/systemd/system/$name.service"
done
# This systemd has a /dev of a few nodes, from which it cannot make a private one; and nobody waits a minute for a watchdog.
mkdir -p /etc/systemd/system/$unit.d
printf '[Service]\nPrivateDevices=no\nWatchdogSec=6\n' >/etc/systemd/system/$unit.d/test.conf
echo 'KEELSON_CSI_CONTROLLER_ARGS=--http-endpoint=127.0.0.1:10263' >>/etc/default/keelson-csi-controller
systemd-tmpfiles --create "$packaging/tmpfiles/keelson-csi-local.conf"
systemctl daemon-reload

systemctl start $unit || fail "without a kubeconfig the start fails"
[ "$(property ActiveState)" = inactive ] || fail "without a kubeconfig it is $(property ActiveState)"
[ "$(property ConditionResult)" = no ] || fail "it does not wait for a kubeconfig"

ip link set lo up
"$packaging/examples/make-pki.sh" cluster 127.0.0.1
# As nodectl leaves it, which writes no pki/server.
rm /etc/kubernetes/pki/server
"$packaging/examples/make-pki.sh" csi-controller /etc/kubernetes/csi-controller.conf
[ "$(stat -c %a /etc/kubernetes/csi-controller.conf)" = 600 ] || fail "others may read the kubeconfig"
grep -qx ' *server: https://127.0.0.1:6443' /etc/kubernetes/csi-controller.conf || fail "the kubeconfig has no server"
sed -n 's/.*client-certificate-data: //p' /etc/kubernetes/csi-controller.conf | base64 -d >/tmp/client.crt
openssl verify -CAfile /etc/kubernetes/pki/ca.crt /tmp/client.crt >/dev/null || fail "the certificate is not the cluster's"
openssl x509 -in /tmp/client.crt -noout -subject | grep -q 'O = keelson:csi-controller, CN = keelson:csi-controller' || fail "the certificate is for another"

timeout 120 systemctl start $unit || fail "the start"
[ "$(property ActiveState)" = active ] || fail "it is $(property ActiveState)"
within_a_minute "it does not answer on /healthz" curl -fsS -m 2 http://127.0.0.1:10263/healthz
mkdir -p /var/lib/kubelet
touch /var/lib/kubelet/config.yaml
timeout 120 systemctl start keelson-csi-local.service || fail "the driver's start"
serves() { journalctl --no-pager -u $unit | grep -q 'Serving a driver.*local.csi.keelson.dev'; }
within_a_minute "it does not reach the driver with the unit's restrictions" serves
fed=$(property WatchdogTimestampMonotonic)
fed_again() { [ "$(property WatchdogTimestampMonotonic)" -gt "$fed" ]; }
within_a_minute "the watchdog is not fed" fed_again
[ "$(property NRestarts)" = 0 ] || fail "it was restarted"
systemctl stop $unit
[ "$(property Result)" = success ] || fail "its end: $(property Result)"
echo "[  PASSED  ] 1 unit"
