// Internal to lib/k8s: rules that several kinds share. Every function appends to `errors`.
#pragma once

#include <string_view>
#include <vector>

#include "lib/api/types.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/text/names.h"

namespace keelson::k8s {

using Strings = google::protobuf::RepeatedPtrField<std::string>;
using StringMap = google::protobuf::Map<std::string, std::string>;
using NameRule = Problems (*)(std::string_view);

inline constexpr std::string_view kImmutable = "field is immutable";
inline constexpr std::string_view kNotNegative = "must be greater than or equal to 0";

// ---- values ----
void AddProblems(const Problems& problems, std::string_view value, const Path& path, FieldErrors& errors);
// Required when empty; otherwise applies `rule`.
void CheckName(std::string_view value, NameRule rule, const Path& path, FieldErrors& errors);
void CheckNonNegative(int64_t value, const Path& path, FieldErrors& errors);
void CheckRange(int64_t value, int64_t low, int64_t high, const Path& path, FieldErrors& errors);
// NotSupported unless it is one of `supported`; Required when empty.
void CheckEnum(std::string_view value, const std::vector<std::string_view>& supported, const Path& path,
               FieldErrors& errors);
void CheckLabels(const StringMap& labels, const Path& path, FieldErrors& errors);
void CheckLabelKey(std::string_view key, const Path& path, FieldErrors& errors);
// In, NotIn, Exists or DoesNotExist, with the right number of values. `item` is the path of the
// requirement.
void CheckSelectorOperator(std::string_view op, int values, const Path& item, FieldErrors& errors);
void CheckLabelSelector(const metav1::LabelSelector& selector, const Path& path, FieldErrors& errors);
void CheckIntOrPercent(const intstr::IntOrString& value, const Path& path, FieldErrors& errors);
void CheckPortNumberOrName(const intstr::IntOrString& port, const Path& path, FieldErrors& errors);
void CheckIpAddress(std::string_view value, const Path& path, FieldErrors& errors);
bool SameMessage(const google::protobuf::Message& a, const google::protobuf::Message& b);
bool SameMap(const StringMap& a, const StringMap& b);
bool SameStrings(const Strings& a, const Strings& b);
std::string PrintMap(const StringMap& map);        // as JSON
std::string PrintStrings(const Strings& strings);  // as JSON
void CheckImmutable(std::string_view value, std::string_view old, const Path& path, FieldErrors& errors);
void CheckImmutable(const google::protobuf::Message& value, const google::protobuf::Message& old,
                    const Path& path, FieldErrors& errors);

// ---- metadata ----
struct MetaRules {
  bool namespaced = true;
  NameRule name = CheckDns1123Subdomain;
};
void CheckObjectMeta(const metav1::ObjectMeta& meta, const MetaRules& rules, const Path& path,
                     FieldErrors& errors);
void CheckObjectMetaUpdate(const metav1::ObjectMeta& meta, const metav1::ObjectMeta& old, const Path& path,
                           FieldErrors& errors);
void CheckAnnotations(const StringMap& annotations, const Path& path, FieldErrors& errors);

// ---- parts of pods and nodes ----
void CheckPodSpec(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors);
// Checks metadata and spec of a template.
void CheckPodTemplate(const corev1::PodTemplateSpec& object, const Path& path, FieldErrors& errors);
void CheckAffinity(const corev1::Affinity& affinity, const Path& path, FieldErrors& errors);
void CheckTolerations(const google::protobuf::RepeatedPtrField<corev1::Toleration>& tolerations,
                      const Path& path, FieldErrors& errors);
void CheckNodeSelector(const corev1::NodeSelector& selector, const Path& path, FieldErrors& errors);
void CheckObjectField(const corev1::ObjectFieldSelector& field,
                      const std::vector<std::string_view>& supported, const Path& path, FieldErrors& errors);
void CheckResourceField(const corev1::ResourceFieldSelector& field, bool in_volume, const Path& path,
                        FieldErrors& errors);
void CheckQuantity(std::string_view resource, const Quantity& quantity, const Path& path,
                   FieldErrors& errors);
// A relative path without "..".
void CheckDescendingPath(std::string_view value, const Path& path, FieldErrors& errors);
void CheckClaimSpec(const corev1::PersistentVolumeClaimSpec& spec, const Path& path, FieldErrors& errors);

// ---- kinds ----
class RuleTable;
void RegisterPodRules(RuleTable& table);
void RegisterServiceRules(RuleTable& table);
void RegisterServiceCidrRules(RuleTable& table);
void RegisterEndpointRules(RuleTable& table);
void RegisterWorkloadRules(RuleTable& table);
void RegisterStatefulSetRules(RuleTable& table);
void RegisterJobRules(RuleTable& table);
void RegisterConfigRules(RuleTable& table);
void RegisterNodeRules(RuleTable& table);
void RegisterRbacRules(RuleTable& table);
void RegisterStorageRules(RuleTable& table);
void RegisterQuotaRules(RuleTable& table);
void RegisterLimitRangeRules(RuleTable& table);
void RegisterEventRules(RuleTable& table);
void RegisterClaimRules(RuleTable& table);
void RegisterStorageClassRules(RuleTable& table);
void RegisterIngressRules(RuleTable& table);
void RegisterNetworkPolicyRules(RuleTable& table);
void RegisterDisruptionRules(RuleTable& table);
void RegisterCertificateRules(RuleTable& table);
void RegisterWebhookRules(RuleTable& table);
void RegisterAdmissionPolicyRules(RuleTable& table);
void RegisterDefinitionRules(RuleTable& table);
void RegisterApiServiceRules(RuleTable& table);
void RegisterFlowControlRules(RuleTable& table);
void RegisterAutoscalerRules(RuleTable& table);
void RegisterDeviceRules(RuleTable& table);
void RegisterSchedulingRules(RuleTable& table);

}  // namespace keelson::k8s
