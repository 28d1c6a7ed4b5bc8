#include "controlplane/apiserver/request_metrics.h"

#include <cctype>
#include <string>
#include <vector>

namespace keelson::apiserver {
namespace {

std::string VerbLabel(std::string text) {
  if (text == "update") return "PUT";
  if (text == "create") return "POST";
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string ScopeLabel(const RequestInfo& info) {
  if (!info.is_resource) return "";
  if (!info.name.empty()) return "resource";
  return info.ns.empty() ? "cluster" : "namespace";
}

}  // namespace

bool IsMutating(const RequestInfo& info) {
  return info.is_resource && info.verb != "get" && info.verb != "list" && info.verb != "watch";
}

RequestMetrics::RequestMetrics()
    : total_(metrics::Counter(
          "apiserver_request_total", "Requests answered.",
          {"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component", "code"})),
      seconds_(metrics::Histograms(
          "apiserver_request_duration_seconds", "Time to answer; watches are left out.",
          {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60},
          {"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"})),
      inflight_(metrics::Gauge("apiserver_current_inflight_requests", "Requests that are being answered.",
                               {"request_kind"})) {}

metrics::Value& RequestMetrics::Inflight(const RequestInfo& info) {
  return inflight_.With({IsMutating(info) ? "mutating" : "readOnly"});
}

void RequestMetrics::Record(const Context& context, std::chrono::duration<double> took) {
  const RequestInfo& info = context.info;
  // Of unknown resources nothing is kept: anybody could make up names without end.
  const bool known = context.resource != nullptr;
  std::vector<std::string> labels = {VerbLabel(info.is_resource ? info.verb : context.request->method),
                                     context.query().Has("dryRun") ? "All" : "",
                                     known ? info.group : "",
                                     known ? info.version : "",
                                     known ? info.resource : "",
                                     known ? info.subresource : "",
                                     ScopeLabel(info),
                                     "apiserver"};
  if (info.verb != "watch") seconds_.HistogramWith(labels).Observe(took.count());
  labels.push_back(std::to_string(context.status));
  total_.With(labels).Increment();
}

// Every stored resource once, for apiserver_storage_objects.
void CountObjects(storage::Store& store) {
  static metrics::Family& family =
      metrics::Gauge("apiserver_storage_objects", "Objects stored, by resource.", {"resource"});
  for (const api::ResourceInfo& info : api::Resources()) {
    if (info.IsSubresource() || info.etcd_prefix.empty()) continue;
    size_t count = 0;
    store.ForEach(info, [&](const storage::ObjectPtr&) { ++count; });
    family.With({info.GroupResource()}).Set(static_cast<double>(count));
  }
}

}  // namespace keelson::apiserver
