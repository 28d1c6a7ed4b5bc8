// [LOCAL:]REMOTE of port-forward.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/error.h"

namespace keelson::ctl {

struct PortPair {
  uint16_t local = 0;  // 0: any free one
  uint16_t remote = 0;
};
// "8080", "80:8080", ":8080". kInvalid: something else.
Result<PortPair> ParsePortPair(const std::string& text);

}  // namespace keelson::ctl
