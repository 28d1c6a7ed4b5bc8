// Programs as filters of interfaces (tc, "clsact"). They see every packet that comes in or goes out, and
// stay attached without a process until the interface goes. In the calling thread's network namespace.
// Linux 4.5 and later.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/error.h"
#include "lib/bpf/object.h"

namespace keelson::bpf {

struct TcPlace {
  int link_index = 0;
  bool ingress = true;
  uint32_t priority = 1;  // lower ones run first; 1 to 65535
};

// Attaches the program, replacing the one at this place without a gap.
Result<> AttachTc(const Program& program, const TcPlace& place);
// The name of the program at this place (the kernel keeps 15 characters); nullopt: none.
Result<std::optional<std::string>> TcProgramAt(const TcPlace& place);
// Whether this very program is at this place.
Result<bool> IsAttachedTc(const Program& program, const TcPlace& place);
// An absent program is fine. Leaves clsact, which others may use too.
Result<> DetachTc(const TcPlace& place);

}  // namespace keelson::bpf
