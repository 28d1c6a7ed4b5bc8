// For tests: a response writer that records the response.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/endpoints/context.h"
#include "lib/http/server/server.h"

namespace keelson::apiserver {

class Recorder : public http::ResponseWriter {
 public:
  void Reply(int code, http::Headers given, std::string text) override {
    status = code;
    headers = std::move(given);
    body = std::move(text);
    over_ = true;
  }
  void ReplyShared(int code, http::Headers given,
                   std::vector<std::shared_ptr<const std::string>> pieces) override {
    std::string text;
    for (const auto& piece : pieces) text += *piece;
    Reply(code, std::move(given), std::move(text));
  }
  void Start(int code, http::Headers given) override {
    status = code;
    headers = std::move(given);
  }
  bool Write(std::shared_ptr<const std::string> data) override {
    body += *data;
    return !over_;
  }
  void Finish() override { over_ = true; }
  size_t queued_bytes() const override { return 0; }
  void OnClose(std::function<void()>) override {}
  bool closed() const override { return over_; }
  Result<std::unique_ptr<http::Stream>> Upgrade(http::Headers) override {
    return Error(Code::kBadRequest, "no upgrades here");
  }

  int status = 0;
  http::Headers headers;
  std::string body;

 private:
  bool over_ = false;
};

// A GET of `target`, as the server would pass it to a path handler.
struct RecordedRequest {
  explicit RecordedRequest(const std::string& target, http::Headers headers = {}) {
    auto request = std::make_shared<http::ServerRequest>();
    size_t mark = target.find('?');
    request->method = "GET";
    request->path = target.substr(0, mark);
    if (mark != std::string::npos) request->query = http::Query::Parse(target.substr(mark + 1));
    request->headers = std::move(headers);
    context.info = ParseRequestInfo("GET", request->path, request->query);
    context.output = PlainOutput(*request);
    context.request = std::move(request);
    context.writer = reply;
  }

  std::shared_ptr<Recorder> reply = std::make_shared<Recorder>();
  Context context;
};

}  // namespace keelson::apiserver
