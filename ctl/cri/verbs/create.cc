// nodectl runp, create, run
#include <iostream>

#include "ctl/cri/lifecycle.h"
#include "ctl/cri/verbs/add.h"
#include "ctl/cri/verbs/pull_flags.h"
#include "lib/component/flag_adder.h"

namespace keelson::ctl {
namespace {

struct CreateOptions {
  std::string pod, container_config, pod_config, handler;
  bool no_pull = false, with_pull = false;
  PullFlags pull;
  std::chrono::nanoseconds timeout{0};

  std::chrono::milliseconds Timeout() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(timeout);
  }
};

Result<std::string> RunPod(CriClient& client, const cri::PodSandboxConfig& config, const std::string& handler,
                           std::chrono::milliseconds timeout) {
  cri::RunPodSandboxRequest request;
  *request.mutable_config() = config;
  request.set_runtime_handler(handler);
  const auto reply = client.Call(&RuntimeStub::RunPodSandbox, request, timeout);
  if (!reply) return reply.error().Wrap("run pod sandbox");
  return reply->pod_sandbox_id();
}

// The container's image, and images that it mounts.
Result<> PullFor(CriClient& client, const cri::ContainerConfig& config, const cri::PodSandboxConfig& pod,
                 const PullFlags& flags) {
  cri::PullImageRequest request;
  KEELSON_RETURN_IF_ERROR(flags.Authenticate(request));
  *request.mutable_sandbox_config() = pod;
  std::vector<std::string> images = {config.image().image()};
  for (const cri::Mount& mount : config.mounts()) {
    if (!mount.image().image().empty()) images.push_back(mount.image().image());
  }
  for (const std::string& image : images) {
    request.mutable_image()->set_image(image);
    *request.mutable_image()->mutable_annotations() = config.image().annotations();
    KEELSON_RETURN_IF_ERROR(PullImage(client, request, flags.Timeout()));
  }
  return {};
}

Result<std::string> CreateIn(CriClient& client, const std::string& pod_id, const cri::PodSandboxConfig& pod,
                             const cri::ContainerConfig& config, bool pull, const CreateOptions& options) {
  if (pull) KEELSON_RETURN_IF_ERROR(PullFor(client, config, pod, options.pull));
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(pod_id);
  *request.mutable_config() = config;
  *request.mutable_sandbox_config() = pod;
  const auto reply = client.Call(&RuntimeStub::CreateContainer, request, options.Timeout());
  if (!reply) return reply.error().Wrap("creating container");
  return reply->container_id();
}

Result<int> CreateAlone(CriClient& client, const CreateOptions& options) {
  KEELSON_ASSIGN_OR_RETURN(const cri::ContainerConfig config, ReadContainerConfig(options.container_config));
  KEELSON_ASSIGN_OR_RETURN(const cri::PodSandboxConfig pod, ReadPodConfig(options.pod_config));
  const bool pull = options.with_pull || (!options.no_pull && client.connection().pull_image_on_create);
  KEELSON_ASSIGN_OR_RETURN(const std::string id, CreateIn(client, options.pod, pod, config, pull, options));
  std::cout << id << "\n";
  return 0;
}

Result<int> RunAll(CriClient& client, const CreateOptions& options) {
  KEELSON_ASSIGN_OR_RETURN(const cri::ContainerConfig config, ReadContainerConfig(options.container_config));
  KEELSON_ASSIGN_OR_RETURN(const cri::PodSandboxConfig pod, ReadPodConfig(options.pod_config));
  const bool pull = options.with_pull || (!options.no_pull && !client.connection().disable_pull_on_run);
  KEELSON_ASSIGN_OR_RETURN(const std::string pod_id, RunPod(client, pod, options.handler, {}));
  KEELSON_ASSIGN_OR_RETURN(const std::string id, CreateIn(client, pod_id, pod, config, pull, options));
  KEELSON_RETURN_IF_ERROR(StartContainer(client, id));
  return 0;
}

void AddPull(CLI::App& verb, CreateOptions& options) {
  CLI::Option* no_pull = verb.add_flag("--no-pull", options.no_pull, "Do not pull the image first");
  verb.add_flag("--with-pull", options.with_pull, "Pull the image first")->excludes(no_pull);
  options.pull.AddTo(verb);
}
void AddTimeout(CLI::App& verb, CreateOptions& options) {
  component::FlagAdder{verb}("-T,--cancel-timeout", options.timeout,
                             "How long the runtime may take; 0s: without an end");
}

}  // namespace

void AddCriCreate(const CriVerbs& verbs) {
  auto pod = std::make_shared<CreateOptions>();
  CLI::App* runp = verbs.Add("runp", "Run a new pod", [pod](CriClient& client) -> Result<int> {
    KEELSON_ASSIGN_OR_RETURN(const cri::PodSandboxConfig config, ReadPodConfig(pod->pod_config));
    KEELSON_ASSIGN_OR_RETURN(const std::string id, RunPod(client, config, pod->handler, pod->Timeout()));
    std::cout << id << "\n";
    return 0;
  });
  runp->add_option("POD-CONFIG", pod->pod_config, "Configuration of the pod, in JSON or YAML")->required();
  runp->add_option("-r,--runtime", pod->handler, "Handler of the runtime");
  AddTimeout(*runp, *pod);

  auto one = std::make_shared<CreateOptions>();
  CLI::App* create = verbs.Add("create", "Create a container in a pod",
                               [one](CriClient& client) { return CreateAlone(client, *one); });
  create->add_option("POD-ID", one->pod, "The pod")->required();
  create->add_option("CONTAINER-CONFIG", one->container_config, "Configuration of the container")->required();
  create->add_option("POD-CONFIG", one->pod_config, "Configuration of the pod, as given to runp")->required();
  AddPull(*create, *one);
  AddTimeout(*create, *one);

  auto all = std::make_shared<CreateOptions>();
  CLI::App* run = verbs.Add("run", "Run a container in a new pod",
                            [all](CriClient& client) { return RunAll(client, *all); });
  run->add_option("CONTAINER-CONFIG", all->container_config, "Configuration of the container")->required();
  run->add_option("POD-CONFIG", all->pod_config, "Configuration of the pod, in JSON or YAML")->required();
  run->add_option("-r,--runtime", all->handler, "Handler of the runtime");
  AddPull(*run, *all);
  AddTimeout(*run, *all);
}

}  // namespace keelson::ctl
