#include "controlplane/apiserver/resource_metrics/handler.h"

#include <fmt/format.h>

#include "controlplane/apiserver/endpoints/list_options.h"
#include "controlplane/apiserver/endpoints/response.h"
#include "lib/api/meta.h"
#include "lib/api/proto/metrics_v1beta1.pb.h"
#include "lib/api/quantity.h"

namespace keelson::apiserver {
namespace {

using api::metrics::v1beta1::NodeMetrics;
using api::metrics::v1beta1::PodMetrics;
using Resources = google::protobuf::Map<std::string, Quantity>;

// The resource that the usage belongs to: nodes or pods.
const api::ResourceInfo& SubjectOf(const api::ResourceInfo& row) {
  return row.resource == "nodes" ? api::ResourceOf<corev1::Node>() : api::ResourceOf<corev1::Pod>();
}

void SetUsage(const Usage& usage, Resources& out) {
  out["cpu"] = api::Amount::Parse(fmt::format("{}n", usage.nano_cores))->ToQuantity();
  out["memory"] = api::Amount::FromBytes(usage.memory_bytes).ToQuantity();
}

template <typename T>
T About(const metav1::ObjectMeta& subject, WallTime time, std::chrono::nanoseconds window) {
  T out;
  metav1::ObjectMeta& meta = *out.mutable_metadata();
  meta.set_name(subject.name());
  if (!subject.namespace_().empty()) meta.set_namespace_(subject.namespace_());
  *meta.mutable_labels() = subject.labels();
  *meta.mutable_creation_timestamp() = api::ToTime(Clock::Real().Now());
  *out.mutable_timestamp() = api::ToTime(time);
  out.mutable_window()->set_duration(window.count());
  return out;
}

Error NotKnown(const api::ResourceInfo& row, const std::string& name) {
  std::string kind = row.resource == "nodes" ? "nodemetrics" : "podmetrics";
  ErrorDetails details;
  details.name = name;
  details.group = std::string(row.group);
  details.kind = kind;
  return Error(Code::kNotFound, fmt::format("{}.{} \"{}\" not found", kind, row.group, name))
      .WithDetails(std::move(details));
}

}  // namespace

void UsageHandler::Handle(Context& context) const {
  Result<> done = context.info.verb == "list" ? List(context) : Get(context);
  if (!done) ReplyError(context, done.error());
}

registry::ObjectPtr UsageHandler::Make(const api::ResourceInfo& row, const storage::Object& of) const {
  if (row.resource == "nodes") {
    std::optional<Usage> usage = usage_.Node(of.name());
    if (!usage) return nullptr;
    auto node = About<NodeMetrics>(api::Meta(*of.Decode()), usage->time, usage->window);
    SetUsage(*usage, *node.mutable_usage());
    return storage::Object::FromMessage(row, node, 0);
  }
  auto pod = std::static_pointer_cast<const corev1::Pod>(of.Decode());
  if (pod->status().phase() != "Running") return nullptr;
  std::optional<PodUsage> usage = usage_.Pod(pod->spec().node_name(), of.key());
  if (!usage) return nullptr;
  auto out = About<PodMetrics>(pod->metadata(), usage->time, usage->window);
  for (const auto& [name, used] : usage->containers) {
    auto& container = *out.add_containers();
    container.set_name(name);
    SetUsage(used, *container.mutable_usage());
  }
  return storage::Object::FromMessage(row, out, 0);
}

Result<> UsageHandler::Get(Context& context) const {
  const api::ResourceInfo& row = *context.resource;
  const std::string &ns = context.info.ns, &name = context.info.name;
  KEELSON_ASSIGN_OR_RETURN(registry::ObjectPtr subject,
                           registry_.Get(SubjectOf(row), ns, name, "0", {}, context.deadline));
  registry::ObjectPtr object = Make(row, *subject);
  if (!object) return NotKnown(row, api::KeyOf(ns, name));
  ReplyObject(context, 200, object);
  return {};
}

Result<> UsageHandler::List(Context& context) const {
  KEELSON_ASSIGN_OR_RETURN(const registry::ListOptions asked, ParseListOptions(context));
  registry::ListOptions options;
  options.label_selector = asked.label_selector;
  options.field_selector = asked.field_selector;
  options.resource_version = "0";
  options.deadline = asked.deadline;
  KEELSON_ASSIGN_OR_RETURN(registry::ObjectList subjects,
                           registry_.List(SubjectOf(*context.resource), context.info.ns, options));
  registry::ObjectList list;
  for (const registry::ObjectPtr& subject : subjects.items) {
    if (registry::ObjectPtr object = Make(*context.resource, *subject)) {
      list.items.push_back(std::move(object));
    }
  }
  ReplyList(context, list);
  return {};
}

}  // namespace keelson::apiserver
