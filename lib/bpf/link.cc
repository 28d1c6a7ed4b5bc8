#include "lib/bpf/link.h"

#include <bpf/bpf.h>

namespace keelson::bpf {

Result<Link> Link::AttachCgroup(const Program& program, int cgroup) {
  UniqueFd fd(
      ::bpf_link_create(program.fd(), cgroup, static_cast<bpf_attach_type>(program.attach_type()), nullptr));
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
  bpf_link_info info{};
  uint32_t size = sizeof info;
  if (::bpf_obj_get_info_by_fd(fd_.get(), &info, &size) != 0) return ErrnoError("look at BPF link");
  return info.cgroup.cgroup_id;
}

}  // namespace keelson::bpf
