// The check of the container runtime's settings.
#include <algorithm>
#include <boost/json.hpp>

#include "ctl/preflight/host_checks.h"
#include "lib/base/text.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

constexpr char kHowTo[] = " in /etc/containerd/config.toml, then run 'systemctl restart containerd'";

// What containerd 1.6 to 2.x print of their settings, as far as it matters here.
struct ContainerdConfig {
  std::string cgroup_driver;
  std::vector<std::string> plugin_dirs;
};

const json::value* FieldAt(const json::value& document, std::initializer_list<std::string_view> path) {
  const json::value* at = &document;
  for (std::string_view name : path) {
    const json::object* object = at->if_object();
    at = object ? object->if_contains(name) : nullptr;
    if (!at) return nullptr;
  }
  return at;
}

ContainerdConfig ReadConfig(const std::string& text) {
  ContainerdConfig out;
  boost::system::error_code failed;
  const json::value document = json::parse(text, failed);
  if (failed) return out;
  const json::value* name = FieldAt(document, {"containerd", "defaultRuntimeName"});
  const std::string runtime = name && name->is_string() ? std::string(name->get_string()) : "runc";
  // An option that is not set is false.
  if (const json::value* found = FieldAt(document, {"containerd", "runtimes", runtime})) {
    const json::value* systemd = FieldAt(*found, {"options", "SystemdCgroup"});
    out.cgroup_driver = systemd && systemd->is_bool() && systemd->get_bool() ? "systemd" : "cgroupfs";
  }
  if (const json::value* dir = FieldAt(document, {"cni", "binDir"}); dir && dir->is_string()) {
    out.plugin_dirs.emplace_back(dir->get_string());
  }
  if (const json::value* dirs = FieldAt(document, {"cni", "binDirs"}); dirs && dirs->is_array()) {
    for (const json::value& dir : dirs->get_array()) {
      if (dir.is_string()) out.plugin_dirs.emplace_back(dir.get_string());
    }
  }
  std::erase(out.plugin_dirs, "");
  return out;
}

}  // namespace

Check RuntimeConfigCheck(const std::string& cri_socket, const std::string& cgroup_driver, bool kube_cni) {
  return {"ContainerRuntimeConfig", [=](const Host& host) {
            Findings out;
            const std::string path = cri_socket.starts_with("unix://") ? cri_socket.substr(7) : cri_socket;
            const auto facts = host.AskRuntime(path);
            if (!facts) return out;  // the check CRI tells
            const ContainerdConfig config = ReadConfig(facts->config);
            const std::string& driver =
                facts->cgroup_driver.empty() ? config.cgroup_driver : facts->cgroup_driver;
            if (!driver.empty() && driver != cgroup_driver) {
              const std::string value = cgroup_driver == "systemd" ? "true" : "false";
              out.warnings.push_back(facts->name + " uses the cgroup driver " + driver +
                                     ", and the kubelet " + cgroup_driver + ": set SystemdCgroup = " + value +
                                     " among the options of the runtime runc" + kHowTo);
            }
            const auto has_plugins = [&](const std::string& dir) {
              return host.Exists(dir + "/keelson-policy");
            };
            const std::vector<std::string>& dirs = config.plugin_dirs;
            if (kube_cni && !dirs.empty() && std::none_of(dirs.begin(), dirs.end(), has_plugins)) {
              out.warnings.push_back(
                  facts->name + " looks for CNI plugins in " + Join(dirs, ", ") +
                  ", where those of keelson-cni are not: set bin_dir = \"/opt/cni/bin\" of cni" + kHowTo);
            }
            return out;
          }};
}

}  // namespace keelson::ctl
