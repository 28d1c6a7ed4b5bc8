// Transient units of the system's systemd, through its D-Bus interface (org.freedesktop.systemd1(5)). Root
// talks to the manager's own socket, so no message bus has to run.
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
  // kUnavailable when systemd does not manage this system, or does not answer.
  static Result<std::unique_ptr<SystemdUnits>> Connect();
  virtual ~SystemdUnits() = default;

  // Starts the unit and waits until it runs; an existing unit gets the properties.
  virtual Result<> Start(const std::string& name, const UnitProperties& properties) = 0;
  // Stops the unit and all its processes, and waits for the end. An absent unit is fine.
  virtual Result<> Stop(const std::string& name) = 0;
};

}  // namespace keelson::linux
