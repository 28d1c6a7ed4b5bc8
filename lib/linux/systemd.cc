#include "lib/linux/systemd.h"

#include <cerrno>
#include <map>

#include "lib/base/file.h"
#include "lib/base/mutex.h"
#include "lib/linux/bus_objects.h"

namespace keelson::linux {

namespace {

constexpr char kService[] = "org.freedesktop.systemd1";
constexpr char kPath[] = "/org/freedesktop/systemd1";
constexpr char kManager[] = "org.freedesktop.systemd1.Manager";
constexpr uint64_t kDeadlineMicros = 30'000'000;

int AppendValue(sd_bus_message* message, const std::variant<bool, uint64_t, std::string>& value) {
  if (auto* flag = std::get_if<bool>(&value)) return sd_bus_message_append(message, "v", "b", *flag ? 1 : 0);
  if (auto* number = std::get_if<uint64_t>(&value)) return sd_bus_message_append(message, "v", "t", *number);
  return sd_bus_message_append(message, "v", "s", std::get<std::string>(value).c_str());
}

// Appends an a(sv). An error here sticks to the message and surfaces when it is sent.
void AppendProperties(sd_bus_message* message, const UnitProperties& properties) {
  sd_bus_message_open_container(message, 'a', "(sv)");
  for (const auto& [name, value] : properties) {
    sd_bus_message_open_container(message, 'r', "sv");
    sd_bus_message_append(message, "s", name.c_str());
    AppendValue(message, value);
    sd_bus_message_close_container(message);
  }
  sd_bus_message_close_container(message);
}

class SystemdUnitsImpl : public SystemdUnits {
 public:
  Result<> Open() {
    MutexLock lock(mutex_);
    return OpenLocked();
  }

  Result<> Start(const std::string& name, const UnitProperties& properties) override {
    MutexLock lock(mutex_);
    KEELSON_RETURN_IF_ERROR(OpenLocked());
    BusMessage call = NewCall("StartTransientUnit");
    sd_bus_message_append(call.get(), "ss", name.c_str(), "replace");
    AppendProperties(call.get(), properties);
    sd_bus_message_append(call.get(), "a(sa(sv))", 0);
    bool exists = false;
    auto done = RunJob(call.get(), "start unit " + name, "org.freedesktop.systemd1.UnitExists", exists);
    if (!done || !exists) return done;
    return SetProperties(name, properties);
  }

  Result<> Stop(const std::string& name) override {
    MutexLock lock(mutex_);
    KEELSON_RETURN_IF_ERROR(OpenLocked());
    BusMessage call = NewCall("StopUnit");
    sd_bus_message_append(call.get(), "ss", name.c_str(), "replace");
    bool absent = false;
    return RunJob(call.get(), "stop unit " + name, "org.freedesktop.systemd1.NoSuchUnit", absent);
  }

 private:
  // Reconnects after the connection broke, for example because systemd restarted.
  Result<> OpenLocked() KEELSON_REQUIRES(mutex_) {
    if (bus_ && sd_bus_is_open(bus_.get()) > 0) return {};
    bus_.reset();
    if (!PathExists("/run/systemd/system")) {  // sd_booted(3)
      return Error(Code::kUnavailable, "systemd is not the manager of this system");
    }
    sd_bus* raw = nullptr;
    int result = sd_bus_new(&raw);
    Bus bus(raw);
    if (result >= 0) result = sd_bus_set_address(raw, "unix:path=/run/systemd/private");
    if (result >= 0) result = sd_bus_start(raw);
    if (result < 0) {
      sd_bus* system = nullptr;
      if ((result = sd_bus_open_system(&system)) < 0) return Error::FromErrno(-result, "connect to systemd");
      bus.reset(system);
    }
    sd_bus_set_method_call_timeout(bus.get(), kDeadlineMicros);
    result =
        sd_bus_match_signal(bus.get(), nullptr, nullptr, kPath, kManager, "JobRemoved", &OnJobRemoved, this);
    if (result < 0) return Error::FromErrno(-result, "listen to systemd");
    bus_ = std::move(bus);
    // On a message bus only subscribers get signals; the manager's own socket sends them to everybody.
    BusError ignored;
    (void)sd_bus_call_method(bus_.get(), kService, kPath, kManager, "Subscribe", ignored.get(), nullptr, "");
    return {};
  }

  BusMessage NewCall(const char* method) KEELSON_REQUIRES(mutex_) {
    sd_bus_message* raw = nullptr;
    (void)sd_bus_message_new_method_call(bus_.get(), &raw, kService, kPath, kManager, method);
    return BusMessage(raw);
  }

  // Makes the call, which returns a job, and waits for the job. The D-Bus error `expected` is no failure:
  // it sets `met`.
  Result<> RunJob(sd_bus_message* call, const std::string& what, const char* expected, bool& met)
      KEELSON_REQUIRES(mutex_) {
    ended_.clear();
    BusError error;
    sd_bus_message* raw = nullptr;
    int result = sd_bus_call(bus_.get(), call, kDeadlineMicros, error.get(), &raw);
    BusMessage reply(raw);
    if (result < 0 && error.Is(expected)) {
      met = true;
      return {};
    }
    if (result < 0) return error.Told(result, what);
    const char* job = nullptr;
    if ((result = sd_bus_message_read(reply.get(), "o", &job)) < 0) return Error::FromErrno(-result, what);
    return AwaitJob(job, what);
  }

  Result<> AwaitJob(const std::string& job, const std::string& what) KEELSON_REQUIRES(mutex_) {
    for (uint64_t waited = 0; waited < kDeadlineMicros;) {
      int result = sd_bus_process(bus_.get(), nullptr);
      if (auto it = ended_.find(job); it != ended_.end()) {
        if (it->second == "done" || it->second == "skipped") return {};
        return Error(Code::kUnavailable, what + ": its job ended as " + it->second);
      }
      if (result > 0) continue;
      constexpr uint64_t kStep = 1'000'000;
      if (result == 0) result = sd_bus_wait(bus_.get(), kStep);
      if (result < 0 && result != -EINTR) {
        bus_.reset();
        return Error::FromErrno(-result, what);
      }
      if (result == 0) waited += kStep;
    }
    return Error(Code::kTimeout, what + ": no answer within 30 seconds");
  }

  Result<> SetProperties(const std::string& name, const UnitProperties& properties) KEELSON_REQUIRES(mutex_) {
    BusMessage call = NewCall("SetUnitProperties");
    sd_bus_message_append(call.get(), "sb", name.c_str(), 1);  // until the next boot
    UnitProperties changeable;
    for (const auto& property : properties) {
      if (property.first != "DefaultDependencies") changeable.push_back(property);
    }
    AppendProperties(call.get(), changeable);
    BusError error;
    int result = sd_bus_call(bus_.get(), call.get(), kDeadlineMicros, error.get(), nullptr);
    if (result < 0) return error.Told(result, "set properties of unit " + name);
    return {};
  }

  static int OnJobRemoved(sd_bus_message* message, void* self,
                          sd_bus_error*) KEELSON_NO_THREAD_SAFETY_ANALYSIS {
    uint32_t id = 0;
    const char *job = nullptr, *unit = nullptr, *result = nullptr;
    if (sd_bus_message_read(message, "uoss", &id, &job, &unit, &result) >= 0) {
      static_cast<SystemdUnitsImpl*>(self)->ended_[job] = result;
    }
    return 0;
  }

  Mutex mutex_;
  Bus bus_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, std::string> ended_
      KEELSON_GUARDED_BY(mutex_);  // job -> result, for the call in progress
};

}  // namespace

Result<std::unique_ptr<SystemdUnits>> SystemdUnits::Connect() {
  auto units = std::make_unique<SystemdUnitsImpl>();
  KEELSON_RETURN_IF_ERROR(units->Open());
  return std::unique_ptr<SystemdUnits>(std::move(units));
}

}  // namespace keelson::linux
