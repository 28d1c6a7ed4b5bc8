#include "kubelet/cri/grpc_runtime.h"

#include <gtest/gtest.h>

#include <grpcpp/grpcpp.h>

#include "kubelet/cri/types.h"
#include "lib/base/file.h"
#include "lib/rpc/proto/cri.grpc.pb.h"
#include "lib/rpc/server.h"

namespace keelson::kubelet::cri {
namespace {

namespace v1 = runtime::v1;

// Every call that creates something for a pod fails with `answer`.
class FailingRuntime : public v1::RuntimeService::Service {
 public:
  grpc::Status RunPodSandbox(grpc::ServerContext*, const v1::RunPodSandboxRequest*,
                             v1::RunPodSandboxResponse*) override {
    return answer;
  }
  grpc::Status CreateContainer(grpc::ServerContext*, const v1::CreateContainerRequest*,
                               v1::CreateContainerResponse*) override {
    return answer;
  }
  grpc::Status StartContainer(grpc::ServerContext*, const v1::StartContainerRequest*,
                              v1::StartContainerResponse*) override {
    return answer;
  }
  grpc::Status answer;
};

class FailingImages : public v1::ImageService::Service {
 public:
  grpc::Status PullImage(grpc::ServerContext*, const v1::PullImageRequest*, v1::PullImageResponse*) override {
    return answer;
  }
  grpc::Status answer;
};

// Events and statuses of pods show these texts: people, and what they have written, look for them.
TEST(GrpcRuntimeTest, ErrorsAreToldAsOtherKubeletsTellThem) {
  char name[] = "/tmp/grpc_runtime_test.XXXXXX";
  const std::string dir = ::mkdtemp(name);
  FailingRuntime runtime;
  FailingImages images;
  auto server = rpc::UnixServer::Start(dir + "/cri.sock", {&runtime, &images});
  ASSERT_TRUE(server) << server.error().message();
  GrpcServices services = NewGrpcServices({.endpoint = "unix://" + dir + "/cri.sock", .image_endpoint = ""});
  struct Case {
    grpc::StatusCode code;
    const char *message, *sandbox, *container, *image;
  } cases[] = {
      {grpc::StatusCode::UNKNOWN, "RegistryUnavailable: try later",
       "rpc error: code = Unknown desc = RegistryUnavailable: try later", "RegistryUnavailable: try later",
       "RegistryUnavailable: try later"},
      {grpc::StatusCode::NOT_FOUND, "no such image", "rpc error: code = NotFound desc = no such image",
       "no such image", "rpc error: code = NotFound desc = no such image"},
  };
  for (const Case& c : cases) {
    runtime.answer = images.answer = grpc::Status(c.code, c.message);
    EXPECT_EQ(services.runtime->RunPodSandbox({}, "").error().message(), c.sandbox);
    EXPECT_EQ(services.runtime->CreateContainer("s", {}, {}).error().message(), c.container);
    EXPECT_EQ(services.runtime->StartContainer("c").error().message(), c.container);
    EXPECT_EQ(services.images->PullImage("i", std::nullopt, {}).error().message(), c.image);
  }
  EXPECT_TRUE(services.images->PullImage("i", std::nullopt, {}).error().Is(Code::kNotFound));
  server->reset();
  EXPECT_TRUE(RemoveTree(dir));
}

}  // namespace
}  // namespace keelson::kubelet::cri
