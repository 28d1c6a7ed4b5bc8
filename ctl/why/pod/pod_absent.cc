#include <algorithm>

#include "ctl/why/denial.h"
#include "ctl/why/pod/pod_judge.h"
#include "lib/api/meta.h"
#include "lib/api/proto/batch_v1.pb.h"

namespace keelson::ctl {

namespace {

constexpr char kSilent[] = "";

// "web-5d4f7-abcde" is one of ReplicaSet web-5d4f7, and "web" of each of Deployment web's.
bool Fits(const std::string& pod, const std::string& kind, const std::string& owner) {
  return pod == owner || pod.starts_with(owner + "-") ||
         (kind == "ReplicaSet" && owner.starts_with(pod + "-"));
}

template <typename T>
std::string ReplicaFailure(const T& object) {
  for (const auto& condition : object.status().conditions()) {
    if (condition.type() == "ReplicaFailure" && condition.status() == "True") return condition.message();
  }
  return kSilent;
}

template <typename T>
Result<> AddOwners(const client::RestClient& api, const std::string& kind,
                   const std::function<std::string(const T&)>& failure, AbsentPodView& view) {
  KEELSON_ASSIGN_OR_RETURN(const std::vector<T> objects, api.List<T>(view.ns));
  for (const T& object : objects) {
    const std::string& name = object.metadata().name();
    if (!Fits(view.name, kind, name)) continue;
    AbsentPodView::Owner owner{kind, name, failure(object), {}};
    KEELSON_ASSIGN_OR_RETURN(owner.events, ReadEventsOf(api, view.ns, object.metadata().uid()));
    view.owners.push_back(std::move(owner));
  }
  return {};
}

}  // namespace

Result<AbsentPodView> ReadAbsentPod(const client::RestClient& api, const std::string& ns,
                                    const std::string& name) {
  AbsentPodView view{ns, name, {}};
  KEELSON_RETURN_IF_ERROR(
      AddOwners<appsv1::ReplicaSet>(api, "ReplicaSet", ReplicaFailure<appsv1::ReplicaSet>, view));
  KEELSON_RETURN_IF_ERROR(AddOwners<corev1::ReplicationController>(
      api, "ReplicationController", ReplicaFailure<corev1::ReplicationController>, view));
  KEELSON_RETURN_IF_ERROR(AddOwners<appsv1::StatefulSet>(
      api, "StatefulSet", [](const auto&) { return kSilent; }, view));
  KEELSON_RETURN_IF_ERROR(AddOwners<appsv1::DaemonSet>(
      api, "DaemonSet", [](const auto&) { return kSilent; }, view));
  KEELSON_RETURN_IF_ERROR(AddOwners<api::batch::v1::Job>(
      api, "Job", [](const auto&) { return kSilent; }, view));
  std::stable_sort(view.owners.begin(), view.owners.end(),
                   [](const auto& a, const auto& b) { return a.name.size() > b.name.size(); });
  return view;
}

WhyReport JudgeAbsentPod(const AbsentPodView& view) {
  const std::string pod = view.ns + "/" + view.name;
  WhyReport report{"Pod " + pod + " does not exist", {{"pod", pod}, {"phase", nullptr}}, {}};
  std::vector<std::string> known;
  for (const AbsentPodView::Owner& owner : view.owners) {
    const std::string what = owner.kind + " " + view.ns + "/" + owner.name;
    const corev1::Event* last = LastOf(owner.events, {"FailedCreate", "SuccessfulCreate"});
    const std::string failure = !owner.condition.empty()                   ? owner.condition
                                : last && last->reason() == "FailedCreate" ? last->message()
                                                                           : "";
    if (!failure.empty()) {
      report.problems.push_back(JudgeRefusal(what + " cannot create its pods", view.ns, failure));
    } else {
      known.push_back(what + (last ? ": " + EventText(*last) : " has made no pod of late"));
    }
  }
  if (report.problems.empty()) {
    report.problems.push_back({"NoSuchPod",
                               "there is no pod of this name, and nothing tells that its creation failed",
                               known,
                               {"kubectl -n " + view.ns + " get pods"}});
  }
  return report;
}

}  // namespace keelson::ctl
