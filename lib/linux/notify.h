// systemd notifications of a daemon (sd_notify(3)): that it is ready, is stopping, and is alive. Does
// nothing unless systemd asked for them (Type=notify, WatchdogSec=).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/service_group.h"

namespace keelson::linux {

// A service of a daemon; it belongs before those that wait for other machines. Sends READY=1 once `needs` are
// ready, and STOPPING=1 at the stop. With a watchdog, sends WATCHDOG=1 twice per period while `healthy`
// succeeds; otherwise systemd kills and restarts the daemon.
ServiceGroup::Service SystemdNotifier(std::vector<std::string> needs, std::function<Result<>()> healthy,
                                      Clock& clock = Clock::Real());

}  // namespace keelson::linux
