// Reads of ConfigMaps by a kubelet with node permissions: each change detection strategy, over HTTP.
#include <gmock/gmock.h>

#include "kubelet/objects/object_store.h"
#include "lib/api/codec/codec.h"
#include "tests/apiserver/cluster_test.h"

namespace keelson::kubelet {
namespace {

using std::chrono::seconds;

class CountingTransport : public client::Transport {
 public:
  explicit CountingTransport(std::shared_ptr<client::Transport> way) : way_(std::move(way)) {}
  Result<client::ApiResponse> Do(const client::ApiRequest& request, std::chrono::milliseconds timeout,
                                 std::stop_token stop) override {
    ++reads;
    return way_->Do(request, timeout, std::move(stop));
  }
  Result<std::unique_ptr<client::ApiStream>> Open(const client::ApiRequest& request,
                                                  std::stop_token stop) override {
    return way_->Open(request, std::move(stop));
  }
  std::atomic<int> reads = 0;  // watches do not count: they may open late

 private:
  const std::shared_ptr<client::Transport> way_;
};

class ObjectStoreTest : public apiserver::ClusterTest, public ::testing::WithParamInterface<const char*> {
 protected:
  std::shared_ptr<CountingTransport> Transport(const std::string& user, const std::string& group) {
    client::RestConfig config;
    config.server = cluster_->url();
    config.ca_pem = cluster_->pki().ca_pem();
    const auto certificate = cluster_->pki().Client(user, {group});
    config.certificate_pem = certificate.certificate_pem;
    config.key_pem = certificate.key_pem;
    return std::make_shared<CountingTransport>(*client::NewHttpTransport(config));
  }
  static std::string WordOf(const Result<ObjectStore::Object>& object) {
    if (!object) return object.error().message();
    return static_cast<const corev1::ConfigMap&>(**object).data().at("word");
  }
  // Reads until it is `word`, for at most a minute.
  static std::string Await(ObjectStore& reader, const std::string& ns, const std::string& word) {
    const auto end = std::chrono::steady_clock::now() + seconds(60);
    std::string last;
    do last = WordOf(reader.Get(ns, "settings"));
    while (last != word && std::chrono::steady_clock::now() < end);
    return last;
  }
};

TEST_P(ObjectStoreTest, ANodeReadsWhatItsPodsReferTo) {
  const std::string node = std::string("node-") + ns_;
  Kubectl({"create", "-f", "-"}, R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")" + node + "\"}}");
  Kubectl({"create", "configmap", "settings", "--from-literal=word=old"});
  Kubectl({"create", "configmap", "other", "--from-literal=word=old"});
  Kubectl(
      {"create", "-f", "-"},
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":")" + node +
          R"(","containers":[{"name":"c","image":"i","envFrom":[{"configMapRef":{"name":"settings"}}]}]}})");
  auto transport = Transport("system:node:" + node, "system:nodes");
  ApiServerBackoff api_backoff(Clock::Real());
  auto reader =
      NewObjectStore(GetParam(), {client::RestClient(transport), api::ResourceOf<corev1::ConfigMap>(),
                                  api_backoff, [] { return seconds(0); }, Clock::Real()});
  ASSERT_EQ(Await(*reader, ns_, "old"), "old") << "the authorizer has seen the pod";
  EXPECT_EQ(WordOf(reader->Get(ns_, "settings")), "old");
  transport->reads = 0;
  Kubectl({"patch", "configmap", "settings", "-p", R"({"data":{"word":"new"}})"});
  EXPECT_EQ(Await(*reader, ns_, "new"), "new");
  EXPECT_EQ(transport->reads == 0, std::string(GetParam()) == "Watch") << transport->reads;
  Kubectl({"delete", "configmap", "settings"});
  const std::string gone = "configmaps \"settings\" not found";
  EXPECT_EQ(Await(*reader, ns_, gone), gone);
  EXPECT_THAT(WordOf(reader->Get(ns_, "other")), testing::HasSubstr("no relationship found"));
}

INSTANTIATE_TEST_SUITE_P(Strategies, ObjectStoreTest, ::testing::Values("Get", "Cache", "Watch"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace keelson::kubelet
