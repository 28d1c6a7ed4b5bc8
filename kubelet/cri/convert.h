// Converts the plain values of types.h to and from CRI v1 messages.
#pragma once

#include <functional>
#include <string>

#include "kubelet/cri/types.h"
#include "lib/rpc/proto/cri.pb.h"

namespace keelson::kubelet::cri {

void ToWire(const SandboxConfig& in, runtime::v1::PodSandboxConfig& out);
void ToWire(const ContainerConfig& in, runtime::v1::ContainerConfig& out);
void ToWire(const LinuxResources& in, runtime::v1::LinuxContainerResources& out);
void ToWire(const AuthConfig& in, runtime::v1::AuthConfig& out);

Sandbox FromWire(const runtime::v1::PodSandbox& in);
SandboxStatus FromWire(const runtime::v1::PodSandboxStatus& in);
Container FromWire(const runtime::v1::Container& in);
ContainerStatus FromWire(const runtime::v1::ContainerStatus& in);
// Sets the reason OOMKilled where the runtime has missed the OOM kill.
void SetOomKilled(const std::function<bool(const std::string& id)>& oom_killed, ContainerStatus& status);
Image FromWire(const runtime::v1::Image& in);
RuntimeStatus FromWire(const runtime::v1::StatusResponse& in);
ContainerEvent FromWire(const runtime::v1::ContainerEventResponse& in);
ContainerStats FromWire(const runtime::v1::ContainerStats& in);
ImageFilesystems FromWire(const runtime::v1::ImageFsInfoResponse& in);

}  // namespace keelson::kubelet::cri
