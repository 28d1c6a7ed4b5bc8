// Records events about pods and the node, with upstream's involvedObject.
#pragma once

#include <stop_token>
#include <string>

#include "lib/api/types.h"
#include "lib/client/events.h"

namespace keelson::kubelet {

class EventReporter {  // thread safe
 public:
  // `standalone`: events are dropped.
  EventReporter(client::RestClient api, std::string node, bool standalone, Clock& clock)
      : node_(std::move(node)), standalone_(standalone), recorder_(std::move(api), "kubelet", node_, clock) {}

  // Queues an event. `container`: the one that it is about; empty: the pod. `type`: Normal or Warning.
  void Pod(const corev1::Pod& pod, const std::string& container, const std::string& type,
           const std::string& reason, const std::string& message);
  void Claim(const corev1::PersistentVolumeClaim& claim, const std::string& type, const std::string& reason,
             const std::string& message);
  void Node(const std::string& type, const std::string& reason, const std::string& message);
  // Sends queued events until `stop`.
  void Run(std::stop_token stop) { recorder_.Run(stop); }

 private:
  const std::string node_;
  const bool standalone_;
  client::EventRecorder recorder_;
};

}  // namespace keelson::kubelet
