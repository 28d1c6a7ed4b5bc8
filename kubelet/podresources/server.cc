#include "kubelet/podresources/server.h"

#include <utility>

#include "lib/base/file.h"
#include "lib/base/rate_limit.h"
#include "lib/metrics/metrics.h"
#include "lib/rpc/server.h"

#include <grpcpp/grpcpp.h>

#include "lib/rpc/proto/podresources.grpc.pb.h"
#include "lib/rpc/proto/podresources_v1alpha1.grpc.pb.h"

namespace keelson::kubelet::podresources {
namespace {

metrics::Value& CounterOf(const std::string& name, const std::string& help,
                          const std::string& version = "v1") {
  return metrics::Counter("kubelet_pod_resources_endpoint_" + name,
                          help + " Broken down by server api version.", {"server_api_version"})
      .With({version});
}

metrics::Value& RequestsTotal(const std::string& version) {
  return CounterOf("requests_total", "Cumulative number of requests to the PodResource endpoint.", version);
}

struct MethodMetrics {
  MethodMetrics(const std::string& name, const std::string& method)
      : requests(
            CounterOf("requests_" + name, "Number of requests to the PodResource " + method + " endpoint.")),
        errors(CounterOf("errors_" + name, "Number of requests to the PodResource " + method +
                                               " endpoint which returned error.")) {}
  metrics::Value &requests, &errors;
};

void ToWire(const devices::ResourceDevice& in, v1::ContainerDevices& out) {
  out.set_resource_name(in.resource);
  out.add_device_ids(in.id);
  if (!in.nodes) return;
  auto& topology = *out.mutable_topology();
  for (int64_t node : *in.nodes) topology.add_nodes()->set_id(node);
}

void ToWire(const MemoryBlock& in, v1::ContainerMemory& out) {
  out.set_memory_type(in.type);
  out.set_size(in.bytes);
  auto& topology = *out.mutable_topology();
  for (int64_t node : in.nodes) topology.add_nodes()->set_id(node);
}

void ToWire(const Claim& in, v1::DynamicResource& out) {
  out.set_claim_name(in.name);
  out.set_claim_namespace(in.ns);
  for (const ClaimDevice& device : in.devices) {
    auto& item = *out.add_claim_resources();
    for (const std::string& name : device.cdi_devices) item.add_cdi_devices()->set_name(name);
    item.set_driver_name(device.driver);
    item.set_pool_name(device.pool);
    item.set_device_name(device.device);
    if (!device.share_id.empty()) item.set_share_id(device.share_id);
  }
}

void ToWire(const PodResources& in, v1::PodResources& out) {
  out.set_name(in.name);
  out.set_namespace_(in.ns);
  for (const ContainerResources& container : in.containers) {
    auto& item = *out.add_containers();
    item.set_name(container.name);
    for (const auto& device : container.devices) ToWire(device, *item.add_devices());
    for (int64_t cpu : container.cpus) item.add_cpu_ids(cpu);
    for (const MemoryBlock& block : container.memory) ToWire(block, *item.add_memory());
    for (const Claim& claim : container.claims) ToWire(claim, *item.add_dynamic_resources());
  }
}

grpc::Status Refused() {
  return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "rejected by rate limit");
}

class Service : public v1::PodResourcesLister::Service {
 public:
  Service(Lister& lister, RateLimit& limit) : lister_(lister), limit_(limit) {}

  grpc::Status List(grpc::ServerContext*, const v1::ListPodResourcesRequest*,
                    v1::ListPodResourcesResponse* reply) override {
    if (!limit_.Allow()) return Refused();
    Count(list_);
    for (const PodResources& pod : lister_.List()) ToWire(pod, *reply->add_pod_resources());
    return grpc::Status::OK;
  }

  grpc::Status Get(grpc::ServerContext*, const v1::GetPodResourcesRequest* request,
                   v1::GetPodResourcesResponse* reply) override {
    if (!limit_.Allow()) return Refused();
    Count(get_);
    std::optional<PodResources> pod = lister_.Get(request->pod_namespace(), request->pod_name());
    if (!pod) {
      get_.errors.Increment();
      return grpc::Status(grpc::StatusCode::UNKNOWN, "pod " + request->pod_name() + " in namespace " +
                                                         request->pod_namespace() + " not found");
    }
    ToWire(*pod, *reply->mutable_pod_resources());
    return grpc::Status::OK;
  }

  grpc::Status GetAllocatableResources(grpc::ServerContext*, const v1::AllocatableResourcesRequest*,
                                       v1::AllocatableResourcesResponse* reply) override {
    if (!limit_.Allow()) return Refused();
    Count(allocatable_);
    AllocatableResources all = lister_.Allocatable();
    for (const auto& device : all.devices) ToWire(device, *reply->add_devices());
    for (int64_t cpu : all.cpus) reply->add_cpu_ids(cpu);
    for (const MemoryBlock& block : all.memory) ToWire(block, *reply->add_memory());
    return grpc::Status::OK;
  }

 private:
  void Count(MethodMetrics& method) {
    requests_.Increment();
    method.requests.Increment();
  }

  Lister& lister_;
  RateLimit& limit_;
  metrics::Value& requests_ = RequestsTotal("v1");
  MethodMetrics list_{"list", "List"}, get_{"get", "Get"},
      allocatable_{"get_allocatable", "GetAllocatableResources"};
};

class OldService : public v1alpha1::PodResourcesLister::Service {
 public:
  OldService(Lister& lister, RateLimit& limit) : lister_(lister), limit_(limit) {}

  grpc::Status List(grpc::ServerContext*, const v1alpha1::ListPodResourcesRequest*,
                    v1alpha1::ListPodResourcesResponse* reply) override {
    if (!limit_.Allow()) return Refused();
    requests_.Increment();
    for (const PodResources& pod : lister_.List()) ToWire(pod, *reply->add_pod_resources());
    return grpc::Status::OK;
  }

 private:
  // It knows of no sidecars.
  static void ToWire(const PodResources& in, v1alpha1::PodResources& out) {
    out.set_name(in.name);
    out.set_namespace_(in.ns);
    for (const ContainerResources& container : in.containers) {
      if (container.sidecar) continue;
      auto& item = *out.add_containers();
      item.set_name(container.name);
      for (const auto& device : container.devices) {
        auto& entry = *item.add_devices();
        entry.set_resource_name(device.resource);
        entry.add_device_ids(device.id);
      }
    }
  }

  Lister& lister_;
  RateLimit& limit_;
  metrics::Value& requests_ = RequestsTotal("v1alpha1");
};

}  // namespace

Result<> RunServer(const ServerOptions& options, Lister& lister, std::stop_token stop,
                   const std::function<void()>& ready, Clock& clock) {
  KEELSON_RETURN_IF_ERROR(MakeDirs(options.dir, 0750));
  RateLimit limit(options.per_second, options.burst, clock);
  Service service(lister, limit);
  OldService old_service(lister, limit);
  KEELSON_ASSIGN_OR_RETURN(auto server,
                           rpc::UnixServer::Start(options.dir + "/kubelet.sock", {&service, &old_service}));
  ready();
  Mutex mutex;
  CondVar stopped;
  MutexLock lock(mutex);
  stopped.wait(mutex, stop, [] { return false; });
  return {};
}

}  // namespace keelson::kubelet::podresources
