// Events about pods and the node itself, as upstream's kubelet names their objects.
#pragma once

#include <stop_token>
#include <string>

#include "lib/api/types.h"
#include "lib/client/events.h"

namespace keelson::kubelet {

class EventReporter {  // thread safe
 public:
  // standalone: there is nobody to tell.
  EventReporter(client::RestClient api, std::string node, bool standalone, Clock& clock)
      : node_(std::move(node)), standalone_(standalone), recorder_(std::move(api), "kubelet", node_, clock) {}

  // container: the one it is about; empty: the pod. type: Normal or Warning.
  void Pod(const corev1::Pod& pod, const std::string& container, const std::string& type,
           const std::string& reason, const std::string& message);
  void Node(const std::string& type, const std::string& reason, const std::string& message);
  void Run(std::stop_token stop) { recorder_.Run(stop); }

 private:
  const std::string node_;
  const bool standalone_;
  client::EventRecorder recorder_;
};

}  // namespace keelson::kubelet
