#include "lib/linux/logind.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <cerrno>
#include <deque>

#include "lib/linux/bus_objects.h"

namespace keelson::linux {
namespace {

constexpr char kService[] = "org.freedesktop.login1";
constexpr char kPath[] = "/org/freedesktop/login1";
constexpr char kManager[] = "org.freedesktop.login1.Manager";

class LogindImpl : public Logind {
 public:
  Result<> Open(const std::string& address) {
    sd_bus* bus = nullptr;
    int result = address.empty() ? sd_bus_open_system(&bus) : OpenAt(address, &bus);
    bus_.reset(bus);
    if (result < 0) return Unavailable(result, "connect to the message bus");
    result = sd_bus_match_signal(bus, nullptr, kService, kPath, kManager, "PrepareForShutdown", Heard, this);
    if (result < 0) return Unavailable(result, "listen to logind");
    wake_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_) return ErrnoError("eventfd");
    return {};
  }

  Result<std::chrono::microseconds> InhibitDelay() override {
    BusError error;
    uint64_t micros = 0;
    const int result = sd_bus_get_property_trivial(bus_.get(), kService, kPath, kManager,
                                                   "InhibitDelayMaxUSec", error.get(), 't', &micros);
    if (result < 0) return error.Told(result, "read logind's InhibitDelayMaxUSec");
    return std::chrono::microseconds(micros);
  }

  Result<> Reload() override {
    BusError error;
    const int result = sd_bus_call_method(bus_.get(), "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                                          "org.freedesktop.systemd1.Manager", "KillUnit", error.get(),
                                          nullptr, "ssi", "systemd-logind.service", "all", SIGHUP);
    if (result < 0) return error.Told(result, "reload logind's configuration");
    return {};
  }

  Result<UniqueFd> DelayShutdown(const std::string& who, const std::string& why) override {
    BusError error;
    sd_bus_message* answer = nullptr;
    int result = sd_bus_call_method(bus_.get(), kService, kPath, kManager, "Inhibit", error.get(), &answer,
                                    "ssss", "shutdown", who.c_str(), why.c_str(), "delay");
    const BusMessage owned(answer);
    int lock = -1;  // the message owns it
    if (result >= 0) result = sd_bus_message_read(answer, "h", &lock);
    if (result < 0) return error.Told(result, "take an inhibitor lock");
    UniqueFd own(fcntl(lock, F_DUPFD_CLOEXEC, 3));
    if (!own) return ErrnoError("keep the inhibitor lock");
    return own;
  }

  Result<bool> NextShutdown(std::stop_token stop) override {
    std::stop_callback wake(stop, [this] {
      const uint64_t one = 1;
      (void)!write(wake_.get(), &one, sizeof(one));
    });
    for (;;) {
      if (stop.stop_requested()) return Error(Code::kCancelled, "stopped");
      if (!heard_.empty()) {
        const bool begins = heard_.front();
        heard_.pop_front();
        return begins;
      }
      const int done = sd_bus_process(bus_.get(), nullptr);
      if (done < 0) return Unavailable(done, "listen to logind");
      if (done > 0) continue;
      pollfd fds[] = {{sd_bus_get_fd(bus_.get()), static_cast<short>(sd_bus_get_events(bus_.get())), 0},
                      {wake_.get(), POLLIN, 0}};
      if (poll(fds, 2, -1) < 0 && errno != EINTR) return ErrnoError("poll");
    }
  }

 private:
  static int OpenAt(const std::string& address, sd_bus** bus) {
    int result = sd_bus_new(bus);
    if (result >= 0) result = sd_bus_set_address(*bus, address.c_str());
    if (result >= 0) result = sd_bus_set_bus_client(*bus, 1);
    return result < 0 ? result : sd_bus_start(*bus);
  }
  static int Heard(sd_bus_message* message, void* self, sd_bus_error*) {
    int begins = 0;
    const int result = sd_bus_message_read(message, "b", &begins);
    if (result >= 0) static_cast<LogindImpl*>(self)->heard_.push_back(begins != 0);
    return 0;
  }
  static Error Unavailable(int result, const char* what) {
    return Error(Code::kUnavailable, Error::FromErrno(-result, what).message());
  }

  Bus bus_;
  UniqueFd wake_;
  std::deque<bool> heard_;
};

}  // namespace

Result<std::unique_ptr<Logind>> Logind::Connect(const std::string& address) {
  auto logind = std::make_unique<LogindImpl>();
  KEELSON_RETURN_IF_ERROR(logind->Open(address));
  KEELSON_RETURN_IF_ERROR(logind->InhibitDelay());  // fails if logind is not there
  return std::unique_ptr<Logind>(std::move(logind));
}

}  // namespace keelson::linux
