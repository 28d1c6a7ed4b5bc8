// Units of systemd (systemd.unit(5)), by systemctl. Names are without ".service".
#pragma once

#include <string>

#include "ctl/host/host.h"

namespace keelson::ctl {

// kUnimplemented, with a text for people, where systemctl is missing: nothing else starts units.
Result<> RequireInitSystem(const Host& host);

bool UnitExists(const Host& host, const std::string& unit);
bool UnitEnabled(const Host& host, const std::string& unit);
bool UnitActive(const Host& host, const std::string& unit);

// (Re)starts the unit and returns before it is ready: progress is the caller's to follow.
Result<> RestartUnit(Host& host, const std::string& unit);
// The same, and returns when the unit has told that it is ready. kInternal: it has not within its TimeoutStartSec=; the
// message names how to see why.
Result<> RestartUnitAndWait(Host& host, const std::string& unit);
// Returns when its processes have ended. An absent unit, and one that does not run, are fine.
Result<> StopUnit(Host& host, const std::string& unit);

}  // namespace keelson::ctl
