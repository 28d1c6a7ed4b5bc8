#include "lib/rpc/server.h"

#include <sys/un.h>

#include <chrono>

#include <grpcpp/grpcpp.h>

namespace keelson::rpc {

struct UnixServer::Impl {
  std::unique_ptr<grpc::Server> server;
};

Result<std::unique_ptr<UnixServer>> UnixServer::Start(const std::string& path,
                                                      const std::vector<grpc::Service*>& services) {
  // gRPC itself would only report that there is no server.
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return Error(Code::kInvalid, "listen on " + path + ": the path of a socket has at most " +
                                     std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes");
  }
  grpc::ServerBuilder builder;
  // These servers get few calls: one waiting thread is enough.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 1);
  // No need to poll every ten seconds: Shutdown() wakes the queue.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::CQ_TIMEOUT_MSEC, 24 * 3600 * 1000);
  // Two servers on one path are a mistake.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  int bound = 0;
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials(), &bound);
  for (grpc::Service* service : services) builder.RegisterService(service);
  auto impl = std::make_unique<Impl>();
  impl->server = builder.BuildAndStart();
  if (!impl->server || bound == 0) return Error(Code::kUnavailable, "listen on " + path + ": cannot bind");
  return std::unique_ptr<UnixServer>(new UnixServer(std::move(impl)));
}

UnixServer::UnixServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

UnixServer::~UnixServer() {
  impl_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  impl_->server->Wait();
}

}  // namespace keelson::rpc
