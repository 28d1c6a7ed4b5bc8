#include "csi/controller/services.h"

#include <malloc.h>
#include <unistd.h>

#include <memory>
#include <thread>
#include <vector>

#include "csi/controller/api_access.h"
#include "csi/controller/attacher/attacher.h"
#include "csi/controller/capacity/capacity.h"
#include "csi/controller/common/controller.h"
#include "csi/controller/modifier/modifier.h"
#include "csi/controller/provisioner/clone_protection.h"
#include "csi/controller/provisioner/deleter.h"
#include "csi/controller/provisioner/provisioner.h"
#include "csi/controller/resizer/resizer.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/base/service_group.h"
#include "lib/client/leader_election.h"
#include "lib/http/server/metrics_page.h"
#include "lib/http/server/server_service.h"
#include "lib/linux/notify.h"
#include "lib/metrics/metrics.h"

namespace keelson::csi::controller {
namespace {

constexpr std::chrono::seconds kElectionTolerance{20};

// Electors at work, for /healthz.
class Elections {
 public:
  void Add(const client::LeaderElector* elector) {
    MutexLock lock(mutex_);
    electors_.insert(elector);
  }
  void Remove(const client::LeaderElector* elector) {
    MutexLock lock(mutex_);
    electors_.erase(elector);
  }
  Result<> Healthy() const {
    MutexLock lock(mutex_);
    for (const client::LeaderElector* elector : electors_) {
      KEELSON_RETURN_IF_ERROR(elector->Healthy(kElectionTolerance));
    }
    return {};
  }

 private:
  mutable Mutex mutex_;
  std::set<const client::LeaderElector*> electors_ KEELSON_GUARDED_BY(mutex_);
};

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

struct Role {
  std::string name;
  std::vector<std::unique_ptr<Controller>> controllers;
};

std::vector<Role> MakeRoles(const std::set<std::string>& chosen, const Config& config,
                            const Environment& environment) {
  std::vector<Role> out;
  if (chosen.count(kProvisioner) > 0) {
    ProvisionerOptions options;
    options.identity = api::NewUid() + "-" + environment.driver.name() +
                       (config.node_deployment ? "-" + config.node_name : std::string());
    options.name_prefix = config.volume_name_prefix;
    options.name_uuid_length = config.volume_name_uuid_length;
    options.default_fs_type = config.default_fs_type;
    options.extra_create_metadata = config.extra_create_metadata;
    options.publish_read_only = config.publish_read_only;
    options.topology = {config.strict_topology, config.immediate_topology};
    Role& role = out.emplace_back();
    role.name = kProvisioner;
    role.controllers.push_back(std::make_unique<Provisioner>(environment, std::move(options)));
    role.controllers.push_back(std::make_unique<Deleter>(environment));
    role.controllers.push_back(std::make_unique<CloneProtection>(environment));
  }
  // A part of external-provisioner, under its Lease.
  if (chosen.count(kProvisioner) > 0 && config.enable_capacity) {
    CapacityOptions options;
    options.ns = config.capacity_namespace.empty() ? OwnNamespace() : config.capacity_namespace;
    options.poll = config.capacity_poll;
    options.immediate = config.capacity_immediate;
    options.default_fs_type = config.default_fs_type;
    out.back().controllers.push_back(std::make_unique<Capacity>(environment, std::move(options)));
  }
  if (chosen.count(kAttacher) > 0) {
    Role& role = out.emplace_back();
    role.name = kAttacher;
    role.controllers.push_back(std::make_unique<Attacher>(environment, config.default_fs_type));
    role.controllers.push_back(std::make_unique<AttachedVolumes>(environment));
  }
  // external-resizer does both, under one Lease.
  if (chosen.count(kResizer) > 0 || chosen.count(kModifier) > 0) {
    Role& role = out.emplace_back();
    role.name = kResizer;
    if (chosen.count(kResizer) > 0) role.controllers.push_back(std::make_unique<Resizer>(environment));
    if (chosen.count(kModifier) > 0) role.controllers.push_back(std::make_unique<Modifier>(environment));
  }
  return out;
}

Result<> RunRole(const Role& role, std::stop_token stop) {
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < role.controllers.size(); ++i) {
    threads.emplace_back([&, i] { role.controllers[i]->Run(stop); });
  }
  role.controllers.front()->Run(stop);
  return {};
}

client::LeaderElectionOptions ElectionOf(const Config& config, const Role& role, const std::string& driver) {
  client::LeaderElectionOptions out;
  out.ns = config.leader_election_namespace.empty() ? OwnNamespace() : config.leader_election_namespace;
  out.name = LeaseName(role.name, driver);
  out.identity = client::NewIdentity();
  out.lease_duration = config.lease_duration;
  out.renew_deadline = config.renew_deadline;
  out.retry_period = config.retry_period;
  return out;
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
    const std::vector<Role> roles = MakeRoles(chosen_, config_, environment);
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
    for (const Role& role : roles) {
      group.Add({role.name, {"informers"}, [&, this](std::stop_token s, ServiceGroup::Ready ready) {
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
    const client::RestClient api(transport_, config_.renew_deadline / 2);
    client::LeaderElector elector(api, events, ElectionOf(config_, role, driver));
    elections_.Add(&elector);
    Result<> result = elector.Run(
        stop, [&](std::stop_token s) { return RunRole(role, s); },
        [&] {
          log::Error("The Lease is lost; another process may lead",
                     {{"role", role.name}, {"driver", driver}});
          ::_exit(1);
        });
    elections_.Remove(&elector);
    return result;
  }

  const Config& config_;
  const std::set<std::string> chosen_;
  const std::shared_ptr<client::Transport> transport_;
  const std::string address_;
  Elections& elections_;
};

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
  Elections elections;
  std::vector<std::unique_ptr<DriverService>> drivers;
  ServiceGroup group;
  http::AddServer(group, "pages", pages.host, pages.port, Pages(config.metrics_path, elections));
  std::vector<std::string> names;
  for (const std::string& address : config.addresses) {
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
