// What watchers of a custom resource see when its definition goes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/http/testing/fixture.h"
#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int kWatches = 100, kObjects = 3;

constexpr char kDefinition[] = R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: goners.watch.example.com}
spec:
  group: watch.example.com
  scope: Namespaced
  names: {plural: goners, kind: Goner}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
)";

class CustomWatch : public ClusterTest {
 protected:
  std::string Path() const { return "/apis/watch.example.com/v1/namespaces/" + ns_ + "/goners"; }
};

int Count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_F(CustomWatch, EndsWithoutAnErrorWhenItsDefinitionGoes) {
  Kubectl({"create", "-f", "-"}, kDefinition);
  Kubectl({"wait", "--for=condition=Established", "crd/goners.watch.example.com", "--timeout=30s"});
  for (int i = 0; i < kObjects; ++i) {
    Kubectl({"create", "-f", "-"},
            "apiVersion: watch.example.com/v1\nkind: Goner\nmetadata: {name: g" + std::to_string(i) + "}\n");
  }
  std::unique_ptr<http::Client> client = cluster_->NewClient("admin");
  std::vector<std::unique_ptr<http::ResponseReader>> watches;
  for (int i = 0; i < kWatches; ++i) {
    auto watch = client->Open({"GET", Path() + "?watch=1"}, std::chrono::seconds(30));
    ASSERT_TRUE(watch) << watch.error().message();
    watches.push_back(std::move(*watch));
  }
  Kubectl({"delete", "crd", "goners.watch.example.com", "--timeout=60s"});
  for (const auto& watch : watches) {
    std::string text;
    for (std::string piece = " "; !piece.empty(); text += piece) {
      Result<std::string> read = watch->Read({}, std::chrono::seconds(60));
      ASSERT_TRUE(read) << read.error().message() << " after " << text;
      piece = std::move(*read);
    }
    EXPECT_EQ(Count(text, R"({"type":"ADDED")"), kObjects);
    EXPECT_EQ(Count(text, R"({"type":"DELETED")"), kObjects);
    EXPECT_THAT(text, Not(HasSubstr(R"("type":"ERROR")")));
  }
  EXPECT_EQ(cluster_->Do({"GET", Path()}).status, 404);
}

}  // namespace
}  // namespace keelson::apiserver
