#include <algorithm>

#include <fmt/format.h>

#include "lib/api/meta.h"
#include "lib/api/proto/batch_v1.pb.h"
#include "lib/api/proto/certificates_v1.pb.h"
#include "lib/api/proto/certificates_v1beta1.pb.h"
#include "lib/api/proto/resource_v1.pb.h"
#include "lib/api/selector.h"

namespace keelson::api {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

// A selectable field, with the path of its value in proto names.
struct Selectable {
  std::string_view field, path;
};

using Table = std::vector<Selectable>;

const Table& TableOf(const Descriptor* type) {
  static const std::map<const Descriptor*, Table> kTables = {
      {corev1::Pod::descriptor(),
       {{"spec.nodeName", "spec.node_name"},
        {"spec.restartPolicy", "spec.restart_policy"},
        {"spec.schedulerName", "spec.scheduler_name"},
        {"spec.serviceAccountName", "spec.service_account_name"},
        {"spec.hostNetwork", "spec.host_network"},
        {"status.phase", "status.phase"},
        {"status.podIP", "status.pod_ip"},
        {"status.podIPs", ""},  // selectable, but always empty
        {"status.nominatedNodeName", "status.nominated_node_name"}}},
      {corev1::Node::descriptor(), {{"spec.unschedulable", "spec.unschedulable"}}},
      {corev1::Namespace::descriptor(), {{"name", "metadata.name"}, {"status.phase", "status.phase"}}},
      {corev1::Secret::descriptor(), {{"type", "type"}}},
      {corev1::Service::descriptor(), {{"spec.clusterIP", "spec.cluster_ip"}, {"spec.type", "spec.type"}}},
      {corev1::ReplicationController::descriptor(), {{"status.replicas", "status.replicas"}}},
      {appsv1::ReplicaSet::descriptor(), {{"status.replicas", "status.replicas"}}},
      {batch::v1::Job::descriptor(), {{"status.successful", "status.succeeded"}}},
      {certificates::v1::CertificateSigningRequest::descriptor(), {{"spec.signerName", "spec.signer_name"}}},
      {certificates::v1beta1::PodCertificateRequest::descriptor(),
       {{"spec.signerName", "spec.signer_name"},
        {"spec.podName", "spec.pod_name"},
        {"spec.nodeName", "spec.node_name"}}},
      {resource::v1::ResourceSlice::descriptor(),
       {{"spec.driver", "spec.driver"}, {"spec.nodeName", "spec.node_name"}}},
      {corev1::Event::descriptor(),
       {{"involvedObject.kind", "involved_object.kind"},
        {"involvedObject.namespace", "involved_object.namespace"},
        {"involvedObject.name", "involved_object.name"},
        {"involvedObject.uid", "involved_object.uid"},
        {"involvedObject.apiVersion", "involved_object.api_version"},
        {"involvedObject.resourceVersion", "involved_object.resource_version"},
        {"involvedObject.fieldPath", "involved_object.field_path"},
        {"reason", "reason"},
        {"reportingComponent", "reporting_component"},
        {"source", "source.component"},
        {"type", "type"}}},
      {eventsv1::Event::descriptor(),
       {{"regarding.kind", "regarding.kind"},
        {"regarding.namespace", "regarding.namespace"},
        {"regarding.name", "regarding.name"},
        {"regarding.uid", "regarding.uid"},
        {"regarding.apiVersion", "regarding.api_version"},
        {"regarding.resourceVersion", "regarding.resource_version"},
        {"regarding.fieldPath", "regarding.field_path"},
        {"reason", "reason"},
        {"reportingController", "reporting_controller"},
        {"source", "deprecated_source.component"},
        {"type", "type"}}},
  };
  static const Table kNone;
  auto it = kTables.find(type);
  return it == kTables.end() ? kNone : it->second;
}

// A scalar as text; an unset one reads as its default.
std::string Text(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_INT32:
      return std::to_string(reflection.GetInt32(message, &field));
    default:
      return "";
  }
}

std::string TextAt(const Message& object, std::string_view path) {
  const Message* message = &object;
  while (true) {
    size_t dot = path.find('.');
    const FieldDescriptor* field =
        message->GetDescriptor()->FindFieldByName(std::string(path.substr(0, dot)));
    if (!field) return "";
    if (dot == std::string_view::npos) return Text(*message, *field);
    message = &message->GetReflection()->GetMessage(*message, field);
    path.remove_prefix(dot + 1);
  }
}

bool IsNamespaced(const Descriptor* type) {
  GroupVersionKind gvk = GvkOf(type);
  const ResourceInfo* info = FindKind(gvk.group, gvk.version, gvk.kind);
  return !info || info->namespaced;
}

Error Invalid(std::string_view selector, std::string_view part) {
  return Error(Code::kBadRequest,
               fmt::format("invalid selector: '{}'; can't understand '{}'", selector, part));
}

// Resolves the escapes `\\`, `\,` and `\=`.
Result<std::string> Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      char next = i + 1 < text.size() ? text[i + 1] : 0;
      if (next != '\\' && next != ',' && next != '=') {
        return Error(Code::kBadRequest,
                     fmt::format("invalid field selector: invalid escape sequence: {}", text.substr(i, 2)));
      }
      out += text[++i];
    } else if (text[i] == ',' || text[i] == '=') {
      return Error(Code::kBadRequest,
                   fmt::format("invalid field selector: unescaped character in value: {}", text[i]));
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string Escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\' || c == ',' || c == '=') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

Result<FieldSelector> FieldSelector::Parse(std::string_view text) {
  FieldSelector selector;
  for (size_t start = 0; start <= text.size();) {
    size_t end = start;
    while (end < text.size() && text[end] != ',') end += text[end] == '\\' ? 2 : 1;
    end = std::min(end, text.size());
    std::string_view term = text.substr(start, end - start);
    start = end + 1;
    if (term.empty()) continue;
    size_t sign = term.find_first_of("=!");
    if (sign == std::string_view::npos) return Invalid(text, term);
    bool equal = term[sign] == '=';
    size_t length = term.substr(sign, 2) == "!=" || term.substr(sign, 2) == "==" ? 2 : 1;
    if (!equal && length == 1) return Invalid(text, term);
    KEELSON_ASSIGN_OR_RETURN(std::string value, Unescape(term.substr(sign + length)));
    selector.terms.push_back({std::string(term.substr(0, sign)), std::move(value), equal});
  }
  return selector;
}

std::string FieldSelector::ToString() const {
  std::string out;
  for (const Term& term : terms) {
    if (!out.empty()) out += ',';
    out += term.field + (term.equal ? "=" : "!=") + Escape(term.value);
  }
  return out;
}

std::optional<std::string> SelectableField(const Message& object, std::string_view field) {
  const Descriptor* type = object.GetDescriptor();
  if (!HasObjectMeta(type)) return std::nullopt;
  if (field == "metadata.name") return Meta(object).name();
  if (field == "metadata.namespace" && IsNamespaced(type)) return Meta(object).namespace_();
  if (type == corev1::Pod::descriptor() && field == "spec.host") field = "spec.nodeName";
  for (const Selectable& entry : TableOf(type)) {
    if (entry.field != field) continue;
    std::string value = TextAt(object, entry.path);
    if (value.empty() && field == "source") value = TextAt(object, "reporting_component");
    return value;
  }
  return std::nullopt;
}

std::vector<std::string> SelectableFields(const Descriptor* descriptor) {
  std::vector<std::string> fields = {"metadata.name"};
  if (IsNamespaced(descriptor)) fields.push_back("metadata.namespace");
  for (const Selectable& entry : TableOf(descriptor)) fields.emplace_back(entry.field);
  std::sort(fields.begin(), fields.end());
  return fields;
}

bool Matches(const FieldSelector& selector, const Message& object) {
  return std::all_of(selector.terms.begin(), selector.terms.end(), [&](const FieldSelector::Term& term) {
    std::optional<std::string> value = SelectableField(object, term.field);
    return value && (*value == term.value) == term.equal;
  });
}

}  // namespace keelson::api
