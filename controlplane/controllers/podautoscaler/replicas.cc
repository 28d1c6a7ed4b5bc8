#include "controlplane/controllers/podautoscaler/replicas.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "lib/api/meta.h"
#include "lib/api/quantity.h"
#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers::podautoscaler {
namespace {

int32_t RoundUp(double replicas) {
  return static_cast<int32_t>(std::min(std::ceil(replicas), double{std::numeric_limits<int32_t>::max()}));
}

struct Groups {
  int64_t ready = 0;
  std::set<std::string> unready, missing;
};

// CPU usage during startup is not representative: it counts when the pod is ready and a full window has
// passed since. After the initialization period only a pod that has never been ready is left out.
bool CannotBeBelieved(const corev1::Pod& pod, const PodValue& value, const Look& look) {
  const corev1::PodCondition* ready = k8s::FindCondition(pod.status(), k8s::kPodReady);
  if (!ready || !pod.status().has_start_time()) return true;
  const WallTime start = api::FromTime(pod.status().start_time()),
                 since = api::FromTime(ready->last_transition_time());
  const bool is_unready = ready->status() == "False";
  if (start + look.cpu_initialization_period > look.now) {
    return is_unready || value.time < since + value.window;
  }
  return is_unready && start + look.initial_readiness_delay > since;
}

// Removes the values of pods that do not count from `values`.
Groups Group(const Look& look, const std::string& resource, PodValues& values) {
  Groups out;
  PodValues counted;
  for (const auto& pod : look.pods) {
    const std::string& name = pod->metadata().name();
    const std::string& phase = pod->status().phase();
    const auto value = values.find(name);
    if (k8s::IsTerminating(*pod) || phase == "Failed") continue;
    if (phase == "Pending") {
      out.unready.insert(name);
    } else if (value == values.end()) {
      out.missing.insert(name);
    } else if (resource == "cpu" && CannotBeBelieved(*pod, value->second, look)) {
      out.unready.insert(name);
    } else {
      ++out.ready;
      counted.insert(*value);
    }
  }
  values = std::move(counted);
  return out;
}

Error NoPods() {
  return Error(Code::kNotFound, "no pods returned by selector while calculating replica count");
}

// Pod-level resources take precedence; missing ones come from the containers.
bool HasPodLevelRequests(const corev1::Pod& pod) {
  const auto& requests = pod.spec().resources().requests();
  return std::any_of(requests.begin(), requests.end(),
                     [](const auto& request) { return k8s::IsPodLevelResource(request.first); });
}

// In thousandths, by pod.
using Requests = std::map<std::string, int64_t>;
Result<Requests> RequestsOf(const Pods& pods, const std::string& resource, const std::string& container) {
  Requests out;
  for (const auto& pod : pods) {
    if (container.empty() && HasPodLevelRequests(*pod)) {
      const k8s::ResourceList whole = k8s::PodRequests(*pod);
      const auto found = whole.find(resource);
      if (found == whole.end()) {
        return Error(Code::kNotFound, fmt::format("missing pod-level request for {} in Pod {}", resource,
                                                  pod->metadata().name()));
      }
      out[pod->metadata().name()] = found->second.MilliValue();
      continue;
    }
    api::Amount sum;
    bool known = container.empty();
    auto add = [&](const corev1::Container& one) -> Result<> {
      if (!container.empty() && one.name() != container) return {};
      known = true;
      const auto& requests = one.resources().requests();
      if (!requests.contains(resource)) {
        return Error(Code::kNotFound, fmt::format("missing request for {} in container {} of Pod {}",
                                                  resource, one.name(), pod->metadata().name()));
      }
      sum += api::Amount::Of(requests.at(resource));
      return {};
    };
    for (const corev1::Container& one : pod->spec().containers()) KEELSON_RETURN_IF_ERROR(add(one));
    for (const corev1::Container& one : pod->spec().init_containers()) {
      if (k8s::IsSidecar(one)) KEELSON_RETURN_IF_ERROR(add(one));
    }
    if (!known) {
      return Error(Code::kNotFound,
                   fmt::format("container {} not found in Pod {}", container, pod->metadata().name()));
    }
    out[pod->metadata().name()] = sum.MilliValue();
  }
  return out;
}

struct Ratio {
  double ratio = 0;
  int32_t percent = 0;
  int64_t average = 0;
};

Result<Ratio> UtilizationOf(const PodValues& values, const Requests& requests, int32_t target_percent) {
  int64_t used = 0, requested = 0;
  for (const auto& [name, value] : values) {
    used += value.milli;
    requested += requests.at(name);
  }
  if (requested == 0) return Error(Code::kNotFound, "no metrics returned matched known pods");
  Ratio out;
  out.percent = static_cast<int32_t>(used * 100 / requested);
  out.ratio = double(out.percent) / target_percent;
  out.average = used / static_cast<int64_t>(values.size());
  return out;
}

Ratio AverageOf(const PodValues& values, int64_t target) {
  int64_t sum = 0;
  for (const auto& [name, value] : values) sum += value.milli;
  Ratio out;
  out.average = sum / static_cast<int64_t>(values.size());
  out.ratio = double(out.average) / double(target);
  return out;
}

// The rules that utilization and averages share. `ratio_of` is called again with the omitted pods added;
// `at_target`: the usage of a pod that exactly meets the target.
Result<Proposal> Plan(const Look& look, PodValues values, const Groups& groups,
                      const std::function<Result<Ratio>(const PodValues&)>& ratio_of,
                      const std::function<int64_t(const std::string&)>& at_target) {
  if (values.empty()) return Error(Code::kNotFound, "did not receive metrics for any ready pods");
  KEELSON_ASSIGN_OR_RETURN(const Ratio first, ratio_of(values));
  Proposal out{look.current_replicas, first.percent, first.average};
  const bool count_unready = !groups.unready.empty() && first.ratio > 1;
  if (!count_unready && groups.missing.empty()) {
    if (!look.tolerances.Within(first.ratio)) out.replicas = RoundUp(first.ratio * double(groups.ready));
    return out;
  }
  if (first.ratio != 1) {
    for (const std::string& name : groups.missing) {
      values[name] = {{}, {}, first.ratio < 1 ? at_target(name) : 0};
    }
  }
  if (count_unready) {
    for (const std::string& name : groups.unready) values[name] = {};
  }
  KEELSON_ASSIGN_OR_RETURN(const Ratio second, ratio_of(values));
  const bool turned = (first.ratio < 1 && second.ratio > 1) || (first.ratio > 1 && second.ratio < 1);
  if (look.tolerances.Within(second.ratio) || turned) return out;
  const int32_t replicas = RoundUp(second.ratio * double(values.size()));
  // Pods and replicas may differ in number: never scale against the direction of the ratio.
  if ((second.ratio < 1 && replicas > look.current_replicas) ||
      (second.ratio > 1 && replicas < look.current_replicas)) {
    return out;
  }
  out.replicas = replicas;
  return out;
}

}  // namespace

Result<Proposal> ByUtilization(const Look& look, PodValues values, const std::string& resource,
                               const std::string& container, int32_t target_percent) {
  if (look.pods.empty()) return NoPods();
  const Groups groups = Group(look, resource, values);
  KEELSON_ASSIGN_OR_RETURN(const Requests requests, RequestsOf(look.pods, resource, container));
  return Plan(
      look, std::move(values), groups,
      [&](const PodValues& some) { return UtilizationOf(some, requests, target_percent); },
      [&](const std::string& name) { return requests.at(name) * std::max(100, target_percent) / 100; });
}

Result<Proposal> ByAverage(const Look& look, PodValues values, const std::string& resource,
                           int64_t target_milli) {
  if (look.pods.empty()) return NoPods();
  const Groups groups = Group(look, resource, values);
  return Plan(
      look, std::move(values), groups,
      [&](const PodValues& some) -> Result<Ratio> { return AverageOf(some, target_milli); },
      [&](const std::string&) { return target_milli; });
}

Result<Proposal> ByValue(const Look& look, int64_t milli, int64_t target_milli) {
  const double ratio = double(milli) / double(target_milli);
  Proposal out{look.current_replicas, 0, milli};
  if (look.current_replicas == 0) {
    out.replicas = RoundUp(ratio);
    return out;
  }
  if (look.tolerances.Within(ratio)) return out;
  if (look.pods.empty()) return NoPods().Wrap("unable to calculate ready pods");
  int64_t ready = 0;
  for (const auto& pod : look.pods) ready += pod->status().phase() == "Running" && k8s::IsReady(*pod);
  out.replicas = RoundUp(ratio * double(ready));
  return out;
}

Proposal ByValuePerPod(const Look& look, int32_t status_replicas, int64_t milli, int64_t target_milli) {
  Proposal out{status_replicas, 0, milli};
  const double wanted = double(milli) / double(target_milli);
  // Without replicas any value is outside the tolerance.
  if (status_replicas == 0 || !look.tolerances.Within(wanted / status_replicas)) {
    out.replicas = RoundUp(wanted);
  }
  if (status_replicas > 0) out.milli = static_cast<int64_t>(std::ceil(double(milli) / status_replicas));
  return out;
}

}  // namespace keelson::controllers::podautoscaler
