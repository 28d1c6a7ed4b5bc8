#include "controlplane/apiserver/aggregator/availability_controller.h"

#include <fmt/format.h>

#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "lib/api/types.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

constexpr int kWorkers = 5;
constexpr std::chrono::seconds kLookAgain{30};
constexpr std::chrono::milliseconds kFirstDelay{5};
constexpr std::string_view kServiceLabel = "kubernetes.io/service-name";

const api::ResourceInfo& Row() {
  static const api::ResourceInfo& row = api::ResourceOf<apiregistrationv1::APIService>();
  return row;
}

const api::ResourceInfo& StatusRow() {
  static const api::ResourceInfo& row = *api::FindResource(Row().group, Row().version, "apiservices/status");
  return row;
}

metrics::Family& unavailable = metrics::Gauge(
    "aggregator_unavailable_apiservice",
    "Gauge of APIServices which are marked as unavailable broken down by APIService name.", {"name"});
metrics::Family& unavailable_total = metrics::Counter(
    "aggregator_unavailable_apiservice_total",
    "Counter of APIServices which are marked as unavailable broken down by APIService name and reason.",
    {"name", "reason"});

}  // namespace

AvailabilityController::AvailabilityController(registry::Registry& registry, const ApiServices& services,
                                               ExtensionClients& clients, ExtensionDocuments& documents,
                                               Clock& clock)
    : registry_(registry),
      services_(services),
      clients_(clients),
      documents_(documents),
      clock_(clock),
      queue_("RemoteAvailabilityController", clock, {kFirstDelay, kLookAgain}) {}

void AvailabilityController::ServiceChanged(std::string_view key) {
  for (const auto& [name, entry] : *services_.All()) {
    if (!entry->local && entry->service_ns + "/" + entry->service_name == key) queue_.Add(name);
  }
}

void AvailabilityController::SliceChanged(const storage::Object& slice) {
  for (const auto& [key, value] : slice.labels()) {
    if (key == kServiceLabel) ServiceChanged(fmt::format("{}/{}", slice.ns(), value));
  }
}

// Only its namespace is known of it.
void AvailabilityController::SliceRemoved(std::string_view key) {
  const std::string_view ns = key.substr(0, key.find('/'));
  for (const auto& [name, entry] : *services_.All()) {
    if (!entry->local && entry->service_ns == ns) queue_.Add(name);
  }
}

Result<> AvailabilityController::Write(const ApiServiceEntry& entry, const Availability& availability,
                                       std::stop_token stop) {
  if (!entry.local) unavailable.With({entry.name}).Set(availability.ok() ? 0 : 1);
  const storage::ObjectPtr object = registry_.store().Peek(Row(), entry.name);
  if (!object) return {};
  auto before = static_cast<const apiregistrationv1::APIService&>(*object->Decode());
  if (!SetAvailable(before, availability, clock_.Now())) return {};
  Result<registry::Written> written = registry_.Modify(
      StatusRow(), "", entry.name,
      [&](api::Message& message) -> Result<> {
        auto& current = static_cast<apiregistrationv1::APIService&>(message);
        const ApiServicePtr now = ToEntry(current);
        // The next look is at the new one.
        if (now->uid != entry.uid || now->local != entry.local || now->Target() != entry.Target()) return {};
        SetAvailable(current, availability, clock_.Now());
        return {};
      },
      BootstrapWrite(stop));
  if (!written && !written.error().Is(Code::kNotFound)) return written.error();
  if (entry.available && !availability.ok()) {
    unavailable_total.With({entry.name, availability.reason}).Increment();
  }
  return {};
}

Result<client::Requeue> AvailabilityController::Reconcile(const std::string& name, std::stop_token stop) {
  const storage::ObjectPtr object = registry_.store().Peek(Row(), name);
  if (!object) {
    documents_.Remove(name);
    unavailable.Remove({name});
    return client::Requeue{};
  }
  const ApiServicePtr entry = ToEntry(static_cast<const apiregistrationv1::APIService&>(*object->Decode()));
  if (entry->local) {
    documents_.Remove(name);
    KEELSON_RETURN_IF_ERROR(Write(*entry, Availability::Local(), stop));
    return client::Requeue{};
  }
  Availability found = CheckService(registry_.store(), *entry);
  std::string problem;
  if (found.ok()) {
    problem = ProbeDiscovery(clients_, *entry, stop);
    if (stop.stop_requested()) return client::Requeue{};
    if (!problem.empty()) found = {"False", "FailedDiscoveryCheck", problem};
  }
  // First: who sees the condition finds the group in discovery.
  if (found.ok()) {
    documents_.Refresh(*entry, stop);
  } else {
    documents_.MarkStale(*entry);
  }
  KEELSON_RETURN_IF_ERROR(Write(*entry, found, stop));
  // The queue tries again, with a growing delay.
  if (!problem.empty()) return Error(Code::kUnavailable, problem);
  return client::Requeue{kLookAgain};
}

void AvailabilityController::Run(std::stop_token stop) {
  client::RunWorkers(queue_, kWorkers, stop, [this](const std::string& key, std::stop_token token) {
    return Reconcile(key, std::move(token));
  });
}

}  // namespace keelson::apiserver
