#!/bin/bash
# The life of the packages in /debs/first and /debs/next; runs in a root of its own (run.sh).
# usage: life.sh VERSION
set -euo pipefail
version=$1
fail() {
  echo "FAILED: $1"
  exit 1
}
apt() { apt-get -qq -y --no-install-recommends --allow-downgrades -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold "$@" >/tmp/apt.log 2>&1 || { tail -n 30 /tmp/apt.log; fail "apt-get $*"; }; }
# Programs of another suite bring their libraries.
program() { LD_LIBRARY_PATH=$([ ! -d /libraries ] || echo /libraries) "$@"; }
installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
parts=(keelson-kubelet keelson-proxy keelson-cni keelson-controlplane keelson-nodectl keelson-csi-local keelson-csi-controller keelson-node keelson)
debs() { for part in "${parts[@]}"; do echo "/debs/$1/${part}_"*.deb; done; }
settings=(/etc/default/kubelet /etc/default/kube-proxy /etc/default/kube-cni /etc/default/kube-controlplane /etc/default/keelson-csi-local
  /etc/default/keelson-csi-controller)
units=(kubelet kube-proxy kube-cni kube-controlplane keelson-csi-local keelson-csi-controller)

# Packages that stand for the community's: same names, paths and versions as far as they meet ours.
community() {  # NAME VERSION FIELDS PATH...
  local name=$1 dir=/tmp/community/$1 path
  mkdir -p "$dir/DEBIAN"
  printf 'Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: nobody <nobody@example.org>\nDescription: stand-in\n%s\n' \
    "$name" "$2" "$(dpkg --print-architecture)" "$3" | sed '/^$/d' >"$dir/DEBIAN/control"
  for path in "${@:4}"; do install -D -m 755 /bin/true "$dir$path"; done
  dpkg-deb --build "$dir" "/tmp/$name.deb" >/dev/null
}
community kubelet 1.35.2-1.1 'Depends: kubernetes-cni (>= 1.2.0)' /usr/bin/kubelet /usr/lib/systemd/system/kubelet.service
community kubernetes-cni 1.8.0-1.1 '' /opt/cni/bin/bridge /opt/cni/bin/portmap /opt/cni/bin/host-local
community kubeadm 1.36.2-1.1 'Depends: kubelet (>= 1.34.0)' /usr/bin/kubeadm
mkdir -p /tmp/community/kubeadm/usr/lib/systemd/system/kubelet.service.d
cat >/tmp/community/kubeadm/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf <<'DROPIN'
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
DROPIN
dpkg-deb --build /tmp/community/kubeadm /tmp/kubeadm.deb >/dev/null

echo "--- take the place of the community's packages"
apt install /tmp/kubelet.deb /tmp/kubernetes-cni.deb /tmp/kubeadm.deb
apt install $(debs first)
! installed kubelet || fail "the community's kubelet is still there"
! installed kubernetes-cni || fail "the community's kubernetes-cni is still there"
installed kubeadm || fail "kubeadm had to go"
for part in "${parts[@]}"; do installed "$part" || fail "$part is not installed"; done

echo "--- programs find their libraries"
for program in kubelet kube-proxy kube-cni kube-controlplane nodectl keelson-csi-local keelson-csi-controller; do
  program "/usr/bin/$program" --version | grep -q '^Kubernetes v1\.' || fail "$program --version"
done
for plugin in bridge host-local portmap bandwidth loopback keelson-policy; do
  CNI_COMMAND=VERSION program "/opt/cni/bin/$plugin" </dev/null | grep -q '"supportedVersions"' || fail "plugin $plugin"
done
[ "$(stat -c %h /opt/cni/bin/bridge)" = 6 ] || fail "the plugins are not one file"

echo "--- files and users"
dpkg --verify "${parts[@]}" | grep . && fail "files differ from what the packages hold"
[ "$(stat -c '%U %G %a' /etc/kubernetes/pki)" = "root kube-controlplane 750" ] || fail "/etc/kubernetes/pki: $(stat -c '%U %G %a' /etc/kubernetes/pki)"
[ "$(stat -c %a /var/lib/kubelet)" = 750 ] || fail "/var/lib/kubelet: $(stat -c %a /var/lib/kubelet)"
[ -d /etc/kubernetes/manifests ] && [ -d /etc/cni/net.d ] && [ -d /var/lib/cni ] || fail "directories are missing"
for example in csi-local/examples/driver.yaml csi-controller/examples/rbac.yaml csi-controller/examples/snapshot-crds.yaml controlplane/examples/make-pki.sh; do
  [ -s "/usr/share/doc/keelson-$example" ] || fail "no /usr/share/doc/keelson-$example"
done
for file in bash-completion/completions/nodectl zsh/vendor-completions/_nodectl fish/vendor_completions.d/nodectl.fish; do
  [ -s "/usr/share/$file" ] || fail "no /usr/share/$file"
done
dpkg -L keelson-nodectl | grep -q '/man8/nodectl-commands\.8' || fail "no manual page of nodectl's commands"
for file in "${settings[@]}"; do
  dpkg-query -W -f '${Conffiles}\n' "${parts[@]}" | grep -q "^ $file " || fail "$file is no conffile"
done

echo "--- units"
for unit in "${units[@]}"; do
  [ "$(systemctl is-enabled "$unit.service")" = enabled ] || fail "$unit is not enabled"
  systemd-analyze verify --man=no "$unit.service" 2>&1 | grep "$unit" && fail "$unit.service has mistakes"
done
[ "$(systemctl is-enabled keelson-etcd-snapshot.timer)" = enabled ] || fail "no snapshots of etcd are taken"
for unit in keelson-etcd-snapshot.service keelson-etcd-snapshot.timer; do
  systemd-analyze verify --man=no "$unit" 2>&1 | grep "$unit" && fail "$unit has mistakes"
done
for unit in kube-proxy kube-cni kube-controlplane keelson-etcd-snapshot keelson-csi-controller; do
  systemd-analyze security --offline=yes --threshold=30 "$unit.service" >/tmp/security 2>&1 || { tail -n 1 /tmp/security; fail "$unit is too exposed"; }
  tail -n 1 /tmp/security
done
# Its mounts are the host's: whatever needs mounts of its own stays open.
systemd-analyze security --offline=yes --threshold=50 keelson-csi-local.service >/tmp/security 2>&1 || { tail -n 1 /tmp/security; fail "keelson-csi-local is too exposed"; }
tail -n 1 /tmp/security

echo "--- upgrade and downgrade keep settings"
for file in "${settings[@]}"; do echo "# mine" >>"$file"; done
for to in next first; do
  apt install $(debs $to)
  [ "$(dpkg-query -W -f '${Version}' keelson-kubelet)" = "$(dpkg-deb -f /debs/$to/keelson-kubelet_*.deb Version)" ] || fail "no $to version"
  for file in "${settings[@]}"; do grep -qx '# mine' "$file" || fail "$file has lost what was changed"; done
  for unit in "${units[@]}"; do [ "$(systemctl is-enabled "$unit.service")" = enabled ] || fail "$unit is not enabled any more"; done
done

echo "--- remove keeps settings and data, purge keeps data"
mkdir -p /var/lib/keelson/controlplane /var/lib/kubelet/pki /var/lib/keelson-csi-local/volumes
apt remove kubeadm "${parts[@]}"
for path in /usr/bin/kubelet /usr/bin/kube-controlplane /opt/cni/bin/bridge; do [ ! -e $path ] || fail "$path is still there"; done
for file in "${settings[@]}"; do grep -qx '# mine' "$file" || fail "$file is gone"; done
dpkg --purge "${parts[@]}" >/tmp/purge.log 2>&1 || { cat /tmp/purge.log; fail "purge"; }
for file in "${settings[@]}"; do [ ! -e "$file" ] || fail "$file is still there"; done
for unit in "${units[@]}"; do
  [ ! -e "/etc/systemd/system/multi-user.target.wants/$unit.service" ] || fail "$unit is still enabled"
done
[ -d /var/lib/keelson/controlplane ] && [ -d /var/lib/kubelet/pki ] && [ -d /var/lib/keelson-csi-local/volumes ] || fail "data is gone"
dpkg-query -W 'keelson*' 2>/dev/null | grep . && fail "packages are still known"

# rpms, in the same root with rpm: dependencies would be packages of an rpm distribution.
rpm_life() {
  local names file
  apt install rpm
  userdel kube-controlplane 2>/dev/null || true
  rpms() { HOME=/root rpm "$@" >/tmp/rpm.log 2>&1 || { cat /tmp/rpm.log; fail "rpm $1"; }; }
  kept() { grep -qx '# mine' /etc/sysconfig/kubelet || fail "/etc/sysconfig/kubelet has lost what was changed by rpm $1"; }
  rpms -i --nodeps /rpm/*.rpm
  getent passwd kube-controlplane >/dev/null || fail "the rpm has made no user kube-controlplane"
  for program in kubelet kube-proxy kube-cni kube-controlplane nodectl; do
    program "/usr/bin/$program" --version | grep -q '^Kubernetes v1\.' || fail "$program --version of the rpm"
  done
  echo "# mine" >>/etc/sysconfig/kubelet
  rpms -U --nodeps /rpm-next/*.rpm
  [ "$(HOME=/root rpm -q --qf '%{VERSION}' keelson-kubelet 2>/dev/null)" = "$version.1" ] || fail "no upgrade of the rpms"
  kept -U
  rpms -U --nodeps --oldpackage /rpm/*.rpm
  [ "$(HOME=/root rpm -q --qf '%{VERSION}' keelson-kubelet 2>/dev/null)" = "$version" ] || fail "no downgrade of the rpms"
  kept --oldpackage
  names=$(HOME=/root rpm -qa --qf '%{NAME} ' 'keelson*' 2>/dev/null)
  rpms -e $names
  for file in /usr/bin/kubelet /usr/bin/kube-controlplane /opt/cni/bin/bridge /usr/lib/systemd/system/kubelet.service; do
    [ ! -e $file ] || fail "rpms leave $file"
  done
  [ -d /var/lib/keelson/controlplane ] || fail "data is gone with the rpms"
}
if [ -d /rpm ]; then
  echo "--- rpms: installed, upgraded, downgraded and erased"
  rpm_life
fi
echo "--- passed"
