// For tests: runs a program, and kills it on its way.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cni/lib/plugin.h"

namespace keelson::cni {

struct KillOptions {
  std::function<bool(uint64_t call)> is_step;  // which system calls of its first thread count
  bool before = false;                         // kills it before the last step does anything
};

// Starts the program in the calling thread's namespaces with `input` on its standard input, and kills it after
// `steps` steps. Nothing when it was killed; otherwise its reply.
std::optional<Reply> RunUntil(int steps, const std::string& program,
                              const std::vector<std::string>& variables, const std::string& input,
                              const KillOptions& options);

}  // namespace keelson::cni
