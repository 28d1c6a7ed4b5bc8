// What systemd is told of a daemon (sd_notify(3)): that it is ready, that it ends, and that it is alive.
// Silent where systemd has not asked for it (Type=notify, WatchdogSec=).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/service_group.h"

namespace keelson::linux {

// The last service of a daemon: READY=1 once `needs` are ready, STOPPING=1 at the stop. With a watchdog,
// WATCHDOG=1 twice in its time as long as `healthy` says so; who is not is killed and started anew by
// systemd.
ServiceGroup::Service SystemdNotifier(std::vector<std::string> needs, std::function<Result<>()> healthy,
                                      Clock& clock = Clock::Real());

}  // namespace keelson::linux
