// Static pods and their mirrors: pods that the node has of itself run whether there is an API server or not;
// an object in the API, the mirror, lets people see each.
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
    std::function<void(PodPtr pod)> run;                   // begins, or goes on with it
    std::function<void(const std::string& uid)> end;       // Released() follows when nothing is left of it
    std::function<std::optional<std::string>()> node_uid;  // of the Node object; nullopt: not known (yet)
    // Where the pod's status is shown; null: nowhere.
    std::function<void(const std::string& uid, PodPtr mirror)> mirrored;
    std::string node_name;
  };
  StaticPods(Dependencies dependencies, std::set<std::string> sources, Clock& clock);

  // All pods of a source. A pod whose manifest has changed is another pod: it begins when the one of its name
  // is gone.
  void Set(const std::string& source, std::vector<corev1::Pod> pods);
  void Released(const std::string& uid);
  // Every source has been heard of: what is not known is not wanted.
  bool ready() const;

  // The API has this mirror, or (`gone`) has it no more.
  void MirrorChanged(PodPtr mirror, bool gone);
  // Keeps mirrors as they should be, until `stop`.
  void RunMirrors(std::stop_token stop);

 private:
  struct Slot {  // one a name
    PodPtr running, next;
    bool ending = false;
  };
  void Place(PodPtr pod, std::vector<std::function<void()>>& effects) REQUIRES(mutex_);
  void Retire(const corev1::Pod& pod, std::vector<std::function<void()>>& effects) REQUIRES(mutex_);
  Result<client::Requeue> ReconcileMirror(const std::string& name, std::stop_token stop);
  Result<corev1::Pod> NewMirror(const corev1::Pod& pod) const;

  const Dependencies deps_;
  client::WorkQueue queue_;
  Clock& clock_;
  mutable Mutex mutex_;
  std::set<std::string> silent_ GUARDED_BY(mutex_);  // sources that have not told of themselves
  std::map<std::string, std::map<std::string, PodPtr>> sources_ GUARDED_BY(mutex_);  // source -> uid -> pod
  std::map<std::string, Slot> slots_ GUARDED_BY(mutex_);                             // by namespace/name
  std::map<std::string, PodPtr> mirrors_ GUARDED_BY(mutex_);                         // by namespace/name
};

}  // namespace keelson::kubelet
