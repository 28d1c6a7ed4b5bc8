// The columns of every kind's table are those of Kubernetes 1.36.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lib/api/table/table.h"
#include "lib/api/types.h"

namespace keelson::api {
namespace {

// "Name:name | Ready | Count:integer:wide": type (string if it is left out), format, priority 1.
std::string Shown(const std::vector<TableColumn>& columns) {
  std::string out;
  for (const TableColumn& column : columns) {
    if (!out.empty()) out += " | ";
    out += column.name;
    if (column.type != "string") out += ":" + column.type;
    if (!column.format.empty()) out += ":" + column.format;
    if (column.priority == 1) out += ":wide";
  }
  return out;
}

TEST(TableColumns, AreUpstreams) {
  struct Case {
    const char *group, *version, *kind, *columns;
  };
  static constexpr Case kCases[] = {
      {"", "v1", "Pod",
       "Name:name | Ready | Status | Restarts | Age | IP:wide | Node:wide | Nominated Node:wide | Readiness "
       "Gates:wide"},
      {"", "v1", "PodTemplate", "Name:name | Containers | Images | Pod Labels"},
      {"policy", "v1", "PodDisruptionBudget",
       "Name:name | Min Available | Max Unavailable | Allowed Disruptions:integer | Age"},
      {"", "v1", "ReplicationController",
       "Name:name | Desired:integer | Current:integer | Ready:integer | Age | Containers:wide | Images:wide "
       "| Selector:wide"},
      {"apps", "v1", "ReplicaSet",
       "Name:name | Desired:integer | Current:integer | Ready:integer | Age | Containers:wide | Images:wide "
       "| Selector:wide"},
      {"apps", "v1", "DaemonSet",
       "Name:name | Desired:integer | Current:integer | Ready:integer | Up-to-date:integer | "
       "Available:integer | Node Selector | Age | Containers:wide | Images:wide | Selector:wide"},
      {"batch", "v1", "Job",
       "Name:name | Status | Completions | Duration | Age | Containers:wide | Images:wide | Selector:wide"},
      {"batch", "v1", "CronJob",
       "Name:name | Schedule | Timezone | Suspend:boolean | Active:integer | Last Schedule | Age | "
       "Containers:wide | Images:wide | Selector:wide"},
      {"", "v1", "Service", "Name:name | Type | Cluster-IP | External-IP | Port(s) | Age | Selector:wide"},
      {"networking.k8s.io", "v1", "Ingress", "Name:name | Class | Hosts | Address | Ports | Age"},
      {"networking.k8s.io", "v1", "IngressClass", "Name:name | Controller | Parameters | Age"},
      {"apps", "v1", "StatefulSet", "Name:name | Ready | Age | Containers:wide | Images:wide"},
      {"", "v1", "Endpoints", "Name:name | Endpoints | Age"},
      {"", "v1", "Node",
       "Name:name | Status | Roles | Age | Version | Internal-IP:wide | External-IP:wide | OS-Image:wide | "
       "Kernel-Version:wide | Container-Runtime:wide"},
      {"", "v1", "Event",
       "Last Seen | Type | Reason | Object | Subobject:wide | Source:wide | Message | First Seen:wide | "
       "Count:wide | Name:wide"},
      {"events.k8s.io", "v1", "Event",
       "Last Seen | Type | Reason | Object | Subobject:wide | Source:wide | Message | First Seen:wide | "
       "Count:wide | Name:wide"},
      {"", "v1", "Namespace", "Name:name | Status | Age"},
      {"", "v1", "Secret", "Name:name | Type | Data | Age"},
      {"", "v1", "ServiceAccount", "Name:name | Age"},
      {"", "v1", "PersistentVolume",
       "Name:name | Capacity | Access Modes | Reclaim Policy | Status | Claim | StorageClass | "
       "VolumeAttributesClass | Reason | Age | VolumeMode:wide"},
      {"", "v1", "PersistentVolumeClaim",
       "Name:name | Status | Volume | Capacity | Access Modes | StorageClass | VolumeAttributesClass | Age | "
       "VolumeMode:wide"},
      {"", "v1", "ComponentStatus", "Name:name | Status | Message | Error"},
      {"apps", "v1", "Deployment",
       "Name:name | Ready | Up-to-date | Available | Age | Containers:wide | Images:wide | Selector:wide"},
      {"autoscaling", "v2", "HorizontalPodAutoscaler",
       "Name:name | Reference | Targets | MinPods | MaxPods | Replicas | Age"},
      {"autoscaling", "v1", "HorizontalPodAutoscaler",
       "Name:name | Reference | Targets | MinPods | MaxPods | Replicas | Age"},
      {"", "v1", "ConfigMap", "Name:name | Data | Age"},
      {"networking.k8s.io", "v1", "NetworkPolicy", "Name:name | Pod-Selector | Age"},
      {"rbac.authorization.k8s.io", "v1", "RoleBinding",
       "Name:name | Role | Age | Users:wide | Groups:wide | ServiceAccounts:wide"},
      {"rbac.authorization.k8s.io", "v1", "ClusterRoleBinding",
       "Name:name | Role | Age | Users:wide | Groups:wide | ServiceAccounts:wide"},
      {"certificates.k8s.io", "v1", "CertificateSigningRequest",
       "Name:name | Age | SignerName | Requestor | RequestedDuration | Condition"},
      {"certificates.k8s.io", "v1beta1", "PodCertificateRequest",
       "Name:name | PodName | ServiceAccountName | NodeName | SignerName | State | "
       "UnverifiedUserAnnotations"},
      {"coordination.k8s.io", "v1", "Lease", "Name:name | Holder | Age"},
      {"storage.k8s.io", "v1", "StorageClass",
       "Name:name | Provisioner | ReclaimPolicy | VolumeBindingMode | AllowVolumeExpansion | Age"},
      {"storage.k8s.io", "v1", "VolumeAttributesClass", "Name:name | DriverName | Age"},
      {"storagemigration.k8s.io", "v1beta1", "StorageVersionMigration", "Name | Resource | Status"},
      {"apps", "v1", "ControllerRevision", "Name:name | Controller | Revision | Age"},
      {"", "v1", "ResourceQuota", "Name:name | Request | Limit | Age"},
      {"scheduling.k8s.io", "v1", "PriorityClass",
       "Name:name | Value:integer | Global-Default:boolean | Age | PreemptionPolicy"},
      {"node.k8s.io", "v1", "RuntimeClass", "Name:name | Handler | Age"},
      {"storage.k8s.io", "v1", "VolumeAttachment",
       "Name:name | Attacher:name | PV | Node | Attached:boolean | Age"},
      {"discovery.k8s.io", "v1", "EndpointSlice", "Name:name | AddressType | Ports | Endpoints | Age"},
      {"storage.k8s.io", "v1", "CSINode", "Name:name | Drivers:integer | Age"},
      {"storage.k8s.io", "v1", "CSIDriver",
       "Name:name | AttachRequired:boolean | PodInfoOnMount:boolean | StorageCapacity:boolean | "
       "TokenRequests | RequiresRepublish:boolean | Modes | Age"},
      // Upstream's printer has more columns, but the API server serves the usual ones.
      {"storage.k8s.io", "v1", "CSIStorageCapacity", "Name:name | Created At:date"},
      {"admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration",
       "Name:name | Webhooks:integer | Age"},
      {"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration",
       "Name:name | Webhooks:integer | Age"},
      {"admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy",
       "Name:name | Validations:integer | ParamKind | Age"},
      {"admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding",
       "Name:name | PolicyName | ParamRef | Age"},
      {"admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy",
       "Name:name | Mutations:integer | ParamKind | Age"},
      {"admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicyBinding",
       "Name:name | PolicyName | ParamRef | Age"},
      {"flowcontrol.apiserver.k8s.io", "v1", "FlowSchema",
       "Name:name | PriorityLevel | MatchingPrecedence | DistinguisherMethod | Age | MissingPL"},
      {"flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration",
       "Name:name | Type | NominalConcurrencyShares | Queues | HandSize | QueueLengthLimit | Age"},
      {"autoscaling", "v1", "Scale", "Name | Desired:integer | Available:integer | Age"},
      {"resource.k8s.io", "v1", "DeviceClass", "Name:name | Age"},
      {"resource.k8s.io", "v1", "ResourceClaim", "Name:name | State | Age"},
      {"resource.k8s.io", "v1", "ResourceClaimTemplate", "Name:name | Age"},
      {"resource.k8s.io", "v1", "ResourceSlice", "Name:name | Node | Driver | Pool | Age"},
      {"networking.k8s.io", "v1", "ServiceCIDR", "Name:name | CIDRs | Age"},
      {"networking.k8s.io", "v1", "IPAddress", "Name:name | ParentRef"},
  };
  for (const Case& one : kCases) {
    const Descriptor* type = FindMessage(one.group, one.version, one.kind);
    ASSERT_TRUE(type) << one.kind;
    EXPECT_EQ(Shown(TableColumns(type)), one.columns) << one.group << " " << one.kind;
  }
}

}  // namespace
}  // namespace keelson::api
