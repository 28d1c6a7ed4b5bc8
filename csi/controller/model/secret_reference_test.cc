#include "csi/controller/model/secret_reference.h"

#include <gmock/gmock.h>

namespace keelson::csi::controller {
namespace {

using ::testing::HasSubstr;

const SecretSubject kSubject{"pvc-1", "ns", "data", {{"team", "blue"}, {"bad", "Not A Name"}}};

struct Case {
  std::map<std::string, std::string> parameters;
  std::string result;  // NAMESPACE/NAME, empty: none
  std::string error;
};

TEST(SecretReferenceTest, Templates) {
  const std::string name = "csi.storage.k8s.io/node-stage-secret-name",
                    ns = "csi.storage.k8s.io/node-stage-secret-namespace";
  const Case cases[] = {
      {{}, "", ""},
      {{{name, "s"}, {ns, "n"}}, "n/s", ""},
      {{{name, "${pvc.name}-${pv.name}"}, {ns, "${pvc.namespace}"}}, "ns/data-pvc-1", ""},
      {{{name, "${pvc.annotations['team']}"}, {ns, "n"}}, "n/blue", ""},
      {{{"csiNodeStageSecretName", "old"}, {"csiNodeStageSecretNamespace", "n"}}, "n/old", ""},
      {{{"csi.storage.k8s.io/secret-name", "d"}, {"csi.storage.k8s.io/secret-namespace", "n"}}, "n/d", ""},
      {{{name, "s"}},
       "",
       "either name and namespace for NodeStage secrets specified, Both must be specified"},
      {{{name, "s"}, {ns, ""}}, "", "value of either namespace or name is empty"},
      {{{name, "s"}, {ns, "n"}, {"csiNodeStageSecretName", "old"}}, "", R"(with both "csi" and)"},
      {{{name, "${pvc.uid}"}, {ns, "n"}},
       "",
       R"(error resolving value "${pvc.uid}": invalid tokens: ["pvc.uid"])"},
      // Owners of claims do not choose the namespace.
      {{{name, "s"}, {ns, "${pvc.name}"}}, "", "invalid tokens"},
      {{{name, "s"}, {ns, "${pvc.annotations['team']}"}}, "", "invalid tokens"},
      {{{name, "${pvc.annotations['bad']}"}, {ns, "n"}}, "", "which is not a valid secret name"},
      {{{name, "s"}, {ns, "Not A Name"}}, "", R"("Not A Name" is not a valid namespace name)"},
      {{{name, "${pv.name"}, {ns, "n"}}, "", "error resolving value"},
  };
  for (const Case& c : cases) {
    Strings parameters;
    for (const auto& [key, value] : c.parameters) parameters[key] = value;
    const auto found = ResolveSecret(SecretUse::kNodeStage, parameters, kSubject);
    if (!c.error.empty()) {
      ASSERT_FALSE(found) << c.error;
      EXPECT_THAT(found.error().message(), HasSubstr(c.error));
      continue;
    }
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_EQ(*found ? (*found)->namespace_() + "/" + (*found)->name() : "", c.result);
  }
}

}  // namespace
}  // namespace keelson::csi::controller
