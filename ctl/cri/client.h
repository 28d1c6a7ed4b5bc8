// A client of the CRI's two services. Calls block; several threads may call.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "ctl/cri/connection.h"
#include "lib/rpc/channel.h"
#include "lib/rpc/proto/cri.grpc.pb.h"

namespace keelson::ctl {

namespace cri = ::runtime::v1;

class CriClient {
 public:
  // Connects to the first runtime that answers. kUnavailable: none does.
  static Result<CriClient> Connect(const CriConnection& connection);

  const CriConnection& connection() const { return connection_; }

  // A question: must be answered within the connection's timeout. Errors have the text of Go's grpc.
  //   client.Ask(&cri::RuntimeService::Stub::Version, request)
  template <typename Request, typename Reply, typename Stub>
  Result<Reply> Ask(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                    const Request& request) {
    return Call(method, request, connection_.timeout);
  }
  // Work: may take as long as it takes, or `timeout` if it is not 0.
  template <typename Request, typename Reply, typename Stub>
  Result<Reply> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                     const Request& request, std::chrono::milliseconds timeout = {}) {
    Tell(request);
    rpc::Call call(timeout);
    Reply reply;
    const grpc::Status status =
        (StubOf(static_cast<Stub*>(nullptr)).*method)(call.context(), request, &reply);
    if (!status.ok()) return rpc::GoError(status);
    return reply;
  }

  cri::RuntimeService::Stub& runtime() { return *runtime_; }

 private:
  CriClient() = default;
  cri::RuntimeService::Stub& StubOf(const cri::RuntimeService::Stub*) { return *runtime_; }
  cri::ImageService::Stub& StubOf(const cri::ImageService::Stub*) { return *images_; }
  void Tell(const google::protobuf::Message& request) const;  // with --debug

  CriConnection connection_;
  std::unique_ptr<cri::RuntimeService::Stub> runtime_;
  std::unique_ptr<cri::ImageService::Stub> images_;
};

// In order.
inline std::map<std::string, std::string> Items(
    const google::protobuf::Map<std::string, std::string>& items) {
  return {items.begin(), items.end()};
}

using RuntimeStub = cri::RuntimeService::Stub;
using ImageStub = cri::ImageService::Stub;

}  // namespace keelson::ctl
