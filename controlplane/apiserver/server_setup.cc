#include <algorithm>

#include "controlplane/apiextensions/custom_resource.h"
#include "controlplane/apiserver/authn/bootstrap_tokens.h"
#include "controlplane/apiserver/authn/identity_lookup.h"
#include "controlplane/apiserver/authz/counting.h"
#include "controlplane/apiserver/server_impl.h"
#include "lib/api/proto/certificates_v1beta1.pb.h"
#include "lib/api/proto/resource_v1.pb.h"
#include "lib/api/proto/storage_v1.pb.h"
#include "lib/base/log.h"

namespace keelson::apiserver {

// Each request uses a thread, so there are fewer seats than upstream has. The cost of a write's watchers uses
// upstream's scale.
flowcontrol::Controller::Options ApiServer::Impl::FlowOptions() {
  const RequestLimits& limits = options.limits;
  flowcontrol::Controller::Options out;
  out.seats = limits.seats;
  out.max_wait = limits.timeout / 4;
  out.work.stored = [this](const RequestInfo& info) -> flowcontrol::WorkEstimator::Stored {
    const Result<const api::ResourceInfo*> row =
        registry.FindResource(info.group, info.version, info.resource);
    if (!row || !*row) return {};
    const storage::Size size = store.SizeOf(**row);
    return {static_cast<int64_t>(size.objects), static_cast<int64_t>(size.bytes)};
  };
  out.work.watchers = [this](const RequestInfo& info) { return watches.InterestedIn(info); };
  out.work.scale =
      std::min(1.0, double(limits.seats) / std::max(1, limits.max_read_only + limits.max_mutating));
  return out;
}

void ApiServer::Impl::FollowFlows() {
  using api::flowcontrol::v1::FlowSchema;
  using api::flowcontrol::v1::PriorityLevelConfiguration;
  reflector.Add({&api::ResourceOf<FlowSchema>(),
                 [this](const storage::ObjectPtr& object) {
                   flow.Put(std::static_pointer_cast<const FlowSchema>(object->Decode()));
                 },
                 [this](const std::string& key) { flow.RemoveSchema(key); }});
  reflector.Add({&api::ResourceOf<PriorityLevelConfiguration>(),
                 [this](const storage::ObjectPtr& object) {
                   flow.Put(std::static_pointer_cast<const PriorityLevelConfiguration>(object->Decode()));
                 },
                 [this](const std::string& key) { flow.RemoveLevel(key); }});
}

// system:masters comes first: no mode or webhook can lock out the administrator.
UnionAuthorizer::List ApiServer::Impl::Authorizers() const {
  using Kind = ApiServerOptions::AuthorizerEntry::Kind;
  UnionAuthorizer::List all = {std::make_shared<MastersAuthorizer>()};
  for (const ApiServerOptions::AuthorizerEntry& entry : options.authorizers) {
    auto add = [&all](const std::string& type, const std::string& name,
                      std::shared_ptr<const Authorizer> one) {
      all.push_back(std::make_shared<CountingAuthorizer>(type, name, std::move(one)));
    };
    if (entry.kind == Kind::kNode) {
      add("Node", "node", std::make_shared<NodeAuthorizer>(graph, options.gate_on));
    }
    if (entry.kind == Kind::kRbac) add("RBAC", "rbac", rbac);
    if (entry.kind == Kind::kOther) add(entry.type, entry.name, entry.other);
  }
  return all;
}

Authenticator::Options ApiServer::Impl::AuthenticatorOptions() const {
  Authenticator::Options out;
  out.api_audiences = options.api_audiences;
  out.request_header = options.authentication.request_header;
  out.anonymous = options.anonymous;
  if (!options.static_tokens.empty()) {
    out.tokens.push_back(NewStaticTokenVerifier(options.static_tokens, options.api_audiences));
  }
  auto mark_used = [this](const std::string& ns, const std::string& secret, const std::string& date) {
    if (Result<> marked = MarkTokenUsed(registry, ns, secret, date); !marked) {
      log::Warn("Cannot write down the use of a token",
                {{"namespace", ns}, {"secret", secret}, {"err", marked.error()}});
    }
  };
  out.tokens.push_back(std::make_shared<TokenAuthenticator>(
      TokenAuthenticator::Options{options.issuers, options.verify_keys, options.api_audiences,
                                  options.look_tokens_up, std::move(mark_used)},
      NewIdentityLookup(store)));
  if (options.bootstrap_tokens) {
    out.tokens.push_back(NewBootstrapTokenVerifier(NewBootstrapSecretLookup(store), options.api_audiences));
  }
  out.tokens.insert(out.tokens.end(), options.token_verifiers.begin(), options.token_verifiers.end());
  return out;
}

void ApiServer::SetKeys(std::vector<crypto::SigningKey> verify_keys,
                        std::optional<crypto::SigningKey> signing_key) {
  MutexLock lock(impl_->reload_mutex);
  impl_->routes->SetKeys(verify_keys);
  impl_->options.verify_keys = std::move(verify_keys);
  impl_->authenticator->Replace(impl_->AuthenticatorOptions());
  // Last: tokens signed with the new key must be accepted before they are issued.
  if (signing_key && impl_->tokens) impl_->tokens->SetKey(std::move(*signing_key));
}

void ApiServer::SetStaticTokens(StaticTokens tokens) {
  MutexLock lock(impl_->reload_mutex);
  impl_->options.static_tokens = std::move(tokens);
  impl_->authenticator->Replace(impl_->AuthenticatorOptions());
}

void ApiServer::SetTokenVerifiers(std::vector<std::shared_ptr<TokenVerifier>> verifiers) {
  MutexLock lock(impl_->reload_mutex);
  impl_->options.token_verifiers = std::move(verifiers);
  impl_->authenticator->Replace(impl_->AuthenticatorOptions());
}

void ApiServer::SetAuthorizers(std::vector<ApiServerOptions::AuthorizerEntry> authorizers) {
  MutexLock lock(impl_->reload_mutex);
  impl_->options.authorizers = std::move(authorizers);
  impl_->authorizer->Replace(impl_->Authorizers());
}

void ApiServer::SetProxyCertificate(ProxyCertificate certificate) {
  if (impl_->peer_clients) impl_->peer_clients->SetCertificate(certificate);
  impl_->extension_clients.SetCertificate(std::move(certificate));
}

PeerDirectory::Sources ApiServer::Impl::PeerSources() {
  static constexpr std::chrono::seconds kPatience{5};
  PeerDirectory::Sources out;
  out.own = OwnIdentityLeaseName();
  out.holders = [this] { return IdentityHolders(store); };
  out.addresses = [&leases = *options.peers.leases](std::stop_token stop) {
    return leases.List({SteadyTime::clock::now() + kPatience, std::move(stop)});
  };
  out.is_custom = [this](const std::string& group, const std::string& version) {
    bool found = api_services.RemoteOf(group, version) != nullptr;
    if (!found) {
      registry.ForEachCustom([&](apiextensions::CustomResource& one, const apiextensions::Definition&) {
        found = found || one.group == group;
      });
    }
    return found;
  };
  return out;
}

// Updates the node authorizer's graph.
void ApiServer::Impl::FollowNodeObjects() {
  auto follow = [this](auto* kind) {
    using Kind = std::remove_pointer_t<decltype(kind)>;
    const api::ResourceInfo& info = api::ResourceOf<Kind>();
    reflector.Add(
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
  follow(static_cast<api::certificates::v1beta1::PodCertificateRequest*>(nullptr));
}

void ApiServer::Impl::FollowDefinitions() {
  reflector.Add({&api::ResourceOf<CustomResourceDefinition>(),
                 [this](const storage::ObjectPtr& object) {
                   definitions.Put(object);
                   registration.DefinitionsChanged();
                 },
                 [this](const std::string& key) {
                   definitions.Remove(key);
                   registration.DefinitionsChanged();
                 }});
}

void ApiServer::Impl::FollowApiServices() {
  reflector.Add({&api::ResourceOf<apiregistrationv1::APIService>(),
                 [this](const storage::ObjectPtr& object) {
                   api_services.Put(object);
                   availability.Changed(object->key());
                   registration.Changed(object->key());
                 },
                 [this](const std::string& key) {
                   api_services.Remove(key);
                   availability.Changed(key);
                   registration.Changed(key);
                 }});
  reflector.Add({&api::ResourceOf<corev1::Service>(),
                 [this](const storage::ObjectPtr& object) { availability.ServiceChanged(object->key()); },
                 [this](const std::string& key) { availability.ServiceChanged(key); }});
  reflector.Add({&api::ResourceOf<discoveryv1::EndpointSlice>(),
                 [this](const storage::ObjectPtr& object) { availability.SliceChanged(*object); },
                 [this](const std::string& key) { availability.SliceRemoved(key); }});
}

void ApiServer::Impl::FollowRoles() {
  reflector.Add({&api::ResourceOf<rbacv1::ClusterRole>(),
                 [this](const storage::ObjectPtr& object) {
                   auto role = std::static_pointer_cast<const rbacv1::ClusterRole>(object->Decode());
                   rbac->Put(*role);
                   aggregator.Put(std::move(role));
                 },
                 [this](const std::string& key) {
                   rbac->RemoveRole(key);
                   aggregator.Remove(key);
                 }});
  reflector.Add({&api::ResourceOf<rbacv1::Role>(),
                 [this](const storage::ObjectPtr& object) {
                   rbac->Put(static_cast<const rbacv1::Role&>(*object->Decode()));
                 },
                 [this](const std::string& key) { rbac->RemoveRole(key); }});
  reflector.Add({&api::ResourceOf<rbacv1::ClusterRoleBinding>(),
                 [this](const storage::ObjectPtr& object) {
                   rbac->Put(static_cast<const rbacv1::ClusterRoleBinding&>(*object->Decode()));
                 },
                 [this](const std::string& key) { rbac->RemoveBinding(key); }});
  reflector.Add({&api::ResourceOf<rbacv1::RoleBinding>(),
                 [this](const storage::ObjectPtr& object) {
                   rbac->Put(static_cast<const rbacv1::RoleBinding&>(*object->Decode()));
                 },
                 [this](const std::string& key) { rbac->RemoveBinding(key); }});
}

}  // namespace keelson::apiserver
