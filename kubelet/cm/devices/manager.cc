#include "kubelet/cm/devices/manager.h"

#include <algorithm>

#include "kubelet/cm/devices/admission.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet::devices {

namespace {
constexpr int kFailedStarts = 5;
}  // namespace

DeviceManager::DeviceManager(DeviceManagerOptions options, Clock& clock)
    : options_(std::move(options)), clock_(clock) {
  auto text = ReadFile(checkpoint_path());
  if (!text) {
    no_checkpoint_ = text.error().Is(Code::kNotFound);
    if (!no_checkpoint_) log::Error("Failed to read the device checkpoint", {{"err", text.error()}});
    return;
  }
  auto checkpoint = DecodeCheckpoint(*text);
  if (!checkpoint) {
    log::Error("Device allocations may be out of date",
               {{"path", checkpoint_path()}, {"err", checkpoint.error()}});
    return;
  }
  MutexLock lock(mutex_);
  pods_ = std::move(checkpoint->pods);
  inventory_.Restore(checkpoint->resources, clock_.SteadyNow());
}

DeviceManager::~DeviceManager() {
  calls_.request_stop();
  // Without the lock: the destructor of a plugin waits for its last event.
  std::vector<std::shared_ptr<DevicePlugin>> plugins;
  MutexLock lock(mutex_);
  plugins = inventory_.Clear();
  std::move(dropped_.begin(), dropped_.end(), std::back_inserter(plugins));
  dropped_.clear();
}

Result<> DeviceManager::Run(std::stop_token stop, const std::function<void()>& ready) {
  KEELSON_RETURN_IF_ERROR(MakeDirs(options_.dir, 0750));
  RemoveSockets(options_.dir);
  std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    changed_.notify_all();
  });
  auto accept = [this](const RegistrationRequest& request) { return Accept(request); };
  std::unique_ptr<RegistrationServer> server;
  SteadyTime retry = clock_.SteadyNow();
  for (bool first = true; !stop.stop_requested(); first = false) {
    if (!server && clock_.SteadyNow() >= retry) {
      auto started = RegistrationServer::Start(options_.dir, accept);
      if (started) {
        server = std::move(*started);
        retry = SteadyTime::max();
        failed_starts_ = 0;
      } else {
        ++failed_starts_;
        log::Error("Failed to serve device plugin registration, retrying", {{"err", started.error()}});
        retry = clock_.SteadyNow() + std::chrono::seconds(1);
      }
    }
    if (first) ready();
    if (Await(retry, stop)) HandleChanges();
  }
  calls_.request_stop();
  server.reset();
  return {};
}

Result<> DeviceManager::CheckServing() const {
  if (failed_starts_ < kFailedStarts) return {};
  return Error(Code::kUnavailable,
               "device plugin registration gRPC server failed and no device plugins can register");
}

Result<> DeviceManager::Accept(const RegistrationRequest& request) {
  static metrics::Family& registrations = metrics::Counter(
      "kubelet_device_plugin_registration_total",
      "Cumulative number of device plugin registrations. Broken down by resource name.", {"resource_name"});
  registrations.With({request.resource}).Increment();
  Result<> done = CheckRegistration(request);
  if (done) done = Connect(request.resource, options_.dir + "/" + request.endpoint);
  if (!done) {
    log::Warn("Device plugin was not registered", {{"resource", request.resource}, {"err", done.error()}});
  }
  return done;
}

Result<> DeviceManager::Connect(const std::string& resource, const std::string& socket) {
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<DevicePlugin> plugin, options_.dial(socket, calls_.get_token()));
  auto options = plugin->Options(calls_.get_token());
  if (!options) return options.error().Wrap("failed to get device plugin options");
  uint64_t connection = 0;
  {
    MutexLock lock(mutex_);
    connection = ++connections_;
    if (auto old = inventory_.Connect(resource, connection, plugin, *options)) {
      dropped_.push_back(std::move(old));
      Changed();
    }
  }
  log::Info("Device plugin connected", {{"resource", resource}, {"socket", socket}});
  plugin->Watch({[this, resource, connection](DeviceMap devices) {
                   OnListed(resource, connection, std::move(devices));
                 },
                 [this, resource, connection](const Error& why) { OnGone(resource, connection, why); }});
  return {};
}

void DeviceManager::OnListed(const std::string& resource, uint64_t connection, DeviceMap devices) {
  MutexLock lock(mutex_);
  auto news = inventory_.List(resource, connection, std::move(devices));
  if (!news) return;
  health_changed_.merge(pods_.Holders(resource, *news));
  Changed();
}

void DeviceManager::OnGone(const std::string& resource, uint64_t connection, const Error& why) {
  {
    MutexLock lock(mutex_);
    if (!Disconnect(resource, connection)) return;
  }
  log::Warn("Device plugin has gone", {{"resource", resource}, {"err", why}});
}

bool DeviceManager::Disconnect(const std::string& resource, uint64_t connection) {
  auto plugin = inventory_.Disconnect(resource, connection, clock_.SteadyNow());
  if (!plugin) return false;
  dropped_.push_back(std::move(plugin));
  Changed();
  return true;
}

void DeviceManager::Changed() {
  dirty_ = true;
  changed_.notify_all();
}

bool DeviceManager::Await(SteadyTime deadline, std::stop_token stop) {
  MutexLock lock(mutex_);
  while (!stop.stop_requested() && !dirty_) {
    SteadyTime now = clock_.SteadyNow();
    if (inventory_.Expire(now)) Changed();
    if (dirty_ || now >= deadline) break;
    clock_.WaitUntil(mutex_, changed_, std::min(deadline, inventory_.NextExpiry()));
  }
  return dirty_;
}

void DeviceManager::HandleChanges() {
  std::vector<std::shared_ptr<DevicePlugin>> dropped;
  std::set<std::string> uids;
  {
    MutexLock lock(mutex_);
    dirty_ = false;
    dropped.swap(dropped_);
    uids.swap(health_changed_);
  }
  dropped.clear();
  if (Result<> done = WriteCheckpoint(); !done) {
    log::Error("Failed to write the device checkpoint", {{"err", done.error()}});
  }
  auto resources = NodeResources();
  if (resources != reported_ && options_.resources_changed) options_.resources_changed();
  reported_ = std::move(resources);
  if (!uids.empty() && options_.health_changed) options_.health_changed(uids);
}

Result<> DeviceManager::WriteCheckpoint() {
  MutexLock file_lock(file_mutex_);
  std::string text;
  {
    MutexLock lock(mutex_);
    text = EncodeCheckpoint(pods_, inventory_.HealthyDevices());
  }
  if (text == written_) return {};
  Result<> done = WriteFileAtomic(checkpoint_path(), text, 0600);
  if (!done) return done.error().Wrap("failed to write checkpoint file \"kubelet_internal_checkpoint\"");
  written_ = std::move(text);
  return {};
}

Result<> DeviceManager::Validate(const std::string& name, const std::string&,
                                 const std::vector<std::string>& versions) {
  return CheckRegistration(name, versions);
}

Result<> DeviceManager::Register(const std::string& name, const std::string& endpoint,
                                 const std::vector<std::string>&, std::stop_token) {
  return Connect(name, endpoint);
}

void DeviceManager::Deregister(const std::string& name, const std::string& endpoint) {
  MutexLock lock(mutex_);
  if (uint64_t connection = inventory_.ConnectionOf(name, endpoint)) Disconnect(name, connection);
}

}  // namespace keelson::kubelet::devices
