#include "cni/agent/conflist.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/codec/codec.h"
#include "lib/base/file.h"

namespace keelson::cni::agent {
namespace {

namespace json = boost::json;

bool Installed(const Config& config, const std::string& plugin) {
  return config.bin_dir.empty() || PathExists(config.bin_dir + "/" + plugin);
}

json::object Bridge(const Config& config, const Plan& plan) {
  json::array ranges;
  for (const IpPrefix& cidr : plan.pod_cidrs) {
    ranges.push_back(json::array{json::object{{"subnet", cidr.ToString()}}});
  }
  // The agent masquerades for all pods, and knows what is inside the cluster.
  return {{"type", "bridge"},
          {"bridge", config.bridge},
          {"isDefaultGateway", true},
          {"hairpinMode", true},
          {"ipMasq", false},
          {"mtu", plan.pod_mtu},
          {"ipam", json::object{{"type", "host-local"}, {"dataDir", config.data_dir}, {"ranges", ranges}}}};
}

}  // namespace

std::string ConflistText(const Config& config, const Plan& plan) {
  json::array plugins{Bridge(config, plan)};
  // Before anything that leads packets to the pod.
  if (config.network_policy) plugins.push_back(json::object{{"type", kPolicyPlugin}});
  if (Installed(config, "portmap")) {
    plugins.push_back({{"type", "portmap"}, {"capabilities", json::object{{"portMappings", true}}}});
  }
  if (Installed(config, "bandwidth")) {
    plugins.push_back({{"type", "bandwidth"}, {"capabilities", json::object{{"bandwidth", true}}}});
  }
  json::object root{{"cniVersion", "1.0.0"}, {"name", "keelson"}, {"plugins", plugins}};
  return api::PrettyJson(json::serialize(root)) + "\n";
}

Result<bool> WriteConflist(const Config& config, const std::string& text) {
  Result<std::string> found = ReadFile(config.ConflistPath());
  if (found && *found == text) return false;
  KEELSON_RETURN_IF_ERROR(MakeDirs(config.conf_dir));
  KEELSON_RETURN_IF_ERROR(WriteFileAtomic(config.ConflistPath(), text));
  return true;
}

}  // namespace keelson::cni::agent
