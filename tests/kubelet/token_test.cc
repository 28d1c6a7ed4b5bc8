// A projected service account token, from its first version to its rotation.
#include "kubelet/objects/api_object_source.h"
#include "kubelet/volume/testing/volume_test.h"
#include "lib/client/informer.h"
#include "tests/apiserver/cluster_test.h"

namespace keelson::kubelet {
namespace {

using std::chrono::seconds;

class TokenTest : public apiserver::ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    if (IsSkipped()) return;
    char name[] = "/tmp/token_test.XXXXXX";
    dir_ = ::mkdtemp(name);
    client::RestConfig config;
    config.server = cluster_->url();
    config.ca_pem = cluster_->pki().ca_pem();
    auto admin = cluster_->pki().Client("admin", {"system:masters"});
    config.certificate_pem = admin.certificate_pem;
    config.key_pem = admin.key_pem;
    auto transport = client::NewHttpTransport(config);
    ASSERT_TRUE(transport) << transport.error().message();
    api_ = std::make_unique<client::RestClient>(*transport);
  }
  void TearDown() override {
    if (!dir_.empty()) (void)RemoveTree(dir_);
  }

  // The token's user according to the API server; empty: invalid.
  std::string ReviewOf(const std::string& token, const std::string& audience) {
    authenticationv1::TokenReview review;
    review.mutable_spec()->set_token(token);
    review.mutable_spec()->add_audiences(audience);
    auto answer = api_->Create(review);
    EXPECT_TRUE(answer) << answer.error().message();
    if (!answer || !answer->status().authenticated()) return "";
    const auto& extra = answer->status().user().extra();
    auto pod = extra.find("authentication.kubernetes.io/pod-name");
    return answer->status().user().username() + " " +
           (pod == extra.end() || pod->second.items().empty() ? "" : pod->second.items(0));
  }

  std::string dir_;
  std::unique_ptr<client::RestClient> api_;
};

// Tokens are valid for at least 600 seconds, so the test moves the kubelet's clock.
TEST_F(TokenTest, IsReplacedWhenFourFifthsOfItsLifeAreOver) {
  corev1::Pod wish;
  auto decoded = api::DecodeJson(R"({"metadata":{"name":"p","namespace":")" + ns_ + R"("},"spec":{
      "containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"/v"}]}],
      "volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{
        "path":"token","audience":"vault","expirationSeconds":600}}]}}]}})",
                                 wish);
  ASSERT_TRUE(decoded) << decoded.error().message();
  auto pod = api_->Create(wish);
  ASSERT_TRUE(pod) << pod.error().message();

  FakeClock clock;
  client::InformerFactory informers(*api_);
  ApiObjectSource objects(*api_, informers.Get<corev1::Service>(), {}, clock);
  FakeMounter mounter;
  VolumeManager volumes(mounter, objects, NewVolumePlugins(mounter, objects, clock));
  NodeContext node;
  node.paths.root = dir_;
  const std::string file =
      node.paths.Volume(pod->metadata().uid(), "kubernetes.io/projected", "v") + "/token";
  auto mount = [&] {
    auto mounted = volumes.Mount(*pod, node, {});
    EXPECT_TRUE(mounted) << mounted.error().message();
    return ReadFile(file).value_or("");
  };
  const std::string first = mount();
  const std::string owner = "system:serviceaccount:" + ns_ + ":default p";
  EXPECT_EQ(ReviewOf(first, "vault"), owner);
  EXPECT_EQ(ReviewOf(first, "other"), "");
  clock.Advance(seconds(479));
  EXPECT_EQ(mount(), first);
  clock.Advance(seconds(2));
  const std::string second = mount();
  EXPECT_NE(second, first);
  EXPECT_EQ(ReviewOf(second, "vault"), owner);
  EXPECT_EQ(ReviewOf(first, "vault"), owner) << "who has read the old one may use it to its end";

  Kubectl({"delete", "pod", "p", "--grace-period=0", "--force"});
  EXPECT_EQ(ReviewOf(second, "vault"), "") << "bound to the pod";
  clock.Advance(seconds(601));
  auto gone = volumes.Mount(*pod, node, {});
  ASSERT_FALSE(gone);
  EXPECT_TRUE(gone.error().Is(Code::kNotFound)) << gone.error().message();
}

}  // namespace
}  // namespace keelson::kubelet
