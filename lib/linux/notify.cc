#include "lib/linux/notify.h"

#include <systemd/sd-daemon.h>

#include <chrono>

#include "lib/base/log.h"
#include "lib/base/pause.h"

namespace keelson::linux {
namespace {

using std::chrono::microseconds;

void Notify(const char* state) {
  const int told = sd_notify(0, state);
  if (told < 0) log::Warn("Cannot notify systemd", {{"state", state}, {"errno", -told}});
}

Result<microseconds> WatchdogTime() {
  uint64_t time = 0;
  const int asked = sd_watchdog_enabled(0, &time);
  if (asked < 0) return Error(Code::kInvalid, "cannot read the watchdog's time from the environment");
  if (asked > 0 && microseconds(time) <= std::chrono::seconds(1)) {
    return Error(Code::kInvalid, "configure watchdog timeout too small: " + std::to_string(time) + "us");
  }
  return microseconds(asked > 0 ? time : 0);
}

void Feed(microseconds time, const std::function<Result<>()>& healthy, Clock& clock, std::stop_token stop) {
  do {
    if (auto health = healthy()) {
      Notify("WATCHDOG=1");
    } else {
      log::Error("Do not notify systemd watchdog because the daemon is unhealthy", {{"err", health.error()}});
    }
  } while (Pause(clock, time / 2, stop));
}

}  // namespace

ServiceGroup::Service SystemdNotifier(std::vector<std::string> needs, std::function<Result<>()> healthy,
                                      Clock& clock) {
  return {
      "systemd", std::move(needs),
      [healthy = std::move(healthy), &clock](std::stop_token stop, ServiceGroup::Ready ready) -> Result<> {
        KEELSON_ASSIGN_OR_RETURN(microseconds time, WatchdogTime());
        Notify("READY=1");
        ready();
        if (time.count() > 0) {
          Feed(time, healthy, clock, stop);
        } else {
          Pause(clock, std::chrono::hours(24 * 365 * 100), stop);
        }
        Notify("STOPPING=1");
        return {};
      }};
}

}  // namespace keelson::linux
