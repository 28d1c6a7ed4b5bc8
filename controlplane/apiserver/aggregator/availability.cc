#include "controlplane/apiserver/aggregator/availability.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/api/meta.h"
#include "lib/api/types.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {
namespace {

constexpr int kProbes = 5;
constexpr std::chrono::seconds kPatience{5};
constexpr std::string_view kServiceLabel = "kubernetes.io/service-name";

Availability Unavailable(std::string reason, std::string message) {
  return {"False", std::move(reason), std::move(message)};
}

bool IsReady(const discoveryv1::Endpoint& endpoint) {
  return !endpoint.conditions().has_ready() || endpoint.conditions().ready();
}

bool HasReadyEndpoint(const discoveryv1::EndpointSlice& slice, std::string_view port_name) {
  const bool ready = std::any_of(slice.endpoints().begin(), slice.endpoints().end(), IsReady);
  return ready && std::any_of(slice.ports().begin(), slice.ports().end(),
                              [&](const auto& port) { return port.name() == port_name && port.has_port(); });
}

// The answers to the probes of one check; sinks may outlive it.
struct Probes {
  Mutex mutex;
  CondVar changed;
  int left KEELSON_GUARDED_BY(mutex) = 0;
  bool passed KEELSON_GUARDED_BY(mutex) = false;
  std::string problem KEELSON_GUARDED_BY(mutex);

  void Add(std::string failure) {
    MutexLock lock(mutex);
    --left;
    if (failure.empty()) {
      passed = true;
    } else {
      problem = std::move(failure);
    }
    changed.notify_all();
  }
};

class ProbeSink : public http::ResponseSink {
 public:
  ProbeSink(std::shared_ptr<Probes> probes, std::string url)
      : probes_(std::move(probes)), url_(std::move(url)) {}
  void OnHead(int status, const http::Headers&) override { status_ = status; }
  bool OnBody(std::string_view) override { return false; }
  void OnEnd() override {
    const bool good = status_ >= 200 && status_ < 300;
    probes_->Add(good ? "" : Problem(fmt::format("bad status from {}: {}", url_, status_)));
  }
  void OnUpgraded(std::unique_ptr<http::Stream>) override { OnEnd(); }
  void OnFail(const Error& error) override {
    probes_->Add(Problem(fmt::format("Get \"{}\": {}", url_, error.message())));
  }

 private:
  std::string Problem(const std::string& why) const {
    return fmt::format("failing or missing response from {}: {}", url_, why);
  }
  const std::shared_ptr<Probes> probes_;
  const std::string url_;
  int status_ = 0;
};

}  // namespace

Availability Availability::Local() { return {"True", "Local", "Local APIServices are always available"}; }
Availability Availability::Passed() { return {"True", "Passed", "all checks passed"}; }

Availability CheckService(const storage::Store& store, const ApiServiceEntry& service) {
  const std::string& ns = service.service_ns;
  const std::string& name = service.service_name;
  const storage::ObjectPtr object =
      store.Peek(api::ResourceOf<corev1::Service>(), fmt::format("{}/{}", ns, name));
  if (!object) {
    return Unavailable("ServiceNotFound", fmt::format("service/{} in \"{}\" is not present", name, ns));
  }
  const auto found = std::static_pointer_cast<const corev1::Service>(object->Decode());
  const corev1::ServiceSpec& spec = found->spec();
  if (!spec.type().empty() && spec.type() != "ClusterIP") return Availability::Passed();
  const auto port = std::find_if(spec.ports().begin(), spec.ports().end(),
                                 [&](const auto& one) { return one.port() == service.service_port; });
  if (port == spec.ports().end()) {
    return Unavailable("ServicePortError", fmt::format("service/{} in \"{}\" is not listening on port {}",
                                                       name, ns, service.service_port));
  }
  bool slices = false, ready = false;
  store.ForEachIn(api::ResourceOf<discoveryv1::EndpointSlice>(), ns, [&](const storage::ObjectPtr& one) {
    const auto& labels = one->labels();
    if (std::find(labels.begin(), labels.end(), std::pair(kServiceLabel, std::string_view(name))) ==
        labels.end()) {
      return;
    }
    slices = true;
    ready = ready ||
            HasReadyEndpoint(static_cast<const discoveryv1::EndpointSlice&>(*one->Decode()), port->name());
  });
  if (!slices) {
    return Unavailable("EndpointsNotFound",
                       fmt::format("cannot find endpointslices for service/{} in \"{}\"", name, ns));
  }
  if (!ready) {
    return Unavailable(
        "MissingEndpoints",
        fmt::format("endpointslices for service/{} in \"{}\" have no addresses with port name \"{}\"", name,
                    ns, port->name()));
  }
  return Availability::Passed();
}

std::string ProbeDiscovery(ExtensionClients& clients, const ApiServiceEntry& service, std::stop_token stop) {
  const Result<http::Headers> identity = IdentityHeaders(AggregatorUser());
  auto probes = std::make_shared<Probes>();
  {
    MutexLock lock(probes->mutex);
    probes->left = kProbes;
  }
  std::vector<ExtensionClients::Target> targets;
  std::vector<std::shared_ptr<http::ClientCall>> calls;
  for (int i = 0; i < kProbes; ++i) {
    Result<ExtensionClients::Target> target = clients.ForProbe(service);
    if (!target) {
      probes->Add(target.error().message());
      continue;
    }
    http::ClientRequest request;
    request.target = service.Path();
    request.headers = *identity;
    request.headers.Add("Accept", "application/json");
    auto sink = std::make_shared<ProbeSink>(probes, "https://" + target->address + service.Path());
    calls.push_back(target->client->Send(std::move(request), false, kPatience, std::move(sink)));
    targets.push_back(std::move(*target));
  }
  std::string problem;
  {
    MutexLock lock(probes->mutex);
    probes->changed.wait(probes->mutex, stop, [&]() KEELSON_NO_THREAD_SAFETY_ANALYSIS {
      return probes->passed || probes->left == 0;
    });
    if (!probes->passed) problem = probes->problem.empty() ? "the check was given up" : probes->problem;
  }
  for (const auto& call : calls) call->Cancel();
  // A connection that has died in silence would fail the next check too.
  if (!problem.empty()) {
    for (const ExtensionClients::Target& target : targets) clients.Forget(target.address);
  }
  return problem;
}

bool SetAvailable(apiregistrationv1::APIService& service, const Availability& availability, WallTime now) {
  apiregistrationv1::APIServiceCondition* condition = nullptr;
  for (apiregistrationv1::APIServiceCondition& one : *service.mutable_status()->mutable_conditions()) {
    if (one.type() == "Available") condition = &one;
  }
  if (condition && condition->status() == availability.status && condition->reason() == availability.reason &&
      condition->message() == availability.message) {
    return false;
  }
  if (!condition) {
    condition = service.mutable_status()->add_conditions();
    condition->set_type("Available");
  }
  if (condition->status() != availability.status) {
    condition->set_status(availability.status);
    *condition->mutable_last_transition_time() = api::ToTime(now);
  }
  condition->set_reason(availability.reason);
  condition->set_message(availability.message);
  return true;
}

}  // namespace keelson::apiserver
