// A definition that goes and comes back with the other scope, while clients write its objects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>

#include <boost/json/parse.hpp>

#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
using testing::AnyOf;
using testing::Each;

constexpr int kWriters = 3, kChanges = 2;

class CustomScope : public ClusterTest {
 protected:
  void Define(bool namespaced) {
    Kubectl({"create", "-f", "-"}, fmt::format(R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: movers.scope.example.com}}
spec:
  group: scope.example.com
  scope: {}
  names: {{plural: movers, kind: Mover}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
)",
                                               namespaced ? "Namespaced" : "Cluster"));
    Kubectl({"wait", "--for=condition=Established", "crd/movers.scope.example.com", "--timeout=30s"});
  }
  void Remove() { Kubectl({"delete", "crd", "movers.scope.example.com", "--timeout=60s"}); }
  std::string Path(bool namespaced) const {
    const std::string version = "/apis/scope.example.com/v1/";
    return namespaced ? version + "namespaces/" + ns_ + "/movers" : version + "movers";
  }
  static http::ClientRequest Post(const std::string& path, const std::string& name) {
    return {"POST",
            path,
            {{"Content-Type", "application/json"}},
            R"({"apiVersion":"scope.example.com/v1","kind":"Mover","metadata":{"name":")" + name + "\"}}"};
  }
};

TEST_F(CustomScope, ChangesWhileObjectsAreWritten) {
  Define(true);
  std::mutex mutex;
  std::set<int> statuses;
  std::atomic<int> acknowledged{0};
  std::vector<std::jthread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer](std::stop_token stop) {
      const std::unique_ptr<http::Client> client = cluster_->NewClient("admin");
      for (int i = 0; !stop.stop_requested(); ++i) {
        // Of both scopes in turns.
        const auto made =
            client->Do(Post(Path(i % 2 == 0), fmt::format("m{}-{}", writer, i)), std::chrono::seconds(60));
        if (made && made->status == 201) ++acknowledged;
        const std::lock_guard lock(mutex);
        statuses.insert(made ? made->status : 0);
      }
    });
  }
  bool namespaced = true;
  for (int change = 0; change < kChanges; ++change) {
    // Each definition has objects before it goes.
    const int before = acknowledged;
    while (acknowledged == before) std::this_thread::yield();
    Remove();
    namespaced = !namespaced;
    Define(namespaced);
  }
  const int before = acknowledged;
  while (acknowledged == before) std::this_thread::yield();
  writers.clear();
  // Made; not there, or of the other scope; not at present.
  EXPECT_THAT(statuses, Each(AnyOf(201, 404, 405)));
  const json::value list = json::parse(cluster_->Do({"GET", Path(namespaced)}).body);
  EXPECT_FALSE(list.at("items").as_array().empty());
  for (const json::value& item : list.at("items").as_array()) {
    const json::object& metadata = item.at("metadata").as_object();
    EXPECT_EQ(metadata.contains("namespace"), namespaced);
    const std::string path = Path(namespaced) + "/" + std::string(metadata.at("name").as_string());
    EXPECT_EQ(cluster_->Do({"GET", path}).status, 200) << path;
  }
  EXPECT_EQ(cluster_->Do({"GET", Path(!namespaced) + "/m0-0"}).status, 404);
  EXPECT_EQ(cluster_->Do(Post(Path(namespaced), "last")).status, 201);
  Remove();
  EXPECT_EQ(cluster_->Do({"GET", Path(namespaced)}).status, 404);
}

}  // namespace
}  // namespace keelson::apiserver
