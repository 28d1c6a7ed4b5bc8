// LimitRanger: sets the namespace's default requests and limits, and enforces its bounds for containers, pods
// and claims.
#include <map>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::apiserver {
namespace {

using api::Amount;
using k8s::QuantityMap;
using k8s::ResourceList;
using Problems = std::vector<std::string>;

constexpr char kAnnotation[] = "kubernetes.io/limit-ranger";
// Larger values in milli-units overflow 64 bits.
constexpr int64_t kMaxMilliValue = INT64_MAX / 1000;

// One bound of one resource, with the requested amounts.
struct Check {
  std::string_view type, resource;
  const Amount& bound;
  const Amount *request, *limit;  // null: not set
};

std::string Says(const Check& check, std::string_view word, std::string_view what, const Amount* amount) {
  std::string text =
      fmt::format("{} {} usage per {} is {}", word, check.resource, check.type, check.bound.ToString());
  if (!amount) return text + fmt::format(". No {} is specified", what);
  return text + fmt::format(", but {} is {}", what, amount->ToString());
}

void CheckMin(const Check& check, Problems& out) {
  if (!check.request) return out.push_back(Says(check, "minimum", "request", nullptr));
  if (*check.request < check.bound) return out.push_back(Says(check, "minimum", "request", check.request));
  if (check.limit && *check.limit < check.bound) out.push_back(Says(check, "minimum", "limit", check.limit));
}

void CheckMax(const Check& check, Problems& out) {
  if (!check.limit) return out.push_back(Says(check, "maximum", "limit", nullptr));
  if (*check.limit > check.bound) return out.push_back(Says(check, "maximum", "limit", check.limit));
  if (check.request && *check.request > check.bound) {
    out.push_back(Says(check, "maximum", "request", check.request));
  }
}

// Claims have requests only.
void CheckMaxRequest(const Check& check, Problems& out) {
  if (!check.request) return out.push_back(Says(check, "maximum", "request", nullptr));
  if (*check.request > check.bound) out.push_back(Says(check, "maximum", "request", check.request));
}

void CheckRatio(const Check& check, Problems& out) {
  const std::string text = fmt::format("{} max limit to request ratio per {} is {}", check.resource,
                                       check.type, check.bound.ToString());
  if (!check.request || check.request->IsZero()) {
    return out.push_back(text + ", but no request is specified or request is 0");
  }
  if (!check.limit || check.limit->IsZero()) {
    return out.push_back(text + ", but no limit is specified or limit is 0");
  }
  const bool fine = check.request->Value() <= kMaxMilliValue && check.limit->Value() <= kMaxMilliValue;
  const double request = static_cast<double>(fine ? check.request->MilliValue() : check.request->Value());
  const double limit = static_cast<double>(fine ? check.limit->MilliValue() : check.limit->Value());
  const double ratio = limit / request;
  if (ratio > check.bound.ToDouble()) {
    out.push_back(text + fmt::format(", but provided ratio is {:f}", ratio));
  }
}

const Amount* Find(const ResourceList& list, std::string_view resource) {
  auto found = list.find(resource);
  return found == list.end() ? nullptr : &found->second;
}

void CheckAll(std::string_view type, const QuantityMap& bounds, const ResourceList& requests,
              const ResourceList& limits, void (*check)(const Check&, Problems&), Problems& out) {
  for (const auto& [resource, bound] : k8s::ToResourceList(bounds)) {
    check({type, resource, bound, Find(requests, resource), Find(limits, resource)}, out);
  }
}

void CheckItem(const corev1::LimitRangeItem& item, const ResourceList& requests, const ResourceList& limits,
               Problems& out) {
  CheckAll(item.type(), item.min(), requests, limits, CheckMin, out);
  CheckAll(item.type(), item.max(), requests, limits, CheckMax, out);
  CheckAll(item.type(), item.max_limit_request_ratio(), requests, limits, CheckRatio, out);
}

void CheckPod(const corev1::LimitRange& range, const corev1::Pod& pod, Problems& out) {
  const k8s::PodResourcesOptions bare{.exclude_overhead = true};
  for (const corev1::LimitRangeItem& item : range.spec().limits()) {
    if (item.type() == "Container") {
      for (const auto* containers : {&pod.spec().containers(), &pod.spec().init_containers()}) {
        for (const corev1::Container& container : *containers) {
          CheckItem(item, k8s::ToResourceList(container.resources().requests()),
                    k8s::ToResourceList(container.resources().limits()), out);
        }
      }
    } else if (item.type() == "Pod") {
      CheckItem(item, k8s::PodRequests(pod, bare), k8s::PodLimits(pod, bare), out);
    }
  }
}

void CheckClaim(const corev1::LimitRange& range, const corev1::PersistentVolumeClaim& claim, Problems& out) {
  const ResourceList requests = k8s::ToResourceList(claim.spec().resources().requests());
  for (const corev1::LimitRangeItem& item : range.spec().limits()) {
    if (item.type() != "PersistentVolumeClaim") continue;
    CheckAll(item.type(), item.min(), requests, {}, CheckMin, out);
    CheckAll(item.type(), item.max(), requests, {}, CheckMaxRequest, out);
  }
}

// Copies missing entries to `to`; returns their names, sorted.
std::string Fill(QuantityMap& to, const std::map<std::string, Quantity>& defaults) {
  std::string added;
  for (const auto& [resource, quantity] : defaults) {
    if (to.count(resource)) continue;
    to[resource] = quantity;
    added += (added.empty() ? "" : ", ") + resource;
  }
  return added;
}

void SetDefaults(const corev1::LimitRange& range, corev1::Pod& pod) {
  std::map<std::string, Quantity> requests, limits;
  for (const corev1::LimitRangeItem& item : range.spec().limits()) {
    if (item.type() != "Container") continue;
    for (const auto& one : item.default_request()) requests[one.first] = one.second;
    for (const auto& one : item.default_()) limits[one.first] = one.second;
  }
  if (requests.empty() && limits.empty()) return;
  std::string said;
  auto fill = [&](google::protobuf::RepeatedPtrField<corev1::Container>& containers, std::string_view what) {
    for (corev1::Container& container : containers) {
      const std::string set_limits = Fill(*container.mutable_resources()->mutable_limits(), limits);
      const std::string set_requests = Fill(*container.mutable_resources()->mutable_requests(), requests);
      for (const auto& [names, kind] :
           {std::pair(&set_requests, "request"), std::pair(&set_limits, "limit")}) {
        if (names->empty()) continue;
        said +=
            fmt::format("{}{} {} for {} {}", said.empty() ? "" : "; ", *names, kind, what, container.name());
      }
    }
  };
  fill(*pod.mutable_spec()->mutable_containers(), "container");
  fill(*pod.mutable_spec()->mutable_init_containers(), "init container");
  if (!said.empty()) {
    (*pod.mutable_metadata()->mutable_annotations())[kAnnotation] = "LimitRanger plugin set: " + said;
  }
}

class LimitRanger : public AdmissionPlugin {
 public:
  explicit LimitRanger(storage::Store& store) : store_(store) {}
  std::string_view name() const override { return "LimitRanger"; }

  Result<> Mutate(const AdmissionRequest& request) override {
    if (!request.Creates() || !request.Is("", "pods")) return {};
    ForEachRange(request.ns,
                 [&](const corev1::LimitRange& range) { SetDefaults(range, request.Object<corev1::Pod>()); });
    return {};
  }

  Result<> Validate(const AdmissionRequest& request) override {
    // Only a resize changes the resources of a pod.
    const bool pod =
        (request.Creates() && request.Is("", "pods")) || (request.Updates() && request.Is("", "pods/resize"));
    const bool claim = (request.Creates() || request.Updates()) && request.Is("", "persistentvolumeclaims");
    if (!pod && !claim) return {};
    if (request.old_object && api::Meta(*request.old_object).has_deletion_timestamp()) return {};
    Result<> result;
    ForEachRange(request.ns, [&](const corev1::LimitRange& range) {
      if (!result) return;
      Problems problems;
      if (pod) {
        CheckPod(range, request.Object<corev1::Pod>(), problems);
      } else {
        CheckClaim(range, request.Object<corev1::PersistentVolumeClaim>(), problems);
      }
      if (!problems.empty()) result = NotAdmitted(request, Aggregate(problems));
    });
    return result;
  }

 private:
  template <typename Each>
  void ForEachRange(std::string_view ns, const Each& each) const {
    static const api::ResourceInfo& ranges = api::ResourceOf<corev1::LimitRange>();
    store_.ForEachIn(ranges, ns, [&](const storage::ObjectPtr& object) {
      each(static_cast<const corev1::LimitRange&>(*object->Decode()));
    });
  }

  storage::Store& store_;
};

}  // namespace

PluginPtr NewLimitRanger(storage::Store& store) { return std::make_unique<LimitRanger>(store); }

}  // namespace keelson::apiserver
