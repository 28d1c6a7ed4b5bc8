#include "controlplane/apiserver/server.h"
#include "controlplane/apiserver/admission/plugins.h"

#include <atomic>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/admission.h"
#include "controlplane/apiserver/authn/bootstrap_tokens.h"
#include "controlplane/apiserver/authn/identity_lookup.h"
#include "controlplane/apiserver/authn/impersonation.h"
#include "controlplane/apiserver/authz/aggregation.h"
#include "controlplane/apiserver/authz/node.h"
#include "controlplane/apiserver/authz/rbac.h"
#include "controlplane/apiserver/discovery.h"
#include "controlplane/apiserver/flowcontrol/bootstrap.h"
#include "controlplane/apiserver/flowcontrol/controller.h"
#include "controlplane/apiserver/follower.h"
#include "controlplane/apiserver/handlers/body.h"
#include "controlplane/apiserver/handlers/component_status.h"
#include "controlplane/apiserver/handlers/connect.h"
#include "controlplane/apiserver/handlers/debug_pages.h"
#include "controlplane/apiserver/handlers/misc.h"
#include "controlplane/apiserver/handlers/openapi.h"
#include "controlplane/apiserver/handlers/resource.h"
#include "controlplane/apiserver/handlers/response.h"
#include "controlplane/apiserver/handlers/reviews.h"
#include "controlplane/apiserver/handlers/token_request.h"
#include "controlplane/apiserver/handlers/watch.h"
#include "controlplane/apiserver/health.h"
#include "controlplane/apiserver/local_transport.h"
#include "controlplane/apiserver/request_metrics.h"
#include "lib/api/meta.h"
#include "lib/api/proto/resource_v1.pb.h"
#include "lib/api/proto/storage_v1.pb.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"

namespace keelson::apiserver {
namespace {

constexpr std::chrono::seconds kServiceCheckPeriod{10};

Error MethodNotAllowed() {
  return Error(Code::kMethodNotAllowed, "the server does not allow this method on the requested resource");
}
Error NoSuchPath() {
  return Error(Code::kNotFound, "the server could not find the requested resource").WithDetails({});
}

// Anybody may ask for these, also before roles have been read.
bool IsPublicPath(const std::string& path) {
  for (std::string_view prefix : {"/healthz", "/livez", "/readyz"}) {
    if (path == prefix || path.rfind(std::string(prefix) + "/", 0) == 0) return true;
  }
  return false;
}

// A consistent read: it succeeds when etcd has a leader and the caches keep up with it.
Result<> AskEtcd(storage::Store& store) {
  constexpr std::chrono::seconds kPatience{2};
  auto read = store.Get(api::ResourceOf<corev1::Namespace>(), "default", "",
                        {SteadyTime::clock::now() + kPatience, {}});
  if (!read) return read.error();
  return {};
}

// Objects that are answers and nothing more make no tables.
Forms FormsOf(const Context& context) {
  if (context.info.verb == "watch") return Forms::kWatch;
  const api::ResourceInfo& row = *context.resource;
  bool stored = !row.etcd_prefix.empty() || row.kind == "ComponentStatus";
  if (row.IsSubresource()) {
    static constexpr std::string_view kAnswers[] = {"pods/binding", "pods/eviction", "serviceaccounts/token"};
    stored = std::find(std::begin(kAnswers), std::end(kAnswers), row.resource) == std::end(kAnswers);
  }
  return stored ? Forms::kAll : Forms::kNoTable;
}

// Of served versions of the API; removal is planned for none of these.
std::string_view DeprecationOf(const api::ResourceInfo& row) {
  if (!row.group.empty()) return "";
  if (row.kind == "Endpoints")
    return "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
  if (row.kind == "ComponentStatus") return "v1 ComponentStatus is deprecated in v1.19+";
  return "";
}

std::vector<std::string> ServedPaths(std::vector<std::string> out) {
  for (const char* path :
       {"/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/apis/", "/flagz", "/metrics",
        "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/openid/v1/jwks", "/statusz", "/version"}) {
    out.emplace_back(path);
  }
  for (const api::ResourceInfo& info : api::Resources()) {
    if (info.group.empty()) continue;
    std::string group = "/apis/" + std::string(info.group);
    for (const std::string& path : {group, group + "/" + std::string(info.version)}) {
      if (std::find(out.begin(), out.end(), path) == out.end()) out.push_back(path);
    }
  }
  return out;
}

std::shared_ptr<Context> MakeContext(std::shared_ptr<const http::ServerRequest> request,
                                     std::shared_ptr<http::ResponseWriter> writer) {
  auto context = std::make_shared<Context>();
  context->request = std::move(request);
  context->writer = std::move(writer);
  context->info = ParseRequestInfo(context->request->method, context->request->path, context->request->query);
  return context;
}

// Of what goes on its writer says when it is over.
void EndAudit(const Context& context) {
  if (!context.audit) return;
  for (const auto& [name, value] : context.audit_annotations) context.audit->Annotate(name, value);
  if (!audit::IsLongRunning(context.info))
    (void)context.audit->Emit(audit::Stage::kResponseComplete, context.status);
}

}  // namespace

struct ApiServer::Impl {
  Impl(ApiServerOptions given, registry::Registry& the_registry, storage::Store& the_store);

  Result<> Authorize(const Context& context) const;
  // `who` null: nobody knows.
  Result<> BeginAudit(Context& context, const User* who, const std::optional<Impersonation>& acting);
  void Admit(const std::shared_ptr<Context>& context);
  void Serve(Context& context);
  void Refuse(Context& context);
  void FollowFlows();
  Result<> FindRow(Context& context) const;
  void Dispatch(Context& context);
  void HandleResource(Context& context);
  void HandlePath(Context& context);
  Result<> Bootstrap(std::stop_token stop);
  Result<> RunBootstrap(std::stop_token stop, const ServiceGroup::Ready& ready);
  std::shared_ptr<Authorizer> MakeAuthorizer() const;
  std::unique_ptr<Authenticator> MakeAuthenticator() const;
  void FollowRoles();
  void FollowNodeObjects();

  ApiServerOptions options;
  registry::Registry& registry;
  storage::Store& store;
  std::atomic<bool> bootstrapped{false}, stopping{false};

  std::shared_ptr<RbacAuthorizer> rbac = std::make_shared<RbacAuthorizer>();
  std::shared_ptr<NodeGraph> graph = std::make_shared<NodeGraph>();
  std::shared_ptr<Authorizer> authorizer;
  std::unique_ptr<Authenticator> authenticator;
  std::unique_ptr<AdmissionChain> admission;
  std::unique_ptr<TokenIssuer> tokens;
  std::unique_ptr<MiscHandler> misc;
  Follower follower;
  RoleAggregator aggregator;
  WatchManager watches;
  BackendClients backends;
  ConnectHandler connect;
  std::unique_ptr<ReviewHandler> reviews;
  std::unique_ptr<ResourceHandler> resources;
  Discovery discovery;
  Health health;
  OpenApiHandler openapi;
  DebugPages pages;
  RequestMetrics request_metrics;
  InflightLimit read_only, mutating;
  flowcontrol::Controller flow;
};

ApiServer::Impl::Impl(ApiServerOptions given, registry::Registry& the_registry, storage::Store& the_store)
    : options(std::move(given)),
      registry(the_registry),
      store(the_store),
      authorizer(MakeAuthorizer()),
      follower(store),
      aggregator(registry),
      watches(registry),
      backends(store, options.backends),
      connect(registry, *authorizer, backends),
      discovery(fmt::format("{}:{}", options.kubernetes_service.advertise_address,
                            options.kubernetes_service.port)),
      health(
          {{"ping", true, [] { return Result<>(); }},
           {"caches", true,
            [this]() -> Result<> {
              if (store.ready()) return {};
              return Error(Code::kUnavailable, "the caches have not been filled");
            }},
           // Not for /livez: no restart of this server brings etcd back.
           {"etcd", false, [this] { return AskEtcd(store); }},
           {"poststarthook/bootstrap", false,
            [this]() -> Result<> {
              if (bootstrapped.load()) return {};
              return Error(Code::kUnavailable, "not finished");
            }},
           {"kms-providers", false, [this] { return options.check_kms ? options.check_kms() : Result<>(); }},
           {"shutdown", false,
            [this]() -> Result<> {
              if (!stopping.load()) return {};
              return Error(Code::kUnavailable, "process is shutting down");
            }}}),
      pages(options.flags, health.Paths()),
      read_only(options.limits.max_read_only),
      mutating(options.limits.max_mutating),
      flow({options.limits.seats, options.limits.timeout / 4}) {
  if (options.api_audiences.empty()) options.api_audiences = options.issuers;
  authenticator = MakeAuthenticator();
  admission = NewAdmissionChain(options.admission, store, authorizer);
  if (options.signing_key) {
    TokenIssuer::Options issuing{options.issuers.front(), *options.signing_key, options.api_audiences,
                                 options.max_token_expiration, options.extend_token_expiration};
    tokens = std::make_unique<TokenIssuer>(registry, authorizer, std::move(issuing));
  }
  misc = std::make_unique<MiscHandler>(MiscHandler::Options{
      options.issuers.front(),
      !options.jwks_uri.empty()
          ? options.jwks_uri
          : fmt::format("https://{}:{}/openid/v1/jwks", options.kubernetes_service.advertise_address,
                        options.kubernetes_service.port),
      options.verify_keys, ServedPaths(health.Paths())});
  reviews = std::make_unique<ReviewHandler>(*authenticator, *authorizer);
  resources = std::make_unique<ResourceHandler>(registry, watches, *admission, *authorizer);
  FollowRoles();
  FollowNodeObjects();
  FollowFlows();
}

void ApiServer::Impl::FollowFlows() {
  using api::flowcontrol::v1::FlowSchema;
  using api::flowcontrol::v1::PriorityLevelConfiguration;
  follower.Add({&api::ResourceOf<FlowSchema>(),
                [this](const storage::ObjectPtr& object) {
                  flow.Put(std::static_pointer_cast<const FlowSchema>(object->Decode()));
                },
                [this](const std::string& key) { flow.RemoveSchema(key); }});
  follower.Add({&api::ResourceOf<PriorityLevelConfiguration>(),
                [this](const storage::ObjectPtr& object) {
                  flow.Put(std::static_pointer_cast<const PriorityLevelConfiguration>(object->Decode()));
                },
                [this](const std::string& key) { flow.RemoveLevel(key); }});
}

// system:masters is asked first: no mode and no webhook can lock the owner out.
std::shared_ptr<Authorizer> ApiServer::Impl::MakeAuthorizer() const {
  using Kind = ApiServerOptions::AuthorizerEntry::Kind;
  std::vector<std::shared_ptr<const Authorizer>> all = {std::make_shared<MastersAuthorizer>()};
  for (const ApiServerOptions::AuthorizerEntry& entry : options.authorizers) {
    if (entry.kind == Kind::kNode) all.push_back(std::make_shared<NodeAuthorizer>(graph));
    if (entry.kind == Kind::kRbac) all.push_back(rbac);
    if (entry.kind == Kind::kOther) all.push_back(entry.other);
  }
  return std::make_shared<UnionAuthorizer>(std::move(all));
}

std::unique_ptr<Authenticator> ApiServer::Impl::MakeAuthenticator() const {
  Authenticator::Options out;
  out.api_audiences = options.api_audiences;
  out.request_header = options.authentication.request_header;
  out.anonymous = options.anonymous;
  if (!options.static_tokens.empty()) {
    out.tokens.push_back(NewStaticTokenVerifier(options.static_tokens, options.api_audiences));
  }
  auto mark_used = [this](const std::string& ns, const std::string& secret, const std::string& date) {
    if (Result<> marked = MarkTokenUsed(registry, ns, secret, date); !marked)
      log::Warn("Cannot write down the use of a token",
                {{"namespace", ns}, {"secret", secret}, {"error", marked.error()}});
  };
  out.tokens.push_back(std::make_shared<TokenAuthenticator>(
      TokenAuthenticator::Options{options.issuers, options.verify_keys, options.api_audiences,
                                  options.look_tokens_up, std::move(mark_used)},
      NewIdentityLookup(store)));
  if (options.bootstrap_tokens) {
    out.tokens.push_back(NewBootstrapTokenVerifier(NewBootstrapSecretLookup(store), options.api_audiences));
  }
  out.tokens.insert(out.tokens.end(), options.token_verifiers.begin(), options.token_verifiers.end());
  return std::make_unique<Authenticator>(std::move(out));
}

// Keeps the node authorizer's graph.
void ApiServer::Impl::FollowNodeObjects() {
  auto follow = [this](auto* kind) {
    using Kind = std::remove_pointer_t<decltype(kind)>;
    const api::ResourceInfo& info = api::ResourceOf<Kind>();
    follower.Add(
        {&info,
         [this](const storage::ObjectPtr& object) {
           graph->Put(static_cast<const Kind&>(*object->Decode()));
         },
         [this, resource = info.resource](const std::string& key) { graph->Remove(resource, key); }});
  };
  follow(static_cast<corev1::Pod*>(nullptr));
  follow(static_cast<corev1::PersistentVolume*>(nullptr));
  follow(static_cast<api::storage::v1::VolumeAttachment*>(nullptr));
  follow(static_cast<api::resource::v1::ResourceSlice*>(nullptr));
}

void ApiServer::Impl::FollowRoles() {
  follower.Add({&api::ResourceOf<rbacv1::ClusterRole>(),
                [this](const storage::ObjectPtr& object) {
                  auto role = std::static_pointer_cast<const rbacv1::ClusterRole>(object->Decode());
                  rbac->Put(*role);
                  aggregator.Put(std::move(role));
                },
                [this](const std::string& key) {
                  rbac->RemoveRole(key);
                  aggregator.Remove(key);
                }});
  follower.Add({&api::ResourceOf<rbacv1::Role>(),
                [this](const storage::ObjectPtr& object) {
                  rbac->Put(static_cast<const rbacv1::Role&>(*object->Decode()));
                },
                [this](const std::string& key) { rbac->RemoveRole(key); }});
  follower.Add({&api::ResourceOf<rbacv1::ClusterRoleBinding>(),
                [this](const storage::ObjectPtr& object) {
                  rbac->Put(static_cast<const rbacv1::ClusterRoleBinding&>(*object->Decode()));
                },
                [this](const std::string& key) { rbac->RemoveBinding(key); }});
  follower.Add({&api::ResourceOf<rbacv1::RoleBinding>(),
                [this](const storage::ObjectPtr& object) {
                  rbac->Put(static_cast<const rbacv1::RoleBinding&>(*object->Decode()));
                },
                [this](const std::string& key) { rbac->RemoveBinding(key); }});
}

ApiServer::ApiServer(ApiServerOptions options, registry::Registry& registry, storage::Store& store)
    : impl_(std::make_unique<Impl>(std::move(options), registry, store)) {
  metrics::OnCollect([&store] { CountObjects(store); });
}
ApiServer::~ApiServer() = default;

void ApiServer::Handle(std::shared_ptr<const http::ServerRequest> request,
                       std::shared_ptr<http::ResponseWriter> writer) {
  Result<User> user = impl_->authenticator->Authenticate(*request);
  std::shared_ptr<Context> context = MakeContext(std::move(request), std::move(writer));
  Result<std::optional<Impersonation>> acting = std::optional<Impersonation>();
  if (user) {
    acting = Impersonate(*user, context->request->headers, context->info, *impl_->authorizer);
    context->user = acting && *acting ? (*acting)->user : *user;
  }
  Result<> begun = impl_->BeginAudit(*context, user ? &*user : nullptr, acting ? *acting : std::nullopt);
  if (begun && user && acting) return impl_->Admit(context);
  ReplyError(*context, !begun ? begun.error() : user ? acting.error() : user.error());
  EndAudit(*context);
}

void ApiServer::HandleAs(const User& user, std::shared_ptr<const http::ServerRequest> request,
                         std::shared_ptr<http::ResponseWriter> writer) {
  std::shared_ptr<Context> context = MakeContext(std::move(request), std::move(writer));
  context->user = user;
  if (Result<> begun = impl_->BeginAudit(*context, &context->user, std::nullopt); !begun)
    return ReplyError(*context, begun.error());
  impl_->Serve(*context);
}

Result<> ApiServer::Impl::BeginAudit(Context& context, const User* who,
                                     const std::optional<Impersonation>& acting) {
  std::string id = audit::IdOf(context.request->headers);
  context.reply_headers.Add("Audit-Id", id);
  if (!options.auditor) return {};
  audit::Auditor::Subject subject{who, acting ? &acting->user : nullptr, acting ? acting->constraint : "",
                                  context.info};
  ASSIGN_OR_RETURN(context.audit, options.auditor->Begin(subject, std::move(id), context.request));
  if (context.audit && audit::IsLongRunning(context.info))
    context.writer = audit::Auditor::Follow(context.writer, context.audit);
  return {};
}

// Now, later or never, as the server's load has it. Streams have no seats; watches only while they begin.
void ApiServer::Impl::Admit(const std::shared_ptr<Context>& context) {
  const RequestInfo& info = context->info;
  if (audit::IsLongRunning(info) && info.verb != "watch") return Serve(*context);
  if (!options.limits.priority_and_fairness) {
    InflightLimit& limit = IsMutating(info) ? mutating : read_only;
    if (context->user.InGroup(kGroupMasters)) return Serve(*context);
    if (!limit.Enter()) return Refuse(*context);
    Serve(*context);
    return limit.Leave();
  }
  auto classify = [context](const flowcontrol::Classified& who) {
    if (who.level.empty()) return;
    context->reply_headers.Add("X-Kubernetes-PF-FlowSchema-UID", who.schema_uid);
    context->reply_headers.Add("X-Kubernetes-PF-PriorityLevel-UID", who.level_uid);
  };
  flow.Handle(
      context->user, info,
      [this, context, classify](const flowcontrol::Classified& who) {
        classify(who);
        if (!context->writer->closed()) Serve(*context);
      },
      [this, context, classify](const flowcontrol::Classified& who) {
        classify(who);
        Refuse(*context);
      });
}

void ApiServer::Impl::Refuse(Context& context) {
  ReplyTooManyRequests(context);
  request_metrics.Record(context, {});
  EndAudit(context);
}

void ApiServer::Impl::Serve(Context& context) {
  metrics::Value& inflight = request_metrics.Inflight(context.info);
  inflight.Add(1);
  auto begin = SteadyTime::clock::now();
  try {
    Result<> timed;
    if (!audit::IsLongRunning(context.info)) timed = SetDeadline(context, options.limits.timeout);
    if (timed) {
      Dispatch(context);
    } else {
      ReplyError(context, timed.error());
    }
  } catch (const std::exception& error) {
    // No exception is meant to get here: what a library threw must not take the server down.
    log::Error("Request failed unexpectedly", {{"path", context.info.path}, {"error", error.what()}});
    if (context.audit) (void)context.audit->Emit(audit::Stage::kPanic, 500);
    if (context.status == 0) ReplyError(context, Error(Code::kInternal, "Internal error occurred"));
  }
  inflight.Add(-1);
  request_metrics.Record(context, SteadyTime::clock::now() - begin);
  EndAudit(context);
}

Result<> ApiServer::Impl::Authorize(const Context& context) const {
  if (!context.info.is_resource && IsPublicPath(context.info.path)) return {};
  Attributes attributes{context.user, context.info};
  Decision decision = authorizer->Authorize(attributes);
  if (context.audit) {
    context.audit->Annotate("authorization.k8s.io/decision", decision.allowed ? "allow" : "forbid");
    context.audit->Annotate("authorization.k8s.io/reason", decision.reason);
  }
  if (decision.allowed) return {};
  return ForbiddenTo(attributes, decision.reason);
}

void ApiServer::Impl::Dispatch(Context& context) {
  context.output = PlainOutput(*context.request);
  if (Result<> allowed = Authorize(context); !allowed) return ReplyError(context, allowed.error());
  if (context.request->body.size() > kMaxBody) {
    return ReplyError(context,
                      Error(Code::kTooLarge, fmt::format("Request entity too large: limit is {}", kMaxBody)));
  }
  if (!context.info.is_resource) return HandlePath(context);
  if (Result<> found = FindRow(context); !found) return ReplyError(context, found.error());
  // What comes from a kubelet or a pod is in the form that it comes in.
  if (!ConnectHandler::Serves(*context.resource)) {
    Result<Output> output = NegotiateOutput(*context.request, FormsOf(context));
    if (!output) return ReplyError(context, output.error());
    context.output = *output;
  }
  if (std::string_view warning = DeprecationOf(*context.resource); !warning.empty())
    context.warnings.emplace_back(warning);
  HandleResource(context);
}

Result<> ApiServer::Impl::FindRow(Context& context) const {
  const RequestInfo& info = context.info;
  context.resource = api::FindResource(info.group, info.version, info.FullResource());
  if (!context.resource) return NoSuchPath();
  const api::ResourceInfo& row = *context.resource;
  // A namespace's own path names it twice over.
  bool in_namespace = !info.ns.empty() && info.resource != "namespaces";
  if (!row.namespaced && in_namespace) return NoSuchPath();
  bool named =
      !info.name.empty() && info.verb != "list" && info.verb != "watch" && info.verb != "deletecollection";
  bool needs_namespace = named || info.verb == "create" || info.verb == "deletecollection";
  if (row.namespaced && info.ns.empty() && needs_namespace) return named ? NoSuchPath() : MethodNotAllowed();
  // What is behind a proxy may know methods that have no verb.
  bool proxied_options = info.subresource == "proxy" && context.request->method == "OPTIONS";
  if ((info.verb.empty() || !row.HasVerb(info.verb)) && !proxied_options) return MethodNotAllowed();
  bool wants_name = info.verb == "update" || info.verb == "patch";
  if (wants_name && info.name.empty()) return MethodNotAllowed();
  if (info.verb == "create" && !row.IsSubresource() && !info.name.empty()) return MethodNotAllowed();
  // RBAC was asked about a namespace in that namespace; it is stored outside of all.
  if (!row.namespaced) context.info.ns.clear();
  return {};
}

void ApiServer::Impl::HandleResource(Context& context) {
  const api::ResourceInfo& row = *context.resource;
  if (ConnectHandler::Serves(row)) return connect.Handle(context);
  if (ReviewHandler::Serves(row)) return reviews->Handle(context);
  if (row.kind == "ComponentStatus") return HandleComponentStatus(context, store.ready());
  if (row.resource == "serviceaccounts/token" && row.group.empty()) {
    if (tokens) return tokens->Handle(context);
    return ReplyError(context, Error(Code::kUnimplemented, "the server has no key to sign tokens with"));
  }
  resources->Handle(context);
}

void ApiServer::Impl::HandlePath(Context& context) {
  if (health.Handle(context) || discovery.Handle(context) || openapi.Handle(context) ||
      pages.Handle(context) || misc->Handle(context))
    return;
  if (context.info.path.rfind("/api", 0) == 0) return ReplyError(context, NoSuchPath());
  ReplyText(context, 404, "text/plain; charset=utf-8", "404 page not found\n");
}

Result<> ApiServer::Impl::Bootstrap(std::stop_token stop) {
  RETURN_IF_ERROR(EnsureSystemNamespaces(registry, stop));
  RETURN_IF_ERROR(EnsureBootstrapRoles(registry, stop));
  RETURN_IF_ERROR(EnsurePriorityClasses(registry, stop));
  return flowcontrol::EnsureBootstrapObjects(registry, stop);
}

// The kubernetes Service comes after ready(): an address that may not be in it must not keep the server down.
Result<> ApiServer::Impl::RunBootstrap(std::stop_token stop, const ServiceGroup::Ready& ready) {
  RETURN_IF_ERROR(registry.Start(stop));
  Mutex mutex;
  CondVar never;
  auto pause = [&](std::chrono::milliseconds time) {
    MutexLock lock(mutex);
    never.wait_for(mutex, stop, time, [] { return false; });
  };
  while (!stop.stop_requested()) {
    Result<> done = Bootstrap(stop);
    if (done) break;
    if (!stop.stop_requested()) log::Warn("Cannot write what the cluster needs", {{"error", done.error()}});
    pause(std::chrono::milliseconds(500));
  }
  if (stop.stop_requested()) return {};
  bool failing = false;
  for (bool first = true; !stop.stop_requested(); first = false) {
    Result<> done = EnsureKubernetesService(registry, options.kubernetes_service, stop);
    if (done) done = EnsureAuthenticationInfo(registry, options.authentication, stop);
    if (done) done = EnsureLegacyTokenTracking(registry, Clock::Real().Now(), stop);
    if (!done && !std::exchange(failing, true)) {
      log::Warn("Cannot keep what others find this server by", {{"error", done.error()}});
    }
    if (done) failing = false;
    if (first) {
      bootstrapped.store(true);
      ready();
    }
    Result<> flows = flowcontrol::EnsureBootstrapObjects(registry, stop);
    if (flows) flows = flowcontrol::UpdateDangling(registry, Clock::Real().Now(), stop);
    if (!flows && !stop.stop_requested())
      log::Warn("Cannot keep flow schemas and priority levels", {{"error", flows.error()}});
    openapi.DropIdle();
    pause(kServiceCheckPeriod);
  }
  return {};
}

Result<> ApiServer::Run(std::stop_token stop, ServiceGroup::Ready ready) {
  Impl& impl = *impl_;
  ServiceGroup group;
  group.Add({"watches", {}, [&](std::stop_token token, ServiceGroup::Ready up) -> Result<> {
               up();
               impl.watches.Run(token);
               return {};
             }});
  group.Add({"flows", {}, [&](std::stop_token token, ServiceGroup::Ready up) -> Result<> {
               up();
               impl.flow.Run(token);
               return {};
             }});
  group.Add({"roles", {}, [&](std::stop_token token, ServiceGroup::Ready up) {
               return impl.follower.Run(token, up);
             }});
  group.Add({"bootstrap", {"roles"}, [&](std::stop_token token, ServiceGroup::Ready up) {
               return impl.RunBootstrap(token, [&] {
                 up();
                 ready();
               });
             }});
  group.Add({"allocation", {"bootstrap"}, [&](std::stop_token token, ServiceGroup::Ready up) -> Result<> {
               up();
               impl.registry.Maintain(token);
               return {};
             }});
  group.Add({"aggregation", {"bootstrap"}, [&](std::stop_token token, ServiceGroup::Ready up) -> Result<> {
               up();
               impl.aggregator.Run(token);
               return {};
             }});
  return group.Run(stop);
}

void ApiServer::BeginShutdown() { impl_->stopping.store(true); }
void ApiServer::EndWatches() { impl_->watches.EndAll(); }

std::shared_ptr<client::Transport> ApiServer::TransportFor(User user, std::string user_agent) {
  return NewLocalTransport(
      [this, user = std::move(user)](std::shared_ptr<const http::ServerRequest> request,
                                     std::shared_ptr<http::ResponseWriter> writer) {
        HandleAs(user, std::move(request), std::move(writer));
      },
      std::move(user_agent));
}

}  // namespace keelson::apiserver
