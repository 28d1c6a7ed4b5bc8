#include "csi/controller/roles.h"

#include <thread>

#include "csi/controller/api_access.h"
#include "csi/controller/attacher/attacher.h"
#include "csi/controller/capacity/capacity.h"
#include "csi/controller/health/health_monitor.h"
#include "csi/controller/health/node_watcher.h"
#include "csi/controller/modifier/modifier.h"
#include "csi/controller/provisioner/clone_protection.h"
#include "csi/controller/provisioner/deleter.h"
#include "csi/controller/provisioner/provisioner.h"
#include "csi/controller/resizer/resizer.h"
#include "csi/controller/snapshotter/content_controller.h"
#include "lib/api/meta.h"

namespace keelson::csi::controller {
namespace {

Role ProvisionerRole(const Config& config, const Environment& environment) {
  ProvisionerOptions options;
  options.identity = api::NewUid() + "-" + environment.driver.name() +
                     (config.node_deployment ? "-" + config.node_name : std::string());
  options.name_prefix = config.volume_name_prefix;
  options.name_uuid_length = config.volume_name_uuid_length;
  options.default_fs_type = config.default_fs_type;
  options.extra_create_metadata = config.extra_create_metadata;
  options.publish_read_only = config.publish_read_only;
  options.topology = {config.strict_topology, config.immediate_topology};
  Role role{kProvisioner, {}};
  role.controllers.push_back(std::make_unique<Provisioner>(environment, std::move(options)));
  role.controllers.push_back(std::make_unique<Deleter>(environment));
  role.controllers.push_back(std::make_unique<CloneProtection>(environment));
  // A part of external-provisioner, under its Lease.
  if (config.enable_capacity) {
    CapacityOptions capacity;
    capacity.ns = config.capacity_namespace.empty() ? OwnNamespace() : config.capacity_namespace;
    capacity.poll = config.capacity_poll;
    capacity.immediate = config.capacity_immediate;
    capacity.default_fs_type = config.default_fs_type;
    role.controllers.push_back(std::make_unique<Capacity>(environment, std::move(capacity)));
  }
  return role;
}

Role HealthRole(const Config& config, const Environment& environment) {
  Role role{kHealthMonitor, {}};
  role.controllers.push_back(std::make_unique<HealthMonitor>(
      environment, HealthOptions{config.list_volumes_interval, config.monitor_interval}));
  if (config.enable_node_watcher) {
    NodeWatcherOptions options;
    options.poll = config.monitor_interval;
    role.controllers.push_back(std::make_unique<NodeWatcher>(environment, options));
  }
  return role;
}

}  // namespace

std::vector<Role> MakeRoles(const std::set<std::string>& chosen, const Config& config,
                            const Environment& environment, client::CustomInformers& snapshots) {
  std::vector<Role> out;
  if (chosen.count(kProvisioner) > 0) out.push_back(ProvisionerRole(config, environment));
  if (chosen.count(kAttacher) > 0) {
    Role& role = out.emplace_back(Role{kAttacher, {}});
    role.controllers.push_back(std::make_unique<Attacher>(environment, config.default_fs_type));
    role.controllers.push_back(std::make_unique<AttachedVolumes>(environment));
  }
  // external-resizer does both, under one Lease.
  if (chosen.count(kResizer) > 0 || chosen.count(kModifier) > 0) {
    Role& role = out.emplace_back(Role{kResizer, {}});
    if (chosen.count(kResizer) > 0) role.controllers.push_back(std::make_unique<Resizer>(environment));
    if (chosen.count(kModifier) > 0) role.controllers.push_back(std::make_unique<Modifier>(environment));
  }
  if (chosen.count(kHealthMonitor) > 0) out.push_back(HealthRole(config, environment));
  // The last one: it may wait for ever.
  if (chosen.count(kSnapshotter) > 0) {
    Role& role = out.emplace_back(Role{kSnapshotter, {}});
    role.controllers.push_back(std::make_unique<ContentController>(
        environment, snapshots,
        SnapshotterOptions{config.snapshot_name_prefix, config.snapshot_name_uuid_length,
                           config.extra_create_metadata}));
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

}  // namespace keelson::csi::controller
