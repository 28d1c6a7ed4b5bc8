// One request that the API server passes on, to an extension API server, a kubelet, a pod or a Service: bodies go both
// ways as they arrive, of any length and without a thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "controlplane/apiserver/endpoints/context.h"
#include "lib/event/loop.h"
#include "lib/http/client/client.h"

namespace keelson::apiserver {

// Changes a response on its way to the client. Calls come in order, on the loop.
class ResponseRewriter {
 public:
  virtual ~ResponseRewriter() = default;
  virtual void OnHead(http::Headers& headers) = 0;         // hop-by-hop headers are gone
  virtual std::string OnBody(std::string_view bytes) = 0;  // what can be sent so far
  virtual std::string OnEnd() = 0;                         // the rest
};

// Everything happens on the loop that HTTP clients share, so there is no lock.
class Forwarding : public http::ResponseSink, public std::enable_shared_from_this<Forwarding> {
 public:
  struct Options {
    std::chrono::milliseconds timeout = std::chrono::milliseconds::max();  // of the whole response
    bool upgrade = false;
    bool reject_redirects = true;
    bool status_errors = false;                  // a failure is a Status; else a text
    std::unique_ptr<ResponseRewriter> rewriter;  // null: the response stays as it is
    std::function<void()> on_silence;            // the server did not answer at all; may be empty
    std::function<void()> done;                  // once, when nothing more happens with the request
  };
  Forwarding(std::shared_ptr<Context> context, std::shared_ptr<http::Client> client, Options options);

  // Sends the request. The client's departure ends it.
  void Start(http::ClientRequest request);

  void OnHead(int status, const http::Headers& headers) override;
  bool OnBody(std::string_view bytes) override;
  void OnEnd() override;
  void OnUpgraded(std::unique_ptr<http::Stream> stream) override;
  void OnFail(const Error& error) override;

 private:
  void AwaitReader();
  void ClientGone();
  void Finish();  // drops what it holds

  const std::shared_ptr<event::Loop> loop_ = event::Loop::Shared();
  std::shared_ptr<Context> context_;
  std::shared_ptr<http::Client> client_;
  Options options_;
  std::shared_ptr<http::ClientCall> call_;
  std::unique_ptr<event::Timer> timer_;  // while the client reads slowly
  http::Headers upgrade_headers_;        // of a 101
  bool begun_ = false, refused_ = false, over_ = false;
};

// The headers of a response, or of a request, that go to the other side.
bool IsHopHeader(std::string_view name);
// A text with its line break, as upstream's aggregator writes.
void ReplyProxyError(Context& context, int status, std::string_view message);

}  // namespace keelson::apiserver
