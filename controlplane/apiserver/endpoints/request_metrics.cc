#include "controlplane/apiserver/endpoints/request_metrics.h"

#include <algorithm>
#include <cctype>

#include "controlplane/apiserver/audit/auditor.h"
#include "controlplane/apiserver/request/negotiation.h"
#include "lib/base/text.h"

namespace keelson::apiserver {
namespace {

using Labels = std::vector<std::string>;

std::vector<double> Latencies() {
  return {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1,  1.25, 1.5, 2,
          3,     4,     5,    6,   8,   10,  15,  20,  30, 45,   60};
}
// Buckets with less detail at long durations.
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
      ParseMediaType(context.request->headers.Get("Content-Type")).type == "application/apply-patch+yaml") {
    return "APPLY";
  }
  verb = Upper(verb);
  static constexpr std::string_view kVerbs[] = {
      "GET", "LIST", "WATCH", "POST", "PUT", "PATCH", "DELETE", "DELETECOLLECTION", "HEAD", "OPTIONS"};
  return std::find(std::begin(kVerbs), std::end(kVerbs), verb) != std::end(kVerbs) ? verb : "other";
}

std::string DryRunLabel(const Context& context) { return context.query().Has("dryRun") ? "All" : ""; }

// Verb, group, version, resource, subresource, scope, component. Unknown resources have no labels, because
// clients could create arbitrary many series.
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

std::vector<double> BodySizes() {
  std::vector<double> bounds = {50000};
  for (int i = 0; i < 30; ++i) bounds.push_back(150000 + i * 100000.0);
  return bounds;
}

// Why a body is read; null: it is not.
const char* BodyVerb(const Context& context) {
  static constexpr const char* kVerbs[] = {"create", "update", "patch", "delete"};
  for (const char* verb : kVerbs) {
    if (context.info.verb == verb) return verb;
  }
  return context.info.verb == "deletecollection" ? "delete_collection" : nullptr;
}

// The field validation level of a write; null: none or unknown.
const char* FieldValidation(const Context& context) {
  const std::string& verb = context.info.verb;
  if (verb != "create" && verb != "update" && verb != "patch") return nullptr;
  const std::string_view asked = context.query().Get("fieldValidation");
  for (const char* mode : {"Ignore", "Warn", "Strict", ""}) {
    if (asked == mode) return mode;
  }
  return nullptr;
}

metrics::Family& filter_seconds =
    metrics::Histograms("apiserver_request_filter_duration_seconds",
                        "Request filter latency distribution in seconds, for each filter type",
                        {0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 5, 10, 15, 30}, {"filter"});
metrics::Family& response_sizes =
    metrics::Histograms("apiserver_response_sizes",
                        "Response size distribution in bytes for each group, version, verb, resource, "
                        "subresource, scope and component.",
                        metrics::ExponentialBuckets(1000, 10, 7), kCommon);
metrics::Family& self_requests =
    metrics::Counter("apiserver_selfrequest_total",
                     "Counter of apiserver self-requests broken out for each verb, API resource and "
                     "subresource.",
                     {"verb", "group", "resource", "subresource"});
metrics::Value& handshake_errors =
    metrics::Counter("apiserver_tls_handshake_errors_total",
                     "Number of requests dropped with 'TLS handshake error from' error")
        .With();
metrics::Family& waiting_requests = metrics::Gauge(
    "apiserver_current_inqueue_requests",
    "Maximal number of queued requests in this apiserver per request kind in last second.", {"request_kind"});
metrics::Family& long_running =
    metrics::Gauge("apiserver_longrunning_requests",
                   "Gauge of all active long-running apiserver requests broken out by verb, group, version, "
                   "resource, scope and component.",
                   kCommon);
metrics::Family& objects_by_resource =
    metrics::Gauge("apiserver_storage_objects", "Number of stored objects, by resource.", {"resource"});
metrics::Family& object_counts = metrics::Gauge(
    "apiserver_resource_objects", "Number of stored objects, by group and resource.", {"group", "resource"});
metrics::Family& object_bytes = metrics::Gauge(
    "apiserver_resource_size_estimate_bytes",
    "Estimated size of stored objects in database, by group and resource.", {"group", "resource"});

}  // namespace

std::string ScopeLabel(const RequestInfo& info) {
  if (!info.is_resource) return "";
  if (!info.name.empty() || info.verb == "create") return "resource";
  return info.ns.empty() ? "cluster" : "namespace";
}

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
      terminated_(metrics::Counter("apiserver_request_terminations_total",
                                   "Number of requests which apiserver terminated in self-defense.",
                                   With(kCommon, "code"))),
      inflight_(metrics::Gauge("apiserver_current_inflight_requests",
                               "Requests that are being answered, of those that are no streams.",
                               {"request_kind"})),
      body_sizes_(metrics::Histograms("apiserver_request_body_size_bytes",
                                      "Apiserver request body size in bytes broken out by resource and verb.",
                                      BodySizes(), {"group", "resource", "verb"})),
      validation_seconds_(
          metrics::Histograms("field_validation_request_duration_seconds",
                              "Response latency distribution in seconds for each field validation value",
                              PromisedLatencies(), {"field_validation"})) {}

metrics::Value& RequestMetrics::Inflight(const RequestInfo& info) {
  return inflight_.With({IsMutating(info) ? "mutating" : "readOnly"});
}

void RequestMetrics::Record(const Context& context, std::chrono::duration<double> took,
                            std::chrono::duration<double> served) {
  const Labels common = CommonLabels(context);
  const std::string dry_run = DryRunLabel(context), code = std::to_string(context.status);
  Labels labels = common;
  labels.push_back(dry_run);
  if (!audit::IsLongRunning(context.info)) {
    seconds_.HistogramWith(labels).Observe(took.count());
    sli_seconds_.HistogramWith(common).Observe(served.count());
    if (const char* mode = FieldValidation(context)) {
      validation_seconds_.HistogramWith({mode}).Observe(took.count());
    }
  }
  labels.push_back(code);
  total_.With(labels).Increment();
  constexpr int kTooManyRequests = 429, kTimeout = 504;
  if (context.status == kTooManyRequests || context.status == kTimeout) {
    terminated_.With(With(common, code)).Increment();
  }
  if (const char* verb = BodyVerb(context); verb && context.resource) {
    const Labels of = {std::string(context.resource->group), context.info.resource, verb};
    body_sizes_.HistogramWith(of).Observe(static_cast<double>(context.request->body.size()));
  }
}

void ObserveFilter(const char* filter, SteadyTime begin) {
  const std::chrono::duration<double> took = SteadyTime::clock::now() - begin;
  filter_seconds.HistogramWith({filter}).Observe(took.count());
}

void ObserveResponseSize(const Context& context, size_t bytes) {
  const std::string verb = VerbLabel(context);
  if (verb == "GET" || verb == "LIST") {
    response_sizes.HistogramWith(CommonLabels(context)).Observe(static_cast<double>(bytes));
  }
}

void CountSelfRequest(const RequestInfo& info) {
  self_requests.With({info.verb, info.group, info.resource, info.subresource}).Increment();
}

void TellWaiting(double reads, double writes) {
  waiting_requests.With({"readOnly"}).Set(reads);
  waiting_requests.With({"mutating"}).Set(writes);
}

LongRunning::LongRunning(const Context& context) : count_(long_running.With(CommonLabels(context))) {
  count_.Add(1);
}

metrics::Value& HandshakeErrors() { return handshake_errors; }

void CountObjects(const storage::Store& store) {
  for (const api::ResourceInfo& info : api::Resources()) {
    if (info.IsSubresource() || info.etcd_prefix.empty()) continue;
    const storage::Size size = store.SizeOf(info);
    const Labels labels = {std::string(info.group), std::string(info.resource)};
    objects_by_resource.With({info.GroupResource()}).Set(static_cast<double>(size.objects));
    object_counts.With(labels).Set(static_cast<double>(size.objects));
    object_bytes.With(labels).Set(static_cast<double>(size.bytes));
  }
}

}  // namespace keelson::apiserver
