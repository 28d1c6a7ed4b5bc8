// Two API servers, one without a version of the API that the other serves, as during an upgrade.
#include <gmock/gmock.h>

#include <fmt/format.h>

#include "lib/base/testing/eventually.h"
#include "tests/controlplane/servers.h"

namespace keelson::controlplane {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kJobs = "/apis/batch/v1/namespaces/default/jobs";

class VersionsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = TestCluster::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    const crypto::TestCertificate proxy = front_pki_.Client("front-proxy-client", {});
    const std::string certificate = front_pki_.dir() + "/proxy.crt", key = front_pki_.dir() + "/proxy.key";
    ASSERT_TRUE(WriteFile(certificate, proxy.certificate_pem) && WriteFile(key, proxy.key_pem, 0600));
    servers_ = std::make_unique<Servers>(
        2,
        std::vector<std::string>{"--proxy-client-cert-file=" + certificate, "--proxy-client-key-file=" + key,
                                 "--requestheader-client-ca-file=" + front_pki_.ca_file(),
                                 "--requestheader-allowed-names=front-proxy-client",
                                 "--requestheader-username-headers=X-Remote-User",
                                 "--requestheader-uid-headers=X-Remote-Uid",
                                 "--requestheader-group-headers=X-Remote-Group",
                                 "--requestheader-extra-headers-prefix=X-Remote-Extra-"},
        std::vector<std::vector<std::string>>{{}, {"--runtime-config=batch/v1=false"}});
  }
  Answer Do(size_t server, const std::string& method, const std::string& target,
            const std::string& body = "") {
    return servers_->Do(server, method, target, body);
  }
  // As another user than the administrator.
  int StatusFor(const std::string& user, size_t server, const std::string& target) {
    http::ClientRequest request;
    request.target = target;
    request.headers = {{"Impersonate-User", user}};
    return servers_->NewClient(server)->Do(request, seconds(30)).value().status;
  }
  std::string Discovery(size_t server, const std::string& more = "") {
    http::ClientRequest request;
    request.target = "/apis";
    request.headers = {
        {"Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" + more}};
    return servers_->NewClient(server)->Do(request, seconds(30)).value().body;
  }

  crypto::TestPki front_pki_;
  std::unique_ptr<Servers> servers_;
};

TEST_F(VersionsTest, AServerPassesOnWhatItDoesNotKnow) {
  ASSERT_TRUE(Eventually([&] { return Do(1, "GET", kJobs).status == 200; })) << servers_->Log(1);
  const std::string job =
      R"({"metadata":{"name":"one"},"spec":{"suspend":true,"template":{"spec":{"restartPolicy":"Never",)"
      R"("containers":[{"name":"c","image":"i"}]}}}})";
  const Answer made = Do(1, "POST", kJobs, job);
  EXPECT_EQ(made.status, 201) << made.body;
  EXPECT_THAT(Do(0, "GET", kJobs).body, HasSubstr("\"name\":\"one\""));
  EXPECT_EQ(Do(1, "GET", "/apis/batch/v1/namespaces/default/nothings").status, 404);
  EXPECT_EQ(Do(1, "DELETE", std::string(kJobs) + "/one").status, 200);

  // This server authorizes the request, and so does the peer.
  EXPECT_EQ(StatusFor("jane", 1, kJobs), 403);
  const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/";
  EXPECT_EQ(
      Do(0, "POST", rbac + "roles",
         R"({"metadata":{"name":"r"},"rules":[{"apiGroups":["batch"],"resources":["jobs"],"verbs":["list"]}]})")
          .status,
      201);
  EXPECT_EQ(
      Do(0, "POST", rbac + "rolebindings",
         R"({"metadata":{"name":"b"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"},)"
         R"("subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"jane"}]})")
          .status,
      201);
  EXPECT_TRUE(Eventually([&] { return StatusFor("jane", 1, kJobs) == 200; }));

  EXPECT_THAT(Discovery(1), HasSubstr("\"name\":\"batch\""));
  EXPECT_THAT(Discovery(1, ";profile=nopeer"), Not(HasSubstr("\"name\":\"batch\"")));
  EXPECT_EQ(Do(1, "GET", "/apis/batch").status, 404) << "plain discovery is this server's";

  // The peer dies, and comes back with another identity.
  servers_->End(0, SIGKILL);
  EXPECT_EQ(Do(1, "GET", kJobs).status, 503);
  servers_->Start(0);
  servers_->Ready(0);
  EXPECT_TRUE(Eventually([&] { return Do(1, "GET", kJobs).status == 200; })) << servers_->Log(1);
}

}  // namespace
}  // namespace keelson::controlplane
