#include "lib/bpf/probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include <cerrno>
#include <iterator>
#include <string>

#include "lib/base/fd.h"

namespace keelson::bpf {
namespace {

Error Lacks(const std::string& what, const char* since) {
  return Error(Code::kUnimplemented, "this kernel lacks " + what + ", which Linux has since " + since);
}

}  // namespace

// The call has wrong arguments for any helper: the verifier complains about them only if the helper exists.
bool HasHelper(uint32_t program_type, uint32_t helper) {
  const bpf_insn code[] = {{.code = BPF_JMP | BPF_CALL, .imm = static_cast<int>(helper)},
                           {.code = BPF_JMP | BPF_EXIT}};
  char log[4096] = {};
  LIBBPF_OPTS(bpf_prog_load_opts, options, .log_level = 1, .log_size = sizeof log, .log_buf = log);
  if (program_type == BPF_PROG_TYPE_CGROUP_SOCK_ADDR) options.expected_attach_type = BPF_CGROUP_INET4_CONNECT;
  UniqueFd program(::bpf_prog_load(static_cast<bpf_prog_type>(program_type), "probe", "GPL", code,
                                   std::size(code), &options));
  if (program) return true;
  const std::string said = log;
  if (said.empty()) return false;
  for (const char* refusal : {"invalid func ", "unknown func ", "cannot use helper "}) {
    if (said.find(refusal) != std::string::npos) return false;
  }
  return true;
}

Result<> RequireMapType(uint32_t map_type, const char* name, const char* since) {
  const int found = ::libbpf_probe_bpf_map_type(static_cast<bpf_map_type>(map_type), nullptr);
  if (found == 1) return {};
  if (found == -EPERM) return Error::FromErrno(EPERM, "use BPF");
  return Lacks(std::string("BPF maps of type ") + name, since);
}

Result<> RequireHelper(uint32_t program_type, uint32_t helper, const char* name, const char* since) {
  if (HasHelper(program_type, helper)) return {};
  return Lacks(std::string("BPF helper ") + name, since);
}

Result<> RequireCgroupLink(uint32_t attach_type, const char* name, const char* since) {
  // r0 = 1; exit
  const bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 1},
                           {.code = BPF_JMP | BPF_EXIT}};
  LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = static_cast<bpf_attach_type>(attach_type));
  UniqueFd program(
      ::bpf_prog_load(BPF_PROG_TYPE_CGROUP_SOCK_ADDR, "probe", "GPL", code, std::size(code), &options));
  if (!program && errno == EPERM) return ErrnoError("load a BPF program");
  if (!program) return Lacks(std::string("BPF programs for ") + name, since);
  // No cgroup has this descriptor: a kernel with links says EBADF, one without says EINVAL.
  UniqueFd link(::bpf_link_create(program.get(), -1, static_cast<bpf_attach_type>(attach_type), nullptr));
  if (!link && errno == EINVAL) return Lacks("BPF links to cgroups", "5.7");
  return {};
}

}  // namespace keelson::bpf
