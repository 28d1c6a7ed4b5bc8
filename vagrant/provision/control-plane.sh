#!/bin/bash
# Makes a machine the control plane of a new cluster, and a node of it. Does nothing where it is one.
# usage: control-plane.sh ADDRESS TOKEN [DIRECTORY]      as root; DIRECTORY: with the cluster's ca.crt and ca.key
set -euo pipefail
address=$1 token=$2 directory=${3:-}

if [ -n "$directory" ] && [ ! -e /etc/kubernetes/pki/ca.key ]; then
  install -D -m 644 "$directory/ca.crt" /etc/kubernetes/pki/ca.crt
  install -D -m 600 "$directory/ca.key" /etc/kubernetes/pki/ca.key
  rm -f "$directory/ca.key"
fi
if [ -f /etc/kubernetes/admin.conf ] && nodectl token list --kubeconfig /etc/kubernetes/admin.conf >/dev/null 2>&1; then
  echo "this machine is a control plane already"
  exit 0
fi
nodectl init --apiserver-advertise-address "$address" --token "$token" --node-name "$(hostname)"
# Small clusters have no other machine for pods.
if command -v kubectl >/dev/null; then
  kubectl --kubeconfig /etc/kubernetes/admin.conf taint node "$(hostname)" node-role.kubernetes.io/control-plane:NoSchedule- || true
fi
