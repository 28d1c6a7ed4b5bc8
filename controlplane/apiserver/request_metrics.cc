#include "controlplane/apiserver/request_metrics.h"

#include <algorithm>
#include <cctype>

#include "controlplane/apiserver/audit/auditor.h"
#include "controlplane/apiserver/handlers/negotiation.h"

namespace keelson::apiserver {
namespace {

using Labels = std::vector<std::string>;

std::vector<double> Latencies() {
  return {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1,  1.25, 1.5, 2,
          3,     4,     5,    6,   8,   10,  15,  20,  30, 45,   60};
}
// Of what is promised less is of interest.
std::vector<double> PromisedLatencies() {
  std::vector<double> all = Latencies();
  return {all.begin() + 2, all.end()};
}

bool IsConnect(const RequestInfo& info) {
  static constexpr std::string_view kConnects[] = {"exec", "attach", "portforward", "proxy"};
  return std::find(std::begin(kConnects), std::end(kConnects), info.subresource) != std::end(kConnects);
}

std::string VerbLabel(const Context& context) {
  const RequestInfo& info = context.info;
  std::string verb = info.is_resource ? info.verb : context.request->method;
  if (info.is_resource && IsConnect(info)) return "CONNECT";
  if (verb == "update") return "PUT";
  if (verb == "create") return "POST";
  if (verb == "patch" &&
      ParseMediaType(context.request->headers.Get("Content-Type")).type == "application/apply-patch+yaml")
    return "APPLY";
  for (char& c : verb) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  static constexpr std::string_view kVerbs[] = {
      "GET", "LIST", "WATCH", "POST", "PUT", "PATCH", "DELETE", "DELETECOLLECTION", "HEAD", "OPTIONS"};
  return std::find(std::begin(kVerbs), std::end(kVerbs), verb) != std::end(kVerbs) ? verb : "other";
}

std::string ScopeLabel(const RequestInfo& info) {
  if (!info.is_resource) return "";
  if (!info.name.empty() || info.verb == "create") return "resource";
  return info.ns.empty() ? "cluster" : "namespace";
}

std::string DryRunLabel(const Context& context) { return context.query().Has("dryRun") ? "All" : ""; }

// Verb, group, version, resource, subresource, scope, component. Of unknown resources nothing is kept:
// anybody could make up names without end.
Labels CommonLabels(const Context& context) {
  const RequestInfo& info = context.info;
  const bool known = context.resource != nullptr;
  auto of = [known](const std::string& text) { return known ? text : std::string(); };
  return {VerbLabel(context),   of(info.group),   of(info.version), of(info.resource),
          of(info.subresource), ScopeLabel(info), "apiserver"};
}

const Labels kCommon = {"verb", "group", "version", "resource", "subresource", "scope", "component"};

Labels With(Labels labels, std::string one, std::string other = "") {
  labels.push_back(std::move(one));
  if (!other.empty()) labels.push_back(std::move(other));
  return labels;
}

}  // namespace

bool IsMutating(const RequestInfo& info) {
  return info.is_resource && info.verb != "get" && info.verb != "list" && info.verb != "watch";
}

RequestMetrics::RequestMetrics()
    : total_(metrics::Counter("apiserver_request_total",
                              "Counter of apiserver requests broken out for each verb, dry run value, group, "
                              "version, resource, scope, component, and HTTP response code.",
                              With(kCommon, "dry_run", "code"))),
      seconds_(
          metrics::Histograms("apiserver_request_duration_seconds",
                              "Response latency distribution in seconds for each verb, dry run value, group, "
                              "version, resource, subresource, scope and component.",
                              Latencies(), With(kCommon, "dry_run"))),
      sli_seconds_(
          metrics::Histograms("apiserver_request_sli_duration_seconds",
                              "Response latency distribution (not counting webhook duration and priority & "
                              "fairness queue wait times) in seconds.",
                              PromisedLatencies(), kCommon)),
      slo_seconds_(
          metrics::Histograms("apiserver_request_slo_duration_seconds",
                              "The same as apiserver_request_sli_duration_seconds, under its older name.",
                              PromisedLatencies(), kCommon)),
      terminated_(metrics::Counter("apiserver_request_terminations_total",
                                   "Number of requests which apiserver terminated in self-defense.",
                                   With(kCommon, "code"))),
      inflight_(metrics::Gauge("apiserver_current_inflight_requests",
                               "Requests that are being answered, of those that are no streams.",
                               {"request_kind"})) {}

metrics::Value& RequestMetrics::Inflight(const RequestInfo& info) {
  return inflight_.With({IsMutating(info) ? "mutating" : "readOnly"});
}

void RequestMetrics::Record(const Context& context, std::chrono::duration<double> took) {
  const Labels common = CommonLabels(context);
  const std::string dry_run = DryRunLabel(context), code = std::to_string(context.status);
  Labels labels = common;
  labels.push_back(dry_run);
  if (!audit::IsLongRunning(context.info)) {
    seconds_.HistogramWith(labels).Observe(took.count());
    sli_seconds_.HistogramWith(common).Observe(took.count());
    slo_seconds_.HistogramWith(common).Observe(took.count());
  }
  labels.push_back(code);
  total_.With(labels).Increment();
  constexpr int kTooManyRequests = 429, kTimeout = 504;
  if (context.status == kTooManyRequests || context.status == kTimeout)
    terminated_.With(With(common, code)).Increment();
}

LongRunning::LongRunning(const Context& context)
    : count_(metrics::Gauge(
                 "apiserver_longrunning_requests",
                 "Gauge of all active long-running apiserver requests broken out by verb, group, version, "
                 "resource, scope and component.",
                 kCommon)
                 .With(CommonLabels(context))) {
  count_.Add(1);
}

void CountObjects(const storage::Store& store) {
  const Labels names = {"group", "resource"};
  static metrics::Family& older =
      metrics::Gauge("apiserver_storage_objects", "Number of stored objects, by resource.", {"resource"});
  static metrics::Family& objects =
      metrics::Gauge("apiserver_resource_objects", "Number of stored objects, by group and resource.", names);
  static metrics::Family& bytes = metrics::Gauge("apiserver_resource_size_estimate_bytes",
                                                 "Size of stored objects, by group and resource.", names);
  for (const api::ResourceInfo& info : api::Resources()) {
    if (info.IsSubresource() || info.etcd_prefix.empty()) continue;
    const storage::Size size = store.SizeOf(info);
    const Labels labels = {std::string(info.group), std::string(info.resource)};
    older.With({info.GroupResource()}).Set(static_cast<double>(size.objects));
    objects.With(labels).Set(static_cast<double>(size.objects));
    bytes.With(labels).Set(static_cast<double>(size.bytes));
  }
}

}  // namespace keelson::apiserver
