// RAII owners for sd-bus objects. Internal to lib/linux.
#pragma once

#include <systemd/sd-bus.h>

#include <memory>
#include <string>

#include "lib/base/error.h"

namespace keelson::linux {

struct BusUnref {
  void operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
using Bus = std::unique_ptr<sd_bus, BusUnref>;
using BusMessage = std::unique_ptr<sd_bus_message, BusUnref>;

class BusError {
 public:
  BusError() = default;
  ~BusError() { sd_bus_error_free(&error_); }
  BusError(const BusError&) = delete;
  BusError& operator=(const BusError&) = delete;
  sd_bus_error* get() { return &error_; }
  bool Is(const char* name) const { return sd_bus_error_has_name(&error_, name) != 0; }
  Error Told(int result, const std::string& what) const {
    if (error_.message) return Error(Code::kUnavailable, what + ": " + error_.message);
    return Error::FromErrno(-result, what);
  }

 private:
  sd_bus_error error_ = SD_BUS_ERROR_NULL;
};

}  // namespace keelson::linux
