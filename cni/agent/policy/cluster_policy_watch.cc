#include "cni/agent/policy/cluster_policy_watch.h"

#include <algorithm>
#include <random>

#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/base/percent.h"
#include "lib/client/backoff.h"

namespace keelson::cni::agent {
namespace {

constexpr char kGroup[] = "/apis/policy.networking.k8s.io/";
constexpr std::chrono::seconds kTimeout{30};
constexpr std::chrono::minutes kIdle{10};
constexpr int kWatchSeconds = 300;

Error Refused(const std::string& target, int status) {
  return Error(status == 401 || status == 403 ? Code::kForbidden : Code::kUnavailable,
               target + ": status " + std::to_string(status));
}

client::ApiRequest Get(std::string target) {
  client::ApiRequest out{.target = std::move(target)};
  out.accept = "application/json";
  return out;
}

std::chrono::milliseconds RandomDelay() {
  thread_local std::minstd_rand random(std::random_device{}());
  return std::chrono::milliseconds(std::uniform_int_distribution<int>(0, 1000)(random));
}

}  // namespace

ClusterPolicyResource ClusterNetworkPolicies(std::chrono::milliseconds look) {
  return {ClusterPolicyKind::kClusterNetworkPolicy, "clusternetworkpolicies", {"v1beta1", "v1alpha2"}, look};
}
ClusterPolicyResource AdminNetworkPolicies(std::chrono::milliseconds look) {
  return {ClusterPolicyKind::kAdminNetworkPolicy, "adminnetworkpolicies", {"v1alpha1"}, look};
}
ClusterPolicyResource BaselineAdminNetworkPolicies(std::chrono::milliseconds look) {
  return {ClusterPolicyKind::kBaselineAdminNetworkPolicy, "baselineadminnetworkpolicies", {"v1alpha1"}, look};
}

Result<std::string> ClusterPolicyWatch::Find(const std::stop_token& stop) {
  for (const std::string& version : resource_.versions) {
    const std::string path = kGroup + version;
    KEELSON_ASSIGN_OR_RETURN(client::ApiResponse response, transport_->Do(Get(path), kTimeout, stop));
    if (response.status == 404) continue;
    if (response.status != 200) return Refused(path, response.status);
    const std::string quoted = std::string("\"") + resource_.plural + "\"";
    if (response.body.find(quoted) != std::string::npos) return path + "/" + resource_.plural;
  }
  return std::string();
}

Result<ClusterPolicyList> ClusterPolicyWatch::List(const std::string& path, const std::stop_token& stop) {
  KEELSON_ASSIGN_OR_RETURN(client::ApiResponse response, transport_->Do(Get(path), kTimeout, stop));
  if (response.status != 200) return Refused(path, response.status);
  return ParseClusterPolicies(response.body, resource_.kind);
}

// Every event but a bookmark is a reason to list again: these are few objects, which seldom change.
Result<> ClusterPolicyWatch::AwaitChange(const std::string& path, const std::string& version,
                                         const std::stop_token& stop) {
  KEELSON_ASSIGN_OR_RETURN(
      std::unique_ptr<client::ApiStream> stream,
      transport_->Open(Get(path + "?watch=true&resourceVersion=" + PercentEncode(version) +
                           "&timeoutSeconds=" + std::to_string(kWatchSeconds)),
                       stop));
  // An event, the end of the watch and an error that the server reports all lead to the next list.
  KEELSON_RETURN_IF_ERROR(stream->Read(stop, kIdle));
  return {};
}

void ClusterPolicyWatch::ReportStatus(const std::string& path, const ClusterPolicyList& list,
                                      const std::stop_token& stop) {
  const int64_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(clock_.Now().time_since_epoch()).count();
  metav1::Time now;
  now.set_seconds(seconds);
  for (const ParsedClusterPolicy& policy : list.policies) {
    if (!NeedsStatus(policy)) continue;
    client::ApiRequest request = Get(path + "/" + PercentEncode(policy.object) + "/status");
    request.method = "PATCH";
    request.content_type = "application/merge-patch+json";
    request.body = StatusPatch(policy, api::FormatTime(now));
    Result<client::ApiResponse> response = transport_->Do(request, kTimeout, stop);
    if (response && (response->status == 200 || response->status == 404)) continue;
    log::Warn(
        "The status of a policy cannot be written",
        {{"name", policy.policy.name},
         {"err", response ? "status " + std::to_string(response->status) : response.error().message()}});
  }
}

Result<> ClusterPolicyWatch::Follow(const std::string& path, const std::stop_token& stop) {
  KEELSON_ASSIGN_OR_RETURN(ClusterPolicyList list, List(path, stop));
  std::map<std::string, policy::ClusterPolicy, std::less<>> found;
  for (const ParsedClusterPolicy& one : list.policies) found.emplace(one.policy.name, one.policy);
  found_(std::move(found));
  if (std::any_of(list.policies.begin(), list.policies.end(), NeedsStatus)) {
    // All nodes say the same: most of them find it said.
    if (!client::SleepFor(clock_, RandomDelay(), stop)) return {};
    KEELSON_ASSIGN_OR_RETURN(ClusterPolicyList again, List(path, stop));
    ReportStatus(path, again, stop);
  }
  return AwaitChange(path, list.resource_version, stop);
}

Result<> ClusterPolicyWatch::Run(std::stop_token stop) {
  client::ReconnectBackoff backoff(clock_);
  while (!stop.stop_requested()) {
    Result<std::string> path = Find(stop);
    if (path && path->empty()) {
      found_({});
      backoff.Reset();
      if (!client::SleepFor(clock_, resource_.look, stop)) break;
      continue;
    }
    Result<> followed = path ? Follow(*path, stop) : path.error();
    if (stop.stop_requested()) break;
    if (followed) {
      backoff.Reset();
      continue;
    }
    const bool usual = followed.error().Is(Code::kTimeout) || followed.error().Is(Code::kUnavailable);
    log::Write(usual ? log::Level::kDebug : log::Level::kWarn,
               "Policies of the whole cluster cannot be followed, will be retried",
               {{"resource", resource_.plural}, {"err", followed.error()}});
    if (!client::SleepFor(clock_, backoff.Next(), stop)) break;
  }
  return {};
}

}  // namespace keelson::cni::agent
