// Programs as filters of interfaces (tc, "clsact"): they see every packet that comes in or goes out, and stay
// without a process, until the interface goes. In the calling thread's network namespace. Linux 4.5 and
// later.
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
  uint32_t priority = 1;  // lower ones are asked first; 1 to 65535
};

// Takes the place of what is there, without a gap.
Result<> AttachTc(const Program& program, const TcPlace& place);
// The name of the program that is there (the kernel keeps 15 characters); nullopt: none.
Result<std::optional<std::string>> TcProgramAt(const TcPlace& place);
// Whether it is this very program that is there.
Result<bool> IsAttachedTc(const Program& program, const TcPlace& place);
// Absent is fine. The queueing discipline stays, which others may use too.
Result<> DetachTc(const TcPlace& place);

}  // namespace keelson::bpf
