// Finds out what the kernel supports, by trying.
#pragma once

#include <cstdint>

#include "lib/base/error.h"

namespace keelson::bpf {

// Whether programs of a type (BPF_PROG_TYPE_...) may call a helper (BPF_FUNC_...).
bool HasHelper(uint32_t program_type, uint32_t helper);
// kUnimplemented when the kernel lacks it. The error names it, with the first Linux version that has it
// (`since`).
Result<> RequireMapType(uint32_t map_type, const char* name, const char* since);
Result<> RequireHelper(uint32_t program_type, uint32_t helper, const char* name, const char* since);
// Needs bpf_link for cgroups, and programs of this attach type (BPF_CGROUP_...).
Result<> RequireCgroupLink(uint32_t attach_type, const char* name, const char* since);

}  // namespace keelson::bpf
