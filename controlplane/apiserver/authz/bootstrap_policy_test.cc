// The policy that is made at start, rule by rule and subject by subject, against
// testdata/bootstrap_policy.txt: upstream's, and nothing more, with any feature gate off and on.
#include "controlplane/apiserver/authz/bootstrap_policy.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "controlplane/apiserver/authz/policy_tables.h"
#include "lib/base/file.h"

namespace keelson::apiserver {
namespace {

using testing::StartsWith;

// Lines below each object's line; rules sorted, for their order has no meaning.
using Objects = std::map<std::string, std::multiset<std::string>>;

// "[A+B] rest": the gates, taken off the line.
std::string TakeGates(std::string& line) {
  if (line.empty() || line[0] != '[') return "";
  const size_t end = line.find("] ");
  std::string gates = line.substr(1, end - 1);
  line.erase(0, end + 2);
  return gates;
}

struct Expected {
  Objects objects;
  std::set<std::string> gates;  // all that the file speaks of
};

Expected Read(const GateOn& on) {
  Expected out;
  Result<std::string> text = ReadFile(std::string(KEELSON_TESTDATA) + "/bootstrap_policy.txt");
  EXPECT_TRUE(text);
  if (!text) return out;
  const auto there = [&](std::string& line) {
    const std::string gates = TakeGates(line);
    for (size_t at = 0; at < gates.size();) {
      const size_t plus = std::min(gates.find('+', at), gates.size());
      out.gates.insert(gates.substr(at, plus - at));
      at = plus + 1;
    }
    return GatesOn(gates, on);
  };
  std::multiset<std::string>* object = nullptr;
  for (size_t at = 0; at < text->size();) {
    const size_t end = text->find('\n', at);
    std::string line = text->substr(at, end - at);
    at = end + 1;
    if (line.empty() || line[0] == '#') continue;
    if (line[0] != ' ') {
      object = there(line) ? &out.objects[line] : nullptr;
    } else if (object) {
      line.erase(0, 2);
      if (there(line)) object->insert(line);
    }
  }
  return out;
}

std::string List(const google::protobuf::RepeatedPtrField<std::string>& items) {
  std::vector<std::string> shown;
  for (const std::string& item : items) shown.push_back(item.empty() ? "core" : item);
  return fmt::format("{}", fmt::join(shown, ","));
}

std::string Show(const rbacv1::PolicyRule& rule) {
  if (!rule.non_resource_urls().empty()) {
    return fmt::format("{} {}", List(rule.verbs()), List(rule.non_resource_urls()));
  }
  std::string out =
      fmt::format("{} {} {}", List(rule.verbs()), List(rule.api_groups()), List(rule.resources()));
  if (!rule.resource_names().empty()) out += " named=" + List(rule.resource_names());
  return out;
}

std::string Show(const rbacv1::Subject& subject) {
  EXPECT_EQ(subject.api_group(), subject.kind() == "ServiceAccount" ? "" : "rbac.authorization.k8s.io");
  std::string out = subject.kind() + " ";
  if (!subject.namespace_().empty()) out += subject.namespace_() + "/";
  return out + subject.name();
}

// "KIND [NS/]NAME"; the labels and annotations that all have are checked here.
std::string Head(const char* kind, const metav1::ObjectMeta& meta) {
  EXPECT_EQ(meta.labels().at("kubernetes.io/bootstrapping"), "rbac-defaults") << meta.name();
  EXPECT_EQ(meta.annotations().at("rbac.authorization.kubernetes.io/autoupdate"), "true") << meta.name();
  std::string out =
      fmt::format("{} {}{}{}", kind, meta.namespace_(), meta.namespace_().empty() ? "" : "/", meta.name());
  for (const auto& label : meta.labels()) {
    constexpr std::string_view kPrefix = "rbac.authorization.k8s.io/";
    if (label.first.rfind(kPrefix, 0) == 0) out += " labels=" + label.first.substr(kPrefix.size());
  }
  return out;
}

template <typename T>
void AddRole(const char* kind, const T& role, Objects& out) {
  std::string head = Head(kind, role.metadata());
  if constexpr (std::is_same_v<T, rbacv1::ClusterRole>) {
    for (const auto& selector : role.aggregation_rule().cluster_role_selectors()) {
      for (const auto& label : selector.match_labels()) {
        head += " selects=" + label.first.substr(label.first.find('/') + 1);
      }
    }
  }
  EXPECT_FALSE(out.count(head)) << head;
  std::multiset<std::string>& lines = out[head];
  for (const rbacv1::PolicyRule& rule : role.rules()) lines.insert(Show(rule));
}

template <typename T>
void AddBinding(const char* kind, const T& binding, Objects& out) {
  EXPECT_EQ(binding.role_ref().api_group(), "rbac.authorization.k8s.io");
  const std::string head = fmt::format("{} of={}/{}", Head(kind, binding.metadata()),
                                       binding.role_ref().kind(), binding.role_ref().name());
  EXPECT_FALSE(out.count(head)) << head;
  std::multiset<std::string>& lines = out[head];
  for (const rbacv1::Subject& subject : binding.subjects()) lines.insert(Show(subject));
}

Objects Made(const GateOn& on) {
  Objects out;
  for (const auto& role : BootstrapClusterRoles(on)) AddRole("ClusterRole", role, out);
  for (const auto& role : BootstrapRoles()) AddRole("Role", role, out);
  for (const auto& binding : BootstrapClusterRoleBindings(on)) AddBinding("ClusterRoleBinding", binding, out);
  for (const auto& binding : BootstrapRoleBindings()) AddBinding("RoleBinding", binding, out);
  return out;
}

void Compare(const GateOn& on) {
  Objects made = Made(on);
  for (const auto& [head, lines] : Read(on).objects) {
    const auto found = made.find(head);
    if (found == made.end()) {
      ADD_FAILURE() << "missing: " << head;
      continue;
    }
    EXPECT_THAT(found->second, testing::ContainerEq(lines)) << head;
    made.erase(found);
  }
  for (const auto& [head, lines] : made) {
    EXPECT_THAT(head.substr(head.find(' ') + 1), StartsWith("keelson:")) << "beyond upstream's";
  }
}

TEST(BootstrapPolicy, IsUpstreamsAndNothingMore) {
  {
    SCOPED_TRACE("no gate");
    Compare(NoGate);
  }
  {
    SCOPED_TRACE("all gates");
    Compare([](std::string_view) { return true; });
  }
  const std::set<std::string> gates = Read(NoGate).gates;
  EXPECT_GE(gates.size(), 8u);
  for (const std::string& gate : gates) {
    SCOPED_TRACE(gate);
    Compare([&](std::string_view one) { return one == gate; });
  }
}

TEST(BootstrapPolicy, OwnRolesAreBoundByOwnBindingsAndGiveNoEscalation) {
  std::set<std::string> own;
  for (const rbacv1::ClusterRole& role : BootstrapClusterRoles(NoGate)) {
    if (role.metadata().name().rfind("keelson:", 0) != 0) continue;
    own.insert(role.metadata().name());
    for (const rbacv1::PolicyRule& rule : role.rules()) {
      for (const std::string& verb : rule.verbs()) EXPECT_NE(verb, "escalate") << role.metadata().name();
    }
  }
  EXPECT_EQ(own,
            (std::set<std::string>{"keelson:aggregated-metrics-reader", "keelson:kube-controller-manager"}));
  for (const rbacv1::ClusterRoleBinding& binding : BootstrapClusterRoleBindings(NoGate)) {
    EXPECT_EQ(own.count(binding.role_ref().name()) > 0, own.count(binding.metadata().name()) > 0)
        << binding.metadata().name();
  }
}

}  // namespace
}  // namespace keelson::apiserver
