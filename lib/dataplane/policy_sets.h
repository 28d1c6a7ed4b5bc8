// The nftables objects that enforce NetworkPolicy on a node. kube-cni owns both tables; the CNI plugin
// keelson-policy adds and removes the elements of its pods in the sets named here.
//
//   inet keelson-policy     decides about packets that the node forwards from and to its pods
//   bridge keelson-policy   hands every frame of a pod to the node, so that it is forwarded by address
//
// An attachment is one ADD of one pod. Its epoch is a random number: an address that another pod gets later
// has another epoch, so permissions of the former pod never apply to it.
#pragma once

#include "lib/nft/model.h"

namespace keelson::dataplane {

inline constexpr char kPolicyTableName[] = "keelson-policy";
nft::Table PolicyTable();
nft::Table PolicyPortsTable();

// Of the inet table.
nft::Set AttachedPods(bool v4);  // address : epoch, comment: UID of the pod. Written by the plugin
nft::Set ReadyPods(bool v4);     // address. Written by the agent once the pod's policies are in place; the
                                 // plugin deletes it. Packets from and to other addresses of pods are dropped
// Of the bridge table; the comment of an element is the label of cni/lib/label.h.
nft::Set PodPorts();           // port of the bridge
nft::Set CheckedPorts();       // ports whose packets must have a source of PodSources
nft::Set PodSources(bool v4);  // port . address

// Where the agent answers the plugin: a name in the abstract namespace of unix sockets, which belongs to the
// network namespace of the node. Request: "EPOCH ADDRESS ADDRESS...\n". The agent answers "ok\n" when all the
// addresses are ready with that epoch, and until then nothing.
inline constexpr char kPolicySocket[] = "keelson-network-policy";

}  // namespace keelson::dataplane
