// Static pods and their mirror pods. Static pods run with or without an API server; a mirror pod in the API shows
// each of them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/status/manager.h"
#include "lib/client/rest.h"
#include "lib/client/workqueue.h"

namespace keelson::kubelet {

class StaticPods {  // thread safe
 public:
  using PodPtr = std::shared_ptr<const corev1::Pod>;
  struct Dependencies {
    client::RestClient api;
    std::function<void(PodPtr pod)> run;                   // starts the pod, or updates it
    std::function<void(const std::string& uid)> end;       // terminates it; Released() follows
    std::function<std::optional<std::string>()> node_uid;  // of the Node object; nullopt: not known (yet)
    // The pod's mirror has changed; null: it has none.
    std::function<void(const std::string& uid, PodPtr mirror)> mirrored;
    std::string node_name;
  };
  StaticPods(Dependencies dependencies, std::set<std::string> sources, Clock& clock);

  // Sets all pods of a source. A changed manifest is another pod, which starts when the old one is gone.
  void Set(const std::string& source, std::vector<corev1::Pod> pods);
  // Nothing of the pod is left on the node.
  void Released(const std::string& uid);
  // Whether every source has delivered its pods.
  bool ready() const;

  // The informer has this mirror pod, or it was deleted (`gone`).
  void MirrorChanged(PodPtr mirror, bool gone);
  // Creates and deletes mirror pods until `stop`.
  void RunMirrors(std::stop_token stop);

 private:
  struct Slot {  // per name
    PodPtr running, next;
    bool ending = false;
  };
  void Place(PodPtr pod, std::vector<std::function<void()>>& effects) KEELSON_REQUIRES(mutex_);
  void Retire(const corev1::Pod& pod, std::vector<std::function<void()>>& effects) KEELSON_REQUIRES(mutex_);
  Result<client::Requeue> ReconcileMirror(const std::string& name, std::stop_token stop);
  Result<corev1::Pod> NewMirror(const corev1::Pod& pod) const;

  const Dependencies deps_;
  client::WorkQueue queue_;
  Clock& clock_;
  mutable Mutex mutex_;
  std::set<std::string> silent_ KEELSON_GUARDED_BY(mutex_);  // sources that have not delivered their pods
  std::map<std::string, std::map<std::string, PodPtr>> sources_
      KEELSON_GUARDED_BY(mutex_);                                     // source -> uid -> pod
  std::map<std::string, Slot> slots_ KEELSON_GUARDED_BY(mutex_);      // by namespace/name
  std::map<std::string, PodPtr> mirrors_ KEELSON_GUARDED_BY(mutex_);  // by namespace/name
};

}  // namespace keelson::kubelet
