#include "csi/controller/services.h"

#include <malloc.h>

#include <memory>
#include <vector>

#include "csi/controller/api_access.h"
#include "csi/controller/common/controller.h"
#include "csi/controller/election.h"
#include "csi/controller/roles.h"
#include "csi/controller/snapshotter/snapshot_controller.h"
#include "lib/base/log.h"
#include "lib/base/service_group.h"
#include "lib/client/custom/custom_informers.h"
#include "lib/http/server/metrics_page.h"
#include "lib/http/server/server_service.h"
#include "lib/linux/notify.h"
#include "lib/metrics/metrics.h"

namespace keelson::csi::controller {
namespace {

http::Handler Pages(const std::string& metrics_path, const Elections& elections) {
  return [metrics_path, &elections](std::shared_ptr<const http::ServerRequest> request,
                                    std::shared_ptr<http::ResponseWriter> writer) {
    const http::Headers text = {{"Content-Type", "text/plain; charset=utf-8"}};
    if (request->path == metrics_path) {
      http::ReplyMetrics(*request, *writer, metrics::Print());
    } else if (request->path == "/healthz" || request->path == "/healthz/leader-election") {
      const Result<> healthy = elections.Healthy();
      writer->Reply(healthy ? 200 : 503, text, healthy ? "ok" : healthy.error().message() + "\n");
    } else {
      writer->Reply(404, text, "404 page not found\n");
    }
  };
}

class DriverService {
 public:
  DriverService(const Config& config, std::set<std::string> chosen,
                std::shared_ptr<client::Transport> transport, std::string address, Elections& elections)
      : config_(config),
        chosen_(std::move(chosen)),
        transport_(std::move(transport)),
        address_(std::move(address)),
        elections_(elections) {}

  // Serves one driver until `stop`, from the time that the driver is there.
  Result<> Run(std::stop_token stop) {
    Driver driver({address_, config_.timeout, config_.node_deployment});
    if (const Result<> connected = driver.Connect(stop); !connected) {
      return stop.stop_requested() ? Result<>() : connected;
    }
    if (config_.enable_capacity) {
      KEELSON_ASSIGN_OR_RETURN(const auto info, driver.Info(stop));
      if (!info->Can(Capability::GET_CAPACITY)) {
        return Error(Code::kInvalid, "--enable-capacity: the driver " + info->name + " has no GET_CAPACITY");
      }
    }
    const client::RestClient api(transport_);
    client::InformerFactory informers(api);
    client::EventRecorder events(api, driver.name());
    const Environment environment{api,
                                  informers,
                                  events,
                                  driver,
                                  Clock::Real(),
                                  {config_.worker_threads, {config_.retry_start, config_.retry_max}},
                                  config_.node_deployment ? config_.node_name : std::string()};
    client::CustomInformers snapshots(api);
    const std::vector<Role> roles = MakeRoles(chosen_, config_, environment, snapshots);
    log::Info("Serving a driver", {{"driver", driver.name()}, {"address", address_}});
    ServiceGroup group;
    group.Add({"events", {}, [&](std::stop_token s, ServiceGroup::Ready ready) -> Result<> {
                 ready();
                 events.Run(s);
                 return {};
               }});
    group.Add({"informers", {"events"}, [&](std::stop_token s, ServiceGroup::Ready ready) {
                 return informers.Run(s, ready);
               }});
    // The definitions of snapshots may never come: only the snapshotter waits for them.
    group.Add({"snapshot informers", {"events"}, [&](std::stop_token s, ServiceGroup::Ready ready) {
                 return snapshots.Run(s, ready);
               }});
    for (const Role& role : roles) {
      const char* needed = role.name == kSnapshotter ? "snapshot informers" : "informers";
      group.Add({role.name, {needed}, [&, this](std::stop_token s, ServiceGroup::Ready ready) {
                   ready();
                   return Lead(role, driver.name(), events, s);
                 }});
    }
    return group.Run(stop);
  }

 private:
  Result<> Lead(const Role& role, const std::string& driver, client::EventRecorder& events,
                std::stop_token stop) {
    if (!config_.leader_election) return RunRole(role, stop);
    return elections_.Lead(LeaseName(role.name, driver), events, stop,
                           [&](std::stop_token s) { return RunRole(role, s); });
  }

  const Config& config_;
  const std::set<std::string> chosen_;
  const std::shared_ptr<client::Transport> transport_;
  const std::string address_;
  Elections& elections_;
};

// Snapshots of all drivers, as far as no driver is needed for them.
Result<> RunSnapshotController(const Config& config, const client::RestClient& api,
                               client::EventRecorder& events, std::stop_token stop) {
  client::CustomInformers informers(api);
  SnapshotController controller({api,
                                 informers,
                                 events,
                                 Clock::Real(),
                                 {config.worker_threads, {config.retry_start, config.retry_max}},
                                 config.distributed_snapshotting || config.node_deployment});
  ServiceGroup group;
  group.Add({"informers", {}, [&](std::stop_token s, ServiceGroup::Ready ready) {
               return informers.Run(s, ready);
             }});
  group.Add(
      {kSnapshotController, {"informers"}, [&](std::stop_token s, ServiceGroup::Ready ready) -> Result<> {
         ready();
         controller.Run(s);
         return {};
       }});
  return group.Run(stop);
}

// With --node-deployment each node has a candidate, which watches nothing until it leads.
Result<> LeadSnapshotController(const Config& config, const std::shared_ptr<client::Transport>& transport,
                                Elections& elections, std::stop_token stop) {
  const client::RestClient api(transport);
  client::EventRecorder events(api, kSnapshotController);
  auto work = [&](std::stop_token s) { return RunSnapshotController(config, api, events, s); };
  ServiceGroup group;
  group.Add({"events", {}, [&](std::stop_token s, ServiceGroup::Ready ready) -> Result<> {
               ready();
               events.Run(s);
               return {};
             }});
  group.Add({"leader", {"events"}, [&](std::stop_token s, ServiceGroup::Ready ready) {
               ready();
               if (!config.leader_election && !config.node_deployment) return work(s);
               return elections.Lead(LeaseName(kSnapshotController, ""), events, s, work);
             }});
  return group.Run(stop);
}

}  // namespace

Result<int> RunController(const Config& config) {
  KEELSON_RETURN_IF_ERROR(Validate(config));
  KEELSON_ASSIGN_OR_RETURN(const std::set<std::string> chosen, ChosenControllers(config));
  KEELSON_ASSIGN_OR_RETURN(const HostPort pages, ParseEndpoint(config.http_endpoint));
  // Lists are large and short-lived: one arena, so that free memory is shared and returned.
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_THRESHOLD, 64 << 10);
  KEELSON_ASSIGN_OR_RETURN(const client::RestConfig access, ApiAccess(config.kubeconfig));
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<client::Transport> transport, client::NewHttpTransport(access));
  Elections elections(config, transport);
  std::vector<std::unique_ptr<DriverService>> drivers;
  ServiceGroup group;
  http::AddServer(group, "pages", pages.host, pages.port, Pages(config.metrics_path, elections));
  std::vector<std::string> names;
  if (chosen.count(kSnapshotController) > 0) {
    names.push_back(kSnapshotController);
    group.Add({kSnapshotController, {}, [&](std::stop_token stop, ServiceGroup::Ready ready) {
                 ready();
                 return LeadSnapshotController(config, transport, elections, stop);
               }});
  }
  for (const std::string& address : AddressesOf(config, chosen)) {
    drivers.push_back(std::make_unique<DriverService>(config, chosen, transport, address, elections));
    names.push_back("driver " + address);
    group.Add(
        {names.back(), {}, [driver = drivers.back().get()](std::stop_token stop, ServiceGroup::Ready ready) {
           ready();
           return driver->Run(stop);
         }});
  }
  group.Add(linux::SystemdNotifier(names, [&] { return elections.Healthy(); }));
  log::Info("keelson-csi-controller starts", {{"server", access.server}});
  return group.RunUntilSignal();
}

}  // namespace keelson::csi::controller
