#include "controlplane/apiserver/authn/impersonation.h"

#include <gtest/gtest.h>

#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "controlplane/apiserver/authz/testing/attributes.h"

namespace keelson::apiserver {
namespace {

// Allows the listed requests: "VERB GROUP/RESOURCE NAMESPACE/NAME".
class Rights : public Authorizer {
 public:
  explicit Rights(std::set<std::string> rights) : rights_(std::move(rights)) {}
  Decision Authorize(const Attributes& attributes) const override {
    const RequestInfo& r = attributes.request;
    asked.push_back(fmt::format("{} {}/{} {}/{}", r.verb, r.group, r.FullResource(), r.ns, r.name));
    seen = attributes.user;
    return {rights_.count(asked.back()) > 0 || rights_.count("everything") > 0, "", ""};
  }
  UserRules RulesFor(const User&, std::string_view) const override { return {}; }

  mutable std::vector<std::string> asked;
  mutable User seen;

 private:
  const std::set<std::string> rights_;
};

const User kAgent{"system:serviceaccount:kube-system:agent",
                  "u1",
                  {"system:serviceaccounts"},
                  {{"authentication.kubernetes.io/node-name", {"n1"}},
                   {"authentication.kubernetes.io/pod-name", {"agent-1"}}}};

// "NAME [GROUPS] CONSTRAINT", or why not.
std::string Try(const http::Headers& headers, const Rights& rights, const User& requestor = kAgent) {
  auto acting = Impersonate(requestor, headers, Resource("list", "", "pods", "ns"), rights);
  if (!acting) return acting.error().message();
  if (!*acting) return "himself";
  return fmt::format("{} [{}] {}", (*acting)->user.name, fmt::join((*acting)->user.groups, " "),
                     (*acting)->constraint);
}

TEST(Impersonation, WaysInTheirOrder) {
  const http::Headers node{{"Impersonate-User", "system:node:n1"}}, jane{{"Impersonate-User", "jane"}},
      account{{"Impersonate-User", "system:serviceaccount:a:b"}};
  const std::string auth = "authentication.k8s.io/";
  struct {
    const char* name;
    http::Headers headers;
    std::set<std::string> rights;
    std::string result;
  } rows[] = {
      {"nobody else", {}, {}, "himself"},
      {"own node",
       node,
       {"impersonate-on:associated-node:list /pods ns/", "impersonate:associated-node " + auth + "nodes /*"},
       "system:node:n1 [system:nodes system:authenticated] impersonate:associated-node"},
      {"any node",
       node,
       {"impersonate-on:arbitrary-node:list /pods ns/", "impersonate:arbitrary-node " + auth + "nodes /n1"},
       "system:node:n1 [system:nodes system:authenticated] impersonate:arbitrary-node"},
      {"another node is not the own one",
       {{"Impersonate-User", "system:node:n2"}},
       {"impersonate-on:associated-node:list /pods ns/", "impersonate:associated-node " + auth + "nodes /*"},
       "pods is forbidden: User \"system:serviceaccount:kube-system:agent\" cannot "
       "impersonate-on:arbitrary-node:list resource \"pods\" in API group \"\" in the namespace \"ns\""},
      {"a service account",
       account,
       {"impersonate-on:serviceaccount:list /pods ns/",
        "impersonate:serviceaccount " + auth + "serviceaccounts a/b"},
       "system:serviceaccount:a:b [system:serviceaccounts system:serviceaccounts:a system:authenticated] "
       "impersonate:serviceaccount"},
      {"a user",
       jane,
       {"impersonate-on:user-info:list /pods ns/", "impersonate:user-info " + auth + "users /jane"},
       "jane [system:authenticated] impersonate:user-info"},
      {"a user, for something else",
       jane,
       {"impersonate-on:user-info:get /pods ns/", "impersonate:user-info " + auth + "users /jane"},
       "pods is forbidden: User \"system:serviceaccount:kube-system:agent\" cannot "
       "impersonate-on:user-info:list resource \"pods\" in API group \"\" in the namespace \"ns\""},
      {"somebody else for it",
       jane,
       {"impersonate-on:user-info:list /pods ns/", "impersonate:user-info " + auth + "users /joe"},
       "users.authentication.k8s.io \"jane\" is forbidden: User \"system:serviceaccount:kube-system:agent\" "
       "cannot impersonate:user-info resource \"users\" in API group \"authentication.k8s.io\" at the "
       "cluster "
       "scope"},
      {"the old way", jane, {"impersonate /users /jane"}, "jane [system:authenticated] "},
      {"the old way, an account",
       account,
       {"impersonate /serviceaccounts a/b"},
       "system:serviceaccount:a:b [system:serviceaccounts system:serviceaccounts:a system:authenticated] "},
      {"a name that is no node's",
       {{"Impersonate-User", "system:node:N_1"}},
       {"impersonate-on:user-info:list /pods ns/",
        "impersonate:user-info " + auth + "users /system:node:N_1"},
       "system:node:N_1 [system:authenticated] impersonate:user-info"},
      {"anonymous",
       {{"Impersonate-User", "system:anonymous"}},
       {"everything"},
       "system:anonymous [system:unauthenticated] impersonate:user-info"},
      {"no name",
       {{"Impersonate-Group", "dev"}},
       {"everything"},
       "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"dev\"}, "
       "Extra:map[string][]string(nil)} without impersonating a user name"},
  };
  for (const auto& row : rows) EXPECT_EQ(Try(row.headers, Rights(row.rights)), row.result) << row.name;
}

TEST(Impersonation, GroupsUidAndExtra) {
  const std::string auth = "authentication.k8s.io/", on = "impersonate-on:user-info:list /pods ns/",
                    verb = "impersonate:user-info ";
  http::Headers headers{{"Impersonate-User", "jane"},
                        {"Impersonate-Uid", "7"},
                        {"Impersonate-Group", "dev"},
                        {"Impersonate-Extra-Acme.io%2Fteam", "x"}};
  Rights all({on, verb + auth + "users /jane", verb + auth + "uids /7", verb + auth + "groups /dev",
              verb + auth + "userextras/acme.io/team /x"});
  EXPECT_EQ(Try(headers, all), "jane [dev system:authenticated] impersonate:user-info");
  EXPECT_EQ(all.asked.size(), 5u);

  // Many groups: all of them at once, then each.
  headers = {{"Impersonate-User", "jane"}};
  for (const char* group : {"a", "b", "c", "d"}) headers.Add("Impersonate-Group", group);
  Rights any({on, verb + auth + "users /jane", verb + auth + "groups /*"});
  EXPECT_EQ(Try(headers, any), "jane [a b c d system:authenticated] impersonate:user-info");
  EXPECT_EQ(any.asked.size(), 3u);

  // What only the old way allows.
  headers = {{"Impersonate-User", "jane"}, {"Impersonate-Group", "system:masters"}};
  EXPECT_EQ(Try(headers, Rights({"everything"})), "jane [system:masters system:authenticated] ");
  EXPECT_EQ(
      Try(headers, Rights({on, verb + auth + "users /jane"})),
      "groups.authentication.k8s.io \"system:masters\" is forbidden: User "
      "\"system:serviceaccount:kube-system:agent\" cannot impersonate:user-info resource \"groups\" in API "
      "group \"authentication.k8s.io\" at the cluster scope: impersonating the system:masters group is not "
      "allowed");
  headers = {{"Impersonate-User", "jane"}, {"Impersonate-Extra-Scopes", "x"}};
  EXPECT_EQ(Try(headers, Rights({"everything"})), "jane [system:authenticated] ");
}

// The answer for one node is to hold for all of them.
TEST(Impersonation, OfTheOwnNodeAuthorizersLearnTheKeysOnly) {
  Rights rights({});
  (void)Impersonate(kAgent, {{"Impersonate-User", "system:node:n1"}}, Resource("list", "", "pods"), rights);
  ASSERT_FALSE(rights.asked.empty());
  EXPECT_EQ(rights.asked[0], "impersonate-on:associated-node:list /pods /");
  Rights once({"impersonate-on:associated-node:list /pods /",
               "impersonate:associated-node authentication.k8s.io/nodes /*"});
  ASSERT_TRUE(
      Impersonate(kAgent, {{"Impersonate-User", "system:node:n1"}}, Resource("list", "", "pods"), once));
  EXPECT_EQ(once.seen.extra,
            (std::map<std::string, std::vector<std::string>>{
                {"authentication.kubernetes.io/associated-node-keys",
                 {"authentication.kubernetes.io/node-name", "authentication.kubernetes.io/pod-name"}}}));
}

}  // namespace
}  // namespace keelson::apiserver
