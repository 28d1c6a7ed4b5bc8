// What the scheduler tells of pods: events, the PodScheduled condition, status.nominatedNodeName.
#pragma once

#include <optional>
#include <string>

#include "controlplane/scheduler/binders.h"
#include "controlplane/scheduler/types/pod_info.h"
#include "lib/client/events.h"

namespace keelson::scheduler {

class Reports {  // thread safe
 public:
  Reports(client::RestClient api, client::EventRecorder& events, Binders& binders, Clock& clock)
      : api_(std::move(api)), events_(events), binders_(binders), clock_(clock) {}

  void Scheduled(const PodInfo& pod, const std::string& node);
  // An event; condition and nominated node too, where they are news. `nominated` as PostFilter says it.
  void Unschedulable(const PodPtr& pod, std::string_view reason, const std::string& message,
                     const std::optional<std::string>& nominated);
  // `victim` leaves `node` for `pod`.
  void Preempted(const PodInfo& victim, const PodInfo& pod, const std::string& node);
  void EndNomination(const PodPtr& pod);

 private:
  void Patch(const PodPtr& pod, std::string status);

  const client::RestClient api_;
  client::EventRecorder& events_;
  Binders& binders_;
  Clock& clock_;
};

}  // namespace keelson::scheduler
