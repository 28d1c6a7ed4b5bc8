#include "kubelet/podresources/server.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "lib/base/file.h"
#include "lib/base/rate_limit.h"
#include "lib/metrics/metrics.h"
#include "lib/rpc/channel.h"

#include <google/protobuf/text_format.h>
#include <grpcpp/grpcpp.h>

#include "lib/rpc/proto/podresources.grpc.pb.h"
#include "lib/rpc/proto/podresources_v1alpha1.grpc.pb.h"

namespace keelson::kubelet::podresources {
namespace {

class FakeLister : public Lister {
 public:
  std::vector<PodResources> List() override { return {pod_}; }
  std::optional<PodResources> Get(const std::string& ns, const std::string& name) override {
    if (ns != pod_.ns || name != pod_.name) return std::nullopt;
    return pod_;
  }
  AllocatableResources Allocatable() override {
    return {{{"example.com/dev", "app-1", std::vector<int64_t>{1}}},
            {1, 2, 3},
            {{"hugepages-2Mi", 4 << 20, {0}}}};
  }

 private:
  const PodResources pod_{
      "web",
      "default",
      {{"sidecar", true, {{"example.com/dev", "sidecar-1", std::nullopt}}, {}, {}, {}},
       {"app",
        false,
        {{"example.com/dev", "app-1", std::vector<int64_t>{1}}, {"example.com/dev", "app-2", std::nullopt}},
        {2, 3},
        {{"memory", 1 << 20, {0, 1}}},
        {{"claim", "default", {{{"example.com/c=1"}, "driver.example.com", "pool", "dev-1", ""}}}}}}};
};

constexpr char kPod[] =
    "name: \"web\" namespace: \"default\" "
    "containers { name: \"sidecar\" "
    "devices { resource_name: \"example.com/dev\" device_ids: \"sidecar-1\" } } "
    "containers { name: \"app\" "
    "devices { resource_name: \"example.com/dev\" device_ids: \"app-1\" topology { nodes { ID: 1 } } } "
    "devices { resource_name: \"example.com/dev\" device_ids: \"app-2\" } "
    "cpu_ids: 2 cpu_ids: 3 "
    "memory { memory_type: \"memory\" size: 1048576 topology { nodes { } nodes { ID: 1 } } } "
    "dynamic_resources { claim_name: \"claim\" claim_namespace: \"default\" claim_resources { "
    "cdi_devices { name: \"example.com/c=1\" } driver_name: \"driver.example.com\" pool_name: \"pool\" "
    "device_name: \"dev-1\" } } }";

std::string OneLine(const google::protobuf::Message& message) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  printer.PrintToString(message, &text);
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

class PodResourcesTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/keelson-podresources-XXXXXX";
    ASSERT_TRUE(::mkdtemp(name));
    root_ = name;
    std::latch ready(1);
    thread_ = std::jthread([&](std::stop_token stop) {
      EXPECT_TRUE(RunServer(
          {root_ + "/pod-resources"}, lister_, stop, [&] { ready.count_down(); }, clock_));
    });
    ready.wait();
    stub_ = v1::PodResourcesLister::NewStub(rpc::UnixChannel(root_ + "/pod-resources/kubelet.sock"));
  }
  void TearDown() override {
    thread_.request_stop();
    thread_.join();
    EXPECT_FALSE(PathExists(root_ + "/pod-resources/kubelet.sock"));
    EXPECT_TRUE(RemoveTree(root_));
  }

  template <typename Reply, typename Method, typename Request>
  grpc::Status Ask(Method method, const Request& request, Reply& reply) {
    rpc::Call call(std::chrono::seconds(20));
    return ((*stub_).*method)(call.context(), request, &reply);
  }
  // The message as text, or what went wrong.
  template <typename Reply, typename Method, typename Request>
  std::string Text(Method method, const Request& request) {
    Reply reply;
    grpc::Status status = Ask(method, request, reply);
    if (!status.ok()) return rpc::GoError(status).message();
    return OneLine(reply);
  }

  using Stub = v1::PodResourcesLister::Stub;
  std::string root_;
  FakeClock clock_;
  FakeLister lister_;
  std::jthread thread_;
  std::unique_ptr<Stub> stub_;
};

TEST_F(PodResourcesTest, ListsWhatContainersHave) {
  EXPECT_EQ(Text<v1::ListPodResourcesResponse>(&Stub::List, v1::ListPodResourcesRequest()),
            "pod_resources { " + std::string(kPod) + " }");
}

TEST_F(PodResourcesTest, GetsOnePod) {
  v1::GetPodResourcesRequest request;
  request.set_pod_namespace("default");
  request.set_pod_name("web");
  EXPECT_EQ(Text<v1::GetPodResourcesResponse>(&Stub::Get, request),
            "pod_resources { " + std::string(kPod) + " }");
  request.set_pod_name("other");
  EXPECT_EQ(Text<v1::GetPodResourcesResponse>(&Stub::Get, request),
            "rpc error: code = Unknown desc = pod other in namespace default not found");
}

TEST_F(PodResourcesTest, TellsWhatCouldBeHad) {
  EXPECT_EQ(
      Text<v1::AllocatableResourcesResponse>(&Stub::GetAllocatableResources,
                                             v1::AllocatableResourcesRequest()),
      "devices { resource_name: \"example.com/dev\" device_ids: \"app-1\" topology { nodes { ID: 1 } } } "
      "cpu_ids: 1 cpu_ids: 2 cpu_ids: 3 "
      "memory { memory_type: \"hugepages-2Mi\" size: 4194304 topology { nodes { } } }");
}

TEST_F(PodResourcesTest, ListsForOlderClients) {
  auto stub = v1alpha1::PodResourcesLister::NewStub(rpc::UnixChannel(root_ + "/pod-resources/kubelet.sock"));
  v1alpha1::ListPodResourcesResponse reply;
  rpc::Call call(std::chrono::seconds(20));
  ASSERT_TRUE(stub->List(call.context(), v1alpha1::ListPodResourcesRequest(), &reply).ok());
  EXPECT_EQ(OneLine(reply),
            "pod_resources { name: \"web\" namespace: \"default\" containers { name: \"app\" "
            "devices { resource_name: \"example.com/dev\" device_ids: \"app-1\" } "
            "devices { resource_name: \"example.com/dev\" device_ids: \"app-2\" } } }");
}

TEST_F(PodResourcesTest, RefusesTooManyRequestsAndCountsTheRest) {
  auto counter = [](const std::string& name) {
    return metrics::Counter("kubelet_pod_resources_endpoint_" + name, "", {"server_api_version"})
        .With({"v1"})
        .Get();
  };
  double all = counter("requests_total"), lists = counter("requests_list"), errors = counter("errors_get");
  for (int i = 0; i < 9; ++i) {
    v1::ListPodResourcesResponse reply;
    EXPECT_TRUE(Ask(&Stub::List, v1::ListPodResourcesRequest(), reply).ok());
  }
  v1::GetPodResourcesResponse reply;
  EXPECT_FALSE(Ask(&Stub::Get, v1::GetPodResourcesRequest(), reply).ok());
  EXPECT_EQ(Text<v1::ListPodResourcesResponse>(&Stub::List, v1::ListPodResourcesRequest()),
            "rpc error: code = ResourceExhausted desc = rejected by rate limit");
  EXPECT_EQ(counter("requests_total"), all + 10);
  EXPECT_EQ(counter("requests_list"), lists + 9);
  EXPECT_EQ(counter("errors_get"), errors + 1);
}

TEST(RateLimit, FillsAtItsRateUpToTheBurst) {
  FakeClock clock;
  RateLimit limit(100, 10, clock);
  auto allowed = [&] {
    int count = 0;
    while (limit.Allow()) ++count;
    return count;
  };
  EXPECT_EQ(allowed(), 10);
  clock.Advance(std::chrono::milliseconds(31));
  EXPECT_EQ(allowed(), 3);
  clock.Advance(std::chrono::milliseconds(9));
  EXPECT_EQ(allowed(), 1) << "fractions add up";
  clock.Advance(std::chrono::minutes(1));
  EXPECT_EQ(allowed(), 10);
}

}  // namespace
}  // namespace keelson::kubelet::podresources
