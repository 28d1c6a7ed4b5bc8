#include "cni/agent/policy/services.h"

namespace keelson::cni::agent {

Result<std::unique_ptr<PolicyServices>> PolicyServices::Open(
    const std::string& bridge, const std::shared_ptr<client::Transport>& transport, Agent agent,
    PolicySyncerOptions options) {
  std::unique_ptr<PolicyServices> out(new PolicyServices(transport, agent.node_name));
  PolicyServices* self = out.get();
  PolicySources sources{
      .node = std::move(agent.node),
      .plan = [self](const auto& use) { return self->watch_.With(use); },
      .on_sync =
          [self, tell = std::move(agent.on_sync)](const Result<>& result) {
            if (result) self->gate_->Wake();
            if (tell) tell(result);
          },
      .on_event = [self](const policy::Pod& pod, std::string_view reason,
                         const std::string& message) { self->Record(pod, reason, message); }};
  KEELSON_ASSIGN_OR_RETURN(out->syncer_, PolicySyncer::Open(bridge, std::move(sources), options));
  KEELSON_ASSIGN_OR_RETURN(out->gate_,
                           PolicyGate::Open({.requested = [self] { self->syncer_->Requested(); },
                                             .is_ready =
                                                 [self](const IpAddress& address, uint32_t epoch) {
                                                   return self->syncer_->IsReady(address, epoch);
                                                 }}));
  return out;
}

void PolicyServices::Record(const policy::Pod& pod, std::string_view reason, const std::string& message) {
  corev1::ObjectReference reference;
  reference.set_api_version("v1");
  reference.set_kind("Pod");
  reference.set_namespace_(pod.ns);
  reference.set_name(pod.name);
  reference.set_uid(pod.uid);
  events_.Record(reference, "Warning", reason, message);
}

void PolicyServices::AddTo(ServiceGroup& group) {
  auto add = [&](const char* name, auto run) {
    group.Add({name, {}, [run = std::move(run)](std::stop_token stop, ServiceGroup::Ready ready) {
                 ready();
                 return run(std::move(stop));
               }});
  };
  add("policy-syncer", [this](std::stop_token stop) { return syncer_->Run(std::move(stop)); });
  add("policy-events", [this](std::stop_token stop) -> Result<> {
    events_.Run(std::move(stop));
    return {};
  });
  add("policy-gate", [this](std::stop_token stop) { return gate_->Run(std::move(stop)); });
  add("policy-pods", [this](std::stop_token stop) { return watch_.RunPods(std::move(stop)); });
  add("policy-namespaces", [this](std::stop_token stop) { return watch_.RunNamespaces(std::move(stop)); });
  add("policy-cluster-policies",
      [this](std::stop_token stop) { return cluster_policies_.Run(std::move(stop)); });
  add("policy-admin-policies", [this](std::stop_token stop) { return admin_policies_.Run(std::move(stop)); });
  add("policy-baseline-policies",
      [this](std::stop_token stop) { return baseline_policies_.Run(std::move(stop)); });
  add("policy-policies", [this](std::stop_token stop) { return watch_.RunPolicies(std::move(stop)); });
}

}  // namespace keelson::cni::agent
