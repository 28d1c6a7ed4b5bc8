// Three API servers on one etcd, under load and with clocks that differ: what each of them keeps in its memory must not show.
#include <gmock/gmock.h>

#include <atomic>
#include <set>

#include <fmt/format.h>

#include "lib/base/mutex.h"
#include "lib/base/testing/eventually.h"
#include "tests/controlplane/servers.h"

namespace keelson::controlplane {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr size_t kCount = 3;

class ServersTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    missing_ = TestCluster::Missing();
    if (missing_.empty()) {
      // Their clocks differ as far as tokens bear it.
      servers_ =
          std::make_unique<Servers>(kCount, std::vector<std::string>{"--shutdown-delay-duration=500ms"},
                                    std::vector<std::vector<std::string>>{}, std::vector<int>{0, 25, -25});
    }
  }
  static void TearDownTestSuite() { servers_.reset(); }
  void SetUp() override {
    if (!missing_.empty()) GTEST_SKIP() << missing_;
    ns_ = fmt::format("t{}", ++made_);
    ASSERT_EQ(
        Do(0, "POST", "/api/v1/namespaces", fmt::format(R"({{"metadata":{{"name":"{}"}}}})", ns_)).status,
        201);
  }

  static Answer Do(size_t server, const std::string& method, const std::string& target,
                   const std::string& body = "") {
    return servers_->Do(server, method, target, body);
  }
  std::string Path(const std::string& resource, const std::string& name = "") const {
    return "/api/v1/namespaces/" + ns_ + "/" + resource + (name.empty() ? "" : "/" + name);
  }
  static std::string Named(const std::string& name, const std::string& more = "") {
    return fmt::format(R"({{"metadata":{{"name":"{}"}}{}}})", name, more);
  }
  // Threads with a number and a client to each server.
  using Clients = std::vector<std::unique_ptr<http::Client>>;
  static void AtOnce(size_t threads, const std::function<void(size_t number, Clients& clients)>& work) {
    std::vector<std::jthread> running;
    for (size_t i = 0; i < threads; ++i) {
      running.emplace_back([i, &work] {
        Clients clients;
        for (size_t server = 0; server < kCount; ++server) clients.push_back(servers_->NewClient(server));
        work(i, clients);
      });
    }
  }
  // All values of a field in a list.
  static std::vector<std::string> All(const std::string& text, const std::string& mark) {
    std::vector<std::string> out;
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
      const size_t begin = at + mark.size();
      out.push_back(text.substr(begin, text.find_first_of("\",}", begin) - begin));
    }
    return out;
  }

  inline static std::string missing_;
  inline static std::unique_ptr<Servers> servers_;
  inline static int made_ = 0;
  std::string ns_;
};

TEST_F(ServersTest, TheirClocksDiffer) {
  if (!Servers::kMovesClocks) GTEST_SKIP() << "a sanitizer's library has to be the first that is loaded";
  const Answer ahead = Do(1, "POST", Path("configmaps"), Named("first")),
               behind = Do(2, "POST", Path("configmaps"), Named("second"));
  ASSERT_EQ(ahead.status, 201);
  ASSERT_EQ(behind.status, 201);
  EXPECT_GT(ahead.Field("creationTimestamp"), behind.Field("creationTimestamp"));
}

TEST_F(ServersTest, QuotasAreNeverExceeded) {
  constexpr int kHard = 20;
  ASSERT_EQ(Do(0, "POST", Path("resourcequotas"),
               Named("q", fmt::format(R"(,"spec":{{"hard":{{"count/secrets":"{}"}}}})", kHard)))
                .status,
            201);
  // A quota holds once its status names what is used.
  ASSERT_TRUE(Eventually([&] {
    return Do(1, "GET", Path("resourcequotas", "q")).body.find("\"used\":{\"count/secrets\"") !=
           std::string::npos;
  }));
  std::atomic<int> admitted{0}, refused{0};
  AtOnce(6, [&](size_t number, Clients& clients) {
    for (int i = 0; i < 8; ++i) {
      Answer answer;
      do {  // many charges at a time may lose their race with each other
        answer = Servers::Do(*clients[(number + static_cast<size_t>(i)) % kCount], "POST", Path("secrets"),
                             Named(fmt::format("s-{}-{}", number, i)));
      } while (answer.status == 409 && answer.Field("reason") == "Conflict");
      if (answer.status == 201) {
        ++admitted;
      } else {
        EXPECT_EQ(answer.status, 403) << answer.body << answer.error;
        EXPECT_THAT(answer.body, HasSubstr("exceeded quota"));
        ++refused;
      }
    }
  });
  EXPECT_EQ(admitted.load(), kHard);
  EXPECT_EQ(refused.load(), 6 * 8 - kHard);
  // A server refuses by the newest quota, though another one has raised it.
  for (int more = 1; more <= 10; ++more) {
    ASSERT_EQ(Do(0, "PATCH", Path("resourcequotas", "q"),
                 fmt::format(R"({{"spec":{{"hard":{{"count/secrets":"{}"}}}}}})", kHard + more))
                  .status,
              200);
    ASSERT_TRUE(Eventually([&] {
      return Do(0, "GET", Path("resourcequotas", "q"))
                 .body.find(fmt::format(R"("status":{{"hard":{{"count/secrets":"{}")", kHard + more)) !=
             std::string::npos;
    }));
    const Answer answer =
        Do(1 + static_cast<size_t>(more % 2), "POST", Path("secrets"), Named(fmt::format("more-{}", more)));
    EXPECT_EQ(answer.status, 201) << answer.body;
  }
}

TEST_F(ServersTest, AddressesAndPortsAreGivenOnce) {
  const auto service = [](const std::string& name, int node_port) {
    return Named(name, fmt::format(R"(,"spec":{{"type":"NodePort","ports":[{{"port":80{}}}]}})",
                                   node_port ? fmt::format(R"(,"nodePort":{})", node_port) : ""));
  };
  AtOnce(6, [&](size_t number, Clients& clients) {
    for (int i = 0; i < 12; ++i) {
      const Answer answer = Servers::Do(*clients[(number + static_cast<size_t>(i)) % kCount], "POST",
                                        Path("services"), service(fmt::format("s-{}-{}", number, i), 0));
      EXPECT_EQ(answer.status, 201) << answer.body << answer.error;
    }
  });
  const std::string list = Do(2, "GET", Path("services")).body;
  for (const char* field : {"\"clusterIP\":\"", "\"nodePort\":"}) {
    const std::vector<std::string> values = All(list, field);
    EXPECT_THAT(values, SizeIs(72)) << field;
    EXPECT_THAT((std::set<std::string>(values.begin(), values.end())), SizeIs(72)) << field;
  }
  // The same port through all servers at once, of those that none of the above has got: they come from the upper part.
  for (int port = 30001; port <= 30005; ++port) {
    std::atomic<int> created{0};
    AtOnce(kCount, [&](size_t number, Clients& clients) {
      const Answer answer = Servers::Do(*clients[number], "POST", Path("services"),
                                        service(fmt::format("p-{}-{}", port, number), port));
      if (answer.status == 201) {
        ++created;
      } else {
        EXPECT_EQ(answer.status, 422) << answer.body << answer.error;
      }
    });
    EXPECT_EQ(created.load(), 1) << port;
  }
}

TEST_F(ServersTest, WhatOneHasWrittenTheOthersRead) {
  AtOnce(4, [&](size_t number, Clients& clients) {
    for (size_t i = 0; i < 25; ++i) {
      http::Client &a = *clients[(number + i) % kCount], &b = *clients[(number + i + 1) % kCount],
                   &c = *clients[(number + i + 2) % kCount];
      const std::string name = fmt::format("c-{}-{}", number, i), mark = "\"name\":\"" + name + "\"";
      const Answer created = Servers::Do(a, "POST", Path("configmaps"), Named(name));
      ASSERT_EQ(created.status, 201) << created.body << created.error;
      const std::string revision = created.Field("resourceVersion");
      EXPECT_THAT(Servers::Do(b, "GET", Path("configmaps")).body, HasSubstr(mark));
      EXPECT_THAT(Servers::Do(c, "GET", Path("configmaps") + "?resourceVersion=" + revision).body,
                  HasSubstr(mark));
      EXPECT_EQ(Servers::Do(c, "GET", Path("configmaps", name) + "?resourceVersion=" + revision).status, 200);
      // An update by what another server has shown.
      const std::string body = fmt::format(
          R"({{"metadata":{{"name":"{}","resourceVersion":"{}"}},"data":{{"a":"1"}}}})", name, revision);
      EXPECT_EQ(Servers::Do(c, "PUT", Path("configmaps", name), body).status, 200);
      EXPECT_EQ(Servers::Do(b, "PUT", Path("configmaps", name), body).status, 409) << "an update was lost";
      EXPECT_EQ(Servers::Do(b, "DELETE", Path("configmaps", name)).status, 200);
      EXPECT_EQ(Servers::Do(a, "GET", Path("configmaps", name)).status, 404);
      EXPECT_THAT(Servers::Do(c, "GET", Path("configmaps")).body, Not(HasSubstr(mark)));
    }
  });
}

TEST_F(ServersTest, ANamespaceThatWasMadeAgainIsUsable) {
  for (size_t i = 0; i < 6; ++i) {
    const std::string name = ns_ + "-again", path = "/api/v1/namespaces/" + name;
    ASSERT_EQ(Do(i % kCount, "POST", "/api/v1/namespaces", Named(name)).status, 201);
    const Answer made = Do((i + 1) % kCount, "POST", path + "/configmaps", Named("x"));
    EXPECT_EQ(made.status, 201) << made.body;
    ASSERT_EQ(Do(i % kCount, "DELETE", path).status, 200);
    ASSERT_TRUE(Eventually([&] { return Do(i % kCount, "GET", path).status == 404; }));
  }
}

TEST_F(ServersTest, ADefinitionThatIsEstablishedIsServedByAll) {
  for (size_t i = 0; i < 12; ++i) {
    const std::string plural = fmt::format("things{}", i),
                      crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const std::string name = plural + ".example.com";
    const std::string body = fmt::format(
        R"({{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"{0}"}},)"
        R"("spec":{{"group":"example.com","scope":"Namespaced","names":{{"plural":"{1}","singular":"thing{2}",)"
        R"("kind":"Thing{2}","listKind":"Thing{2}List"}},"versions":[{{"name":"v1","served":true,"storage":true,)"
        R"("schema":{{"openAPIV3Schema":{{"type":"object"}}}}}}]}}}})",
        name, plural, i);
    const size_t a = i % kCount, b = (i + 1) % kCount, c = (i + 2) % kCount;
    const Answer defined = Do(a, "POST", crds, body);
    ASSERT_EQ(defined.status, 201) << defined.body;
    ASSERT_TRUE(Eventually([&] {
      return Do(a, "GET", crds + "/" + name).body.find("\"InitialNamesAccepted\"") != std::string::npos;
    }));
    const std::string path = "/apis/example.com/v1/namespaces/" + ns_ + "/" + plural;
    const Answer made =
        Do(b, "POST", path,
           fmt::format(R"({{"apiVersion":"example.com/v1","kind":"Thing{}","metadata":{{"name":"x"}}}})", i));
    EXPECT_EQ(made.status, 201) << made.status << made.body;
    const Answer listed = Do(c, "GET", path);
    EXPECT_EQ(listed.status, 200);
    EXPECT_THAT(listed.body, HasSubstr("\"name\":\"x\""));
  }
  EXPECT_EQ(Do(0, "GET", "/apis/example.com/v1/namespaces/" + ns_ + "/nothings").status, 404);
}

// In v1beta1, where what all versions share stands in the spec.
TEST_F(ServersTest, ADefinitionThatKubeApiserverStoredIsServedAsItIs) {
  const std::string key = "/registry/apiextensions.k8s.io/customresourcedefinitions/gadgets.example.org";
  const std::string names =
      R"({"plural":"gadgets","singular":"gadget","kind":"Gadget","listKind":"GadgetList"})";
  const std::string value =
      R"({"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","metadata":{"name":"gadgets.example.org",)"
      R"("uid":"8a9f6a52-0000-4000-8000-000000000001","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z"},)"
      R"("spec":{"group":"example.org","version":"v1","names":)" +
      names +
      R"(,"scope":"Namespaced","validation":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",)"
      R"("properties":{"size":{"type":"integer","maximum":9},"color":{"type":"string","default":"red"}}},"status":{"type":"object",)"
      R"("properties":{"seen":{"type":"integer"}}}}}},"subresources":{"status":{}},)"
      R"("versions":[{"name":"v1","served":true,"storage":true}],"conversion":{"strategy":"None"},"preserveUnknownFields":false},)"
      R"("status":{"conditions":[{"type":"NamesAccepted","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z",)"
      R"("reason":"NoConflicts","message":"no conflicts found","observedGeneration":1},{"type":"Established","status":"True",)"
      R"("lastTransitionTime":"2026-01-01T00:00:00Z","reason":"InitialNamesAccepted",)"
      R"("message":"the initial names have been accepted","observedGeneration":1}],"acceptedNames":)" +
      names + R"(,"storedVersions":["v1"],"observedGeneration":1}})";
  const etcd::Limits limits{SteadyTime::clock::now() + seconds(60), {}};
  const auto put = servers_->etcd().PutIf(key, value + "\n", 0, 0, limits);
  ASSERT_TRUE(put && put->succeeded);
  const std::string path = "/apis/example.org/v1/namespaces/" + ns_ + "/gadgets";
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(Eventually([&] { return Do(i, "GET", path).status == 200; }));
    const std::string name = fmt::format("g{}", i);
    const auto gadget = [&](int size) {
      return fmt::format(
          R"({{"apiVersion":"example.org/v1","kind":"Gadget","metadata":{{"name":"{}"}},"spec":{{"size":{},"more":1}},"status":{{"seen":1}}}})",
          name, size);
    };
    EXPECT_EQ(Do(i, "POST", path, gadget(10)).status, 422);
    const Answer made = Do(i, "POST", path, gadget(9));
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_THAT(made.body, HasSubstr(R"("color":"red")"));
    EXPECT_THAT(made.body, Not(HasSubstr(R"("more")")));
    EXPECT_THAT(made.body, Not(HasSubstr(R"("seen")")));
    const Answer seen = Do(i, "PATCH", path + "/" + name + "/status", R"({"status":{"seen":2}})");
    EXPECT_EQ(seen.status, 200) << seen.body;
    EXPECT_THAT(
        Do(i, "GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.org").body,
        HasSubstr(R"("maximum":9)"));
  }
  const auto stored = servers_->etcd().Range(key, {}, limits);
  ASSERT_TRUE(stored);
  ASSERT_THAT(stored->kvs, SizeIs(1));
  EXPECT_EQ(stored->kvs[0].mod_revision, put->revision) << stored->kvs[0].value;
}

TEST_F(ServersTest, ATokenOfOneIsGoodAtAll) {
  ASSERT_TRUE(Eventually([&] { return Do(0, "GET", Path("serviceaccounts", "default")).status == 200; }));
  for (size_t issuer = 0; issuer < kCount; ++issuer) {
    const Answer issued = Do(issuer, "POST", Path("serviceaccounts", "default/token"),
                             R"({"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{}})");
    ASSERT_EQ(issued.status, 201) << issued.body;
    for (size_t server = 0; server < kCount; ++server) {
      http::ClientRequest request;
      request.method = "POST";
      request.target = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
      request.headers = {{"Authorization", "Bearer " + issued.Field("token")},
                         {"Content-Type", "application/json"}};
      request.body = R"({"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"})";
      const auto answer = servers_->NewClient(server, true)->Do(request, seconds(30));
      ASSERT_TRUE(answer) << answer.error().message();
      EXPECT_EQ(answer->status, 201) << issuer << " " << server << " " << answer->body;
      EXPECT_THAT(answer->body, HasSubstr("system:serviceaccount:" + ns_ + ":default"));
    }
  }
}

TEST_F(ServersTest, TheyKnowOfEachOther) {
  ASSERT_TRUE(Eventually([&] {
    const std::string body = Do(0, "GET", "/api/v1/namespaces/default/endpoints/kubernetes").body;
    return All(body, "\"ip\":\"") == std::vector<std::string>{"192.0.2.10", "192.0.2.11", "192.0.2.12"};
  }));
  // All are on one host.
  const Answer leases = Do(1, "GET",
                           "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
                           "?labelSelector=apiserver.kubernetes.io/identity%3Dkube-apiserver");
  EXPECT_THAT(All(leases.body, "\"holderIdentity\":\"apiserver-"), SizeIs(1)) << leases.body;
}

// The API server, and with it a member of etcd, goes on where the scheduler or the controllers lose their election.
TEST_F(ServersTest, ALostElectionCostsNoServer) {
  for (const std::string name : {"kube-controller-manager", "kube-scheduler"}) {
    const std::string lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/" + name;
    const auto holder = [&] { return Do(1, "GET", lease).Field("holderIdentity"); };
    ASSERT_TRUE(Eventually([&] { return !holder().empty(); })) << name;
    ASSERT_EQ(Do(1, "PATCH", lease,
                 R"({"spec":{"holderIdentity":"another","leaseDurationSeconds":3,)"
                 R"("renewTime":"2026-01-01T00:00:00.000000Z"}})")
                  .status,
              200);
    EXPECT_EQ(holder(), "another") << name;
    EXPECT_TRUE(Eventually([&] { return holder() != "another"; })) << "no process leads again";
    EXPECT_TRUE(servers_->Running(0)) << servers_->Log(0);
    EXPECT_EQ(Do(0, "GET", "/readyz").status, 200);
  }
  EXPECT_THAT(servers_->Log(0), HasSubstr("Leader election lost"));
  // The controllers work again.
  const std::string after = ns_ + "-after";
  ASSERT_EQ(Do(1, "POST", "/api/v1/namespaces", Named(after)).status, 201);
  EXPECT_TRUE(Eventually([&] {
    return Do(1, "GET", "/api/v1/namespaces/" + after + "/serviceaccounts/default").status == 200;
  }));
}

// Clients that repeat requests as client-go does see no failure, and nothing that was acknowledged is lost.
TEST_F(ServersTest, ARollingRestartFailsNoRequest) {
  std::atomic<bool> over{false};
  Mutex mutex;
  std::vector<std::string> acknowledged;
  std::vector<std::jthread> clients;
  for (size_t i = 0; i < 6; ++i) {
    clients.emplace_back([&, i] {
      RetryingClient client(*servers_, i % kCount);
      for (int n = 0; !over; ++n) {
        const std::string name = fmt::format("r-{}-{}", i, n);
        const Answer created = client.Do("POST", Path("configmaps"), Named(name));
        EXPECT_EQ(created.status, 201) << created.body << created.error;
        const Answer read = client.Do("GET", Path("configmaps", name));
        EXPECT_EQ(read.status, 200) << read.body << read.error;
        if (created.status != 201) continue;
        MutexLock lock(mutex);
        acknowledged.push_back(name);
      }
    });
  }
  const auto count = [&] {
    MutexLock lock(mutex);
    return acknowledged.size();
  };
  for (size_t server = 0; server < kCount; ++server) {
    const size_t before = count();
    ASSERT_TRUE(Eventually([&] { return count() >= before + 20; }));
    EXPECT_EQ(servers_->End(server, SIGTERM), 0) << servers_->Log(server);
    const std::string address = fmt::format("\"192.0.2.{}\"", 10 + server);
    const size_t other = (server + 1) % kCount;
    // A server that had read the leases just before may write once more, until its next turn.
    EXPECT_TRUE(Eventually([&] {
      return Do(other, "GET", "/api/v1/namespaces/default/endpoints/kubernetes").body.find(address) ==
             std::string::npos;
    }));
    const size_t without = count();
    ASSERT_TRUE(Eventually([&] { return count() >= without + 20; })) << "the others do not go on";
    servers_->Start(server);
    servers_->Ready(server);
    ASSERT_TRUE(Eventually([&] {
      return Do(other, "GET", "/api/v1/namespaces/default/endpoints/kubernetes").body.find(address) !=
             std::string::npos;
    }));
  }
  over = true;
  clients.clear();
  const std::string list = Do(0, "GET", Path("configmaps")).body;
  for (const std::string& name : acknowledged) EXPECT_THAT(list, HasSubstr("\"name\":\"" + name + "\""));
}

}  // namespace
}  // namespace keelson::controlplane
