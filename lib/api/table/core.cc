// Tables of the core group's nodes, namespaces, configuration and events.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "lib/api/duration.h"
#include "lib/api/meta.h"
#include "lib/api/proto/certificates_v1.pb.h"
#include "lib/api/proto/certificates_v1beta1.pb.h"
#include "lib/api/proto/metrics_v1beta1.pb.h"
#include "lib/api/quantity.h"
#include "lib/api/table/cells.h"
#include "lib/api/table/table.h"
#include "lib/base/text.h"

namespace keelson::api {
namespace {

std::string NodeRoles(const corev1::Node& node) {
  constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
  std::set<std::string> roles;
  for (const auto& [key, value] : node.metadata().labels()) {
    if (key.rfind(kPrefix, 0) == 0 && key.size() > kPrefix.size()) roles.insert(key.substr(kPrefix.size()));
    if (key == "kubernetes.io/role" && !value.empty()) roles.insert(value);
  }
  return roles.empty() ? "<none>" : Join({roles.begin(), roles.end()}, ",");
}

void FillNode(const corev1::Node& node, Cells& cells) {
  std::string status = "Unknown";
  for (const auto& condition : node.status().conditions()) {
    if (condition.type() == "Ready") status = condition.status() == "True" ? "Ready" : "NotReady";
  }
  if (node.spec().unschedulable()) status += ",SchedulingDisabled";
  auto address = [&](std::string_view type) -> std::string {
    for (const auto& entry : node.status().addresses()) {
      if (entry.type() == type) return entry.address();
    }
    return "<none>";
  };
  const auto& info = node.status().node_info();
  cells.Text(node.metadata().name())
      .Text(status)
      .Text(NodeRoles(node))
      .Age(node.metadata())
      .Text(info.kubelet_version());
  cells.Text(address("InternalIP")).Text(address("ExternalIP")).TextOr(info.os_image(), "<unknown>");
  cells.TextOr(info.kernel_version(), "<unknown>").TextOr(info.container_runtime_version(), "<unknown>");
}

void FillNamespace(const corev1::Namespace& object, Cells& cells) {
  cells.Text(object.metadata().name()).Text(object.status().phase()).Age(object.metadata());
}

void FillSecret(const corev1::Secret& object, Cells& cells) {
  cells.Text(object.metadata().name())
      .Text(object.type())
      .Number(static_cast<int64_t>(object.data_size()))
      .Age(object.metadata());
}

void FillConfigMap(const corev1::ConfigMap& object, Cells& cells) {
  cells.Text(object.metadata().name()).Number(int64_t{object.data_size()} + object.binary_data_size());
  cells.Age(object.metadata());
}

void FillServiceAccount(const corev1::ServiceAccount& object, Cells& cells) {
  cells.Text(object.metadata().name()).Age(object.metadata());
}

void FillResourceQuota(const corev1::ResourceQuota& object, Cells& cells) {
  std::vector<std::string> requests, limits;
  std::map<std::string, std::string> hard;
  for (const auto& [name, quantity] : object.status().hard()) hard[name] = quantity.string();
  for (const auto& [name, quantity] : hard) {
    auto used = object.status().used().find(name);
    std::string text = fmt::format(
        "{}: {}/{}", name, used == object.status().used().end() ? "0" : used->second.string(), quantity);
    (name.rfind("limits", 0) == 0 ? limits : requests).push_back(std::move(text));
  }
  cells.Text(object.metadata().name())
      .Text(Join(requests, ", "))
      .Text(Join(limits, ", "))
      .Age(object.metadata());
}

void FillComponentStatus(const corev1::ComponentStatus& object, Cells& cells) {
  for (const auto& condition : object.conditions()) {
    if (condition.type() != "Healthy") continue;
    cells.Text(object.metadata().name()).Text(condition.status() == "True" ? "Healthy" : "Unhealthy");
    cells.Text(condition.message()).Text(condition.error());
    return;
  }
  cells.Text(object.metadata().name()).Text("Unknown").Text("").Text("");
}

// What both groups' events say, in the older one's terms.
struct EventView {
  const corev1::ObjectReference& object;
  std::string type, reason, message, component, host;
  metav1::Time first, last;
  int64_t count;
};

const std::string& FirstOf(const std::string& text, const std::string& otherwise) {
  return text.empty() ? otherwise : text;
}

metav1::Time Whole(const metav1::MicroTime& time) {
  metav1::Time out;
  if (time.has_seconds()) out.set_seconds(time.seconds());
  return out;
}

void FillEvent(const metav1::ObjectMeta& meta, const EventView& event, Cells& cells) {
  const std::string kind = Lower(event.object.kind());
  std::string source = event.host.empty() ? event.component : event.component + ", " + event.host;
  cells.Age(event.last)
      .Text(event.type)
      .Text(event.reason)
      .Text(event.object.name().empty() ? kind : kind + "/" + event.object.name());
  cells.Text(event.object.field_path())
      .Text(source)
      .Text(std::string(Trim(event.message)))
      .Age(event.first)
      .Number(event.count)
      .Text(meta.name());
}

void FillCoreEvent(const corev1::Event& object, Cells& cells) {
  metav1::Time first =
      object.first_timestamp().has_seconds() ? object.first_timestamp() : Whole(object.event_time());
  metav1::Time last = object.last_timestamp().has_seconds() ? object.last_timestamp() : first;
  int64_t count = object.count() != 0 ? object.count() : 1;
  if (object.has_series()) {
    last = Whole(object.series().last_observed_time());
    count = object.series().count();
  }
  FillEvent(object.metadata(),
            {object.involved_object(), object.type(), object.reason(), object.message(),
             FirstOf(object.source().component(), object.reporting_component()),
             FirstOf(object.source().host(), object.reporting_instance()), first, last, count},
            cells);
}

void FillNewEvent(const eventsv1::Event& object, Cells& cells) {
  metav1::Time first = object.deprecated_first_timestamp().has_seconds() ? object.deprecated_first_timestamp()
                                                                         : Whole(object.event_time());
  metav1::Time last =
      object.deprecated_last_timestamp().has_seconds() ? object.deprecated_last_timestamp() : first;
  int64_t count = object.deprecated_count() != 0 ? object.deprecated_count() : 1;
  if (object.has_series()) {
    last = Whole(object.series().last_observed_time());
    count = object.series().count();
  }
  FillEvent(object.metadata(),
            {object.regarding(), object.type(), object.reason(), object.note(),
             FirstOf(object.deprecated_source().component(), object.reporting_controller()),
             FirstOf(object.deprecated_source().host(), object.reporting_instance()), first, last, count},
            cells);
}

void FillSigningRequest(const certificates::v1::CertificateSigningRequest& object, Cells& cells) {
  bool approved = false, denied = false, failed = false;
  for (const auto& condition : object.status().conditions()) {
    approved = approved || condition.type() == "Approved";
    denied = denied || condition.type() == "Denied";
    failed = failed || condition.type() == "Failed";
  }
  std::string state = denied ? "Denied" : approved ? "Approved" : "Pending";
  if (failed) state += ",Failed";
  if (!object.status().certificate().empty()) state += ",Issued";
  const auto& spec = object.spec();
  cells.Text(object.metadata().name()).Age(object.metadata()).Text(spec.signer_name()).Text(spec.username());
  cells.Text(spec.has_expiration_seconds() ? HumanDuration(std::chrono::seconds(spec.expiration_seconds()))
                                           : "<none>");
  cells.Text(state);
}

void FillPodCertificate(const certificates::v1beta1::PodCertificateRequest& object, Cells& cells) {
  std::string state = "Pending";
  for (const metav1::Condition& condition : object.status().conditions()) {
    const std::string& type = condition.type();
    if (type == "Issued" || type == "Denied" || type == "Failed") state = type;
  }
  const auto& spec = object.spec();
  cells.Text(object.metadata().name()).Text(spec.pod_name()).Text(spec.service_account_name());
  cells.Text(spec.node_name()).Text(spec.signer_name()).Text(state);
  cells.Text(FormatLabels(spec.unverified_user_annotations()));
}

void FillLease(const coordinationv1::Lease& object, Cells& cells) {
  cells.Text(object.metadata().name()).Text(object.spec().holder_identity()).Age(object.metadata());
}

using Resources = google::protobuf::Map<std::string, resource::Quantity>;

void FillUsage(const metav1::ObjectMeta& meta, const std::vector<const Resources*>& used,
               const metav1::Duration& window, Cells& cells) {
  cells.Text(meta.name());
  for (const char* name : {"cpu", "memory"}) {
    Amount sum;
    for (const Resources* one : used) {
      auto found = one->find(name);
      if (found == one->end()) continue;
      if (sum.IsZero()) {
        sum = Amount::Of(found->second);
      } else {
        sum += Amount::Of(found->second);
      }
    }
    cells.Text(sum.ToString());
  }
  cells.Text(FormatGoDuration(window.duration()));
}

void FillNodeMetrics(const metrics::v1beta1::NodeMetrics& object, Cells& cells) {
  FillUsage(object.metadata(), {&object.usage()}, object.window(), cells);
}

void FillPodMetrics(const metrics::v1beta1::PodMetrics& object, Cells& cells) {
  std::vector<const Resources*> used;
  for (const auto& container : object.containers()) used.push_back(&container.usage());
  FillUsage(object.metadata(), used, object.window(), cells);
}

}  // namespace

std::vector<TableKind> CoreTables() {
  constexpr std::string_view kUsage = "Name|cpu|memory|Window";
  constexpr std::string_view kEvent =
      "Last Seen|Type|Reason|Object|Subobject+|Source+|Message|First Seen+|Count+|Name+~";
  return {
      TableOf<corev1::Node>(
          "Name|Status|Roles|Age|Version|Internal-IP+|External-IP+|OS-Image+|Kernel-Version+|"
          "Container-Runtime+",
          FillNode),
      TableOf<corev1::Namespace>("Name|Status|Age", FillNamespace),
      TableOf<corev1::Secret>("Name|Type|Data|Age", FillSecret),
      TableOf<corev1::ConfigMap>("Name|Data|Age", FillConfigMap),
      TableOf<corev1::ServiceAccount>("Name|Age", FillServiceAccount),
      TableOf<corev1::ResourceQuota>("Name|Request|Limit|Age", FillResourceQuota),
      TableOf<corev1::ComponentStatus>("Name|Status|Message|Error", FillComponentStatus),
      TableOf<corev1::Event>(kEvent, FillCoreEvent),
      TableOf<eventsv1::Event>(kEvent, FillNewEvent),
      TableOf<certificates::v1::CertificateSigningRequest>(
          "Name|Age|SignerName|Requestor|RequestedDuration|Condition", FillSigningRequest),
      TableOf<certificates::v1beta1::PodCertificateRequest>(
          "Name|PodName|ServiceAccountName|NodeName|SignerName|State|UnverifiedUserAnnotations",
          FillPodCertificate),
      TableOf<coordinationv1::Lease>("Name|Holder|Age", FillLease),
      TableOf<metrics::v1beta1::NodeMetrics>(kUsage, FillNodeMetrics),
      TableOf<metrics::v1beta1::PodMetrics>(kUsage, FillPodMetrics),
  };
}

}  // namespace keelson::api
