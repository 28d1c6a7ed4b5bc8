#include "kubelet/probe/grpc_probe.h"

// Before gRPC's headers: both define thread-safety macros, and a system header may do so again.
#include "lib/rpc/channel.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

namespace keelson::kubelet {

namespace {

constexpr char kMethod[] = "/grpc.health.v1.Health/Check";

// HealthCheckRequest{string service = 1}
grpc::ByteBuffer Request(const std::string& service) {
  std::string bytes;
  if (!service.empty()) {
    bytes.push_back('\x0a');
    size_t size = service.size();
    for (; size >= 0x80; size >>= 7) bytes.push_back(static_cast<char>(size | 0x80));
    bytes.push_back(static_cast<char>(size));
    bytes += service;
  }
  grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// HealthCheckResponse{ServingStatus status = 1}: 0 UNKNOWN, 1 SERVING, 2 NOT_SERVING, 3 SERVICE_UNKNOWN
int ServingStatus(const grpc::ByteBuffer& reply) {
  grpc::Slice slice;
  if (!reply.DumpToSingleSlice(&slice).ok() || slice.size() < 2 || slice.begin()[0] != 0x08) return 0;
  return slice.begin()[1];
}

}  // namespace

ProbeOutcome CheckGrpcHealth(const std::string& host_port, const std::string& service,
                             std::chrono::seconds timeout, std::stop_token stop) {
  grpc::GenericStub stub(rpc::PlainChannel(host_port));
  rpc::Call call(timeout, std::move(stop));
  grpc::ByteBuffer request = Request(service), reply;
  grpc::CompletionQueue queue;
  grpc::Status status;
  auto reader = stub.PrepareUnaryCall(call.context(), kMethod, request, &queue);
  reader->StartCall();
  reader->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool good = false;
  queue.Next(&tag, &good);  // the call's deadline bounds the wait
  if (!status.ok()) {
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      return {ProbeOutcome::kFailure,
              "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): " +
                  status.error_message()};
    }
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      return {ProbeOutcome::kFailure,
              "timeout: health rpc did not complete within " + std::to_string(timeout.count()) + "s"};
    }
    return {ProbeOutcome::kFailure, "error: health rpc probe failed: " + status.error_message()};
  }
  int serving = ServingStatus(reply);
  if (serving == 1) return {ProbeOutcome::kSuccess, "service healthy"};
  const char* name = serving == 2 ? "NOT_SERVING" : serving == 3 ? "SERVICE_UNKNOWN" : "UNKNOWN";
  return {ProbeOutcome::kFailure, std::string("service unhealthy (responded with \"") + name + "\")"};
}

}  // namespace keelson::kubelet
