#!/bin/bash
# Installs Keelson and its container runtime on Debian, from a directory that ./dev packages has filled.
# usage: packages.sh DIRECTORY PACKAGE...      as root; again for an upgrade
set -euo pipefail
directory=$1
shift
export DEBIAN_FRONTEND=noninteractive

[ -f "$directory/Packages" ] || { echo "$directory has no Packages: ./dev packages fills it" >&2; exit 1; }
echo "deb [trusted=yes] file:$directory ./" >/etc/apt/sources.list.d/keelson.list
apt-get update -qq
# etcd's own unit stays off: the control plane starts one for itself.
[ -e /etc/systemd/system/etcd.service ] || ln -s /dev/null /etc/systemd/system/etcd.service
programs=(containerd runc)
case " $* " in *" keelson "* | *" keelson-controlplane "*) programs+=(etcd-server) ;; esac
apt-get install -y -qq --no-install-recommends --allow-downgrades -o Dpkg::Options::=--force-confold "${programs[@]}" "$@"

# Debian's containerd looks for CNI plugins elsewhere.
mkdir -p /etc/containerd
cat >/etc/containerd/config.toml.new <<'TOML'
version = 2
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/opt/cni/bin"
  conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = true
TOML
if cmp -s /etc/containerd/config.toml.new /etc/containerd/config.toml; then
  rm /etc/containerd/config.toml.new
else
  mv /etc/containerd/config.toml.new /etc/containerd/config.toml
  systemctl restart containerd
fi
swapoff -a
sed -i 's/^\([^#].*[[:space:]]swap[[:space:]].*\)$/# \1/' /etc/fstab
systemctl restart systemd-modules-load systemd-sysctl || true
