// The parts of the API server. server.cc creates and runs them; server_setup.cc configures authentication,
// authorization and index updates; server_request.cc begins and ends requests; server_dispatch.cc finds the
// handler; server_bootstrap.cc creates the bootstrap objects.
#pragma once

#include <atomic>
#include <memory>

#include "controlplane/apiserver/admission/admission.h"
#include "controlplane/apiserver/aggregator/api_services.h"
#include "controlplane/apiserver/aggregator/availability_controller.h"
#include "controlplane/apiserver/aggregator/extension_clients.h"
#include "controlplane/apiserver/aggregator/extension_documents.h"
#include "controlplane/apiserver/aggregator/extension_openapi.h"
#include "controlplane/apiserver/aggregator/proxy.h"
#include "controlplane/apiserver/aggregator/registration.h"
#include "controlplane/apiserver/authn/impersonation.h"
#include "controlplane/apiserver/authz/node.h"
#include "controlplane/apiserver/authz/rbac.h"
#include "controlplane/apiserver/bootstrap/identity_lease.h"
#include "controlplane/apiserver/bootstrap/role_aggregation.h"
#include "controlplane/apiserver/connect/connect.h"
#include "controlplane/apiserver/crd/definition_controller.h"
#include "controlplane/apiserver/crd/webhook_converter.h"
#include "controlplane/apiserver/discovery.h"
#include "controlplane/apiserver/endpoints/request_metrics.h"
#include "controlplane/apiserver/flowcontrol/controller.h"
#include "controlplane/apiserver/handlers/debug_pages.h"
#include "controlplane/apiserver/handlers/non_resource_routes.h"
#include "controlplane/apiserver/handlers/openapi.h"
#include "controlplane/apiserver/handlers/resource.h"
#include "controlplane/apiserver/handlers/reviews.h"
#include "controlplane/apiserver/handlers/token_request.h"
#include "controlplane/apiserver/handlers/watch.h"
#include "controlplane/apiserver/health.h"
#include "controlplane/apiserver/peers/peer_proxy.h"
#include "controlplane/apiserver/post_start_hooks.h"
#include "controlplane/apiserver/reflector.h"
#include "controlplane/apiserver/resource_metrics/handler.h"
#include "controlplane/apiserver/resource_metrics/scraper.h"
#include "controlplane/apiserver/server.h"
#include "controlplane/apiserver/slow_lane.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {

struct ApiServer::Impl {
  Impl(ApiServerOptions given, registry::Registry& the_registry, storage::Store& the_store);

  Result<> Authorize(const Context& context) const;
  // Sets the request's ID, audit record and deadline. `who` null: unknown user.
  Result<> Begin(Context& context, const User* who, const std::optional<Impersonation>& acting);
  void EndAudit(const Context& context) const;
  void Admit(const std::shared_ptr<Context>& context, SteadyTime came);
  void Serve(const std::shared_ptr<Context>& context, SteadyTime came);
  // Passes a request on whose group belongs to an extension API server; `done` runs when its response is complete.
  // False: this server answers.
  bool PassOn(const std::shared_ptr<Context>& context, std::function<void()> done);
  // The same for a resource that this server does not serve and a peer does.
  bool PassToPeer(const std::shared_ptr<Context>& context, std::function<void()> done);
  bool ServesHere(const RequestInfo& info) const;
  void Refuse(Context& context, SteadyTime came);
  Result<> FindRow(Context& context) const;
  Result<const api::ResourceInfo*> FindInNewerDefinition(const RequestInfo& info) const;
  // Authorizes the request and answers it. False: the response comes later, and `done` runs then.
  bool Dispatch(const std::shared_ptr<Context>& context, std::function<void()> done);
  // Answers an authorized request of this server. Returns as Dispatch() does.
  bool Answer(const std::shared_ptr<Context>& request, std::function<void()> done);
  // Exceptions are not expected, but one from a library must not stop the server: the request gets an error.
  void Guarded(Context& context, const std::function<void()>& handle);
  std::string EtcdProblem() const;  // empty: it is healthy
  void HandleResource(Context& context);
  void HandlePath(Context& context);
  std::vector<HealthCheck> HealthChecks();
  Result<> Bootstrap(std::stop_token stop);
  Result<> RunBootstrap(std::stop_token stop, const ServiceGroup::Ready& ready);
  // Keeps what peers and clients find this server by.
  Result<> Publish(std::stop_token outer);
  // Takes this server out of the endpoints, once: it never publishes itself again.
  void Withdraw();
  UnionAuthorizer::List Authorizers() const;
  Authenticator::Options AuthenticatorOptions() const KEELSON_REQUIRES(reload_mutex);
  flowcontrol::Controller::Options FlowOptions();
  void FollowFlows();
  void FollowRoles();
  void FollowDefinitions();
  void FollowApiServices();
  PeerDirectory::Sources PeerSources();
  void FollowNodeObjects();

  // Guards the options that Set...() replaces; the others are constant.
  Mutex reload_mutex;
  ApiServerOptions options;
  registry::Registry& registry;
  storage::Store& store;
  std::atomic<bool> stopping{false};
  PostStartHooks hooks;
  const std::string identity_holder = IdentityHolder();
  std::stop_source publish_stop;
  Mutex publish_mutex;  // one writer of the endpoints at a time
  bool withdrawn KEELSON_GUARDED_BY(publish_mutex) = false;

  std::shared_ptr<RbacAuthorizer> rbac = std::make_shared<RbacAuthorizer>();
  std::shared_ptr<NodeGraph> graph = std::make_shared<NodeGraph>();
  std::shared_ptr<UnionAuthorizer> authorizer;
  std::unique_ptr<Authenticator> authenticator;
  ServiceResolver services;  // of webhooks and aggregated API servers
  std::unique_ptr<AdmissionChain> admission;
  std::unique_ptr<TokenIssuer> tokens;
  std::unique_ptr<NonResourceRoutes> routes;
  Reflector reflector;
  RoleAggregator aggregator;
  ApiServices api_services;
  ExtensionClients extension_clients;
  ExtensionDocuments extension_documents;
  ExtensionOpenApi extension_openapi;
  AvailabilityController availability;
  ApiServiceRegistration registration;
  DefinitionController definitions;
  WatchManager watches;
  BackendClients backends;
  std::unique_ptr<PeerClients> peer_clients;
  std::unique_ptr<PeerDirectory> peer_directory;
  UsageStore usage;
  UsageScraper scraper;
  UsageHandler usage_handler;
  std::unique_ptr<ReviewHandler> reviews;
  std::unique_ptr<ResourceHandler> resources;
  Discovery discovery;
  Health health;
  OpenApiHandler openapi;
  DebugPages pages;
  RequestMetrics request_metrics;
  MaxInFlightLimit read_only, mutating;
  flowcontrol::Controller flow;
  // Last: threads and completions of theirs use the rest.
  SlowLane slow_lane;
  ConnectHandler connect;
  AggregationProxy aggregation;
  std::unique_ptr<PeerProxy> peers;  // null: requests are not passed on to peers
};

}  // namespace keelson::apiserver
