#include "lib/bpf/tc.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>

#include "lib/base/fd.h"
#include "lib/bpf/listen_internal.h"

namespace keelson::bpf {
namespace {

constexpr uint32_t kHandle = 1;

bpf_tc_hook HookOf(const TcPlace& place) {
  TakeWordsOfLibbpf();
  LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = place.link_index,
              .attach_point = place.ingress ? BPF_TC_INGRESS : BPF_TC_EGRESS);
  return hook;
}

Error Failed(int result, const char* what, const TcPlace& place) {
  return Error::FromErrno(-result, std::string(what) + " of interface " + std::to_string(place.link_index));
}

// The kernel's codes for: no such interface, no clsact, no filter.
bool IsAbsent(int result) { return result == -ENOENT || result == -EINVAL || result == -ENODEV; }

// The id of the attached program; nullopt: none.
Result<std::optional<uint32_t>> IdAt(const TcPlace& place) {
  bpf_tc_hook hook = HookOf(place);
  LIBBPF_OPTS(bpf_tc_opts, options, .handle = kHandle, .priority = place.priority);
  const int found = ::bpf_tc_query(&hook, &options);
  if (found == 0) return std::optional<uint32_t>(options.prog_id);
  if (IsAbsent(found)) return std::optional<uint32_t>();
  return Failed(found, "look at BPF filter", place);
}

Result<bpf_prog_info> InfoOf(int program) {
  bpf_prog_info info{};
  uint32_t size = sizeof info;
  if (::bpf_obj_get_info_by_fd(program, &info, &size) != 0) return ErrnoError("look at BPF program");
  return info;
}

}  // namespace

Result<> AttachTc(const Program& program, const TcPlace& place) {
  bpf_tc_hook hook = HookOf(place);
  if (int made = ::bpf_tc_hook_create(&hook); made != 0 && made != -EEXIST) {
    return Failed(made, "make qdisc clsact", place);
  }
  LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = program.fd(), .flags = BPF_TC_F_REPLACE, .handle = kHandle,
              .priority = place.priority);
  if (int attached = ::bpf_tc_attach(&hook, &options); attached != 0) {
    return Failed(attached, "attach BPF filter", place);
  }
  return {};
}

Result<bool> IsAttachedTc(const Program& program, const TcPlace& place) {
  KEELSON_ASSIGN_OR_RETURN(std::optional<uint32_t> id, IdAt(place));
  if (!id) return false;
  KEELSON_ASSIGN_OR_RETURN(bpf_prog_info info, InfoOf(program.fd()));
  return info.id == *id;
}

Result<std::optional<std::string>> TcProgramAt(const TcPlace& place) {
  KEELSON_ASSIGN_OR_RETURN(std::optional<uint32_t> id, IdAt(place));
  if (!id) return std::optional<std::string>();
  UniqueFd program(::bpf_prog_get_fd_by_id(*id));
  if (!program) return ErrnoError("open BPF program");
  KEELSON_ASSIGN_OR_RETURN(bpf_prog_info info, InfoOf(program.get()));
  return std::optional<std::string>(info.name);
}

Result<> DetachTc(const TcPlace& place) {
  bpf_tc_hook hook = HookOf(place);
  LIBBPF_OPTS(bpf_tc_opts, options, .handle = kHandle, .priority = place.priority);
  if (int detached = ::bpf_tc_detach(&hook, &options); detached != 0 && !IsAbsent(detached)) {
    return Failed(detached, "detach BPF filter", place);
  }
  return {};
}

}  // namespace keelson::bpf
