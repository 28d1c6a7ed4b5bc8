// Writes pod statuses to the API: the latest one of a pod, once, as soon as it differs from what the API has
// (within a second, while more is about to be said: containers are being made); and takes the API object of a
// pod away once nothing of it runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "lib/api/types.h"
#include "lib/client/rest.h"

namespace keelson::kubelet {

// The strategic merge patch that turns `base` into `desired`; nullopt when they agree. Conditions of other
// writers (own_conditions.h) stay as they are. The uid makes it miss a pod of
// the same name that was created since.
std::optional<std::string> StatusPatch(const std::string& uid, const corev1::PodStatus& base,
                                       const corev1::PodStatus& desired);

class StatusManager {  // thread safe
 public:
  explicit StatusManager(client::RestClient api, Clock& clock = Clock::Real());
  ~StatusManager();

  enum class When { kNow, kSoon };  // soon: more is about to come, which is written with it
  // `pod` as the API has it, or had it before what it has shown since.
  void Set(std::shared_ptr<const corev1::Pod> pod, const corev1::PodStatus& status, When when = When::kNow);
  // The API has shown `pod`: where another writer has changed what was set here, it is set again. One does
  // when a node falls silent: the node's pods are marked not ready, and the kubelet may come back.
  void Reconcile(std::shared_ptr<const corev1::Pod> pod);
  // A static pod's status is shown by its mirror, once there is one (null: there is none any more).
  void SetMirror(const std::string& uid, std::shared_ptr<const corev1::Pod> mirror);
  // What was set last; nullopt for a pod that is not known.
  std::optional<corev1::PodStatus> Get(const std::string& uid) const;
  // Nothing of the pod runs any more, its volumes and cgroup are gone: a pod that is being deleted may go.
  void Finish(std::shared_ptr<const corev1::Pod> pod);
  void Forget(const std::string& uid);
  void Run(std::stop_token stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::kubelet
