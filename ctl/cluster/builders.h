// Internal to this room: API objects in JSON, without defaults.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <utility>
#include <vector>

namespace keelson::ctl {

struct Subject {
  std::string kind, name;  // User, Group, ServiceAccount
  std::string ns = {};
};
struct Rule {
  std::vector<std::string> verbs, resources, names = {};
  std::string group = {};  // empty: the core group
};

boost::json::object ConfigMapOf(const std::string& ns, const std::string& name,
                                const std::vector<std::pair<std::string, std::string>>& data);
boost::json::object ServiceAccountOf(const std::string& ns, const std::string& name);
boost::json::object RoleFor(const std::string& ns, const std::string& name, const std::vector<Rule>& rules);
boost::json::object ClusterRoleFor(const std::string& name, const std::vector<Rule>& rules);
boost::json::object RoleBindingOf(const std::string& ns, const std::string& name, const std::string& role,
                                  const std::vector<Subject>& subjects);
boost::json::object ClusterRoleBindingOf(const std::string& name, const std::string& role,
                                         const std::vector<Subject>& subjects);
// csi/local/deploy/driver.yaml: the CSIDriver, and the class `local`.
boost::json::object LocalDriver();
boost::json::object LocalClass();
// The Service kube-dns, without a selector: kube-proxy of every node answers at the address.
boost::json::object DnsServiceAt(const std::string& address);

}  // namespace keelson::ctl
