#include "ctl/cri/client.h"

#include <iostream>

#include "lib/base/file.h"

namespace keelson::ctl {
namespace {

Result<std::shared_ptr<grpc::Channel>> ConnectOne(const std::vector<std::string>& sockets,
                                                  std::chrono::milliseconds timeout) {
  for (const std::string& socket : sockets) {
    if (sockets.size() > 1 && !PathExists(socket)) continue;
    std::shared_ptr<grpc::Channel> channel = rpc::UnixChannel(socket);
    if (rpc::AwaitConnected(*channel, timeout)) return channel;
  }
  std::string tried;
  for (const std::string& socket : sockets) tried += (tried.empty() ? "unix://" : ", unix://") + socket;
  return Error(Code::kUnavailable,
               "no container runtime answers at " + tried +
                   ": it must run, and nodectl must be root; --runtime-endpoint names another");
}

}  // namespace

Result<CriClient> CriClient::Connect(const CriConnection& connection) {
  CriClient out;
  out.connection_ = connection;
  KEELSON_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> runtime,
                           ConnectOne(connection.runtime_sockets, connection.timeout));
  std::shared_ptr<grpc::Channel> images = runtime;
  if (connection.image_sockets != connection.runtime_sockets) {
    KEELSON_ASSIGN_OR_RETURN(images, ConnectOne(connection.image_sockets, connection.timeout));
  }
  out.runtime_ = cri::RuntimeService::NewStub(runtime);
  out.images_ = cri::ImageService::NewStub(images);
  return out;
}

void CriClient::Tell(const google::protobuf::Message& request) const {
  if (!connection_.debug) return;
  const std::string& name = request.GetDescriptor()->name();
  // A pull holds credentials.
  std::cerr << "nodectl: " << name << ": "
            << (name == "PullImageRequest" ? "(not shown)" : request.ShortDebugString()) << "\n";
}

}  // namespace keelson::ctl
