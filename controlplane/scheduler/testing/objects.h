// For tests: nodes and pods in few words.
#pragma once

#include <memory>
#include <string>

#include "controlplane/scheduler/types/node_info.h"

namespace keelson::scheduler::testing {

inline corev1::Node MakeNode(const std::string& name, const std::string& cpu = "4",
                             const std::string& memory = "8Gi", const std::string& pods = "110") {
  corev1::Node node;
  node.mutable_metadata()->set_name(name);
  auto& allocatable = *node.mutable_status()->mutable_allocatable();
  allocatable["cpu"].set_string(cpu);
  allocatable["memory"].set_string(memory);
  allocatable["pods"].set_string(pods);
  return node;
}

inline corev1::Pod MakePod(const std::string& name, const std::string& cpu = "",
                           const std::string& memory = "") {
  corev1::Pod pod;
  pod.mutable_metadata()->set_name(name);
  pod.mutable_metadata()->set_namespace_("default");
  pod.mutable_metadata()->set_uid("uid-" + name);
  pod.mutable_spec()->set_scheduler_name("default-scheduler");
  corev1::Container& container = *pod.mutable_spec()->add_containers();
  container.set_name("c");
  auto& requests = *container.mutable_resources()->mutable_requests();
  if (!cpu.empty()) requests["cpu"].set_string(cpu);
  if (!memory.empty()) requests["memory"].set_string(memory);
  return pod;
}

inline NodeInfo Info(const corev1::Node& node, Vocabulary& words) {
  NodeInfo info;
  info.facts = std::make_shared<const NodeFacts>(node, words.resources);
  info.allocatable = info.facts->allocatable;
  return info;
}

inline PodPtr Info(const corev1::Pod& pod, Vocabulary& words) {
  return std::make_shared<const PodInfo>(pod, words);
}

inline PodPtr Info(corev1::Pod pod, const std::string& node, Vocabulary& words) {
  pod.mutable_spec()->set_node_name(node);
  return Info(pod, words);
}

}  // namespace keelson::scheduler::testing
