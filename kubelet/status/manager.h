// The status manager: writes the latest status of each pod to the API server as soon as it differs, or within a second
// if more changes are about to come. Deletes the API object of a terminating pod once nothing of it runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "lib/api/types.h"
#include "lib/client/rest.h"

namespace keelson::kubelet {

// The strategic merge patch from `base` to `desired`; nullopt: no difference. Other writers' conditions
// (own_conditions.h) stay. The uid keeps it from changing a newer pod of the same name.
std::optional<std::string> StatusPatch(const std::string& uid, const corev1::PodStatus& base,
                                       const corev1::PodStatus& desired);

class StatusManager {  // thread safe
 public:
  explicit StatusManager(client::RestClient api, Clock& clock = Clock::Real());
  ~StatusManager();

  enum class When { kNow, kSoon };  // kSoon: more is about to come, and is written with it
  // Sets the pod's status. `pod`: as the informer had it, perhaps not the latest.
  void Set(std::shared_ptr<const corev1::Pod> pod, const corev1::PodStatus& status, When when = When::kNow);
  // The informer has `pod`: if another writer has changed what was set here, writes it again. The node lifecycle
  // controller marks pods not ready while a node is unreachable.
  void Reconcile(std::shared_ptr<const corev1::Pod> pod);
  // The mirror pod to which the static pod's status is written; null: none.
  void SetMirror(const std::string& uid, std::shared_ptr<const corev1::Pod> mirror);
  // The status set last; nullopt: unknown pod.
  std::optional<corev1::PodStatus> Get(const std::string& uid) const;
  // The pod is finished: nothing runs, volumes and cgroup are gone. If it is being deleted, its object is deleted.
  void Finish(std::shared_ptr<const corev1::Pod> pod);
  void Forget(const std::string& uid);  // drops the status
  void Run(std::stop_token stop);       // writes statuses until `stop`

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::kubelet
