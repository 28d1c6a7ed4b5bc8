#include "kubelet/plugins/watcher.h"

#include <thread>

#include "kubelet/plugins/socket_tree.h"
#include "lib/base/log.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr int kWorkers = 2;
constexpr client::BackoffOptions kBackoff{milliseconds(500), seconds(122)};
constexpr char kThere[] = "desired_state_of_world", kRegistered[] = "actual_state_of_world";

void Tell(const std::string& socket, const char* state, bool so) {
  metrics::Family& plugins = metrics::Gauge("plugin_manager_total_plugins",
                                            "Number of plugins in Plugin Manager", {"socket_path", "state"});
  if (so) {
    plugins.With({socket, state}).Set(1);
  } else {
    plugins.Remove({socket, state});
  }
}

}  // namespace

PluginWatcher::PluginWatcher(std::string dir, Handlers handlers, Clock& clock)
    : dir_(std::move(dir)), handlers_(std::move(handlers)), queue_("plugins", clock, kBackoff) {}

Result<> PluginWatcher::Run(std::stop_token stop, const std::function<void()>& ready) {
  KEELSON_ASSIGN_OR_RETURN(
      SocketTree tree,
      SocketTree::Create(dir_, {[this](const std::string& socket) { Appeared(socket); },
                                [this](const std::string& socket) { Disappeared(socket); }}));
  KEELSON_RETURN_IF_ERROR(tree.Start());
  ready();
  std::jthread workers([this](std::stop_token own) {
    client::RunWorkers(queue_, kWorkers, own,
                       [this](const std::string& socket, std::stop_token token) -> Result<client::Requeue> {
                         KEELSON_RETURN_IF_ERROR(Reconcile(socket, token));
                         return client::Requeue();
                       });
  });
  std::stop_callback end_workers(stop, [&workers] { workers.request_stop(); });
  while (!stop.stop_requested()) {
    Result<> seen = tree.Wait(stop, std::chrono::hours(1));
    if (!seen && !seen.error().Is(Code::kTimeout) && !stop.stop_requested()) return seen;
  }
  return {};
}

void PluginWatcher::Appeared(const std::string& socket) {
  {
    MutexLock lock(mutex_);
    present_[socket] = ++appearances_;
    Tell(socket, kThere, true);
  }
  queue_.Forget(socket);
  queue_.Add(socket);
}

void PluginWatcher::Disappeared(const std::string& socket) {
  {
    MutexLock lock(mutex_);
    present_.erase(socket);
    Tell(socket, kThere, false);
  }
  queue_.Forget(socket);
  queue_.Add(socket);
}

Result<> PluginWatcher::Reconcile(const std::string& socket, std::stop_token stop) {
  uint64_t appearance = 0;
  Registered old;
  {
    MutexLock lock(mutex_);
    auto present = present_.find(socket);
    if (present != present_.end()) appearance = present->second;
    auto it = registered_.find(socket);
    if (it != registered_.end()) {
      if (it->second.appearance == appearance) return {};
      old = std::move(it->second);
      registered_.erase(it);
      Tell(socket, kRegistered, false);
    }
  }
  if (old.handler) {
    log::Info("Plugin has gone", {{"name", old.name}, {"socket", socket}});
    old.handler->Deregister(old.name, old.endpoint);
  }
  return appearance ? Register(socket, appearance, stop) : Result<>();
}

Result<> PluginWatcher::Register(const std::string& socket, uint64_t appearance, std::stop_token stop) {
  auto plugin = PluginRegistration::Dial(socket, stop);
  if (!plugin) {
    return Error(plugin.error().code(), "RegisterPlugin error -- dial failed at socket " + socket +
                                            ", err: " + plugin.error().message());
  }
  auto info = (*plugin)->GetInfo(stop);
  if (!info) {
    return Error(info.error().code(),
                 "RegisterPlugin error -- failed to get plugin info using RPC GetInfo at socket " + socket +
                     ", err: " + info.error().message());
  }
  if (info->endpoint.empty()) info->endpoint = socket;
  Result<> taken = Take(std::move(*info), socket, appearance, stop);
  Result<> told = (*plugin)->Notify(taken.has_value(), taken ? "" : taken.error().message(), stop);
  if (!taken) return taken;
  // It is registered all the same.
  if (!told) {
    log::Error("Plugin was not told that it is registered", {{"socket", socket}, {"err", told.error()}});
  }
  return {};
}

Result<> PluginWatcher::Take(PluginInfo info, const std::string& socket, uint64_t appearance,
                             std::stop_token stop) {
  auto it = handlers_.find(info.type);
  if (it == handlers_.end()) {
    return Error(Code::kInvalid, "RegisterPlugin error -- no handler registered for plugin type: " +
                                     info.type + " at socket " + socket);
  }
  PluginHandler& handler = *it->second;
  Result<> valid = handler.Validate(info.name, info.endpoint, info.versions);
  if (!valid) return valid.error().Wrap("RegisterPlugin error -- plugin validation failed with err");
  Result<> done = handler.Register(info.name, info.endpoint, info.versions, stop);
  if (!done) return done.error().Wrap("RegisterPlugin error -- plugin registration failed with err");
  log::Info("Plugin registered", {{"type", info.type}, {"name", info.name}, {"endpoint", info.endpoint}});
  MutexLock lock(mutex_);
  registered_[socket] = {appearance, &handler, std::move(info.name), std::move(info.endpoint)};
  Tell(socket, kRegistered, true);
  return {};
}

}  // namespace keelson::kubelet
