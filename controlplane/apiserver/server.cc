#include "controlplane/apiserver/server.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "controlplane/apiserver/server_impl.h"
#include "controlplane/registry/ip_allocator.h"
#include "lib/base/build_info.h"
#include "lib/k8s/schema/rule_metrics.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

std::vector<std::string> ServedPaths(std::vector<std::string> out, const ApiServerOptions& options) {
  for (const char* path :
       {"/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/apis/", "/metrics",
        "/metrics/slis", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/openid/v1/jwks", "/version"}) {
    out.emplace_back(path);
  }
  if (options.flagz) out.emplace_back("/flagz");
  if (options.statusz) out.emplace_back("/statusz");
  for (const api::ResourceInfo& info : api::Resources()) {
    if (info.group.empty() || !options.enablement.Serves(info)) continue;
    std::string group = "/apis/" + std::string(info.group);
    for (const std::string& path : {group, group + "/" + std::string(info.version)}) {
      if (std::find(out.begin(), out.end(), path) == out.end()) out.push_back(path);
    }
  }
  return out;
}

// host:port for URLs to this server.
std::string ExternalAddress(const ApiServerOptions& options) {
  const KubernetesServiceOptions& service = options.kubernetes_service;
  const std::string& host = options.external_host.empty() ? service.advertise_address : options.external_host;
  const bool bare_v6 = host.find(':') != std::string::npos && host[0] != '[';
  return fmt::format(fmt::runtime(bare_v6 ? "[{}]:{}" : "{}:{}"), host, service.port);
}

std::vector<ApiServiceRegistration::GroupVersion> ServedVersions(const ApiEnablement& enablement) {
  std::set<ApiServiceRegistration::GroupVersion> out;
  for (const api::ResourceInfo& info : api::Resources()) {
    if (enablement.Serves(info)) out.emplace(info.group, info.version);
  }
  return {out.begin(), out.end()};
}

IdentityHeaderNames IdentityNames(const ApiServerOptions& options) {
  const RequestHeaderOptions& from = options.authentication.request_header;
  IdentityHeaderNames out;
  for (const auto* names : {&from.username_headers, &from.uid_headers, &from.group_headers}) {
    out.names.insert(out.names.end(), names->begin(), names->end());
  }
  out.prefixes = from.extra_prefixes;
  return out;
}

}  // namespace

ApiServer::Impl::Impl(ApiServerOptions given, registry::Registry& the_registry, storage::Store& the_store)
    : options(std::move(given)),
      registry(the_registry),
      store(the_store),
      authorizer(std::make_shared<UnionAuthorizer>(Authorizers())),
      services(store, options.service_routing),
      admission(
          NewAdmissionChain(options.admission, store, authorizer, services, options.gate_on,
                            [this](std::string_view group, std::string_view version, std::string_view kind) {
                              return registry.FindKind(group, version, kind);
                            })),
      reflector(store),
      aggregator(registry),
      api_services(store),
      extension_clients(services, options.proxy_certificate),
      extension_documents(extension_clients, Clock::Real()),
      extension_openapi(extension_documents),
      availability(registry, api_services, extension_clients, extension_documents, Clock::Real()),
      registration(registry, ServedVersions(options.enablement), Clock::Real()),
      definitions(registry, Clock::Real()),
      watches(registry, options.limits.min_watch_timeout),
      backends(store, options.backends),
      usage(options.metric_resolution),
      scraper(store, backends, usage, options.metric_resolution),
      usage_handler(registry, usage),
      discovery(ExternalAddress(options), options.enablement, &registry, &api_services, &extension_documents),
      health(HealthChecks()),
      openapi(Clock::Real(), options.enablement,
              [this](const auto& each) {
                store.ForEach(api::ResourceOf<apiextensionsv1::CustomResourceDefinition>(), each);
              }),
      pages({options.flags, health.Paths(), options.profiling, options.statusz, options.flagz,
             options.limits.priority_and_fairness ? &flow : nullptr}),
      read_only(options.limits.max_read_only),
      mutating(options.limits.max_mutating),
      flow(FlowOptions()),
      connect(registry, *authorizer, *admission, backends),
      aggregation(api_services, extension_clients,
                  {options.reject_extension_redirects, IdentityNames(options)}) {
  if (options.api_audiences.empty()) options.api_audiences = options.issuers;
  {
    MutexLock lock(reload_mutex);
    authenticator = std::make_unique<Authenticator>(AuthenticatorOptions());
  }
  if (options.signing_key) {
    TokenIssuer::Options issuing{options.issuers.front(), *options.signing_key, options.api_audiences,
                                 options.max_token_expiration, options.extend_token_expiration};
    tokens = std::make_unique<TokenIssuer>(registry, authorizer, *admission, std::move(issuing));
  }
  if (options.peers.leases && !options.peers.ca_pem.empty()) {
    peer_clients = std::make_unique<PeerClients>(options.peers.ca_pem, options.proxy_certificate);
    peer_directory = std::make_unique<PeerDirectory>(PeerSources(), *peer_clients, Clock::Real());
    peers = std::make_unique<PeerProxy>(*peer_directory, *peer_clients, IdentityNames(options));
    discovery.SetPeers(*peer_directory);
  }
  routes = std::make_unique<NonResourceRoutes>(NonResourceRoutes::Options{
      options.issuers.front(),
      !options.jwks_uri.empty() ? options.jwks_uri
                                : fmt::format("https://{}/openid/v1/jwks", ExternalAddress(options)),
      options.verify_keys, ServedPaths(health.Paths(), options)});
  reviews = std::make_unique<ReviewHandler>(*authenticator, *authorizer, *admission);
  resources = std::make_unique<ResourceHandler>(registry, watches, *admission, *authorizer);
  registry.SetConverter(std::make_shared<WebhookConverter>(store, options.service_routing));
  openapi.SetFurtherEntries([this] { return extension_documents.OpenApiEntries(); });
  openapi.SetFurtherV2([this](OpenApiForm form) -> OpenApiHandler::FurtherV2 {
    const std::shared_ptr<const ExtensionOpenApi::Merged> merged = extension_openapi.Current();
    if (!merged) return {};
    CustomFragment fragment{merged->protobuf, {}};
    if (form == OpenApiForm::kV2Json) fragment = {merged->paths, merged->schemas};
    return {merged->identity, std::make_shared<const CustomFragment>(std::move(fragment))};
  });
  FollowRoles();
  FollowNodeObjects();
  FollowFlows();
  FollowDefinitions();
  FollowApiServices();
}

ApiServer::ApiServer(ApiServerOptions options, registry::Registry& registry, storage::Store& store)
    : impl_(std::make_unique<Impl>(std::move(options), registry, store)) {
  TellBuild();
  k8s::RegisterRuleMetrics();
  metrics::OnCollect([&store] {
    CountObjects(store);
    registry::TellAddresses(store, Clock::Real());
  });
}
ApiServer::~ApiServer() = default;

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
               impl.hooks.Done(PostStartHook::kFlowFilter);
               impl.flow.Run(token);
               return {};
             }});
  group.Add({"roles", {}, [&](std::stop_token token, ServiceGroup::Ready up) {
               return impl.reflector.Run(token, [&] {
                 for (PostStartHook hook :
                      {PostStartHook::kInformers, PostStartHook::kFlowConsumer,
                       PostStartHook::kDefinitionInformers, PostStartHook::kDefinitionsKnown,
                       PostStartHook::kApiServiceInformers}) {
                   impl.hooks.Done(hook);
                 }
                 up();
               });
             }});
  group.Add({"bootstrap", {"roles"}, [&](std::stop_token token, ServiceGroup::Ready up) {
               return impl.RunBootstrap(token, up);
             }});
  group.Add({"allocation", {"bootstrap"}, [&](std::stop_token token, ServiceGroup::Ready up) -> Result<> {
               impl.hooks.Done(PostStartHook::kServiceRepair);
               up();
               impl.registry.Maintain(token);
               return {};
             }});
  group.Add({"usage", {"bootstrap"}, [&](std::stop_token token, ServiceGroup::Ready up) -> Result<> {
               up();
               impl.scraper.Run(token);
               return {};
             }});
  group.Add({"aggregation", {"bootstrap"}, [&](std::stop_token token, ServiceGroup::Ready up) -> Result<> {
               up();
               impl.aggregator.Run(token);
               return {};
             }});
  group.Add({"registration", {"bootstrap"}, [&](std::stop_token token, ServiceGroup::Ready up) -> Result<> {
               impl.hooks.Done(PostStartHook::kApiServiceRegistration);
               impl.hooks.Done(PostStartHook::kAutoRegistration);
               impl.registration.Run(token, up);
               return {};
             }});
  group.Add({"availability", {"bootstrap"}, [&](std::stop_token token, ServiceGroup::Ready up) -> Result<> {
               for (PostStartHook hook :
                    {PostStartHook::kLocalAvailability, PostStartHook::kRemoteAvailability,
                     PostStartHook::kExtensionDiscovery, PostStartHook::kExtensionOpenApi,
                     PostStartHook::kExtensionOpenApiV3}) {
                 impl.hooks.Done(hook);
               }
               up();
               impl.availability.Run(token);
               return {};
             }});
  group.Add({"definitions", {"bootstrap"}, [&](std::stop_token token, ServiceGroup::Ready up) -> Result<> {
               impl.hooks.Done(PostStartHook::kDefinitionControllers);
               up();
               impl.definitions.Run(token);
               return {};
             }});
  if (impl.peer_directory) {
    group.Add({"peers", {"bootstrap"}, [&](std::stop_token token, ServiceGroup::Ready up) -> Result<> {
                 up();
                 impl.peer_directory->Run(token);
                 return {};
               }});
  }
  // Ready means that /readyz says so.
  group.Add({"ready",
             {"allocation", "registration", "availability", "definitions"},
             [&](std::stop_token token, ServiceGroup::Ready up) -> Result<> {
               ready();
               up();
               Mutex mutex;
               CondVar never;
               MutexLock lock(mutex);
               never.wait(mutex, token, [] { return false; });
               return {};
             }});
  return group.Run(stop);
}

// New connections must find another server before this one stops to serve.
void ApiServer::BeginShutdown() {
  impl_->stopping.store(true);
  impl_->Withdraw();
}
void ApiServer::EndWatches() { impl_->watches.EndAll(); }

}  // namespace keelson::apiserver
