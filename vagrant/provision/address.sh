#!/bin/bash
# Names the address at which other machines reach this one; virtual machines have several.
# usage: address.sh ADDRESS      as root, before the machine becomes a node
set -euo pipefail
file=/etc/default/kubelet
touch $file
sed -i '/^KUBELET_EXTRA_ARGS=$/d' $file
grep -q '^KUBELET_EXTRA_ARGS=' $file || echo "KUBELET_EXTRA_ARGS=--node-ip=$1" >>$file
