#include "ctl/cri/lifecycle.h"

#include <glob.h>

#include <iostream>

#include "ctl/cri/containers.h"
#include "ctl/cri/document.h"
#include "lib/base/file.h"

namespace keelson::ctl {
namespace {

void RemoveLogs(const std::string& path, const std::string& id) {
  if (path.empty()) return;
  std::vector<std::string> files = {path};
  glob_t found{};
  if (::glob((path + ".*").c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
    files.insert(files.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  ::globfree(&found);
  for (const std::string& file : files) {
    if (const Result<> gone = RemoveFile(file); !gone) {
      std::cerr << "nodectl: log file of container " << id << ": " << gone.error().message() << "\n";
    }
  }
}

template <typename Config>
Result<Config> ReadConfig(const std::string& path) {
  const Result<std::string> text = ReadFile(path);
  if (!text && text.error().Is(Code::kNotFound)) {
    return Error(Code::kNotFound, "config at " + path + " not found");
  }
  if (!text) return text.error();
  Config config;
  if (const Result<> read = ReadMessage(*text, config); !read) return read.error().Wrap(path);
  if (!config.has_metadata()) return Error(Code::kInvalid, path + ": metadata is not set");
  return config;
}

}  // namespace

Result<> StartContainer(CriClient& client, const std::string& id) {
  cri::StartContainerRequest request;
  request.set_container_id(id);
  const auto reply = client.Call(&RuntimeStub::StartContainer, request);
  if (!reply) return reply.error().Wrap("starting the container \"" + id + "\"");
  std::cout << id << "\n";
  return {};
}

Result<> StopContainer(CriClient& client, const std::string& id, int64_t grace_seconds) {
  cri::StopContainerRequest request;
  request.set_container_id(id);
  request.set_timeout(grace_seconds);
  const auto reply = client.Call(&RuntimeStub::StopContainer, request);
  if (!reply) return reply.error().Wrap("stopping the container \"" + id + "\"");
  std::cout << id << "\n";
  return {};
}

Result<> StopPod(CriClient& client, const std::string& id) {
  cri::StopPodSandboxRequest request;
  request.set_pod_sandbox_id(id);
  const auto reply = client.Call(&RuntimeStub::StopPodSandbox, request);
  if (!reply) return reply.error().Wrap("stopping the pod sandbox \"" + id + "\"");
  std::cout << "Stopped sandbox " << id << "\n";
  return {};
}

Result<> RemoveContainer(CriClient& client, const std::string& id, bool force, bool keep_logs) {
  const auto found = GetContainerStatus(client, id, false);
  if (!found) return found.error().Wrap("getting container status \"" + id + "\"");
  if (found->status().state() == cri::CONTAINER_RUNNING) {
    if (!force) {
      return Error(Code::kConflict, "container \"" + id + "\" is running, please stop it first");
    }
    KEELSON_RETURN_IF_ERROR(StopContainer(client, id, 0));
  }
  cri::RemoveContainerRequest request;
  request.set_container_id(id);
  const auto reply = client.Call(&RuntimeStub::RemoveContainer, request);
  if (!reply) return reply.error().Wrap("removing container \"" + id + "\"");
  std::cout << id << "\n";
  if (!keep_logs) RemoveLogs(found->status().log_path(), id);
  return {};
}

Result<> RemovePod(CriClient& client, const std::string& id, bool force) {
  cri::PodSandboxStatusRequest question;
  question.set_pod_sandbox_id(id);
  const auto found = client.Ask(&RuntimeStub::PodSandboxStatus, question);
  if (!found) return found.error().Wrap("getting sandbox status of pod \"" + id + "\"");
  if (found->status().state() == cri::SANDBOX_READY) {
    if (!force) {
      return Error(Code::kConflict, "pod sandbox \"" + id + "\" is running, please stop it first");
    }
    KEELSON_RETURN_IF_ERROR(StopPod(client, id));
  }
  cri::RemovePodSandboxRequest request;
  request.set_pod_sandbox_id(id);
  const auto reply = client.Call(&RuntimeStub::RemovePodSandbox, request);
  if (!reply) return reply.error().Wrap("removing the pod sandbox \"" + id + "\"");
  std::cout << "Removed sandbox " << id << "\n";
  return {};
}

Result<cri::PodSandboxConfig> ReadPodConfig(const std::string& path) {
  KEELSON_ASSIGN_OR_RETURN(cri::PodSandboxConfig config, ReadConfig<cri::PodSandboxConfig>(path));
  if (config.metadata().name().empty() || config.metadata().namespace_().empty()) {
    return Error(Code::kInvalid, path + ": name or namespace is not in metadata");
  }
  if (config.metadata().uid().empty()) {
    KEELSON_ASSIGN_OR_RETURN(std::string uid, ReadFile("/proc/sys/kernel/random/uuid"));
    uid.erase(uid.find_last_not_of('\n') + 1);
    config.mutable_metadata()->set_uid(uid);
  }
  return config;
}

Result<cri::ContainerConfig> ReadContainerConfig(const std::string& path) {
  KEELSON_ASSIGN_OR_RETURN(cri::ContainerConfig config, ReadConfig<cri::ContainerConfig>(path));
  if (config.metadata().name().empty()) return Error(Code::kInvalid, path + ": name is not in metadata");
  if (config.image().image().empty()) return Error(Code::kInvalid, path + ": image is not set");
  if (config.image().user_specified_image().empty()) {
    config.mutable_image()->set_user_specified_image(config.image().image());
  }
  return config;
}

Result<std::string> PullImage(CriClient& client, const cri::PullImageRequest& request,
                              std::chrono::milliseconds timeout) {
  const auto reply = client.Call(&ImageStub::PullImage, request, timeout);
  if (!reply) return reply.error().Wrap("pulling image");
  return reply->image_ref();
}

}  // namespace keelson::ctl
