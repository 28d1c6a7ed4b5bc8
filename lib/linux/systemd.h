// Transient units of the system's systemd, through its D-Bus interface (org.freedesktop.systemd1(5)). Root
// speaks to the manager's own socket, so that no message bus has to run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lib/base/error.h"

namespace keelson::linux {

using UnitProperties = std::vector<std::pair<std::string, std::variant<bool, uint64_t, std::string>>>;

class SystemdUnits {  // thread safe; calls come one at a time and wait up to half a minute each
 public:
  // kUnavailable when systemd is not this system's manager, or does not answer.
  static Result<std::unique_ptr<SystemdUnits>> Connect();
  virtual ~SystemdUnits() = default;

  // Starts the unit and waits until it runs; one that is there already gets the properties.
  virtual Result<> Start(const std::string& name, const UnitProperties& properties) = 0;
  // Stops it, with all processes inside, and waits for the end. Absent is fine.
  virtual Result<> Stop(const std::string& name) = 0;
};

}  // namespace keelson::linux
