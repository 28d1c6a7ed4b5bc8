// Machines and pods for tests.
#pragma once

#include "kubelet/cm/topology/machine_topology.h"

namespace keelson::kubelet {

// CPUs are numbered as Linux does: first the first thread of every core, then the second ones.
inline MachineTopology FakeMachine(int sockets, int nodes_a_socket, int cores_a_node, int threads,
                                   int64_t memory_a_node = int64_t{8} << 30) {
  MachineTopology out;
  int cores = sockets * nodes_a_socket * cores_a_node;
  for (int thread = 0; thread < threads; ++thread) {
    for (int core = 0; core < cores; ++core) {
      int node = core / cores_a_node, cpu = thread * cores + core;
      out.cpus[cpu] = {node / nodes_a_socket, node, core, node};
      out.nodes[node].cpus.Add(cpu);
    }
  }
  for (auto& [id, node] : out.nodes) {
    node.memory_bytes = memory_a_node;
    for (const auto& [other, unused] : out.nodes) {
      node.distance[other] = id == other ? 10 : id / nodes_a_socket == other / nodes_a_socket ? 12 : 21;
    }
  }
  return out;
}

// A pod of one container of class Guaranteed.
inline corev1::Pod GuaranteedPod(const std::string& uid, const std::string& cpu, const std::string& memory) {
  corev1::Pod pod;
  pod.mutable_metadata()->set_uid(uid);
  pod.mutable_metadata()->set_name(uid);
  pod.mutable_metadata()->set_namespace_("default");
  corev1::Container& container = *pod.mutable_spec()->add_containers();
  container.set_name("main");
  for (auto* list :
       {container.mutable_resources()->mutable_requests(), container.mutable_resources()->mutable_limits()}) {
    (*list)["cpu"].set_string(cpu);
    (*list)["memory"].set_string(memory);
  }
  return pod;
}

}  // namespace keelson::kubelet
