// Starts and removes pods with the CRI calls of a kubelet for a pod with one container: the lower bound for a
// kubelet on the same runtime. Prints milliseconds, one line per pod and step:
//   start MS   from the first call until the container is seen running
//   stop MS    from StopContainer until the sandbox is removed
// With --at-once both count from a common start.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <CLI/CLI.hpp>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/rpc/channel.h"
#include "lib/rpc/proto/cri.grpc.pb.h"

namespace keelson {
namespace {

namespace cri = ::runtime::v1;

struct Options {
  std::string endpoint, image, cgroup_parent, log_dir;
  int pods = 30;
  bool at_once = false;
};

struct Pod {
  std::string sandbox, container;
};

using SteadyTime = std::chrono::steady_clock::time_point;

double MillisecondsSince(SteadyTime begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

class Runtime {
 public:
  explicit Runtime(const Options& options)
      : options_(options),
        runtime_(cri::RuntimeService::NewStub(rpc::PlainChannel(options.endpoint))),
        images_(cri::ImageService::NewStub(rpc::PlainChannel(options.endpoint))) {}

  Result<Pod> Start(int number) {
    cri::RunPodSandboxRequest sandbox;
    cri::PodSandboxConfig& config = *sandbox.mutable_config();
    const std::string name = fmt::format("bare-{}-{}", ::getpid(), number);
    config.mutable_metadata()->set_name(name);
    config.mutable_metadata()->set_uid(name);
    config.mutable_metadata()->set_namespace_("bare");
    config.set_hostname(name);
    config.set_log_directory(options_.log_dir + "/" + name);
    config.mutable_linux()->set_cgroup_parent(options_.cgroup_parent);
    KEELSON_RETURN_IF_ERROR(MakeDirs(config.log_directory()));
    cri::RunPodSandboxResponse made;
    KEELSON_RETURN_IF_ERROR(Make("run sandbox", &cri::RuntimeService::Stub::RunPodSandbox, sandbox, made));
    cri::PodSandboxStatusRequest ask;
    ask.set_pod_sandbox_id(made.pod_sandbox_id());
    cri::PodSandboxStatusResponse sandbox_status;
    KEELSON_RETURN_IF_ERROR(
        Make("sandbox status", &cri::RuntimeService::Stub::PodSandboxStatus, ask, sandbox_status));

    cri::ImageStatusRequest image;
    image.mutable_image()->set_image(options_.image);
    cri::ImageStatusResponse image_status;
    rpc::Call image_call(kTimeout);
    KEELSON_RETURN_IF_ERROR(
        image_call.Done(images_->ImageStatus(image_call.context(), image, &image_status), "image status"));

    cri::CreateContainerRequest create;
    create.set_pod_sandbox_id(made.pod_sandbox_id());
    *create.mutable_sandbox_config() = config;
    create.mutable_config()->mutable_metadata()->set_name("main");
    create.mutable_config()->mutable_image()->set_image(options_.image);
    create.mutable_config()->set_log_path("main.log");
    cri::CreateContainerResponse created;
    KEELSON_RETURN_IF_ERROR(
        Make("create container", &cri::RuntimeService::Stub::CreateContainer, create, created));
    cri::StartContainerRequest start;
    start.set_container_id(created.container_id());
    cri::StartContainerResponse started;
    KEELSON_RETURN_IF_ERROR(
        Make("start container", &cri::RuntimeService::Stub::StartContainer, start, started));
    cri::ContainerStatusRequest look;
    look.set_container_id(created.container_id());
    cri::ContainerStatusResponse seen;
    KEELSON_RETURN_IF_ERROR(
        Make("container status", &cri::RuntimeService::Stub::ContainerStatus, look, seen));
    if (seen.status().state() != cri::CONTAINER_RUNNING) {
      return Error(Code::kInternal, name + ": not running");
    }
    return Pod{made.pod_sandbox_id(), created.container_id()};
  }

  Result<> Remove(const Pod& pod) {
    cri::StopContainerRequest end;
    end.set_container_id(pod.container);
    end.set_timeout(30);
    cri::StopContainerResponse ended;
    KEELSON_RETURN_IF_ERROR(Make("stop container", &cri::RuntimeService::Stub::StopContainer, end, ended));
    cri::StopPodSandboxRequest stop;
    stop.set_pod_sandbox_id(pod.sandbox);
    cri::StopPodSandboxResponse stopped;
    KEELSON_RETURN_IF_ERROR(Make("stop sandbox", &cri::RuntimeService::Stub::StopPodSandbox, stop, stopped));
    cri::RemovePodSandboxRequest remove;
    remove.set_pod_sandbox_id(pod.sandbox);
    cri::RemovePodSandboxResponse removed;
    return Make("remove sandbox", &cri::RuntimeService::Stub::RemovePodSandbox, remove, removed);
  }

 private:
  static constexpr std::chrono::milliseconds kTimeout{60000};

  template <typename Method, typename Request, typename Response>
  Result<> Make(const char* what, Method method, const Request& request, Response& response) {
    rpc::Call call(kTimeout);
    return call.Done(((*runtime_).*method)(call.context(), request, &response), what);
  }

  const Options& options_;
  std::unique_ptr<cri::RuntimeService::Stub> runtime_;
  std::unique_ptr<cri::ImageService::Stub> images_;
};

// Runs `step` for 0..count-1, sequentially or concurrently, and prints each duration. Returns the first error
// when all have ended.
Result<> Timed(const char* name, int count, bool at_once, const std::function<Result<>(int number)>& step) {
  const SteadyTime common = std::chrono::steady_clock::now();
  auto one = [&](int number) -> Result<> {
    const SteadyTime begin = at_once ? common : std::chrono::steady_clock::now();
    KEELSON_RETURN_IF_ERROR(step(number));
    std::printf("%s %.1f\n", name, MillisecondsSince(begin));
    return {};
  };
  std::vector<std::future<Result<>>> running;
  Result<> outcome;
  for (int i = 0; i < count; ++i) {
    running.push_back(std::async(at_once ? std::launch::async : std::launch::deferred, one, i));
    if (!at_once) running.back().wait();
  }
  for (auto& each : running) {
    if (Result<> ended = each.get(); !ended && outcome) outcome = ended;
  }
  return outcome;
}

Result<> Run(const Options& options) {
  Runtime runtime(options);
  std::vector<std::optional<Pod>> pods(options.pods);  // those that were started
  Result<> started = Timed("start", options.pods, options.at_once, [&](int number) -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(pods[number], runtime.Start(number));
    return {};
  });
  std::erase(pods, std::nullopt);
  Result<> removed = Timed("stop", static_cast<int>(pods.size()), options.at_once,
                           [&](int number) { return runtime.Remove(*pods[number]); });
  return started ? removed : started;
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  keelson::Options options;
  CLI::App app("Pods by bare CRI calls, timed");
  app.add_option("--endpoint", options.endpoint, "unix:///path of the runtime")->required();
  app.add_option("--image", options.image, "image of the one container")->required();
  app.add_option("--cgroup-parent", options.cgroup_parent, "cgroup of the pods");
  app.add_option("--log-dir", options.log_dir, "where container logs go")->required();
  app.add_option("--pods", options.pods, "how many");
  app.add_flag("--at-once", options.at_once, "all together, and not one after another");
  CLI11_PARSE(app, argc, argv);
  if (auto result = keelson::Run(options); !result) {
    std::fprintf(stderr, "cri_pods: %s\n", result.error().message().c_str());
    return 1;
  }
  return 0;
}
