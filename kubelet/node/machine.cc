#include "kubelet/node/machine.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cctype>
#include <sstream>

#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/linux/cgroup.h"

namespace keelson::kubelet {

namespace {

std::string FirstLine(const std::string& path) {
  auto text = ReadFile(path);
  if (!text) return "";
  return text->substr(0, text->find('\n'));
}

int64_t MemInfo(const std::string& key) {
  auto text = ReadFile("/proc/meminfo");
  if (!text) return 0;
  std::istringstream in(*text);
  std::string name, rest;
  int64_t kilobytes = 0;
  while (in >> name >> kilobytes && std::getline(in, rest)) {
    if (name == key + ":") return kilobytes * 1024;
  }
  return 0;
}

std::string OsImage() {
  auto text = ReadFile("/etc/os-release");
  if (!text) return "Linux";
  std::istringstream in(*text);
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, 12, "PRETTY_NAME=") != 0) continue;
    std::string value = line.substr(12);
    if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
    return value;
  }
  return "Linux";
}

std::string GoArch(const std::string& machine) {
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  return machine;
}

api::Amount Parse(const std::map<std::string, std::string>& amounts, const std::string& name) {
  auto it = amounts.find(name);
  if (it == amounts.end()) return {};
  return api::Amount::Parse(it->second).value_or(api::Amount());
}

}  // namespace

std::map<std::string, int64_t> ReadHugePages(const std::string& root) {
  std::map<std::string, int64_t> out;
  auto sizes = ListDir(root);
  if (!sizes) return out;
  for (const std::string& name : *sizes) {  // hugepages-2048kB
    const int64_t kilobytes = std::atoll(name.c_str() + std::min(name.size(), sizeof("hugepages-") - 1));
    if (kilobytes <= 0) continue;
    const int64_t megabytes = kilobytes >> 10;
    const std::string size = megabytes == 0      ? std::to_string(kilobytes) + "Ki"
                             : megabytes >= 1024 ? std::to_string(megabytes >> 10) + "Gi"
                                                 : std::to_string(megabytes) + "Mi";
    out[size] = std::atoll(FirstLine(root + "/" + name + "/nr_hugepages").c_str()) * kilobytes * 1024;
  }
  return out;
}

Machine ReadMachine(const std::string& root_dir) {
  Machine out;
  out.cpus = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  out.memory_bytes = MemInfo("MemTotal");
  struct statvfs disk = {};
  if (::statvfs(root_dir.c_str(), &disk) == 0) {
    out.ephemeral_bytes = static_cast<int64_t>(disk.f_blocks * disk.f_frsize);
  }
  out.max_pids = std::atoll(FirstLine("/proc/sys/kernel/pid_max").c_str());
  out.swap_bytes = MemInfo("SwapTotal");
  if (auto cgroups = linux::Cgroups::Detect()) out.limits_swap = cgroups->LimitsSwap();
  out.huge_pages = ReadHugePages("/sys/kernel/mm/hugepages");
  out.machine_id = FirstLine("/etc/machine-id");
  out.system_uuid = FirstLine("/sys/class/dmi/id/product_uuid");
  if (out.system_uuid.empty()) out.system_uuid = out.machine_id;
  out.boot_id = FirstLine("/proc/sys/kernel/random/boot_id");
  utsname names = {};
  if (::uname(&names) == 0) {
    out.kernel_version = names.release;
    out.architecture = GoArch(names.machine);
  }
  out.os_image = OsImage();
  return out;
}

Result<FileSystemLoad> ReadFileSystem(const std::string& path) {
  struct statvfs disk = {};
  if (::statvfs(path.c_str(), &disk) != 0) return ErrnoError("statvfs " + path);
  FileSystemLoad out;
  out.capacity = static_cast<int64_t>(disk.f_blocks * disk.f_frsize);
  out.available = static_cast<int64_t>(disk.f_bavail * disk.f_frsize);
  out.inodes = static_cast<int64_t>(disk.f_files);
  out.inodes_free = static_cast<int64_t>(disk.f_favail);
  out.id = disk.f_fsid;
  return out;
}

MachineLoad ReadMachineLoad() {
  MachineLoad out;
  out.memory_available = MemInfo("MemFree") + MemInfo("Inactive(file)");
  // The fourth field of loadavg is running/existing.
  const std::string load = FirstLine("/proc/loadavg");
  if (size_t slash = load.find('/'); slash != std::string::npos) {
    out.processes = std::atoll(load.c_str() + slash + 1);
  }
  return out;
}

std::string HostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0) return "localhost";
  return Lower(name);
}

std::string DefaultAddress(bool v6) {
  // For documentation only: any address beyond the gateway.
  sockaddr_in outside = {};
  outside.sin_family = AF_INET;
  outside.sin_port = htons(9);
  ::inet_pton(AF_INET, "192.0.2.1", &outside.sin_addr);
  sockaddr_in6 outside6 = {};
  outside6.sin6_family = AF_INET6;
  outside6.sin6_port = htons(9);
  ::inet_pton(AF_INET6, "2001:db8::1", &outside6.sin6_addr);
  const auto* to = v6 ? reinterpret_cast<sockaddr*>(&outside6) : reinterpret_cast<sockaddr*>(&outside);
  socklen_t size = v6 ? sizeof(outside6) : sizeof(outside);
  UniqueFd fd(::socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), to, size) != 0) return "";
  sockaddr_storage own = {};
  size = sizeof(own);
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) return "";
  const void* place = v6 ? static_cast<void*>(&reinterpret_cast<sockaddr_in6&>(own).sin6_addr)
                         : static_cast<void*>(&reinterpret_cast<sockaddr_in&>(own).sin_addr);
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(own.ss_family, place, text, sizeof(text));
  return text;
}

int64_t ThresholdOf(const std::map<std::string, std::string>& thresholds, const std::string& signal,
                    int64_t whole) {
  auto it = thresholds.find(signal);
  if (it == thresholds.end() || it->second.empty()) return 0;
  if (it->second.back() == '%') {
    return static_cast<int64_t>(static_cast<double>(whole) * std::atof(it->second.c_str()) / 100);
  }
  auto amount = api::Amount::Parse(it->second);
  return amount ? amount->Value() : 0;
}

k8s::ResourceList CapacityOf(const Machine& machine, const Reservations& reservations) {
  k8s::ResourceList out;
  out["cpu"] = api::Amount::FromInt(machine.cpus);
  out["memory"] =
      api::Amount::Parse(std::to_string(machine.memory_bytes / 1024) + "Ki").value_or(api::Amount());
  if (reservations.local_storage) {
    out["ephemeral-storage"] =
        api::Amount::Parse(std::to_string(machine.ephemeral_bytes / 1024) + "Ki").value_or(api::Amount());
  }
  out["pods"] = api::Amount::FromInt(reservations.max_pods);
  for (const auto& [size, bytes] : machine.huge_pages) {
    out["hugepages-" + size] =
        api::Amount::Parse(std::to_string(bytes / 1024) + "Ki").value_or(api::Amount());
  }
  return out;
}

k8s::ResourceList AllocatableOf(const Machine& machine, const Reservations& reservations) {
  k8s::ResourceList out = CapacityOf(machine, reservations);
  // Pages that are set aside are no memory for anything else.
  for (const auto& [size, bytes] : machine.huge_pages) out["memory"] -= api::Amount::FromBytes(bytes);
  for (auto& [name, amount] : out) {
    amount -= Parse(reservations.system, name);
    amount -= Parse(reservations.kube, name);
    int64_t kept = 0;
    if (name == "memory") {
      kept = ThresholdOf(reservations.eviction_hard, "memory.available", machine.memory_bytes);
    }
    if (name == "ephemeral-storage") {
      kept = ThresholdOf(reservations.eviction_hard, "nodefs.available", machine.ephemeral_bytes);
    }
    amount -= api::Amount::FromBytes(kept);
    if (amount < api::Amount()) amount = api::Amount();
  }
  return out;
}

}  // namespace keelson::kubelet
