#include "ctl/host/units.h"

namespace keelson::ctl {
namespace {

std::string Full(const std::string& unit) { return unit + ".service"; }

}  // namespace

Result<> RequireInitSystem(const Host& host) {
  if (host.HasProgram("systemctl")) return {};
  return Error(
      Code::kUnimplemented,
      "no supported init system detected: systemctl is not found in the system path, and nodectl starts and "
      "stops daemons as units of systemd");
}

bool UnitExists(const Host& host, const std::string& unit) {
  return host.Ask({"systemctl", "cat", Full(unit)}).has_value();
}
bool UnitEnabled(const Host& host, const std::string& unit) {
  return host.Ask({"systemctl", "is-enabled", Full(unit)}).has_value();
}
bool UnitActive(const Host& host, const std::string& unit) {
  return host.Ask({"systemctl", "is-active", Full(unit)}).has_value();
}

Result<> RestartUnit(Host& host, const std::string& unit) {
  KEELSON_RETURN_IF_ERROR(RequireInitSystem(host));
  if (auto done = host.Run({"systemctl", "--no-block", "restart", Full(unit)}); !done) {
    return done.error().Wrap("start " + unit);
  }
  return {};
}

Result<> RestartUnitAndWait(Host& host, const std::string& unit) {
  KEELSON_RETURN_IF_ERROR(RequireInitSystem(host));
  if (auto done = host.Run({"systemctl", "restart", Full(unit)}); !done) {
    return done.error().Wrap(unit + " does not start: see 'systemctl status " + unit +
                             "' and 'journalctl -xeu " + unit + "'");
  }
  return {};
}

Result<> StopUnit(Host& host, const std::string& unit) {
  KEELSON_RETURN_IF_ERROR(RequireInitSystem(host));
  if (!UnitExists(host, unit)) return {};
  if (auto done = host.Run({"systemctl", "stop", Full(unit)}); !done) {
    return done.error().Wrap("stop " + unit);
  }
  return {};
}

}  // namespace keelson::ctl
