#include "csi/local/services.h"

#include <malloc.h>

#include <condition_variable>
#include <mutex>

#include "csi/local/host/filesystem.h"
#include "csi/local/serving/registration.h"
#include "csi/local/serving/services.h"
#include "csi/local/volumes/content.h"
#include "csi/local/volumes/node_calls.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/service_group.h"
#include "lib/linux/file_pages.h"
#include "lib/linux/notify.h"
#include "lib/rpc/server.h"

namespace keelson::csi::local {

namespace {

void AwaitStop(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait(lock, stop, [] { return false; });
}

Result<> Serve(const std::string& socket, const std::vector<grpc::Service*>& services,
               const std::stop_token& stop, const ServiceGroup::Ready& ready) {
  KEELSON_RETURN_IF_ERROR(MakeDirs(socket.substr(0, socket.rfind('/')), 0750));
  KEELSON_ASSIGN_OR_RETURN(auto server, rpc::UnixServer::Start(socket, services));
  ready();
  linux::ReleaseFilePages();  // calls are few
  AwaitStop(stop);
  return {};
}

}  // namespace

Result<int> RunDriver(const Config& config) {
  ::mallopt(M_ARENA_MAX, 1);  // calls are few
  KEELSON_RETURN_IF_ERROR(Validate(config));
  KEELSON_ASSIGN_OR_RETURN(const std::string socket, SocketPath(config.endpoint));
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, Store::Open(config.data_dir));

  std::stop_source stop;
  Context context(config, *store, Clock::Real(), stop.get_token());
  KEELSON_RETURN_IF_ERROR(ThawRemains(context));
  KEELSON_RETURN_IF_ERROR(context.logical.Recover());
  KEELSON_RETURN_IF_ERROR(RemoveLostEphemeralVolumes(context));
  VolumeCalls volumes(context);
  SnapshotCalls snapshots(context);
  NodeCalls node_calls(context);
  IdentityService identity(context);
  ControllerService controller(config, volumes, snapshots);
  GroupControllerService group_controller(snapshots);
  NodeService node(config, node_calls);

  ServiceGroup group;
  group.Add({"server", {}, [&](std::stop_token stopped, ServiceGroup::Ready ready) {
               // Copies end before the server does, which waits for them.
               std::stop_callback end_copies(stopped, [&] { stop.request_stop(); });
               return Serve(socket, {&identity, &controller, &group_controller, &node}, stopped, ready);
             }});
  RegistrationService registration(config, socket);
  if (!config.registration_dir.empty()) {
    group.Add({"registration", {"server"}, [&](std::stop_token stopped, ServiceGroup::Ready ready) {
                 return Serve(config.registration_dir + "/" + config.driver_name + "-reg.sock",
                              {&registration}, stopped, ready);
               }});
  }
  group.Add(linux::SystemdNotifier({"server"}, [&]() -> Result<> {
    KEELSON_RETURN_IF_ERROR(UsageOf(config.data_dir));
    return {};
  }));
  log::Info("keelson-csi-local starts", {{"driver", config.driver_name},
                                         {"node", config.node_id},
                                         {"endpoint", config.endpoint},
                                         {"data-dir", config.data_dir}});
  return group.RunUntilSignal();
}

}  // namespace keelson::csi::local
