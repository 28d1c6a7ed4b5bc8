#include "lib/bpf/link.h"

#include <bpf/bpf.h>
#include <linux/if_link.h>

namespace keelson::bpf {
namespace {

Result<bpf_link_info> InfoOf(const UniqueFd& fd) {
  bpf_link_info info{};
  uint32_t size = sizeof info;
  if (::bpf_obj_get_info_by_fd(fd.get(), &info, &size) != 0) return ErrnoError("look at BPF link");
  return info;
}

}  // namespace

Result<Link> Link::AttachCgroup(const Program& program, int cgroup) {
  UniqueFd fd(
      ::bpf_link_create(program.fd(), cgroup, static_cast<bpf_attach_type>(program.attach_type()), nullptr));
  if (!fd) return ErrnoError("attach BPF program " + program.name());
  return Link(std::move(fd));
}

Result<Link> Link::AttachDriver(const Program& program, int link_index) {
  LIBBPF_OPTS(bpf_link_create_opts, options, .flags = XDP_FLAGS_DRV_MODE);
  UniqueFd fd(::bpf_link_create(program.fd(), link_index, BPF_XDP, &options));
  if (!fd) return ErrnoError("attach BPF program " + program.name());
  return Link(std::move(fd));
}

Result<Link> Link::OpenPinned(const std::string& path) {
  UniqueFd fd(::bpf_obj_get(path.c_str()));
  if (!fd) return ErrnoError("open BPF link " + path);
  return Link(std::move(fd));
}

Result<> Link::Pin(const std::string& path) const {
  if (::bpf_obj_pin(fd_.get(), path.c_str()) != 0) return ErrnoError("pin BPF link " + path);
  return {};
}

Result<> Link::Detach() const {
  if (::bpf_link_detach(fd_.get()) != 0) return ErrnoError("detach BPF link");
  return {};
}

Result<> Link::Update(const Program& program) const {
  if (::bpf_link_update(fd_.get(), program.fd(), nullptr) != 0) {
    return ErrnoError("exchange BPF program " + program.name());
  }
  return {};
}

Result<uint64_t> Link::CgroupId() const {
  KEELSON_ASSIGN_OR_RETURN(bpf_link_info info, InfoOf(fd_));
  return info.cgroup.cgroup_id;
}

Result<int> Link::DeviceIndex() const {
  KEELSON_ASSIGN_OR_RETURN(bpf_link_info info, InfoOf(fd_));
  return static_cast<int>(info.xdp.ifindex);
}

}  // namespace keelson::bpf
