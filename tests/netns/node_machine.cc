#include "tests/netns/node_machine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "lib/base/file.h"
#include "lib/linux/mount.h"
#include "proxy/ebpf/datapath.h"

namespace keelson::netns {

Result<std::unique_ptr<NodeMachine>> NodeMachine::Make() {
  std::unique_ptr<NodeMachine> out(new NodeMachine());
  KEELSON_ASSIGN_OR_RETURN(std::string root, proxy::ebpf::CgroupRoot());
  KEELSON_ASSIGN_OR_RETURN(std::string mine, ReadFile("/proc/self/cgroup"));
  const auto at = mine.find("0::");
  if (at == std::string::npos) return Error(Code::kNotFound, "this process is in no cgroup2");
  out->outside_ = root + mine.substr(at + 3, mine.find('\n', at) - at - 3);
  const std::string cgroup = root + "/keelson-node-" + std::to_string(::getpid());
  if (::mkdir(cgroup.c_str(), 0755) != 0) return ErrnoError("mkdir " + cgroup);
  out->places_.cgroup = cgroup;
  char pins[] = "/tmp/keelson-pins-XXXXXX";
  if (!::mkdtemp(pins)) return ErrnoError("mkdtemp");
  out->places_.pins = pins;
  KEELSON_RETURN_IF_ERROR(linux::MountFilesystem("bpf", pins, "bpf", 0, ""));
  return out;
}

NodeMachine::~NodeMachine() {
  (void)Enter(false);
  if (!places_.pins.empty()) {
    (void)linux::Unmount(places_.pins, true);
    ::rmdir(places_.pins.c_str());
  }
  if (!places_.cgroup.empty()) ::rmdir(places_.cgroup.c_str());
}

Result<> NodeMachine::Enter(bool node) {
  if (node == inside_) return {};
  KEELSON_RETURN_IF_ERROR(
      WriteFile((node ? places_.cgroup : outside_) + "/cgroup.procs", std::to_string(::getpid())));
  inside_ = node;
  return {};
}

}  // namespace keelson::netns
