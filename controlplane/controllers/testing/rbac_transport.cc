#include "controlplane/controllers/testing/rbac_transport.h"

#include <map>

#include "controlplane/apiserver/authz/bootstrap_policy.h"
#include "controlplane/apiserver/authz/rbac.h"

namespace keelson::controllers {
namespace {

using apiserver::RbacAuthorizer;

constexpr std::string_view kManager = "system:stock-manager";

// Adds a user with upstream's controller manager role only; the bundled policy also grants it all
// controllers' roles.
std::unique_ptr<const RbacAuthorizer> MakePolicy() {
  const auto on = [](std::string_view gate) {
    return gate == "PodCertificateRequest" || gate == "StorageVersionMigrator";
  };
  auto rbac = std::make_unique<RbacAuthorizer>();
  for (const auto& role : apiserver::BootstrapClusterRoles(on)) rbac->Put(role);
  for (const auto& binding : apiserver::BootstrapClusterRoleBindings(on)) rbac->Put(binding);
  for (const auto& role : apiserver::BootstrapRoles()) rbac->Put(role);
  for (const auto& binding : apiserver::BootstrapRoleBindings()) rbac->Put(binding);
  api::rbac::v1::ClusterRoleBinding manager;
  manager.mutable_metadata()->set_name("stock-manager");
  manager.mutable_role_ref()->set_kind("ClusterRole");
  manager.mutable_role_ref()->set_name("system:kube-controller-manager");
  manager.add_subjects()->set_kind("User");
  manager.mutable_subjects(0)->set_name(std::string(kManager));
  rbac->Put(manager);
  return rbac;
}

apiserver::User UserOf(std::string_view account) {
  if (account == kManager) return {std::string(account), "", {"system:authenticated"}, {}};
  return {"system:serviceaccount:kube-system:" + std::string(account),
          "",
          {"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
          {}};
}

}  // namespace

std::string_view AccountOfQueue(std::string_view queue) {
  static const std::map<std::string_view, std::string_view> accounts = {
      {"ClusterRoleAggregator", "clusterrole-aggregation-controller"},
      {"attachdetach", "attachdetach-controller"},
      {"bootstrap_signer_queue", "bootstrap-signer"},
      {"certificate", "certificate-controller"},
      {"certificate_cleaner", "certificate-controller"},
      {"cidrallocator_node", "node-controller"},
      {"claims", "persistent-volume-binder"},
      {"cronjob", "cronjob-controller"},
      {"daemonset", "daemon-set-controller"},
      {"deployment", "deployment-controller"},
      {"disruption", "disruption-controller"},
      {"endpoint", "endpoint-controller"},
      {"endpoint_slice", "endpointslice-controller"},
      {"endpoint_slice_mirroring", "endpointslicemirroring-controller"},
      {"ephemeral_volume", "ephemeral-volume-controller"},
      {"garbage_collector_attempt_to_delete", "generic-garbage-collector"},
      {"horizontalpodautoscaler", "horizontal-pod-autoscaler"},
      {"job", "job-controller"},
      {"job_orphan_pod", "job-controller"},
      {"legacy_service_account_token_cleaner", "legacy-service-account-token-cleaner"},
      {"namespace", "namespace-controller"},
      {"node_lifecycle_controller", "node-controller"},
      {"noexec_taint_pod", "node-controller"},
      {"orphaned_pods_nodes", "pod-garbage-collector"},
      {"podcertificaterequest_cleaner", "podcertificaterequestcleaner"},
      {"pvcprotection", "pvc-protection-controller"},
      {"pvprotection", "pv-protection-controller"},
      {"replicaset", "replicaset-controller"},
      {"replicationmanager", "replication-controller"},
      {"resource_claim", "resource-claim-controller"},
      {"resourcequota_primary", "resourcequota-controller"},
      {"root_ca_cert_publisher", "root-ca-cert-publisher"},
      {"service", "service-controller"},
      {"serviceaccount", "service-account-controller"},
      {"serviceaccount_tokens_secret", kManager},
      {"servicecidrs", "service-cidrs-controller"},
      {"stale_pod_disruption", "disruption-controller"},
      {"statefulset", "statefulset-controller"},
      {"storage-version-migrator-controller", "storage-version-migrator-controller"},
      {"token_cleaner", "token-cleaner"},
      {"ttl_jobs_to_delete", "ttl-after-finished-controller"},
      {"ttlcontroller", "ttl-controller"},
      {"vacprotection", "volumeattributesclass-protection-controller"},
      {"validatingadmissionpolicy-status", "validatingadmissionpolicy-status-controller"},
      {"volume_expand", "expand-controller"},
      {"volumes", "persistent-volume-binder"},
  };
  auto found = accounts.find(queue);
  return found == accounts.end() ? "" : found->second;
}

bool IsGranted(std::string_view account, const std::string& method, const std::string& target) {
  static const std::unique_ptr<const RbacAuthorizer> policy = MakePolicy();
  const size_t mark = target.find('?');
  const http::Query query = http::Query::Parse(mark == std::string::npos ? "" : target.substr(mark + 1));
  const apiserver::RequestInfo request = apiserver::ParseRequestInfo(method, target.substr(0, mark), query);
  return policy->Authorize({UserOf(account), request}).allowed;
}

void RbacTransport::Check(const client::ApiRequest& request) const {
  if (account_.empty() || IsGranted(account_, request.method, request.target)) return;
  tell_(std::string(account_) + " may not " + request.method + " " + request.target);
}

Result<client::ApiResponse> RbacTransport::Do(const client::ApiRequest& request,
                                              std::chrono::milliseconds timeout, std::stop_token stop) {
  Check(request);
  return to_->Do(request, timeout, stop);
}

Result<std::unique_ptr<client::ApiStream>> RbacTransport::Open(const client::ApiRequest& request,
                                                               std::stop_token stop) {
  Check(request);
  return to_->Open(request, stop);
}

}  // namespace keelson::controllers
