#include "lib/client/testing/fake_api_server.h"

#include <cstdlib>
#include <thread>

#include "lib/http/server/server.h"

namespace keelson::client {

struct FakeApiServer::Impl {
  std::shared_ptr<FakeApi> api;
  std::unique_ptr<http::Server> server;
  std::jthread thread;
  std::stop_source stop;

  void Serve(const http::ServerRequest& request, http::ResponseWriter& writer) {
    ApiRequest forwarded{
        .method = request.method,
        .target = request.raw_path + (request.raw_query.empty() ? "" : "?" + request.raw_query),
        .content_type = std::string(request.headers.Get("Content-Type")),
        .accept = std::string(request.headers.Get("Accept")),
        .body = request.body};
    if (request.query.Get("watch") != "true") {
      auto answer = api->Do(forwarded, std::chrono::seconds(10), stop.get_token());
      if (!answer) return writer.Reply(503, {}, answer.error().message());
      return writer.Reply(answer->status, {{"Content-Type", answer->content_type}}, answer->body);
    }
    auto stream = api->Open(forwarded, stop.get_token());
    if (!stream) return writer.Reply(410, {}, stream.error().message());
    writer.Start(200, {{"Content-Type", "application/vnd.kubernetes.protobuf;stream=watch"}});
    while (!writer.closed() && !stop.stop_requested()) {
      auto bytes = (*stream)->Read(stop.get_token(), std::chrono::milliseconds(100));
      if (!bytes && bytes.error().Is(Code::kTimeout)) continue;
      if (!bytes || bytes->empty()) break;
      if (!writer.Write(std::make_shared<const std::string>(std::move(*bytes)))) break;
    }
    writer.Finish();
  }
};

FakeApiServer::FakeApiServer(const linux::NetNs& netns, std::shared_ptr<FakeApi> api)
    : impl_(std::make_unique<Impl>()) {
  impl_->api = std::move(api);
  Result<> listening = netns.Run([&]() -> Result<> {
    // A watch occupies a thread, and daemons have many.
    KEELSON_ASSIGN_OR_RETURN(
        impl_->server,
        http::Server::Listen({.worker_threads = 32}, [impl = impl_.get()](auto request, auto writer) {
          impl->Serve(*request, *writer);
        }));
    return {};
  });
  if (!listening) std::abort();
  impl_->thread = std::jthread([impl = impl_.get()](std::stop_token stop) {
    (void)impl->server->Run(stop, std::chrono::milliseconds(0));
  });
}

FakeApiServer::~FakeApiServer() {
  impl_->stop.request_stop();
  impl_->thread.request_stop();
  impl_->thread.join();
}

uint16_t FakeApiServer::port() const { return impl_->server->port(); }

}  // namespace keelson::client
