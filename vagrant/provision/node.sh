#!/bin/bash
# Makes a machine a node of a cluster. Does nothing where it is one.
# usage: node.sh CONTROL-PLANE TOKEN CA-HASH      as root
set -euo pipefail
control_plane=$1 token=$2 hash=$3

if [ -f /etc/kubernetes/kubelet.conf ]; then
  echo "this machine is a node already"
  exit 0
fi
nodectl join "$control_plane:6443" --token "$token" --discovery-token-ca-cert-hash "$hash" --node-name "$(hostname)"
