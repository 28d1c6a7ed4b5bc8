// Checks of the machine itself: processors, memory, ports, names.
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "ctl/host/units.h"
#include "ctl/preflight/host_checks.h"
#include "lib/api/names.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

// Whether something listens on the port, of either family.
bool PortInUse(uint16_t port) {
  UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd) {
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(port);
    return ::bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) != 0 || ::listen(fd.get(), 1) != 0;
  }
  fd.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  return !fd || ::bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) != 0 ||
         ::listen(fd.get(), 1) != 0;
}

bool Resolves(const std::string& name) {
  addrinfo hints{};
  addrinfo* found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return false;
  ::freeaddrinfo(found);
  return true;
}

}  // namespace

Check PrivilegedUserCheck() {
  return {"IsPrivilegedUser", [](const Host&) {
            Findings out;
            if (::geteuid() != 0) out.errors.emplace_back("user is not running as root");
            return out;
          }};
}

Check CpuCheck(unsigned least) {
  return {"NumCPU", [least](const Host&) {
            Findings out;
            cpu_set_t set;
            CPU_ZERO(&set);
            if (::sched_getaffinity(0, sizeof set, &set) != 0) return out;
            const auto count = static_cast<unsigned>(CPU_COUNT(&set));
            if (count < least) {
              out.errors.push_back("the number of available CPUs " + std::to_string(count) +
                                   " is less than the required " + std::to_string(least));
            }
            return out;
          }};
}

Check MemoryCheck(uint64_t least_mb) {
  return {"Mem", [least_mb](const Host&) {
            Findings out;
            struct sysinfo info {};
            if (::sysinfo(&info) != 0) return out;
            const uint64_t mb = uint64_t{info.totalram} * info.mem_unit / (1024 * 1024);
            if (mb < least_mb) {
              out.errors.push_back("the system RAM (" + std::to_string(mb) +
                                   " MB) is less than the minimum " + std::to_string(least_mb) + " MB");
            }
            return out;
          }};
}

Check PortCheck(uint16_t port) {
  return {"Port-" + std::to_string(port), [port](const Host&) {
            Findings out;
            if (PortInUse(port)) out.errors.push_back("Port " + std::to_string(port) + " is in use");
            return out;
          }};
}

Check FirewallCheck(std::vector<uint16_t> ports) {
  return {"Firewalld", [ports = std::move(ports)](const Host& host) {
            Findings out;
            if (!UnitExists(host, "firewalld") || !UnitActive(host, "firewalld")) return out;
            std::vector<std::string> texts;
            for (uint16_t port : ports) texts.push_back(std::to_string(port));
            out.warnings.push_back("firewalld is active, please ensure ports [" + Join(texts, " ") +
                                   "] are open or your cluster may not function correctly");
            return out;
          }};
}

Check HostNameCheck(const std::string& name) {
  return {"Hostname", [name](const Host&) {
            Findings out;
            for (const std::string& why : api::CheckQualifiedName(name)) {
              out.warnings.push_back("invalid node name format \"" + name + "\": " + why);
            }
            if (!Resolves(name)) out.warnings.push_back("hostname \"" + name + "\" could not be reached");
            return out;
          }};
}

}  // namespace keelson::ctl
