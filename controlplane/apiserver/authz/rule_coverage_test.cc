#include "controlplane/apiserver/authz/rule_coverage.h"

#include <gtest/gtest.h>

namespace keelson::apiserver {
namespace {

using Rules = std::vector<PolicyRule>;

std::string Missing(const Rules& have, const Rules& wanted) {
  std::string out;
  for (const PolicyRule& rule : Compact(Uncovered(have, wanted))) out += Describe(rule);
  return out;
}

TEST(RuleCoverage, Table) {
  const PolicyRule pods{{"get", "list"}, {""}, {"pods"}, {}, {}};
  const PolicyRule all{{"*"}, {"*"}, {"*"}, {}, {}};
  struct {
    Rules have, wanted;
    std::string missing;
  } rows[] = {
      {{pods}, {pods}, ""},
      {{all}, {pods}, ""},
      {{{{"get"}, {""}, {"pods"}, {}, {}}, {{"list"}, {""}, {"*"}, {}, {}}}, {pods}, ""},
      {{}, {pods}, R"({APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]})"},
      {{{{"get"}, {""}, {"pods"}, {}, {}}},
       {pods},
       R"({APIGroups:[""], Resources:["pods"], Verbs:["list"]})"},
      {{pods}, {all}, R"({APIGroups:["*"], Resources:["*"], Verbs:["*"]})"},
      // A right to some names is none to all, and the other way round it is.
      {{{{"get"}, {""}, {"pods"}, {"a"}, {}}},
       {{{"get"}, {""}, {"pods"}, {"a", "b"}, {}}},
       R"({APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]})"},
      {{{{"get"}, {""}, {"pods"}, {"a"}, {}}},
       {{{"get"}, {""}, {"pods"}, {}, {}}},
       R"({APIGroups:[""], Resources:["pods"], Verbs:["get"]})"},
      {{pods}, {{{"get"}, {""}, {"pods"}, {"a"}, {}}}, ""},
      {{{{"get"}, {"*"}, {"*/scale"}, {}, {}}}, {{{"get"}, {"apps"}, {"deployments/scale"}, {}, {}}}, ""},
      {{pods},
       {{{"get"}, {""}, {"pods/log"}, {}, {}}},
       R"({APIGroups:[""], Resources:["pods/log"], Verbs:["get"]})"},
      {{{{"get"}, {}, {}, {}, {"/logs/*"}}}, {{{"get"}, {}, {}, {}, {"/logs/a", "/logs/*"}}}, ""},
      {{{{"get"}, {}, {}, {}, {"/logs"}}},
       {{{"get"}, {}, {}, {}, {"/logs/a"}}},
       R"({NonResourceURLs:["/logs/a"], Verbs:["get"]})"},
      {{all}, {{{"get"}, {}, {}, {}, {"/x"}}}, R"({NonResourceURLs:["/x"], Verbs:["get"]})"},
  };
  for (const auto& row : rows) EXPECT_EQ(Missing(row.have, row.wanted), row.missing);
}

}  // namespace
}  // namespace keelson::apiserver
