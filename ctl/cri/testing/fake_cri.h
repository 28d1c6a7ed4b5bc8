// A CRI server in memory on a Unix socket: pods, containers and images as a test has set them, and the calls that
// changed something.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

#include "lib/base/mutex.h"
#include "lib/rpc/proto/cri.grpc.pb.h"

namespace keelson::ctl {

namespace cri = ::runtime::v1;

class FakeCri : public cri::RuntimeService::Service, public cri::ImageService::Service {
 public:
  // Set before the server starts.
  std::vector<cri::PodSandbox> pods;
  std::vector<cri::Container> containers;
  std::vector<cri::Image> images;
  std::string log_path;

  std::vector<std::string> Calls() {
    MutexLock lock(mutex_);
    return calls_;
  }

  grpc::Status Version(grpc::ServerContext*, const cri::VersionRequest*,
                       cri::VersionResponse* reply) override {
    reply->set_version("0.1.0");
    reply->set_runtime_name("fake");
    reply->set_runtime_version("1.2.3");
    reply->set_runtime_api_version("v1");
    return grpc::Status::OK;
  }
  grpc::Status Status(grpc::ServerContext*, const cri::StatusRequest* request,
                      cri::StatusResponse* reply) override {
    cri::RuntimeCondition& ready = *reply->mutable_status()->add_conditions();
    ready.set_type("RuntimeReady");
    ready.set_status(true);
    reply->add_runtime_handlers()->set_name("runc");
    reply->mutable_runtime_handlers(0)->mutable_features()->set_user_namespaces(true);
    if (request->verbose()) (*reply->mutable_info())["config"] = R"({"root":"/r"})";
    return grpc::Status::OK;
  }
  grpc::Status ListPodSandbox(grpc::ServerContext*, const cri::ListPodSandboxRequest* request,
                              cri::ListPodSandboxResponse* reply) override {
    for (const cri::PodSandbox& pod : pods) {
      const bool state = !request->filter().has_state() || request->filter().state().state() == pod.state();
      if (state && pod.id().starts_with(request->filter().id())) *reply->add_items() = pod;
    }
    return grpc::Status::OK;
  }
  grpc::Status PodSandboxStatus(grpc::ServerContext*, const cri::PodSandboxStatusRequest* request,
                                cri::PodSandboxStatusResponse* reply) override {
    for (const cri::PodSandbox& pod : pods) {
      if (!pod.id().starts_with(request->pod_sandbox_id())) continue;
      reply->mutable_status()->set_id(pod.id());
      reply->mutable_status()->set_state(pod.state());
      *reply->mutable_status()->mutable_metadata() = pod.metadata();
      if (request->verbose()) (*reply->mutable_info())["info"] = R"({"pid":7})";
      return grpc::Status::OK;
    }
    return NotFound("an error occurred when try to find sandbox: not found");
  }
  grpc::Status ListContainers(grpc::ServerContext*, const cri::ListContainersRequest* request,
                              cri::ListContainersResponse* reply) override {
    for (const cri::Container& one : containers) {
      const auto& filter = request->filter();
      if (filter.has_state() && filter.state().state() != one.state()) continue;
      if (one.id().starts_with(filter.id()) && one.pod_sandbox_id().starts_with(filter.pod_sandbox_id())) {
        *reply->add_containers() = one;
      }
    }
    return grpc::Status::OK;
  }
  grpc::Status ContainerStatus(grpc::ServerContext*, const cri::ContainerStatusRequest* request,
                               cri::ContainerStatusResponse* reply) override {
    for (const cri::Container& one : containers) {
      if (!one.id().starts_with(request->container_id())) continue;
      reply->mutable_status()->set_id(one.id());
      reply->mutable_status()->set_state(one.state());
      reply->mutable_status()->set_log_path(log_path);
      *reply->mutable_status()->mutable_metadata() = one.metadata();
      return grpc::Status::OK;
    }
    return NotFound("container not found");
  }
  grpc::Status StopContainer(grpc::ServerContext*, const cri::StopContainerRequest* request,
                             cri::StopContainerResponse*) override {
    return Note("StopContainer " + request->container_id() + " " + std::to_string(request->timeout()));
  }
  grpc::Status StartContainer(grpc::ServerContext*, const cri::StartContainerRequest* request,
                              cri::StartContainerResponse*) override {
    return Note("StartContainer " + request->container_id());
  }
  grpc::Status RemoveContainer(grpc::ServerContext*, const cri::RemoveContainerRequest* request,
                               cri::RemoveContainerResponse*) override {
    return Note("RemoveContainer " + request->container_id());
  }
  grpc::Status StopPodSandbox(grpc::ServerContext*, const cri::StopPodSandboxRequest* request,
                              cri::StopPodSandboxResponse*) override {
    return Note("StopPodSandbox " + request->pod_sandbox_id());
  }
  grpc::Status RemovePodSandbox(grpc::ServerContext*, const cri::RemovePodSandboxRequest* request,
                                cri::RemovePodSandboxResponse*) override {
    return Note("RemovePodSandbox " + request->pod_sandbox_id());
  }
  grpc::Status UpdateContainerResources(grpc::ServerContext*,
                                        const cri::UpdateContainerResourcesRequest* request,
                                        cri::UpdateContainerResourcesResponse*) override {
    return Note("Update " + request->container_id() + " " + request->linux().ShortDebugString());
  }
  grpc::Status ExecSync(grpc::ServerContext*, const cri::ExecSyncRequest* request,
                        cri::ExecSyncResponse* reply) override {
    std::string words;
    for (const std::string& word : request->cmd()) words += "[" + word + "]";
    reply->set_stdout(request->container_id() + " " + words + "\n");
    reply->set_exit_code(3);
    return grpc::Status::OK;
  }
  grpc::Status ListContainerStats(grpc::ServerContext*, const cri::ListContainerStatsRequest*,
                                  cri::ListContainerStatsResponse* reply) override {
    MutexLock lock(mutex_);
    ++samples_;
    for (const cri::Container& one : containers) {
      cri::ContainerStats& stats = *reply->add_stats();
      stats.mutable_attributes()->set_id(one.id());
      *stats.mutable_attributes()->mutable_metadata() = one.metadata();
      stats.mutable_cpu()->set_timestamp(samples_ * int64_t{1000000000});
      stats.mutable_cpu()->mutable_usage_core_nano_seconds()->set_value(static_cast<uint64_t>(samples_) *
                                                                        250000000);
      stats.mutable_memory()->mutable_working_set_bytes()->set_value(1500000);
    }
    return grpc::Status::OK;
  }
  grpc::Status ListPodSandboxStats(grpc::ServerContext*, const cri::ListPodSandboxStatsRequest* request,
                                   cri::ListPodSandboxStatsResponse* reply) override {
    MutexLock lock(mutex_);
    ++samples_;
    for (const cri::PodSandbox& pod : pods) {
      if (!pod.id().starts_with(request->filter().id())) continue;
      cri::PodSandboxStats& stats = *reply->add_stats();
      stats.mutable_attributes()->set_id(pod.id());
      *stats.mutable_attributes()->mutable_metadata() = pod.metadata();
      if (pod.state() != cri::SANDBOX_READY) continue;
      stats.mutable_linux()->mutable_cpu()->set_timestamp(samples_ * int64_t{1000000000});
      stats.mutable_linux()->mutable_cpu()->mutable_usage_core_nano_seconds()->set_value(
          static_cast<uint64_t>(samples_) * 500000000);
      stats.mutable_linux()->mutable_memory()->mutable_working_set_bytes()->set_value(2500000);
    }
    return grpc::Status::OK;
  }
  // Archives nothing; of a container that does not run, as a runtime would answer.
  grpc::Status CheckpointContainer(grpc::ServerContext*, const cri::CheckpointContainerRequest* request,
                                   cri::CheckpointContainerResponse*) override {
    for (const cri::Container& one : containers) {
      if (!one.id().starts_with(request->container_id()) || one.state() != cri::CONTAINER_RUNNING) continue;
      return Note("CheckpointContainer " + request->container_id() + " " + request->location());
    }
    return NotFound("container is not running");
  }
  // No stream is served: the answer names one that refuses.
  grpc::Status Attach(grpc::ServerContext*, const cri::AttachRequest* request,
                      cri::AttachResponse* reply) override {
    reply->set_url("http://127.0.0.1:1/attach/none");
    return Note("Attach " + request->ShortDebugString());
  }
  grpc::Status GetContainerEvents(grpc::ServerContext*, const cri::GetEventsRequest*,
                                  grpc::ServerWriter<cri::ContainerEventResponse>* writer) override {
    cri::ContainerEventResponse event;
    event.set_container_id("c1");
    event.set_container_event_type(cri::CONTAINER_STARTED_EVENT);
    writer->Write(event);
    return grpc::Status::OK;
  }

  grpc::Status ListImages(grpc::ServerContext*, const cri::ListImagesRequest*,
                          cri::ListImagesResponse* reply) override {
    for (const cri::Image& image : images) *reply->add_images() = image;
    return grpc::Status::OK;
  }
  grpc::Status ImageStatus(grpc::ServerContext*, const cri::ImageStatusRequest* request,
                           cri::ImageStatusResponse* reply) override {
    for (const cri::Image& image : images) {
      const std::string& wanted = request->image().image();
      const bool tagged = !image.repo_tags().empty() && image.repo_tags(0) == wanted;
      if (image.id() == wanted || tagged) *reply->mutable_image() = image;
    }
    return grpc::Status::OK;
  }
  grpc::Status PullImage(grpc::ServerContext*, const cri::PullImageRequest* request,
                         cri::PullImageResponse* reply) override {
    reply->set_image_ref(request->image().image() + "@sha256:1");
    return Note("PullImage " + request->image().image() + " " + request->auth().username());
  }
  grpc::Status RemoveImage(grpc::ServerContext*, const cri::RemoveImageRequest* request,
                           cri::RemoveImageResponse*) override {
    return Note("RemoveImage " + request->image().image());
  }

 private:
  static grpc::Status NotFound(const char* message) { return {grpc::StatusCode::NOT_FOUND, message}; }
  grpc::Status Note(std::string call) {
    MutexLock lock(mutex_);
    calls_.push_back(std::move(call));
    return grpc::Status::OK;
  }

  Mutex mutex_;
  std::vector<std::string> calls_ KEELSON_GUARDED_BY(mutex_);
  int samples_ KEELSON_GUARDED_BY(mutex_) = 0;
};

}  // namespace keelson::ctl
