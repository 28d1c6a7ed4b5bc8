// Reports the outcome of scheduling attempts: events, the PodScheduled condition, status.nominatedNodeName.
#pragma once

#include <optional>
#include <string>

#include "controlplane/scheduler/dispatcher/api_dispatcher.h"
#include "controlplane/scheduler/types/pod_info.h"
#include "lib/client/events.h"

namespace keelson::scheduler {

// No method blocks: statuses are written on the dispatcher's threads, and failures to write are logged.
class PodStatusUpdater {  // thread safe
 public:
  // References outlive this.
  PodStatusUpdater(client::RestClient api, client::EventRecorder& events, ApiDispatcher& dispatcher,
                   Clock& clock)
      : api_(std::move(api)), events_(events), dispatcher_(dispatcher), clock_(clock) {}

  // The event Scheduled: `pod` is bound to `node`.
  void Scheduled(const PodInfo& pod, const std::string& node);
  // The event FailedScheduling. Writes the condition PodScheduled=False and status.nominatedNodeName too, if
  // they change. `nominated_node_name`: see PostFilterResult.
  void Unschedulable(const PodPtr& pod, std::string_view reason, const std::string& message,
                     const std::optional<std::string>& nominated_node_name);
  // The event Preempted: `victim` is evicted from `node` for `pod`.
  void Preempted(const PodInfo& victim, const PodInfo& pod, const std::string& node);
  // Clears status.nominatedNodeName.
  void ClearNominatedNodeName(const PodPtr& pod);

 private:
  void Patch(const PodPtr& pod, std::string status);

  const client::RestClient api_;
  client::EventRecorder& events_;
  ApiDispatcher& dispatcher_;
  Clock& clock_;
};

}  // namespace keelson::scheduler
