#include "controlplane/apiserver/flowcontrol/bootstrap.h"
#include "controlplane/apiserver/server_impl.h"
#include "lib/base/log.h"

namespace keelson::apiserver {
namespace {

// kube-apiserver's numbers, for its own leases and for those by which peers find it.
constexpr std::chrono::seconds kServiceCheckPeriod{10}, kPeerLeaseTtl{15}, kPeerPatience{5};

// A consistent read succeeds when etcd has a leader and the caches are up to date.
Result<> AskEtcd(storage::Store& store) {
  constexpr std::chrono::seconds kPatience{2};
  auto read = store.Get(api::ResourceOf<corev1::Namespace>(), "default", "",
                        {SteadyTime::clock::now() + kPatience, {}});
  if (!read) return read.error();
  return {};
}

}  // namespace

// Not part of /livez: restarting this server would not fix etcd.
std::vector<HealthCheck> ApiServer::Impl::HealthChecks() {
  auto etcd = [this] { return AskEtcd(store); };
  std::vector<HealthCheck> checks = {
      {"ping", true, [] { return Result<>(); }},
      {"log", true, [] { return Result<>(); }},
      {"etcd", false, etcd},
      {"etcd-readiness", false, etcd},
      {"informer-sync", false,
       [this]() -> Result<> {
         if (store.ready()) return {};
         return Error(Code::kUnavailable, "the caches have not been filled");
       }},
  };
  for (HealthCheck& hook : hooks.Checks()) checks.push_back(std::move(hook));
  checks.push_back({"autoregister-completion", true, [this] { return registration.Completed(); }});
  if (options.check_kms) checks.push_back({"kms-providers", false, options.check_kms});
  checks.push_back({"shutdown", false, [this]() -> Result<> {
                      if (!stopping.load()) return {};
                      return Error(Code::kUnavailable, "process is shutting down");
                    }});
  return checks;
}

Result<> ApiServer::Impl::Bootstrap(std::stop_token stop) {
  KEELSON_RETURN_IF_ERROR(EnsureSystemNamespaces(registry, stop));
  hooks.Done(PostStartHook::kSystemNamespaces);
  KEELSON_RETURN_IF_ERROR(EnsureBootstrapRoles(registry, options.gate_on, stop));
  hooks.Done(PostStartHook::kRoles);
  KEELSON_RETURN_IF_ERROR(EnsurePriorityClasses(registry, stop));
  hooks.Done(PostStartHook::kPriorityClasses);
  KEELSON_RETURN_IF_ERROR(flowcontrol::EnsureBootstrapObjects(registry, stop));
  hooks.Done(PostStartHook::kFlowProducer);
  return {};
}

Result<> ApiServer::Impl::Publish(std::stop_token outer) {
  MutexLock lock(publish_mutex);
  if (withdrawn) return {};
  const std::stop_callback forward(outer, [this] { publish_stop.request_stop(); });
  const std::stop_token stop = publish_stop.get_token();
  KEELSON_RETURN_IF_ERROR(EnsureKubernetesService(registry, options.kubernetes_service, stop));
  if (!options.gate_on("APIServerIdentity")) return {};
  const WallTime now = Clock::Real().Now();
  KEELSON_RETURN_IF_ERROR(EnsureIdentityLease(registry, identity_holder, now, stop));
  if (const PeerOptions& at = options.peers; at.leases) {
    KEELSON_RETURN_IF_ERROR(at.leases->Renew(OwnIdentityLeaseName(), at.host, at.port, kPeerLeaseTtl,
                                             {SteadyTime::clock::now() + kPeerPatience, stop}));
  }
  return RemoveExpiredIdentityLeases(registry, now, stop);
}

void ApiServer::Impl::Withdraw() {
  publish_stop.request_stop();
  MutexLock lock(publish_mutex);
  if (std::exchange(withdrawn, true)) return;
  if (Result<> gone = WithdrawKubernetesEndpoint(registry, options.kubernetes_service); !gone) {
    log::Warn("Cannot take this server out of the Service kubernetes", {{"err", gone.error()}});
  }
  if (!options.peers.leases) return;
  if (Result<> gone = options.peers.leases->Remove(OwnIdentityLeaseName(),
                                                   {SteadyTime::clock::now() + kPeerPatience, {}});
      !gone) {
    log::Warn("Cannot take this server out of the peers", {{"err", gone.error()}});
  }
}

// After ready(): an invalid advertise address must not prevent the start.
Result<> ApiServer::Impl::RunBootstrap(std::stop_token stop, const ServiceGroup::Ready& ready) {
  KEELSON_RETURN_IF_ERROR(registry.Start(stop));
  Mutex mutex;
  CondVar never;
  auto pause = [&](std::chrono::milliseconds time) {
    MutexLock lock(mutex);
    never.wait_for(mutex, stop, time, [] { return false; });
  };
  while (!stop.stop_requested()) {
    Result<> done = Bootstrap(stop);
    if (done) break;
    if (!stop.stop_requested()) log::Warn("Cannot write what the cluster needs", {{"err", done.error()}});
    pause(std::chrono::milliseconds(500));
  }
  if (stop.stop_requested()) return {};
  bool failing = false, correct = false;
  for (bool first = true; !stop.stop_requested(); first = false) {
    Result<> done = Publish(stop);
    if (done && !correct) {
      done = CorrectKubernetesService(registry, options.kubernetes_service, stop);
      correct = static_cast<bool>(done);
    }
    if (done) done = EnsureAuthenticationInfo(registry, options.authentication, stop);
    if (done) done = EnsureLegacyTokenTracking(registry, Clock::Real().Now(), stop);
    if (!done && !publish_stop.stop_requested() && !std::exchange(failing, true)) {
      log::Warn("Cannot keep what others find this server by", {{"err", done.error()}});
    }
    if (done) failing = false;
    if (first) {
      hooks.Done(PostStartHook::kKubernetesService);
      hooks.Done(PostStartHook::kAuthenticationInfo);
      hooks.Done(PostStartHook::kLegacyTokens);
      ready();
    }
    Result<> flows = flowcontrol::EnsureBootstrapObjects(registry, stop);
    if (flows) flows = flowcontrol::UpdateDangling(registry, Clock::Real().Now(), stop);
    if (!flows && !stop.stop_requested()) {
      log::Warn("Cannot keep flow schemas and priority levels", {{"err", flows.error()}});
    }
    openapi.DropIdle();
    pause(kServiceCheckPeriod);
  }
  Withdraw();
  return {};
}

}  // namespace keelson::apiserver
