// Checks of files, programs and daemons.
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>

#include "ctl/host/paths.h"
#include "ctl/host/units.h"
#include "ctl/host/users.h"
#include "ctl/host/versions.h"
#include "ctl/preflight/host_checks.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "lib/base/version.h"

namespace keelson::ctl {
namespace {

// As kubeadm names checks by a path: the slashes are dashes.
std::string NameBy(const char* what, const std::string& path) {
  std::string dashes = path;
  std::replace(dashes.begin(), dashes.end(), '/', '-');
  return std::string(what) + "-" + dashes;
}

// Each word with a capital letter, as Go's strings.Title.
std::string Title(std::string text) {
  bool begins = true;
  for (char& c : text) {
    if (begins && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    begins = c == '-' || c == ' ';
  }
  return text;
}

Result<> ConnectTo(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error::FromErrno(ENAMETOOLONG, "connect to " + path);
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoError("socket");
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return ErrnoError("connect to " + path);
  }
  return {};
}

}  // namespace

Check FileAvailableCheck(const std::string& path) {
  return {NameBy("FileAvailable", path), [path](const Host& host) {
            Findings out;
            if (host.Exists(path)) out.errors.push_back(path + " already exists");
            return out;
          }};
}

Check DirectoryAvailableCheck(const std::string& path) {
  return {NameBy("DirAvailable", path), [path](const Host& host) {
            Findings out;
            if (!host.Exists(path)) return out;
            const auto names = host.List(path);
            if (!names) {
              out.errors.push_back("unable to check if " + path + " is empty: " + names.error().message());
            } else if (!names->empty()) {
              out.errors.push_back(path + " is not empty");
            }
            return out;
          }};
}

Check FileExistsCheck(const std::string& path, const std::string& name) {
  return {name, [path](const Host& host) {
            Findings out;
            if (!host.Exists(path)) out.errors.push_back(path + " doesn't exist");
            return out;
          }};
}

Check FileContentCheck(const std::string& path, const std::string& content) {
  return {NameBy("FileContent", path), [path, content](const Host& host) {
            Findings out;
            const auto text = host.Read(path);
            if (!text) {
              out.errors.push_back(path + " does not exist");
            } else if (!text->starts_with(content)) {
              out.errors.push_back(path + " contents are not set to " + content);
            }
            return out;
          }};
}

Check ProgramCheck(const std::string& program) {
  return {"FileExisting-" + program, [program](const Host& host) {
            Findings out;
            if (!host.HasProgram(program)) out.errors.push_back(program + " not found in system path");
            return out;
          }};
}

Check UnitCheck(const std::string& unit) {
  return {"Service-" + Title(unit), [unit](const Host& host) {
            Findings out;
            if (auto systemd = RequireInitSystem(host); !systemd) {
              out.errors.push_back(systemd.error().message());
            } else if (!UnitExists(host, unit)) {
              out.errors.push_back(unit + " service does not exist");
            } else if (!UnitEnabled(host, unit)) {
              out.warnings.push_back(unit + " service is not enabled, please run 'systemctl enable " + unit +
                                     ".service'");
            }
            return out;
          }};
}

Check UserCheck(const std::string& user) {
  return {"User-" + user, [user](const Host& host) {
            Findings out;
            const auto found = FindUser(host, user);
            if (!found) out.errors.push_back(found.error().message());
            return out;
          }};
}

Check RuntimeCheck(const std::string& cri_socket) {
  return {"CRI", [cri_socket](const Host& host) {
            Findings out;
            const std::string path = cri_socket.starts_with("unix://") ? cri_socket.substr(7) : cri_socket;
            if (auto reached = ConnectTo(host.RealPath(path)); !reached) {
              out.errors.push_back("container runtime is not running: " + reached.error().message());
              return out;
            }
            const auto facts = host.AskRuntime(path);
            if (!facts && facts.error().Is(Code::kUnimplemented)) {
              out.errors.push_back("container runtime is not running: " + facts.error().message() +
                                   "; where it is containerd, take \"cri\" out of disabled_plugins in "
                                   "/etc/containerd/config.toml and run 'systemctl restart containerd'");
            }
            return out;
          }};
}

Check CniConfigCheck() {
  return {"CNIConfig", [](const Host& host) {
            Findings out;
            const std::string own = paths::kCniConflist, directory = own.substr(0, own.rfind('/'));
            if (!host.Exists(directory)) return out;
            const auto names = host.List(directory);
            if (!names) return out;
            for (const std::string& name : *names) {
              const bool counts =
                  name.ends_with(".conf") || name.ends_with(".conflist") || name.ends_with(".json");
              const std::string path = directory + "/" + name;
              if (!counts || path == own) continue;
              if (path < own) {
                out.errors.push_back(
                    path + " is of another network plugin, and the runtime takes it before kube-cni's " +
                    own + ": remove it, or leave out kube-cni");
              } else {
                out.warnings.push_back(
                    path + " is of another network plugin: without kube-cni's file the runtime takes it");
              }
            }
            return out;
          }};
}

Check SwapCheck() {
  return {"Swap", [](const Host& host) {
            Findings out;
            const auto text = host.Read("/proc/swaps");
            // A line for each, and one that says what the columns are.
            if (text && std::count(text->begin(), text->end(), '\n') > 1) {
              out.warnings.emplace_back(
                  "swap is supported for cgroup v2 only. The kubelet must be properly configured to use "
                  "swap. Please "
                  "refer to https://kubernetes.io/docs/concepts/architecture/nodes/#swap-memory, or disable "
                  "swap on "
                  "the node");
            }
            return out;
          }};
}

Check CgroupCheck() {
  return {"SystemVerification", [](const Host& host) {
            Findings out;
            if (!host.Exists("/sys/fs/cgroup/cgroup.controllers")) {
              out.warnings.emplace_back(
                  "cgroups v1 support is in maintenance mode, please migrate to cgroups v2");
            }
            return out;
          }};
}

Check KubeletVersionCheck() {
  return {"KubeletVersion", [](const Host& host) {
            Findings out;
            const auto installed = InstalledVersion(host, "kubelet");
            if (!installed) {
              out.errors.push_back("couldn't get kubelet version: " + installed.error().message());
              return out;
            }
            const int minor = ParseVersion(*installed)->minor, own = ParseVersion(kGitVersion)->minor;
            if (minor > own) {
              out.errors.push_back(
                  "the kubelet version is higher than the control plane version. This is not a "
                  "supported version skew and may lead to a malfunctional cluster. Kubelet version: \"" +
                  *installed + "\" Control plane version: \"" + kGitVersion + "\"");
            } else if (minor < own - 3) {
              out.errors.push_back("Kubelet version \"" + *installed +
                                   "\" is lower than kubeadm can support. Please upgrade kubelet");
            }
            return out;
          }};
}

}  // namespace keelson::ctl
