// What the API server, and the scheduler where it tells, have about a pod.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/json/value.hpp>

#include "ctl/why/events.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/client/rest.h"

namespace keelson::ctl {

struct PodView {
  corev1::Pod pod;
  Events events;                     // of the pod, the oldest first
  std::optional<corev1::Node> node;  // where the pod is; nullopt: on none, or it does not exist
  std::vector<corev1::PersistentVolumeClaim> claims;
  std::set<std::string> missing;  // claims that the pod names: "PersistentVolumeClaim data"
  // By container: the last lines of the instance that has ended.
  std::map<std::string, std::vector<std::string>> logs;
  std::optional<boost::json::value>
      scheduling;                 // what the scheduler serves at /debug/why, for a pod without a node
  std::string scheduler_silence;  // why there is none of that
  WallTime now;

  std::string Name() const;                             // NAMESPACE/NAME
  std::string Kubectl(const std::string& words) const;  // "kubectl -n NAMESPACE ..."
  const corev1::Event* Last(const std::vector<std::string>& reasons) const;
  // The last event of one container; `words` have to be in its message.
  const corev1::Event* LastOfContainer(const std::string& container, const std::vector<std::string>& reasons,
                                       const std::string& words = "") const;
};

// `scheduler`: URL of the scheduler's debug endpoint. kNotFound: there is no such pod.
Result<PodView> ReadPod(const client::RestClient& api, const std::string& ns, const std::string& name,
                        const std::string& scheduler, WallTime now);

// A pod that does not exist, and those that might have made it.
struct AbsentPodView {
  struct Owner {
    std::string kind, name;
    std::string condition;  // what condition ReplicaFailure says; may be empty
    Events events;
  };
  std::string ns, name;
  std::vector<Owner> owners;  // whose name the pod's begins with, the longest name first
};
Result<AbsentPodView> ReadAbsentPod(const client::RestClient& api, const std::string& ns,
                                    const std::string& name);

}  // namespace keelson::ctl
