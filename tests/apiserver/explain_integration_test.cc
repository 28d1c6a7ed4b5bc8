// kubectl explain against the real program: through version 3 documents, and version 2 in protobuf.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

class Explain : public ClusterTest, public testing::WithParamInterface<const char*> {
 protected:
  // The output with whitespace normalized: kubectl wraps lines.
  std::string Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "explain");
    arguments.push_back(std::string("--output=") + GetParam());
    Output output = cluster_->Kubectl(arguments);
    EXPECT_EQ(output.code, 0) << testing::PrintToString(arguments) << "\n" << output.err;
    std::string text;
    for (char c : output.out) {
      bool space = c == ' ' || c == '\n' || c == '\t';
      if (!space || (!text.empty() && text.back() != ' ')) text += space ? ' ' : c;
    }
    return text;
  }

  bool v3() const { return std::string(GetParam()) == "plaintext"; }
  // How it spells a type: from version 2 it knows that one is an object, but does not say which.
  std::string Type(const std::string& name) const { return v3() ? "<" + name + ">" : "<Object>"; }
};

TEST_P(Explain, KindsAndTheirFields) {
  std::string text = Run({"pods"});
  EXPECT_THAT(text, HasSubstr("KIND: Pod VERSION: v1 DESCRIPTION: Containers that run together on one node"));
  EXPECT_THAT(text, HasSubstr("spec " + Type("PodSpec") + " What to run and where."));
  EXPECT_THAT(text, HasSubstr("apiVersion <string> Group and version of the schema"));
  EXPECT_THAT(text, HasSubstr("metadata " + Type("ObjectMeta") + " Standard object metadata"));
}

TEST_P(Explain, FieldsOfFields) {
  std::string text = Run({"deployment.spec.strategy"});
  EXPECT_THAT(text, HasSubstr("strategy " + Type("DeploymentStrategy")));
  EXPECT_THAT(text, HasSubstr("How old pods are replaced by new ones."));
  EXPECT_THAT(text,
              HasSubstr("rollingUpdate " + Type("RollingUpdateDeployment") + " Settings of RollingUpdate."));
  text = Run({"pod.spec.containers.livenessProbe.httpGet.port"});
  EXPECT_THAT(text, HasSubstr("Port number, or name of a port of the container."));
}

TEST_P(Explain, Recursively) {
  std::string text = Run({"pod.spec.containers", "--recursive"});
  EXPECT_THAT(text,
              HasSubstr(v3() ? "containers <[]Container> DESCRIPTION: Containers of the pod, at least one"
                             : "containers <[]Object> DESCRIPTION: Containers of the pod, at least one"));
  EXPECT_THAT(text, HasSubstr("livenessProbe " + Type("Probe") + " exec " + Type("ExecAction") +
                              " command <[]string>"));
  EXPECT_THAT(text, HasSubstr(v3() ? "limits <map[string]Quantity>" : "limits <map[string]string>"));
}

TEST_P(Explain, OtherGroupsAndVersions) {
  EXPECT_THAT(Run({"hpa.spec", "--api-version=autoscaling/v1"}), HasSubstr("targetCPUUtilizationPercentage"));
  EXPECT_THAT(Run({"hpa.spec", "--api-version=autoscaling/v2"}), HasSubstr("behavior"));
  EXPECT_THAT(Run({"crd.spec.versions.schema.openAPIV3Schema.description"}),
              HasSubstr("kubectl explain shows it"));
  EXPECT_THAT(Run({"networkpolicy.spec.ingress.from.ipBlock"}), HasSubstr("A range of addresses"));
}

TEST_P(Explain, WhatMustBeGivenAndListsInMaps) {
  EXPECT_THAT(Run({"pod.spec.ephemeralContainers"}), HasSubstr("name <string> -required-"));
  EXPECT_THAT(Run({"csr.spec"}), HasSubstr("extra <map[string][]string>"));
}

TEST_P(Explain, NothingIsLeftUndescribed) {
  for (const char* kind :
       {"configmap", "cronjob", "daemonset", "event", "ingress", "job", "lease", "namespace", "node", "pv",
        "pvc", "pdb", "rolebinding", "secret", "service", "sts", "sc"}) {
    EXPECT_THAT(Run({kind}), Not(AnyOf(HasSubstr("<empty>"), HasSubstr("<no description>")))) << kind;
  }
}

INSTANTIATE_TEST_SUITE_P(Documents, Explain, testing::Values("plaintext", "plaintext-openapiv2"),
                         [](const auto& test) {
                           return std::string(test.param) == "plaintext" ? "Version3" : "Version2";
                         });

}  // namespace
}  // namespace keelson::apiserver
