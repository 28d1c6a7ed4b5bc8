#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiextensions/custom_resource.h"
#include "controlplane/apiserver/endpoints/body.h"
#include "controlplane/apiserver/endpoints/response.h"
#include "controlplane/apiserver/handlers/component_status.h"
#include "controlplane/apiserver/request/held_writer.h"
#include "controlplane/apiserver/server_impl.h"
#include "lib/base/text.h"

namespace keelson::apiserver {
namespace {

constexpr std::chrono::seconds kDefinitionPatience{10};

Error NoSuchPath() {
  return Error(Code::kNotFound, "the server could not find the requested resource").WithDetails({});
}

// Always allowed, even before roles are loaded.
bool IsPublicPath(const std::string& path) {
  for (std::string_view prefix : {"/healthz", "/livez", "/readyz"}) {
    if (path == prefix || path.rfind(std::string(prefix) + "/", 0) == 0) return true;
  }
  return false;
}

// Review objects have no table form.
Forms FormsOf(const Context& context) {
  if (context.info.verb == "watch") return Forms::kWatch;
  const api::ResourceInfo& row = *context.resource;
  bool stored = !row.etcd_prefix.empty() || row.kind == "ComponentStatus" || UsageHandler::Serves(row);
  if (row.IsSubresource()) {
    static constexpr std::string_view kAnswers[] = {"pods/binding", "pods/eviction", "serviceaccounts/token"};
    stored = std::find(std::begin(kAnswers), std::end(kAnswers), row.resource) == std::end(kAnswers);
  }
  if (!stored) return Forms::kNoTable;
  return context.info.verb == "list" ? Forms::kList : Forms::kAll;
}

metrics::Family& authorization_attempts = metrics::Counter(
    "authorization_attempts_total", "Counter of authorization attempts broken down by result.", {"result"});
metrics::Family& authorization_seconds = metrics::Histograms(
    "authorization_duration_seconds", "Authorization duration in seconds broken out by result.",
    metrics::ExponentialBuckets(0.001, 2, 15), {"result"});
metrics::Family& deprecated_apis = metrics::Gauge(
    "apiserver_requested_deprecated_apis",
    "Gauge of deprecated APIs that have been requested, broken out by API group, version, resource, "
    "subresource, and removed_release.",
    {"group", "version", "resource", "subresource", "removed_release"});

void CountDecision(const Decision& decision, std::chrono::duration<double> took) {
  const std::string result = decision.allowed                     ? "allowed"
                             : decision.denied                    ? "denied"
                             : !decision.evaluation_error.empty() ? "error"
                                                                  : "no-opinion";
  authorization_attempts.With({result}).Increment();
  authorization_seconds.HistogramWith({result}).Observe(took.count());
}

// API versions deprecated upstream, and by the definitions of custom resources; none has a removal date.
std::string DeprecationOf(const api::ResourceInfo& row) {
  if (const apiextensions::CustomRow* custom = apiextensions::CustomOf(row)) {
    std::shared_ptr<const apiextensions::Version> version = custom->owner->VersionOf(row);
    return version ? version->deprecation_warning : "";
  }
  if (!row.group.empty()) return "";
  if (row.kind == "Endpoints") {
    return "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
  }
  if (row.kind == "ComponentStatus") return "v1 ComponentStatus is deprecated in v1.19+";
  return "";
}

void CountDeprecated(const RequestInfo& info) {
  deprecated_apis.With({info.group, info.version, info.resource, info.subresource, ""}).Set(1);
}

}  // namespace

Result<> ApiServer::Impl::Authorize(const Context& context) const {
  if (!context.info.is_resource && IsPublicPath(context.info.path)) return {};
  Attributes attributes{context.user, context.info};
  const SteadyTime begin = SteadyTime::clock::now();
  Decision decision = authorizer->Authorize(attributes);
  CountDecision(decision, SteadyTime::clock::now() - begin);
  ObserveFilter("authorization", begin);
  if (context.audit) {
    context.audit->Annotate("authorization.k8s.io/decision", decision.allowed ? "allow" : "forbid");
    context.audit->Annotate("authorization.k8s.io/reason", decision.reason);
  }
  if (decision.allowed) return {};
  return ForbiddenTo(attributes, decision.reason);
}

bool ApiServer::Impl::PassOn(const std::shared_ptr<Context>& context, std::function<void()> done) {
  const ApiServicePtr service = aggregation.Find(context->info.path);
  if (!service) return false;
  if (audit::IsLongRunning(context->info)) {
    context->writer = std::make_shared<HeldWriter>(context->writer, std::make_shared<LongRunning>(*context));
  }
  aggregation.Handle(context, service, std::move(done));
  return true;
}

bool ApiServer::Impl::ServesHere(const RequestInfo& info) const {
  const Result<const api::ResourceInfo*> row = registry.FindResource(info.group, info.version, info.resource);
  return !row || (*row && (apiextensions::CustomOf(**row) || options.enablement.Serves(**row)));
}

bool ApiServer::Impl::PassToPeer(const std::shared_ptr<Context>& context, std::function<void()> done) {
  if (!peers || ServesHere(context->info) || !peers->Wants(*context)) return false;
  if (audit::IsLongRunning(context->info)) {
    context->writer = std::make_shared<HeldWriter>(context->writer, std::make_shared<LongRunning>(*context));
  }
  peers->Handle(context, std::move(done));
  return true;
}

bool ApiServer::Impl::Dispatch(const std::shared_ptr<Context>& context, std::function<void()> done) {
  context->output = PlainOutput(*context->request);
  if (Result<> allowed = Authorize(*context); !allowed) {
    ReplyError(*context, allowed.error());
  } else if (context->request->body.size() > kMaxBody) {
    ReplyError(*context,
               Error(Code::kTooLarge, fmt::format("Request entity too large: limit is {}", kMaxBody)));
  } else if (PassOn(context, done)) {
    return false;
  } else if (context->request->body_stream && !ConnectHandler::StreamsBody(context->info)) {
    // The extension server's APIService has gone since the request came.
    ReplyError(*context, Error(Code::kUnavailable, "service unavailable"));
  } else {
    return Answer(context, std::move(done));
  }
  return true;
}

bool ApiServer::StreamsBody(const http::ServerRequest& request) const {
  return impl_->aggregation.Find(request.path) ||
         ConnectHandler::StreamsBody(ParseRequestInfo(request.method, request.path, request.query));
}

bool ApiServer::Impl::Answer(const std::shared_ptr<Context>& request, std::function<void()> done) {
  Context& context = *request;
  if (!context.info.is_resource) {
    HandlePath(context);
    return true;
  }
  if (Result<> found = FindRow(context); !found) {
    if (PassToPeer(request, done)) return false;
    ReplyError(context, found.error());
    return true;
  }
  // Responses of kubelets and pods keep their form.
  if (!ConnectHandler::Serves(*context.resource)) {
    Result<Output> output = NegotiateOutput(*context.request, FormsOf(context), context.resource->IsCustom());
    if (!output) {
      ReplyError(context, output.error());
      return true;
    }
    context.output = *output;
  }
  if (std::string warning = DeprecationOf(*context.resource); !warning.empty()) {
    context.warnings.push_back(std::move(warning));
    CountDeprecated(context.info);
  }
  if (ConnectHandler::Serves(*context.resource)) {
    context.writer = std::make_shared<HeldWriter>(context.writer, std::make_shared<LongRunning>(context));
    return connect.Handle(request, std::move(done));
  }
  if (SlowLane::Takes(context, store)) {
    auto handle = [this, request] { Guarded(*request, [&] { HandleResource(*request); }); };
    if (slow_lane.Submit(request, std::move(handle), std::move(done))) return false;
    ReplyTooManyRequests(context);
    return true;
  }
  HandleResource(context);
  return true;
}

// Another server may have told the client that a definition is established, before this server's cache has it: a
// consistent read of the definition waits until it has.
Result<const api::ResourceInfo*> ApiServer::Impl::FindInNewerDefinition(const RequestInfo& info) const {
  // All groups of custom resources have a dot, and so have few others.
  if (info.group.find('.') == std::string::npos) return nullptr;
  KEELSON_ASSIGN_OR_RETURN(
      const storage::ObjectPtr definition,
      store.Get(api::ResourceOf<CustomResourceDefinition>(), info.resource + "." + info.group, "",
                {SteadyTime::clock::now() + kDefinitionPatience, {}}));
  if (!definition) return nullptr;
  return registry.FindResource(info.group, info.version, info.FullResource());
}

Result<> ApiServer::Impl::FindRow(Context& context) const {
  const RequestInfo& info = context.info;
  KEELSON_ASSIGN_OR_RETURN(context.resource,
                           registry.FindResource(info.group, info.version, info.FullResource()));
  if (!context.resource) {
    KEELSON_ASSIGN_OR_RETURN(context.resource, FindInNewerDefinition(info));
  }
  if (!context.resource) return NoSuchPath();
  const api::ResourceInfo& row = *context.resource;
  const apiextensions::CustomRow* custom = apiextensions::CustomOf(row);
  if (!custom && !options.enablement.Serves(row)) return NoSuchPath();
  // The path of a namespace contains its name as namespace and as name.
  bool in_namespace = !info.ns.empty() && info.resource != "namespaces";
  if (!row.namespaced && in_namespace) return NoSuchPath();
  bool named =
      !info.name.empty() && info.verb != "list" && info.verb != "watch" && info.verb != "deletecollection";
  bool needs_namespace = named || info.verb == "create" || info.verb == "deletecollection";
  if (row.namespaced && info.ns.empty() && needs_namespace) return named ? NoSuchPath() : MethodNotAllowed();
  // A proxied server may support methods without a verb.
  bool proxied_options = info.subresource == "proxy" && context.request->method == "OPTIONS";
  if ((info.verb.empty() || !row.HasVerb(info.verb)) && !proxied_options) return MethodNotAllowed();
  bool wants_name = info.verb == "update" || info.verb == "patch";
  if (wants_name && info.name.empty()) return MethodNotAllowed();
  if (info.verb == "create" && !row.IsSubresource() && !info.name.empty()) return MethodNotAllowed();
  // Authorization uses the namespace as scope; storage treats it as cluster-scoped.
  if (!row.namespaced) context.info.ns.clear();
  return {};
}

std::string ApiServer::Impl::EtcdProblem() const {
  if (!store.ready()) return "etcd cannot be reached";
  if (!options.etcd_alarms) return "";
  const Result<std::vector<std::string>> alarms = options.etcd_alarms();
  return alarms ? Join(*alarms, "; ") : alarms.error().message();
}

void ApiServer::Impl::HandleResource(Context& context) {
  const api::ResourceInfo& row = *context.resource;
  if (ReviewHandler::Serves(row)) return reviews->Handle(context);
  if (UsageHandler::Serves(row)) return usage_handler.Handle(context);
  if (row.kind == "ComponentStatus") return HandleComponentStatus(context, EtcdProblem());
  if (row.resource == "serviceaccounts/token" && row.group.empty()) {
    if (tokens) return tokens->Handle(context);
    return ReplyError(context, Error(Code::kUnimplemented, "the server has no key to sign tokens with"));
  }
  resources->Handle(context);
}

void ApiServer::Impl::HandlePath(Context& context) {
  if (health.Handle(context) || discovery.Handle(context) || openapi.Handle(context) ||
      pages.Handle(context) || routes->Handle(context)) {
    return;
  }
  if (context.info.path.rfind("/api", 0) == 0) return ReplyError(context, NoSuchPath());
  ReplyText(context, 404, "text/plain; charset=utf-8", "404 page not found\n");
}

}  // namespace keelson::apiserver
